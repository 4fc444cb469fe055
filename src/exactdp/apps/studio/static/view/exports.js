/** The export menu and the link: each entry makes one file. */

import { ask, file } from "../ask/api.js";
import { asked, pairQuestion } from "../ask/questions.js";
import { toFile } from "../state/share.js";
import { fileName, save } from "./files.js";
import { dismiss, notify } from "./notices.js";

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
    notify("info", "The link is copied. Whoever opens it in a studio sees this design, its questions and scenario A.", {
      key: "link",
      seconds: 6,
    });
  } catch {
    notify("warning", "The browser does not permit copying. Copy the address from its address bar.", { key: "link" });
  }
}

/** The design file: everything, scenario A included. */
export function saveDesign(state) {
  save(toFile(state), `${fileName(state.design)}.json`, "application/json");
}

async function saveBudget(design, kind) {
  const found = await ask("/export", { design });
  if (found[kind] === null) throw new Error(found.remark);
  save(found[kind], `${found.file_name ?? fileName(design)}.${kind}`, kind === "csv" ? "text/csv" : "application/toml");
}

/** A file that the server makes, saved unchanged. */
async function saveFromServer(path, body, otherwise, type, signal) {
  const { text, name } = await file(path, body, signal);
  save(text, name ?? otherwise, type);
}

/** What the menu offers to save; `certify` opens the dialog for certificates. */
export function exportEntries(store, certify) {
  const present = () => asked(store.state.design);
  const named = (rest) => `${fileName(store.state.design)}-${rest}`;
  const budget = (kind) => () => working("Making the budget file.", () => saveBudget(present(), kind));
  const tableFile = (what, name) => () => {
    const question = { ...pairQuestion(store.state, store.state.ask), what };
    return working(`Making ${name}.`, (signal) =>
      saveFromServer("/table", question, named(`${what}.csv`), "text/csv", signal),
    );
  };
  const report = () => {
    const question = { design: present(), delta: store.state.ask.delta };
    return working("Making the report. This takes some seconds.", (signal) =>
      saveFromServer("/report", question, named("report.html"), "text/html", signal),
    );
  };
  return [
    { name: "Budget file", note: "TOML", act: budget("toml") },
    { name: "Budget file", note: "CSV", act: budget("csv") },
    { name: "Design file with scenarios", note: "JSON", act: () => saveDesign(store.state) },
    null,
    { name: "Curves of this pair", note: "CSV", act: tableFile("curve", "the curves") },
    { name: "Noise of this pair", note: "CSV", act: tableFile("noise", "the table of noise") },
    { name: "All pairs", note: "CSV", act: tableFile("pairs", "the table of all pairs") },
    null,
    { name: "Certificate…", note: "JSON", act: certify },
    { name: "Report", note: "HTML", act: report },
  ];
}
