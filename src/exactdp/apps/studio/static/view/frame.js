/** What stands around the table and the charts: the title, the questions, which buttons can be used, light and dark. */

import { byId, listen, setText } from "../dom.js";
import { fullPath, pathNumber } from "../state/design.js";
import { keepSetting, setting } from "../state/memory.js";
import { keyOf } from "../state/shortcuts.js";

export const FIELDS = { delta: "ask-delta", epsilon: "ask-epsilon", alpha: "ask-alpha" };
const BUTTONS = ["calibrate", "optimize", "certify", "export", "share", "keep-scenario", "overall-run"];
const INPUTS = ["title", "scale", "scale-by", "scale-apply", "add-query", "add-level"];

/** Everything around the table that depends on the state alone. */
export function showFrame({ state, past, future }) {
  const { design, pair, ask } = state;
  const title = byId("title");
  const name = design.title || design.name;
  if (document.activeElement !== title && title.value !== name) title.value = name;
  if (document.title !== `${name} · exactdp studio`) document.title = `${name} · exactdp studio`;
  const cells = design.levels.reduce((sum, level) => sum + level.queries.filter(({ rho }) => rho !== "").length, 0);
  const count = design.paths.length;
  const paths = count === 1 ? "1 path" : `${count} paths · ${(count * (count + 1)) / 2} pairs`;
  setText(byId("origin"), `${design.levels.length} levels · ${cells} budgets · ${paths}`);
  for (const [name, id] of Object.entries(FIELDS)) {
    const [field, value] = [byId(id), ask[name] ?? ""];
    const shown = document.activeElement === field ? field.value.trim() : field.value;
    if (shown !== value) field.value = value;
  }
  byId("undo").disabled = !past.length;
  byId("redo").disabled = !future.length;
  for (const id of [...BUTTONS, ...INPUTS]) byId(id).disabled = false;
  byId("add-path").hidden = pair.every((bypassed) => pathNumber(design, bypassed) !== null);
  const full = fullPath(design).join("\n");
  byId("full-pair").hidden = pair.every((bypassed) => bypassed.join("\n") === full);
}

/** What the user asks: delta, epsilon, alpha. */
export function wireQuestions(store) {
  for (const [name, id] of Object.entries(FIELDS)) {
    byId(id).addEventListener("input", ({ target, timeStamp }) => {
      const ask = { ...store.state.ask, [name]: target.value.trim() };
      store.change({ ...store.state, ask }, { group: `ask ${name}`, since: timeStamp });
    });
    byId(id).addEventListener("change", () => store.close());
  }
}

/** Say on every button that has a key which one it is. */
export function nameKeys() {
  for (const button of document.querySelectorAll("[data-act]")) {
    const key = keyOf(button.dataset.act);
    button.title += ` (${key})`;
    button.setAttribute("aria-keyshortcuts", key.replace("Ctrl", "Control"));
  }
}

/** Links that skip to a part of the page, without a change of the address: it belongs to the design. */
export function wireSkips() {
  for (const link of document.querySelectorAll(".skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      document.querySelector(link.hash).focus();
    });
  }
}

/** The pair behind "Tune": whether it is open is kept in this browser, and shown or hidden with it are its rows of the table. */
export function wireTune() {
  const tune = byId("tune");
  const follow = () => document.body.classList.toggle("tuning", tune.open);
  tune.addEventListener("toggle", () => {
    follow();
    keepSetting("tune", tune.open ? "open" : "closed");
  });
  tune.open = setting("tune", "closed") === "open";
  follow();
}

export function wireTheme() {
  const { dataset } = document.documentElement;
  const isDark = () =>
    getComputedStyle(document.documentElement).colorScheme === "dark" ||
    (!dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  listen("click", {
    theme: () => {
      dataset.theme = isDark() ? "light" : "dark";
      keepSetting("theme", dataset.theme);
    },
  });
}
