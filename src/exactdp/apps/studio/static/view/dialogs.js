/** Dialogs: calibrate to a target, certify an answer, name a level or a query, help. */

import { ask, file } from "../ask/api.js";
import { byId, make, terms } from "../dom.js";
import { wholeText } from "../state/numerals.js";
import { Rational } from "../state/rational.js";
import { SHORTCUTS } from "../state/shortcuts.js";
import { save } from "./files.js";
import { rhoText } from "./release.js";

const WORDS = [
  [
    "ε, δ",
    "No event is more than e^ε times likelier with one record than with another in its place, up to a probability of δ. Certified, rounded up.",
  ],
  [
    "Power",
    "The best test whose false-alarm rate is α recognises the record that was used with this probability, at most.",
  ],
  [
    "ρ",
    "A query of budget ρ gets discrete Gaussian noise with σ² = 1/ρ. A pair of paths spends the total once, as zCDP's ρ.",
  ],
  [
    "Pair of paths",
    "A record moves from one directed path to another. A bypassed level hands its budget to the level above.",
  ],
  [
    "zCDP, Gaussian",
    "zCDP's conversions are safe but loose. The Gaussian formula is no bound: it can be too low. Numbers with a tilde are estimates, or exact numbers that were cut.",
  ],
];

/** Fill a dialog and show it. */
export function shell(dialog, id, title, ...content) {
  const close = make(
    "button",
    { className: "icon", value: "cancel", type: "button", title: "Close (Esc)", onclick: () => dialog.close() },
    make("span", { ariaHidden: "true" }, "×"),
    make("span", { className: "hidden" }, "Close"),
  );
  dialog.replaceChildren(make("div", { className: "dialog-head" }, make("h2", { id }, title), close), ...content);
  if (!dialog.open) dialog.showModal();
}

export function field(label, id, value) {
  const input = make("input", { type: "text", id, value, autocomplete: "off", spellcheck: false });
  return make("div", { className: "field" }, make("label", { htmlFor: id }, label), input);
}

export function choice(legend, name, options, chosen) {
  const labels = options.map(([value, text]) =>
    make("label", {}, make("input", { type: "radio", name, value, checked: value === chosen }), make("span", {}, text)),
  );
  return make("fieldset", { className: "choice" }, make("legend", {}, legend), ...labels);
}

const fieldError = () => make("p", { className: "field-error", role: "alert" });
export const actions = (...children) => make("div", { className: "actions" }, ...children);
export const chosen = (dialog, name) => dialog.querySelector(`input[name="${name}"]:checked`).value;

/** The whole number in a field; what is none goes to the server as it is, to be explained. */
function wholeNumber(id) {
  const text = byId(id).value;
  return Number.isInteger(Number(text.trim())) ? Number(text.trim()) : text;
}

