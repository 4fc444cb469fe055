/** Dialogs: calibrate to a target, certify an answer, name a level or a query, help. */

import { ask, file } from "./api.js";
import { byId, make } from "./dom.js";
import { fileName, save } from "./files.js";

const SHORTCUTS = [
  ["Arrow keys, Tab, Enter", "move between the cells of the table"],
  ["Escape", "take back what was typed in a cell; close a dialog"],
  ["Ctrl + Z, Ctrl + Shift + Z", "undo, redo"],
  ["Ctrl + O", "open a release or a file"],
  ["Ctrl + S", "save the design file"],
  ["Ctrl + Enter", "account for the whole release"],
  ["Alt + A", "keep the present design as scenario A"],
  ["Left, right on a chart", "read the curves point by point"],
  ["?", "this page"],
];

function shell(dialog, id, title, ...content) {
  const close = make(
    "button",
    { className: "icon", value: "cancel", type: "button", title: "Close (Esc)" },
    make("span", { ariaHidden: "true" }, "×"),
    make("span", { className: "hidden" }, "Close"),
  );
  close.addEventListener("click", () => dialog.close());
  dialog.replaceChildren(make("div", { className: "dialog-head" }, make("h2", { id }, title), close), ...content);
  if (!dialog.open) dialog.showModal();
}

function field(label, id, value, hint = "") {
  const input = make("input", { type: "text", id, value, autocomplete: "off", spellcheck: false });
  const parts = [make("label", { htmlFor: id }, label), input];
  if (hint) parts.push(make("small", {}, hint));
  return make("div", { className: "field" }, ...parts);
}

function choice(legend, name, options, chosen) {
  const labels = options.map(([value, text]) =>
    make("label", {}, make("input", { type: "radio", name, value, checked: value === chosen }), make("span", {}, text)),
  );
  return make("fieldset", { className: "choice" }, make("legend", {}, legend), ...labels);
}

const chosen = (dialog, name) => dialog.querySelector(`input[name="${name}"]:checked`).value;

/** A form whose submission runs `work(signal)`; while it runs there is a bar and a way to cancel. */
function workForm(dialog, label, fields, work) {
  const submit = make("button", { type: "submit", className: "primary" }, label);
  const cancel = make("button", { type: "button", hidden: true }, "Cancel");
  const bar = make("progress", { hidden: true, aria: { label: `${label}: working` } });
  const error = make("p", { className: "field-error" });
  error.setAttribute("role", "alert");
  const result = make("div", { className: "outcome" });
  result.setAttribute("role", "status");
  const form = make(
    "form",
    { noValidate: true },
    ...fields,
    make("div", { className: "actions" }, submit, cancel),
    bar,
    error,
    result,
  );
  let controller = null;
  const busy = (isBusy) => {
    submit.disabled = isBusy;
    cancel.hidden = bar.hidden = !isBusy;
  };
  cancel.addEventListener("click", () => controller?.abort());
  dialog.addEventListener("close", () => controller?.abort(), { once: true });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    controller = new AbortController();
    error.textContent = "";
    result.replaceChildren();
    busy(true);
    try {
      result.replaceChildren(...(await work(controller.signal)));
    } catch (problem) {
      if (problem.name !== "AbortError") error.textContent = problem.message;
    } finally {
      busy(false);
    }
  });
  return form;
}

/** Ask for a target, show what meets it, and hand the design to `apply(design, keepAsA)`. */
export function calibrateDialog({ design, pair, target, hasA, apply }) {
  const dialog = byId("calibrate-dialog");
  const level = make(
    "select",
    { id: "calibrate-level" },
    new Option("every level", ""),
    ...design.levels.map(({ name }) => new Option(`only ${name}`, name)),
  );
  const fields = [
    make(
      "p",
      { className: "lead" },
      "The least noise on a grid that meets the target. That it does, and that one step less does not, are both proved.",
    ),
    make(
      "div",
      { className: "fields" },
      field("epsilon", "calibrate-epsilon", target.epsilon),
      field("delta", "calibrate-delta", target.delta),
      field("steps of the grid", "calibrate-grid", "1000"),
    ),
    choice(
      "Meet it",
      "calibrate-over",
      [
        ["pair", "for the pair shown"],
        ["overall", "for all pairs of the release (some seconds)"],
      ],
      "pair",
    ),
    make("div", { className: "field" }, make("label", { htmlFor: "calibrate-level" }, "Scale the noise of"), level),
  ];
  const form = workForm(dialog, "Calibrate", fields, async (signal) => {
    const over = level.value ? "overall" : chosen(dialog, "calibrate-over");
    const grid = Number(byId("calibrate-grid").value.trim());
    const body = {
      design,
      over,
      epsilon: byId("calibrate-epsilon").value.trim(),
      delta: byId("calibrate-delta").value.trim(),
      grid: Number.isInteger(grid) ? grid : byId("calibrate-grid").value,
    };
    const found = await ask(
      "/calibrate",
      over === "pair" ? { ...body, pair } : { ...body, level: level.value || null },
      signal,
    );
    const keep = make("input", { type: "checkbox", id: "calibrate-keep", checked: !hasA });
    const use = make("button", { type: "button", className: "primary", id: "calibrate-apply" }, "Use this design");
    use.addEventListener("click", () => {
      dialog.close();
      apply(found.design, keep.checked);
    });
    return [
      make("p", { className: "statement" }, found.statement),
      make("p", { className: "quiet" }, `Total ρ becomes ${found.rho}.`),
      make(
        "div",
        { className: "actions" },
        use,
        make("label", { className: "check" }, keep, "keep the present design as scenario A"),
      ),
    ];
  });
  level.addEventListener("change", () => {
    if (level.value) dialog.querySelector('input[value="overall"]').checked = true;
    dialog.querySelector('input[value="pair"]').disabled = Boolean(level.value);
  });
  shell(dialog, "calibrate-heading", "Calibrate to (ε, δ)", form);
  byId("calibrate-epsilon").select();
}

