/** The studio: what the user does becomes a new state; a new state becomes numbers. */

import { Accounting } from "./accounting.js";
import { get } from "./api.js";
import { Address } from "./address.js";
import { showComparison } from "./compare.js";
import * as design from "./design.js";
import { calibrateDialog, certifyDialog, helpDialog, nameDialog } from "./dialogs.js";
import { byId, setText } from "./dom.js";
import { copyLink, exportEntries, saveDesign } from "./exports.js";
import { chartButtons, fileName, menu } from "./files.js";
import { keepSetting, setting } from "./memory.js";
import { dismiss, notify } from "./notices.js";
import { Opening } from "./opening.js";
import { Overall } from "./overall.js";
import { product, Rational } from "./rational.js";
import { Store } from "./store.js";
import { BudgetTable } from "./table.js";

const store = new Store();
const address = new Address(store);
let cellSession = 0;

const table = new BudgetTable(byId("budget-table"), {
  cell: (level, query, text, event) =>
    store.change(design.withCell(store.state, level, query, text), {
      group: `cell ${cellSession}`,
      since: event.timeStamp,
    }),
  closeCell: () => {
    cellSession += 1;
    store.close();
  },
  multiply: (level, factor, input) => {
    if (!isFactor(factor, input)) return;
    store.change(design.withLevelTimes(store.state, level, factor));
    input.value = "";
  },
  toggle: (which, level) => store.change(design.withToggledLevel(store.state, which, level)),
  choose: (which, bypassed) => store.change(design.withPath(store.state, which, bypassed)),
  nameLevel: (name) =>
    nameDialog({
      what: "level",
      name,
      taken: store.state.design.levels.map((level) => level.name),
      apply: (to) => store.change(design.withLevelRenamed(store.state, name, to)),
      remove: () => store.change(design.withLevelRemoved(store.state, name)),
    }),
  nameQuery: (name) =>
    nameDialog({
      what: "query",
      name,
      taken: design.queryNames(store.state.design),
      apply: (to) => store.change(design.withQueryRenamed(store.state, name, to)),
      remove: () => store.change(design.withQueryRemoved(store.state, name)),
    }),
});

const accounting = new Accounting(table, {
  painted: () => overall.rest(),
  first: (answer) => {
    const epsilon = answer.epsilon[0].zcdp_simple.toFixed(2);
    store.amend({ ...store.state, ask: { ...store.state.ask, epsilon } }, "first");
  },
});
accounting.drawn = (state) => showComparison(byId("compare-body"), state, accounting.kept, accounting.answer);

const overall = new Overall({
  request: () => {
    const { design: present, ask: asks } = store.state;
    return {
      design: design.asked(present),
      deltas: [asks.delta],
      epsilons: asks.epsilon === null ? [] : [asks.epsilon],
      alphas: [asks.alpha],
      delta_curve: { num: 13, least: "1e-15" },
      tradeoff: { num: 33 },
      worst_pair: true,
    };
  },
  done: (result) => accounting.setWhole(result),
  failed: (error) => notify("error", `Whole release: ${error.message}`, { key: "overall", seconds: 15 }),
});

const opening = new Opening({
  open: (state, cause) => store.change(state, { cause }),
  isOpen: () => store.state !== null,
});

/** Whether a text is a positive number; otherwise the reason is shown. */
function isFactor(text, input) {
  const isGood = Rational.parse(text)?.isPositive ?? false;
  input.toggleAttribute("aria-invalid", !isGood);
  if (!isGood) input.setAttribute("aria-invalid", "true");
  dismiss("factor");
  if (!isGood)
    notify("error", `A factor must be a positive number such as 1.1 or 9/10. Found ${text || "nothing"}.`, {
      key: "factor",
    });
  return isGood;
}

store.addEventListener("change", ({ detail: { before, cause, since } }) => {
  const { state } = store;
  table.update(state);
  showFrame(state);
  if (cause === "open") overall.reset();
  const isNewQuestion =
    !before || before.design !== state.design || before.pair !== state.pair || before.ask !== state.ask;
  if (isNewQuestion) {
    accounting.account(state, since);
    if (
      !before ||
      before.design.levels !== state.design.levels ||
      before.design.paths !== state.design.paths ||
      before.ask !== state.ask
    ) {
      overall.invalidate();
      accounting.whole = null;
    }
  }
  if (before?.a !== state.a || (before?.ask !== state.ask && state.a)) accounting.accountA(state);
  address.write(cause);
});

