/** The studio: what the user does becomes a new state; a new state becomes numbers. */

import { Accounting } from "./ask/accounting.js";
import { get } from "./ask/api.js";
import { OverallRun } from "./ask/overall.js";
import { asked, askedPair, overallQuestion } from "./ask/questions.js";
import { byId, listen, setText } from "./dom.js";
import { Address } from "./state/address.js";
import { Scenarios } from "./ask/scenarios.js";
import { fullPath, opened, withPath, withScenarioKept, withTitle } from "./state/design.js";
import { atMost } from "./state/numerals.js";
import { actOf } from "./state/shortcuts.js";
import { Store } from "./state/store.js";
import { Board } from "./view/board.js";
import { budgetPanel } from "./view/budget.js";
import { ExchangeView } from "./view/exchange.js";
import { Frontier } from "./view/frontier.js";
import { Lock } from "./view/lock.js";
import { optimizeDialog } from "./view/optimizing.js";
import { Trade } from "./view/trade.js";
import { calibrateDialog, certifyDialog, helpDialog } from "./view/dialogs.js";
import { copyLink, exportEntries, saveDesign } from "./view/exports.js";
import { nameKeys, showFrame, wireQuestions, wireSkips, wireTheme, wireTune } from "./view/frame.js";
import { menu } from "./view/menu.js";
import { dismiss, notify } from "./view/notices.js";
import { Opening } from "./view/opening.js";
import { ReleaseView } from "./view/release.js";
import { Results } from "./view/results.js";

const store = new Store();
const address = new Address(store, {
  kept: (sentence) => (sentence ? notify("warning", sentence, { key: "long" }) : dismiss("long")),
  damaged: (error) => opening.show(error.message),
});
const opening = new Opening((state) => store.change(state, { cause: "open" }));
const table = budgetPanel(store);
const board = new Board(store);
const results = new Results(store, table, board, () => ({
  answer: accounting.answer,
  zcdp: accounting.zcdp,
  whole: overall.result,
  scenarios,
}));
const accounting = new Accounting(results, {
  first: (answer) => {
    const epsilon = answer.epsilon[0].zcdp_simple.toFixed(2);
    store.amend({ ...store.state, ask: { ...store.state.ask, epsilon } }, "first");
  },
  painted: (since) => overall.rest(since),
});
const release = new ReleaseView({
  run: () => overall.run(),
  cancel: () => overall.cancel(),
  wanted: () => overall.result ?? overall.rest(performance.now()),
  design: () => store.state.design,
  show: lookAt,
});
const overall = new OverallRun(release, {
  request: () => overallQuestion(store.state),
  done: () => {
    results.draw();
    if (store.state.kept.length) scenarios.account(() => store.state);
    lock.hold(lastCause);
    lastCause = null;
    exchange.update();
    frontier.update();
  },
  failed: (error) => notify("error", `Whole release: ${error.message}`, { key: "overall", seconds: 15 }),
});
const scenarios = new Scenarios(overall, () => {
  results.draw();
  frontier.draw();
});
const exchange = new ExchangeView(store, table);
const lock = new Lock(store, () => overall.found);
const trade = new Trade(store, () => lock.epsilon);
const frontier = new Frontier(store, scenarios);
let lastCause = null; // of a change of the design

/** Show a pair of the release, by the numbers of its paths, behind "Tune". */
function lookAt(numbers) {
  const { design } = store.state;
  const bypassed = (number) => design.paths.find((path) => path.number === number)?.bypassed ?? fullPath(design);
  byId("tune").open = true;
  store.change(numbers.reduce((state, number, i) => withPath(state, i, bypassed(number)), store.state));
}

store.addEventListener("change", ({ detail: { before, cause, since } }) => {
  const { state } = store;
  const differs = (...names) => names.some((name) => before?.[name] !== state[name]);
  if (differs("design", "pair", "ask")) accounting.account(state, since); // first: the server works while the page is drawn
  table.update(state);
  showFrame(store);
  lock.update(state);
  if (cause === "open") release.reset();
  const { levels, paths } = before?.design ?? {};
  if (differs("ask") || levels !== state.design.levels || paths !== state.design.paths) {
    overall.invalidate();
    release.stale();
    lastCause = cause;
    trade.update(state);
    if (release.isAutomatic) exchange.wait();
    else {
      exchange.update();
      frontier.update();
    }
  }
  if (differs("kept", "against", "typical")) results.draw();
  if (state.kept.length && differs("kept", "ask") && !overall.isBusy) scenarios.account(() => store.state);
  address.write(cause);
});

function certify() {
  const { state } = store;
  const worst = overall.result?.worst_pair[0]?.pair;
  certifyDialog({ design: asked(state.design), pair: askedPair(state), target: state.ask, worst });
}

function calibrate() {
  const { design, ask } = store.state;
  calibrateDialog({
    design: asked(design),
    pair: askedPair(store.state),
    target: { epsilon: ask.epsilon ?? "", delta: ask.delta },
    apply: useDesign,
  });
}

function optimize() {
  const { design, ask } = store.state;
  const present = overall.found?.epsilon[0];
  optimizeDialog({
    design: asked(design),
    levels: design.levels.map(({ name }) => name),
    target: { epsilon: lock.epsilon ?? (present ? atMost(present.upper, 5) : (ask.epsilon ?? "")), delta: ask.delta },
    apply: useDesign,
  });
}

/** Put a design that a dialog has found into the table, and keep the present one as a scenario if that is wanted. */
function useDesign(found, keep) {
  const kept = keep ? withScenarioKept(store.state) : store.state;
  store.change({ ...kept, design: found }, { cause: "calibrate" });
}

/** What both a key and a button do, or a key alone. */
const ACTS = {
  undo: ({ timeStamp }) => store.undo(timeStamp),
  redo: ({ timeStamp }) => store.redo(timeStamp),
  open: () => opening.show(),
  save: () => saveDesign(store.state, accounting.answer),
  account: () => overall.run(),
  keep: () => store.change(withScenarioKept(store.state)),
  help: helpDialog,
};

function wireButtons() {
  const { undo, redo, open, help, keep } = ACTS;
  listen("click", { undo, redo, open, help, "keep-scenario": keep, calibrate, certify, optimize });
  listen("click", {
    share: () => copyLink(address),
  });
  menu(
    byId("export"),
    byId("export-menu"),
    exportEntries(store, certify, ACTS.save, () => lock.epsilon),
  );
  byId("title").addEventListener("input", ({ target }) =>
    store.change(withTitle(store.state, target.value), { group: "title" }),
  );
  byId("title").addEventListener("change", () => store.close());
}

function wireKeys() {
  document.addEventListener("keydown", (event) => {
    if (document.querySelector("dialog[open]")) return;
    if (!store.state && actOf(event, "page") !== "open") return;
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
  wireTune();
  try {
    const [start, found] = await Promise.all([get("/start"), address.read().catch((error) => ({ error }))]);
    setText(byId("version"), `exactdp ${start.version}`);
    if (found?.error)
      opening.show(found.error.message); // and nothing else is opened in its place
    else if (found) store.restore(found.state, found.past, found.future);
    else store.change(opened(start.design, start.typical), { cause: "start" });
  } catch (error) {
    notify("error", `${error.message} Start it with: exactdp studio.`, {
      key: "begin",
      actions: [["Try again", () => location.reload()]],
    });
  }
}

begin();