/** Certify one answer of the pair shown, or of the worst pair if it is known. */
export function certifyDialog({ design, pair, target, worst }) {
  const dialog = byId("certify-dialog");
  const questions = [
    ["delta", `ε at δ = ${target.delta}`],
    ["epsilon", `δ at ε = ${target.epsilon}`],
    ["alpha", `β at α = ${target.alpha}`],
  ];
  const pairs = [["shown", `the pair shown${pair.every(Number.isInteger) ? ` (${pair.join(", ")})` : ""}`]];
  if (worst) pairs.push(["worst", `the worst pair (${worst.join(", ")})`]);
  const fields = [
    make(
      "p",
      { className: "lead" },
      "A certificate holds the composition as exact fractions, the question, and an enclosure of the answer in ball arithmetic. Anyone can check it with: exactdp verify FILE.",
    ),
    choice("Question", "certify-question", questions, "delta"),
    choice("About", "certify-pair", pairs, "shown"),
    make("div", { className: "fields" }, field("digits", "certify-digits", "30")),
  ];
  const form = workForm(dialog, "Certify", fields, async (signal) => {
    const given = chosen(dialog, "certify-question");
    const digits = Number(byId("certify-digits").value.trim());
    const about = chosen(dialog, "certify-pair") === "worst" ? worst : pair;
    const body = {
      design,
      pair: about,
      [given]: target[given],
      digits: Number.isInteger(digits) ? digits : byId("certify-digits").value,
    };
    const { text, name } = await file("/certify", body, signal);
    const record = JSON.parse(text);
    const download = make("button", { type: "button", className: "primary", id: "certify-save" }, "Save certificate");
    download.addEventListener("click", () =>
      save(text, name ?? `${fileName(design)}-certificate.json`, "application/json"),
    );
    const { lower, upper } = record.enclosure;
    const list = make(
      "dl",
      { className: "enclosure" },
      make("dt", {}, "at least"),
      make("dd", { id: "certify-lower" }, lower),
      make("dt", {}, "at most"),
      make("dd", { id: "certify-upper" }, upper),
      make("dt", {}, "SHA-256"),
      make("dd", {}, record.sha256),
    );
    return [
      make(
        "p",
        { className: "statement" },
        `Certified: ${record.question.quantity} at ${given} = ${target[given]}, to ${record.digits} digits.`,
      ),
      list,
      make("div", { className: "actions" }, download),
    ];
  });
  shell(dialog, "certify-heading", "Certify the design", form);
}

/** Ask for the name of a level or a query; `remove` is absent for a new one. */
export function nameDialog({ what, name, taken, apply, remove }) {
  const dialog = byId("name-dialog");
  const error = make("p", { className: "field-error" });
  error.setAttribute("role", "alert");
  const input = field(`Name of the ${what}`, "name-input", name);
  const actions = make(
    "div",
    { className: "actions" },
    make("button", { type: "submit", className: "primary" }, name ? "Rename" : "Add"),
  );
  if (remove) {
    const button = make("button", { type: "button", className: "danger" }, `Remove the ${what}`);
    button.addEventListener("click", () => {
      dialog.close();
      remove();
    });
    actions.append(button);
  }
  const form = make("form", { noValidate: true }, input, error, actions);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const wanted = byId("name-input").value.trim().replace(/\s+/g, " ");
    if (!wanted) error.textContent = `A ${what} must have a name. Found none; type one.`;
    else if (wanted !== name && taken.includes(wanted))
      error.textContent = `Names of ${what === "query" ? "queries" : "levels"} must differ. Found ${wanted} twice; choose another.`;
    else {
      dialog.close();
      if (wanted !== name) apply(wanted);
    }
  });
  shell(dialog, "name-heading", name ? `${what === "query" ? "Query" : "Level"}` : `New ${what}`, form);
  byId("name-input").select();
}

export function helpDialog() {
  const keys = make(
    "dl",
    { className: "shortcuts" },
    ...SHORTCUTS.flatMap(([key, does]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, does)]),
  );
  const words = [
    [
      "ε, δ",
      "No event is more than e^ε times likelier with a record than without it, up to a probability of δ. Certified.",
    ],
    ["Power", "The best test whose false-alarm rate is α finds the record with this probability."],
    [
      "ρ",
      "A query of budget ρ gets discrete Gaussian noise with σ² = 1/ρ. A pair of paths spends the total once, as zCDP's ρ.",
    ],
    [
      "Pair of paths",
      "A record moves from one directed path to another. A bypassed level hands its budget to the level above.",
    ],
    ["zCDP, Gaussian", "zCDP's conversions are safe but loose. The Gaussian formula is no bound: it can be too low."],
  ];
  const terms = make(
    "dl",
    { className: "terms" },
    ...words.flatMap(([term, meaning]) => [make("dt", {}, term), make("dd", {}, meaning)]),
  );
  shell(
    byId("help-dialog"),
    "help-heading",
    "Keyboard and words",
    make(
      "div",
      { className: "help" },
      make("section", {}, make("h3", {}, "Keyboard"), keys),
      make("section", {}, make("h3", {}, "What the numbers mean"), terms),
    ),
  );
}
