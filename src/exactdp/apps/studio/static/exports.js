/** The export menu and the link: each entry makes one file. */

import { asked, askedPair } from "./design.js";
import { fileName, save, saveBudget, saveFromServer } from "./files.js";
import { dismiss, notify } from "./notices.js";
import { toFile } from "./share.js";

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

/** What the menu offers to save; `certify` opens the dialog for certificates. */
export function exportEntries(store, certify) {
  const present = () => asked(store.state.design);
  const question = () => ({
    design: present(),
    pair: askedPair(store.state),
    deltas: [store.state.ask.delta],
    epsilons: [store.state.ask.epsilon],
    alphas: [store.state.ask.alpha],
  });
  const tableFile = (what, name) => () =>
    working(`Making ${name}.`, (signal) =>
      saveFromServer("/table", { ...question(), what }, `${fileName(present())}-${what}.csv`, "text/csv", signal),
    );
  return [
    {
      name: "Budget file",
      note: "TOML",
      act: () => working("Making the budget file.", () => saveBudget(present(), "toml")),
    },
    {
      name: "Budget file",
      note: "CSV",
      act: () => working("Making the budget file.", () => saveBudget(present(), "csv")),
    },
    { name: "Design file with scenarios", note: "JSON", act: () => saveDesign(store.state) },
    null,
    { name: "Curves of this pair", note: "CSV", act: tableFile("curve", "the curves") },
    { name: "Noise of this pair", note: "CSV", act: tableFile("noise", "the table of noise") },
    { name: "All pairs", note: "CSV", act: tableFile("pairs", "the table of all pairs") },
    null,
    { name: "Certificate…", note: "JSON", act: certify },
    {
      name: "Report",
      note: "HTML",
      act: () =>
        working("Making the report. This takes some seconds.", (signal) =>
          saveFromServer(
            "/report",
            { design: present(), delta: store.state.ask.delta },
            `${fileName(present())}-report.html`,
            "text/html",
            signal,
          ),
        ),
    },
  ];
}
