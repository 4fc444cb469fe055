/** A button that opens a list of commands; arrow keys move in it, Escape closes it. */

import { make } from "../dom.js";
import { actOf } from "../state/shortcuts.js";

export function menu(button, list, items) {
  const open = (isOpen) => {
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  const leave = () => {
    open(false);
    button.focus();
  };
  const entry = ({ name, note, act }) => {
    const onclick = () => {
      leave();
      act();
    };
    const words = [make("span", {}, name), make("small", {}, note)];
    return make("button", { type: "button", role: "menuitem", tabIndex: -1, onclick }, ...words);
  };
  list.replaceChildren(...items.map((item) => (item ? entry(item) : make("hr"))));
  const all = [...list.querySelectorAll("button")];
  button.addEventListener("click", () => {
    open(list.hidden);
    if (!list.hidden) all[0].focus();
  });
  list.addEventListener("keydown", (event) => {
    const act = actOf(event, "menu");
    if (!act) return;
    event.preventDefault();
    if (act === "close") return leave();
    const [at, last] = [all.indexOf(document.activeElement), all.length - 1];
    const to = { next: at < last ? at + 1 : 0, previous: at > 0 ? at - 1 : last, first: 0, last };
    all[to[act]].focus();
  });
  document.addEventListener(
    "pointerdown",
    ({ target }) => !list.hidden && !list.contains(target) && !button.contains(target) && open(false),
  );
}
