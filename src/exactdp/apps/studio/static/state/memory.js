/** Undo steps over a reload, and settings of the page: kept in this browser, never needed. */

const STEPS = "exactdp-studio/steps";
const RECENT = "exactdp-studio/recent";
const MOST_RECENT = 6;
const MOST_KEPT = 30;
const MOST_CHARACTERS = 2_000_000;

/** Keep the present state and its steps of undo beside the address they belong to, and the one that it took the place of. */
export function keepSteps({ state, past, future }, before = null) {
  try {
    const text = JSON.stringify({
      fragment: location.hash,
      before,
      state,
      past: past.slice(-MOST_KEPT),
      future: future.slice(-MOST_KEPT),
    });
    if (text.length <= MOST_CHARACTERS) sessionStorage.setItem(STEPS, text);
    else sessionStorage.removeItem(STEPS);
  } catch {
    // Without storage there are no steps after a reload; the design itself is in the address.
  }
}

/** What was kept of the page at this address, also an edit just before the reload; null if there is nothing. */
export function keptSteps() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(STEPS));
    if (kept?.fragment === location.hash) return kept;
    // a reload goes to the address of its beginning, which may have been replaced before the page was left
    const [visit] = performance.getEntriesByType("navigation");
    return kept?.before === location.hash && visit?.type === "reload" ? kept : null;
  } catch {
    return null;
  }
}

/** Designs that were open lately, the newest first: title, time and the fragment of their link. */
export function recentDesigns() {
  try {
    const found = JSON.parse(localStorage.getItem(RECENT));
    const isEntry = (one) => [one?.title, one?.fragment].every((text) => typeof text === "string");
    return Array.isArray(found) ? found.filter(isEntry) : [];
  } catch {
    return [];
  }
}

/** Keep a design among the recent ones; one title is there once. */
export function keepRecent(title, fragment) {
  const others = recentDesigns().filter((one) => one.title !== title);
  try {
    localStorage.setItem(
      RECENT,
      JSON.stringify([{ title, fragment, time: Date.now() }, ...others].slice(0, MOST_RECENT)),
    );
  } catch {
    // Without storage there are no recent designs.
  }
}

export function setting(name, otherwise) {
  try {
    return localStorage.getItem(`exactdp-studio/${name}`) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function keepSetting(name, value) {
  try {
    localStorage.setItem(`exactdp-studio/${name}`, value);
  } catch {
    // The setting lasts until the page is left.
  }
}