/** Everything around the table that depends on the state alone. */
function showFrame(state) {
  const { design: present, pair, ask: asks, a } = state;
  const title = byId("title");
  if (document.activeElement !== title) title.value = present.title || present.name;
  document.title = `${present.title || present.name} · exactdp studio`;
  const cells = present.levels.reduce((sum, level) => sum + level.queries.filter(({ rho }) => rho !== "").length, 0);
  const paths = present.paths.length;
  setText(
    byId("origin"),
    `${present.levels.length} levels · ${cells} budgets · ${paths === 1 ? "1 path" : `${paths} paths · ${(paths * (paths + 1)) / 2} pairs`}`,
  );
  for (const [id, value] of [
    ["ask-delta", asks.delta],
    ["ask-epsilon", asks.epsilon ?? ""],
    ["ask-alpha", asks.alpha],
  ]) {
    if (document.activeElement !== byId(id) || byId(id).value.trim() !== value) byId(id).value = value;
  }
  byId("undo").disabled = !store.past.length;
  byId("redo").disabled = !store.future.length;
  for (const id of ["swap", "copy-a", "drop-a"]) byId(id).disabled = !a;
  for (const id of [
    "title",
    "calibrate",
    "certify",
    "export",
    "share",
    "scale",
    "scale-by",
    "scale-apply",
    "add-query",
    "add-level",
    "keep-a",
    "overall-run",
  ])
    byId(id).disabled = false;
  byId("add-path").hidden = pair.every((bypassed) => design.pathNumber(present, bypassed) !== null);
  const full = design.fullPath(present).join("\n");
  byId("full-pair").hidden = pair.every((bypassed) => bypassed.join("\n") === full);
}

function certify() {
  const worst = overall.result && accounting.whole ? overall.result.worst_pair[0]?.pair : null;
  certifyDialog({
    design: design.asked(store.state.design),
    pair: design.askedPair(store.state),
    target: store.state.ask,
    worst,
  });
}

function calibrate() {
  const { state } = store;
  calibrateDialog({
    design: design.asked(state.design),
    pair: design.askedPair(state),
    target: { epsilon: state.ask.epsilon ?? "", delta: state.ask.delta },
    hasA: state.a !== null,
    apply: (found, keepAsA) =>
      store.change(
        { ...store.state, design: found, a: keepAsA ? design.scenario(store.state) : store.state.a },
        { cause: "calibrate" },
      ),
  });
}

/** The slider scales from where it was taken hold of, and rests at 1 again when it is let go. */
function wireScale() {
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
  field.addEventListener("keydown", (event) => event.key === "Enter" && apply());
}

function wireQuestions() {
  for (const [id, name] of [
    ["ask-delta", "delta"],
    ["ask-epsilon", "epsilon"],
    ["ask-alpha", "alpha"],
  ]) {
    byId(id).addEventListener("input", (event) => {
      const text = event.target.value.trim();
      store.change(
        { ...store.state, ask: { ...store.state.ask, [name]: text } },
        { group: `ask ${name}`, since: event.timeStamp },
      );
    });
    byId(id).addEventListener("change", () => store.close());
  }
}

function wireScenarios() {
  byId("keep-a").addEventListener("click", keepAsA);
  byId("swap").addEventListener("click", () =>
    store.change({ ...store.state, ...store.state.a, a: design.scenario(store.state) }),
  );
  byId("copy-a").addEventListener("click", () => store.change({ ...store.state, ...store.state.a }));
  byId("drop-a").addEventListener("click", () => store.change(design.withA(store.state, null)));
}

function keepAsA() {
  store.change(design.withA(store.state, design.scenario(store.state)));
}

