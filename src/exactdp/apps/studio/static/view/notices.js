/** Messages that do not stand in the way: a strip below the bar, one line each. */

import { byId, make } from "../dom.js";

const shown = new Map();

/** Show a message; one with the same key takes the place of the earlier. `actions` are [label, function] pairs. */
export function notify(kind, text, { key = text, actions = [], seconds = 0 } = {}) {
  dismiss(key);
  const button = (label, onclick, aria) => make("button", { type: "button", className: "small", onclick, aria }, label);
  const node = make(
    "div",
    { className: "notice", data: { kind }, role: kind === "error" ? "alert" : "status" },
    make("p", {}, text),
    ...actions.map(([label, act]) => button(label, act)),
    button("×", () => dismiss(key), { label: "Dismiss this message" }),
  );
  byId("notices").append(node);
  shown.set(key, node);
  if (seconds) setTimeout(() => shown.get(key) === node && dismiss(key), seconds * 1000);
}

export function dismiss(key) {
  shown.get(key)?.remove();
  shown.delete(key);
}

let waiting = null;

/** Say a sentence to a screen reader when things have been calm for a second. */
export function announce(text) {
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    byId("announcer").textContent = text;
  }, 1000);
}
