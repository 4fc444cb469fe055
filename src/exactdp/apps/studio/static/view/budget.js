/** The budget panel: the table, factors on levels and on everything, paths, levels and queries that come and go. */

import { byId, listen } from "../dom.js";
import * as design from "../state/design.js";
import { product, Rational } from "../state/rational.js";
import { actOf } from "../state/shortcuts.js";
import { nameDialog } from "./dialogs.js";
import { dismiss, notify } from "./notices.js";
import { BudgetTable } from "./table.js";

const NAMED = {
  level: {
    names: design.levelNames,
    add: design.withLevelAdded,
    rename: design.withLevelRenamed,
    remove: design.withLevelRemoved,
  },
  query: {
    names: design.queryNames,
    add: design.withQueryAdded,
    rename: design.withQueryRenamed,
    remove: design.withQueryRemoved,
  },
};

/** The table of a store's design, with everything below it. */
export function budgetPanel(store) {
  let session = 0; // of one cell: what is typed there without leaving it is one step of undo
  const change = (edit, ...rest) => store.change(edit(store.state, ...rest));
  const askName = (what, name) => {
    const { names, add, rename, remove } = NAMED[what];
    nameDialog({
      what,
      name: name ?? "",
      taken: names(store.state.design),
      apply: (to) => (name === undefined ? change(add, to) : change(rename, name, to)),
      remove: name !== undefined && (() => change(remove, name)),
    });
  };
  const table = new BudgetTable(byId("budget-table"), {
    cell: (level, query, text, event) =>
      store.change(design.withCell(store.state, level, query, text), {
        group: `cell ${session}`,
        since: event.timeStamp,
      }),
    block: (cells, left) => {
      store.change(
        cells.reduce((state, [level, query, text]) => design.withCell(state, level, query, text), store.state),
      );
      if (left)
        notify("warning", `${left} of the values pasted lie outside of the table and were left out.`, {
          key: "paste",
          seconds: 8,
        });
    },
    typical: (level, text) => store.change(design.withTypical(store.state, level, text), { group: `typical ${level}` }),
    closeCell: () => {
      session += 1;
      store.close();
    },
    multiply: (level, factor, input) => {
      if (!isFactor(factor, input)) return;
      change(design.withLevelTimes, level, factor);
      input.value = "";
    },
    toggle: (which, level) => change(design.withToggledLevel, which, level),
    choose: (which, bypassed) => change(design.withPath, which, bypassed),
    name: askName,
  });
  listen("change", { "cell-style": ({ target }) => table.setStyle(target.value) });
  listen("click", {
    "add-path": () => change(design.withPathsAdded),
    "full-pair": () => {
      const full = design.fullPath(store.state.design);
      store.change({ ...store.state, pair: [full, full] });
    },
    "add-query": () => askName("query"),
    "add-level": () => askName("level"),
  });
  wireScale(store);
  return table;
}

/** Whether a text is a positive number; otherwise the reason is shown. */
function isFactor(text, input) {
  dismiss("factor");
  if (Rational.parse(text)?.isPositive) {
    input.removeAttribute("aria-invalid");
    return true;
  }
  input.setAttribute("aria-invalid", "true");
  const sentence = `A factor must be a positive number such as 1.1 or 9/10. Found ${text || "nothing"}.`;
  notify("error", sentence, { key: "factor" });
  return false;
}

/** The slider scales from where it was taken hold of, and rests at 1 again when it is let go. */
function wireScale(store) {
  const [slider, field] = [byId("scale"), byId("scale-by")];
  let base = null;
  slider.addEventListener("input", (event) => {
    base ??= store.state;
    field.value = slider.value;
    store.change(
      { ...design.withAllTimes(base, slider.value), ask: store.state.ask },
      { group: "slider", since: event.timeStamp },
    );
  });
  slider.addEventListener("change", () => {
    base = null;
    store.close();
    slider.value = field.value = "1";
  });
  const apply = () => {
    const factor = field.value.trim();
    if (!isFactor(factor, field)) return;
    if (product("1", factor) !== "1") store.change(design.withAllTimes(store.state, factor));
    field.value = "1";
  };
  byId("scale-apply").addEventListener("click", apply);
  field.addEventListener("keydown", (event) => actOf(event, "factor") === "apply" && apply());
}
