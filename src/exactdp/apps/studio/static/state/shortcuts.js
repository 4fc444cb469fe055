/** Every key that the studio listens to: where, what it does, and the words of the help for it. */

/**
 * `acts` names what a key does, with the modifiers that must be held (others do not matter); of those that fit, the
 * first counts. Ctrl is the command key of a Mac, too. What has no words is as everywhere; the help leaves it out.
 */
export const SHORTCUTS = [
  {
    where: "table",
    acts: {
      ArrowUp: "up",
      ArrowDown: "down",
      ArrowLeft: "left",
      ArrowRight: "right",
      "Shift+Enter": "previous",
      Enter: "next",
    },
    keys: "Arrow keys, Tab, Enter",
    does: "move between the cells of the table",
  },
  {
    where: "table",
    acts: { Escape: "take back" },
    keys: "Escape",
    does: "take back what was typed in a cell; close a dialog",
  },
  {
    where: "page",
    acts: { "Ctrl+Shift+Z": "redo", "Ctrl+Z": "undo", "Ctrl+Y": "redo" },
    keys: "Ctrl + Z, Ctrl + Shift + Z",
    does: "undo, redo",
  },
  { where: "page", acts: { "Ctrl+O": "open" }, keys: "Ctrl + O", does: "open a release or a file" },
  { where: "page", acts: { "Ctrl+S": "save" }, keys: "Ctrl + S", does: "save the design file" },
  { where: "page", acts: { "Ctrl+Enter": "account" }, keys: "Ctrl + Enter", does: "account for the whole release" },
  { where: "page", acts: { "Alt+A": "keep" }, keys: "Alt + A", does: "keep the present design as a scenario" },
  {
    where: "chart",
    acts: {
      ArrowLeft: "back",
      ArrowDown: "back",
      ArrowRight: "on",
      ArrowUp: "on",
      PageDown: "far back",
      PageUp: "far on",
      Home: "first",
      End: "last",
    },
    keys: "Left, right on a chart",
    does: "read the curves point by point",
  },
  { where: "page outside of fields", acts: { "?": "help" }, keys: "?", does: "this page" },
  {
    where: "menu",
    acts: { ArrowDown: "next", ArrowUp: "previous", Home: "first", End: "last", Escape: "close", Tab: "close" },
  },
  { where: "factor", acts: { Enter: "apply" } },
];

const HELD = {
  Ctrl: (event) => event.ctrlKey || event.metaKey,
  Shift: (event) => event.shiftKey,
  Alt: (event) => event.altKey,
};

function fits(event, chord) {
  const [key, ...held] = chord.split("+").reverse();
  return event.key.toLowerCase() === key.toLowerCase() && held.every((name) => HELD[name](event));
}

/** What a key does at a place; undefined where it does nothing there. */
export function actOf(event, where) {
  const found = SHORTCUTS.filter((row) => row.where === where).flatMap(({ acts }) => Object.entries(acts));
  return found.find(([chord]) => fits(event, chord))?.[1];
}

/** The key for something, as in "Ctrl+Z". */
export function keyOf(act) {
  return SHORTCUTS.flatMap(({ acts }) => Object.entries(acts)).find(([, done]) => done === act)[0];
}