function wireBar() {
  byId("undo").addEventListener("click", () => store.undo());
  byId("redo").addEventListener("click", () => store.redo());
  byId("open").addEventListener("click", () => opening.show());
  byId("calibrate").addEventListener("click", calibrate);
  byId("certify").addEventListener("click", certify);
  byId("share").addEventListener("click", () => copyLink(address));
  byId("help").addEventListener("click", helpDialog);
  menu(byId("export"), byId("export-menu"), exportEntries(store, certify));
  byId("title").addEventListener("input", ({ target }) =>
    store.change(design.withTitle(store.state, target.value), { group: "title" }),
  );
  byId("title").addEventListener("change", () => store.close());
  byId("theme").addEventListener("click", () => {
    const isDark =
      getComputedStyle(document.documentElement).colorScheme === "dark" ||
      (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
    document.documentElement.dataset.theme = isDark ? "light" : "dark";
    keepSetting("theme", document.documentElement.dataset.theme);
  });
}

function wireBudget() {
  byId("cell-style").addEventListener("change", ({ target }) => table.setStyle(target.value));
  byId("noise-measure").addEventListener(
    "change",
    ({ target }) =>
      accounting.answer &&
      accounting.noise.update(accounting.answer.noise[0], accounting.kept?.noise[0] ?? null, target.value),
  );
  byId("tradeoff-scale").addEventListener("change", ({ target }) => accounting.setScale(target.value));
  byId("add-path").addEventListener("click", () => store.change(design.withPathsAdded(store.state)));
  byId("full-pair").addEventListener("click", () => {
    const full = design.fullPath(store.state.design);
    store.change({ ...store.state, pair: [full, full] });
  });
  byId("add-query").addEventListener("click", () =>
    nameDialog({
      what: "query",
      name: "",
      taken: design.queryNames(store.state.design),
      apply: (name) => store.change(design.withQueryAdded(store.state, name)),
    }),
  );
  byId("add-level").addEventListener("click", () =>
    nameDialog({
      what: "level",
      name: "",
      taken: store.state.design.levels.map(({ name }) => name),
      apply: (name) => store.change(design.withLevelAdded(store.state, name)),
    }),
  );
  const automatic = byId("overall-auto");
  automatic.checked = setting("automatic", "yes") === "yes";
  automatic.addEventListener("change", () => {
    keepSetting("automatic", automatic.checked ? "yes" : "no");
    if (automatic.checked && !accounting.whole) overall.rest();
  });
}

function wireKeys() {
  for (const link of document.querySelectorAll(".skip")) {
    link.addEventListener("click", (event) => {
      event.preventDefault(); // the address belongs to the design
      document.querySelector(link.hash).focus();
    });
  }
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || !store.state) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    const isWriting = event.target.matches("input[type=text], textarea");
    const act =
      command && key === "z"
        ? event.shiftKey
          ? () => store.redo(event.timeStamp)
          : () => store.undo(event.timeStamp)
        : command && key === "y"
          ? () => store.redo(event.timeStamp)
          : command && key === "o"
            ? () => opening.show()
            : command && key === "s"
              ? () => saveDesign(store.state)
              : command && key === "enter"
                ? () => overall.run()
                : event.altKey && key === "a"
                  ? keepAsA
                  : event.key === "?" && !isWriting
                    ? helpDialog
                    : null;
    if (!act) return;
    event.preventDefault();
    act();
  });
}

async function begin() {
  wireBar();
  wireBudget();
  wireScale();
  wireQuestions();
  wireScenarios();
  wireKeys();
  chartButtons(
    byId("profile-tools"),
    accounting.profile,
    "Privacy profile",
    () => `${fileName(store.state.design)}-profile`,
  );
  chartButtons(
    byId("tradeoff-tools"),
    accounting.tradeoff,
    "Trade-off",
    () => `${fileName(store.state.design)}-tradeoff`,
  );
  chartButtons(byId("noise-tools"), accounting.noise, "Noise by level", () => `${fileName(store.state.design)}-noise`);
  showComparison(byId("compare-body"), null, null, null);
  try {
    const damaged = (error) => notify("error", error.message, { key: "link" });
    const [start, found] = await Promise.all([get("/start"), address.read().catch(damaged)]);
    setText(byId("version"), `exactdp ${start.version}`);
    if (found) store.restore(found.state, found.past, found.future);
    else store.change(design.opened(start.design), { cause: "start" });
  } catch (error) {
    notify("error", `${error.message} Start it with: exactdp studio.`, {
      key: "begin",
      actions: [["Try again", () => location.reload()]],
    });
  }
}

begin();
