// Runs before the first paint, so that a reload never flashes the other theme.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("exactdp-studio/theme");
  } catch {
    // Storage may be forbidden; the system's theme is then used.
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
