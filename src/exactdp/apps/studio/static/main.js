/** The studio: what the user does becomes a new state; a new state becomes numbers. */

import { Accounting } from "./ask/accounting.js";
import { get } from "./ask/api.js";
import { OverallRun } from "./ask/overall.js";
import { asked, askedPair, overallQuestion } from "./ask/questions.js";
import { byId, listen, setText } from "./dom.js";
import { Address } from "./state/address.js";
import { opened, scenario, withTitle } from "./state/design.js";
import { actOf } from "./state/shortcuts.js";
import { Store } from "./state/store.js";
import { budgetPanel } from "./view/budget.js";
import { calibrateDialog, certifyDialog, helpDialog } from "./view/dialogs.js";
import { copyLink, exportEntries, saveDesign } from "./view/exports.js";
import { nameKeys, showFrame, wireQuestions, wireSkips, wireTheme } from "./view/frame.js";
import { menu } from "./view/menu.js";
import { dismiss, notify } from "./view/notices.js";
import { Opening } from "./view/opening.js";
import { OverallTile } from "./view/overall_tile.js";
import { Results } from "./view/results.js";

const store = new Store();
const address = new Address(store, {
  kept: (sentence) => (sentence ? notify("warning", sentence, { key: "long" }) : dismiss("long")),
  damaged: (error) => notify("error", error.message, { key: "link" }),
});
const opening = new Opening((state) => store.change(state, { cause: "open" }));
const table = budgetPanel(store);
const results = new Results(store, table, () => ({
  answer: accounting.answer,
  kept: accounting.kept,
  zcdp: accounting.zcdp,
  whole: overall.result,
}));
const accounting = new Accounting(results, {
  first: (answer) => {
    const epsilon = answer.epsilon[0].zcdp_simple.toFixed(2);
    store.amend({ ...store.state, ask: { ...store.state.ask, epsilon } }, "first");
  },
  painted: () => overall.rest(),
});
const tile = new OverallTile({
  run: () => overall.run(),
  cancel: () => overall.cancel(),
  wanted: () => overall.result ?? overall.rest(),
});
const overall = new OverallRun(tile, {
  request: () => overallQuestion(store.state),
  done: () => results.draw(),
  failed: (error) => notify("error", `Whole release: ${error.message}`, { key: "overall", seconds: 15 }),
});

store.addEventListener("change", ({ detail: { before, cause, since } }) => {
  const { state } = store;
  const differs = (...names) => names.some((name) => before?.[name] !== state[name]);
  table.update(state);
  showFrame(store);
  if (cause === "open") tile.reset();
  if (differs("design", "pair", "ask")) accounting.account(state, since);
  const { levels, paths } = before?.design ?? {};
  if (differs("ask") || levels !== state.design.levels || paths !== state.design.paths) {
    overall.invalidate();
    tile.stale();
  }
  if (differs("a") || (differs("ask") && state.a)) accounting.accountA(state);
  address.write(cause);
});

function certify() {
  const { state } = store;
  const worst = overall.result?.worst_pair[0]?.pair;
  certifyDialog({ design: asked(state.design), pair: askedPair(state), target: state.ask, worst });
}

function calibrate() {
  const { design, ask, a } = store.state;
  calibrateDialog({
    design: asked(design),
    pair: askedPair(store.state),
    target: { epsilon: ask.epsilon ?? "", delta: ask.delta },
    hasA: a !== null,
    apply: (found, keepAsA) => {
      const kept = keepAsA ? scenario(store.state) : store.state.a;
      store.change({ ...store.state, design: found, a: kept }, { cause: "calibrate" });
    },
  });
}

/** What both a key and a button do, or a key alone. */
const ACTS = {
  undo: ({ timeStamp }) => store.undo(timeStamp),
  redo: ({ timeStamp }) => store.redo(timeStamp),
  open: () => opening.show(),
  save: () => saveDesign(store.state, accounting.answer),
  account: () => overall.run(),
  keep: () => store.change({ ...store.state, a: scenario(store.state) }),
  help: helpDialog,
};

function wireButtons() {
  const { undo, redo, open, help, keep } = ACTS;
  listen("click", { undo, redo, open, help, "keep-a": keep, calibrate, certify });
  listen("click", {
    share: () => copyLink(address),
    swap: () => store.change({ ...store.state, ...store.state.a, a: scenario(store.state) }),
    "copy-a": () => store.change({ ...store.state, ...store.state.a }),
    "drop-a": () => store.change({ ...store.state, a: null }),
  });
  menu(byId("export"), byId("export-menu"), exportEntries(store, certify, ACTS.save));
  byId("title").addEventListener("input", ({ target }) =>
    store.change(withTitle(store.state, target.value), { group: "title" }),
  );
  byId("title").addEventListener("change", () => store.close());
}

function wireKeys() {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]") || !store.state) return;
    const isWriting = event.target.matches("input[type=text], textarea");
    const act = actOf(event, "page") ?? (isWriting ? undefined : actOf(event, "page outside of fields"));
    if (!act) return;
    event.preventDefault();
    ACTS[act](event);
  });
}

async function begin() {
  nameKeys();
  wireButtons();
  wireKeys();
  wireQuestions(store);
  wireSkips();
  wireTheme();
  try {
    const [start, found] = await Promise.all([get("/start"), address.read().catch(address.damaged)]);
    setText(byId("version"), `exactdp ${start.version}`);
    if (found) store.restore(found.state, found.past, found.future);
    else store.change(opened(start.design), { cause: "start" });
  } catch (error) {
    notify("error", `${error.message} Start it with: exactdp studio.`, {
      key: "begin",
      actions: [["Try again", () => location.reload()]],
    });
  }
}

begin();
