/** The export menu and the link: each entry makes one file. */

import { ask, file } from "../ask/api.js";
import { asked, pairQuestion } from "../ask/questions.js";
import { typicalCounts } from "../state/design.js";
import { toFile } from "../state/share.js";
import { save } from "./files.js";
import { dismiss, notify } from "./notices.js";

const MOST_OPTIONS = 6; // scenarios in a report

/** Run something that may take a while, with a message and a way to cancel. */
async function working(text, work) {
  const controller = new AbortController();
  notify("info", text, { key: "working", actions: [["Cancel", () => controller.abort()]] });
  try {
    await work(controller.signal);
    dismiss("working");
  } catch (error) {
    dismiss("working");
    if (error.name !== "AbortError") notify("error", error.message, { key: "export" });
  }
}

/** Put the link that holds the design into the clipboard. */
export async function copyLink(address) {
  await address.writeNow();
  try {
    await navigator.clipboard.writeText(location.href);
    notify(
      "info",
      "The link is copied. Whoever opens it in a studio sees this design, its questions and the scenarios.",
      {
        key: "link",
        seconds: 6,
      },
    );
  } catch {
    notify("warning", "The browser does not permit copying. Copy the address from its address bar.", { key: "link" });
  }
}

/** The design file: everything, scenarios included; `answer` knows its name. */
export function saveDesign(state, answer) {
  save(toFile(state), `${answer?.file_name ?? "design"}.json`, "application/json");
}

async function saveBudget(design, kind) {
  const found = await ask("/export", { design });
  if (found[kind] === null) throw new Error(found.remark);
  save(found[kind], `${found.file_name}.${kind}`, kind === "csv" ? "text/csv" : "application/toml");
}

/** A file that the server makes, saved unchanged. */
async function saveFromServer(path, body, type, signal) {
  const { text, name } = await file(path, body, signal);
  save(text, name, type);
}

/** What the menu offers to save; `certify` opens the dialog for certificates, `keep` saves the design file, `held()` is a locked epsilon. */
export function exportEntries(store, certify, keep, held) {
  const present = () => asked(store.state.design);
  const budget = (kind) => () => working("Making the budget file.", () => saveBudget(present(), kind));
  const tableFile = (what, name) => () => {
    const question = { ...pairQuestion(store.state, store.state.ask), what };
    return working(`Making ${name}.`, (signal) => saveFromServer("/table", question, "text/csv", signal));
  };
  const report = () => {
    const { ask: asks, kept } = store.state;
    const against = kept.slice(0, MOST_OPTIONS).map(({ name, design }) => ({ name, design: asked(design) }));
    const typical = Object.fromEntries(typicalCounts(store.state));
    const question = { design: present(), delta: asks.delta, against, typical, within: held() };
    return working("Making the report. This takes some seconds.", (signal) =>
      saveFromServer("/report", question, "text/html", signal),
    );
  };
  return [
    { name: "Budget file", note: "TOML", act: budget("toml") },
    { name: "Budget file", note: "CSV", act: budget("csv") },
    { name: "Design file with scenarios", note: "JSON", act: keep },
    null,
    { name: "Curves of this pair", note: "CSV", act: tableFile("curve", "the curves") },
    { name: "Noise of this pair", note: "CSV", act: tableFile("noise", "the table of noise") },
    { name: "All pairs", note: "CSV", act: tableFile("pairs", "the table of all pairs") },
    null,
    { name: "Certificate…", note: "JSON", act: certify },
    { name: "Report with decision memo", note: "HTML", act: report },
  ];
}