/** A form whose submission runs `work(signal)`; while it runs there is a bar and a way to cancel. */
export function workForm(dialog, label, fields, work) {
  const submit = make("button", { type: "submit", className: "primary" }, label);
  const cancel = make("button", { type: "button", hidden: true, onclick: () => controller?.abort() }, "Cancel");
  const bar = make("progress", { hidden: true, aria: { label: `${label}: working` } });
  const error = fieldError();
  const result = make("div", { className: "outcome", role: "status" });
  const form = make("form", { noValidate: true }, ...fields, actions(submit, cancel), bar, error, result);
  let controller = null;
  const busy = (isBusy) => {
    submit.disabled = isBusy;
    cancel.hidden = bar.hidden = !isBusy;
  };
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

/** Ask for a target, show what meets it, and hand the design to `apply(design, keep)`. */
export function calibrateDialog({ design, pair, target, apply }) {
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
      "The least noise on a grid that meets the target. That it does, and that one step less does not, are both proved, unless less is not allowed.",
    ),
    make(
      "div",
      { className: "fields" },
      field("epsilon", "calibrate-epsilon", target.epsilon),
      field("delta", "calibrate-delta", target.delta),
      field("steps of the grid (1/n)", "calibrate-grid", "1000"),
    ),
    choice(
      "Meet it",
      "calibrate-over",
      [
        ["overall", "for the whole release: every pair of paths"],
        ["pair", "for the pair behind Tune only; the release may miss it"],
      ],
      "overall",
    ),
    make("div", { className: "field" }, make("label", { htmlFor: "calibrate-level" }, "Scale the noise of"), level),
  ];
  const form = workForm(dialog, "Calibrate", fields, async (signal) => {
    const over = level.value ? "overall" : chosen(dialog, "calibrate-over");
    const [epsilon, delta] = [byId("calibrate-epsilon").value.trim(), byId("calibrate-delta").value.trim()];
    const body = { design, over, epsilon, delta, grid: wholeNumber("calibrate-grid") };
    const about = over === "pair" ? { pair } : { level: level.value || null };
    const found = await ask("/calibrate", { ...body, ...about }, signal);
    const keep = make("input", { type: "checkbox", id: "calibrate-keep", checked: true });
    const onclick = () => {
      dialog.close();
      apply(found.design, keep.checked);
    };
    const use = { type: "button", className: "primary", id: "calibrate-apply", onclick };
    return [
      make("p", { className: "statement" }, found.statement),
      make(
        "p",
        { className: "quiet" },
        `${over === "overall" ? "Proved for the whole release." : "Proved for this pair only, not for the release."} Total ρ becomes ${rhoText(found.rho)}.`,
      ),
      actions(
        make("button", use, "Use this design"),
        make("label", { className: "check" }, keep, "keep the present design as a scenario"),
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

/** An exact number of a certificate as a decimal where it is one: 1e-10 and not 1/10000000000. */
function asDecimal(text) {
  const number = Rational.parse(text);
  return number === null ? text : wholeText(number);
}

/** What a certificate of the whole design says, as rows of names and texts. */
function designRows({ claim, witness, digits, pairs, question, design, sha256 }) {
  const every = pairs === 1 ? "its only pair has" : `each of its ${pairs} pairs has`;
  const [epsilon, delta] = [claim.epsilon, claim.delta].map(asDecimal);
  const statement = `Certified: at ε = ${epsilon} ${every} a δ of at most ${delta}, to ${digits} digits.`;
  const letter = question.quantity === "delta" ? "δ" : "ε";
  const rows = [
    [question.quantity, claim[question.quantity], "certify-answer"],
    ["too small", `${letter} = ${claim.too_small}, as pair ${witness.join(", ")} proves`, "certify-witness"],
    ["fingerprint", design.fingerprint, "certify-fingerprint"],
    ["SHA-256", sha256],
  ];
  return [statement, rows];
}

/** The same for a certificate of one pair. */
function pairRows({ enclosure, question, digits, sha256 }, at) {
  const statement = `Certified: ${question.quantity} at ${question.given} = ${at}, to ${digits} digits.`;
  const rows = [
    ["at least", enclosure.lower, "certify-lower"],
    ["at most", enclosure.upper, "certify-upper"],
    ["SHA-256", sha256],
  ];
  return [statement, rows];
}

/** Certify the whole design, or one answer of the pair shown, or of the worst pair if it is known. */
export function certifyDialog({ design, pair, target, worst }) {
  const dialog = byId("certify-dialog");
  const questions = [
    ["delta", `ε at δ = ${target.delta}`],
    ["epsilon", `δ at ε = ${target.epsilon}`],
    ["alpha", `β at α = ${target.alpha}`],
  ];
  const subjects = [
    ["overall", "the whole design: every pair, and a pair that proves that less will not do (some seconds)"],
    ["shown", `the pair shown${pair.every(Number.isInteger) ? ` (${pair.join(", ")})` : ""}`],
  ];
  if (worst) subjects.push(["worst", `the worst pair (${worst.join(", ")})`]);
  const fields = [
    make(
      "p",
      { className: "lead" },
      "A certificate holds the design or the pair as exact fractions, the question, and what is proved. Anyone can check it with: exactdp verify FILE.",
    ),
    choice("About", "certify-pair", subjects, "overall"),
    choice("Question", "certify-question", questions, "delta"),
    make("div", { className: "fields" }, field("digits", "certify-digits", "10")),
  ];
  const form = workForm(dialog, "Certify", fields, async (signal) => {
    const given = chosen(dialog, "certify-question");
    const subject = chosen(dialog, "certify-pair");
    const about = subject === "overall" ? { over: "overall" } : { pair: subject === "worst" ? worst : pair };
    const body = { design, ...about, [given]: target[given], digits: wholeNumber("certify-digits") };
    const { text, name } = await file("/certify", body, signal);
    const record = JSON.parse(text);
    const [statement, rows] = subject === "overall" ? designRows(record) : pairRows(record, target[given]);
    const onclick = () => save(text, name, "application/json");
    const download = { type: "button", className: "primary", id: "certify-save", onclick };
    const entries = rows.flatMap(([term, value, id]) => [make("dt", {}, term), make("dd", id ? { id } : {}, value)]);
    return [
      make("p", { className: "statement" }, statement),
      make("dl", { className: "enclosure" }, ...entries),
      actions(make("button", download, "Save certificate")),
    ];
  });
  const ofPair = form.querySelector('input[value="alpha"]');
  const digits = form.querySelector("#certify-digits");
  form.addEventListener("change", ({ target: { name, value } }) => {
    if (name !== "certify-pair") return;
    ofPair.disabled = value === "overall";
    if (ofPair.disabled && ofPair.checked) form.querySelector('input[value="delta"]').checked = true;
    if (["10", "30"].includes(digits.value)) digits.value = value === "overall" ? "10" : "30";
  });
  ofPair.disabled = true;
  shell(dialog, "certify-heading", "Certify the design", form);
}

/** Ask for the name of a level or a query; `remove` is absent for a new one. */
export function nameDialog({ what, name, taken, apply, remove }) {
  const dialog = byId("name-dialog");
  const error = fieldError();
  const input = field(`Name of the ${what}`, "name-input", name);
  const buttons = actions(make("button", { type: "submit", className: "primary" }, name ? "Rename" : "Add"));
  if (remove) {
    const onclick = () => {
      dialog.close();
      remove();
    };
    buttons.append(make("button", { type: "button", className: "danger", onclick }, `Remove the ${what}`));
  }
  const form = make("form", { noValidate: true }, input, error, buttons);
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
  shell(dialog, "name-heading", name ? (what === "query" ? "Query" : "Level") : `New ${what}`, form);
  byId("name-input").select();
}

export function helpDialog() {
  const keys = SHORTCUTS.filter((row) => row.keys).map((row) => [make("kbd", {}, row.keys), row.does]);
  const section = (heading, className, rows) =>
    make("section", {}, make("h3", {}, heading), make("dl", { className }, ...terms(rows)));
  const content = [section("Keyboard", "shortcuts", keys), section("What the numbers mean", "terms", WORDS)];
  shell(byId("help-dialog"), "help-heading", "Keyboard and words", make("div", { className: "help" }, ...content));
}
