/** Optimise for a requirement: what must hold, what is to be small, and the best design that is proved to do it. */

import { ask } from "../ask/api.js";
import { byId, headAndBody, make } from "../dom.js";
import { change, counted } from "../state/format.js";
import { actions, choice, chosen, field, shell, workForm } from "./dialogs.js";

const MEASURES = [
  ["variance", "the sum of all variances"],
  ["error", "the sum of all standard errors"],
  ["margin", "the sum of all 95% margins"],
];

/** What each requirement costs, if there are any. */
function costs(prices) {
  if (!prices.length) return [];
  const items = prices.map((price) => make("li", {}, price));
  return [make("p", { className: "quiet" }, "What the requirements cost, as estimates:"), make("ul", { className: "prices quiet" }, ...items)];
}

/** Ask for requirements, show the best design, and hand it to `apply(design, keep)`. */
export function optimizeDialog({ design, target, levels, apply }) {
  const dialog = byId("optimize-dialog");
  const example = `${levels.at(-1)}: margin <= 40`;
  const wanted = make("textarea", { id: "optimize-requirements", rows: 3, spellcheck: false, placeholder: example });
  const help = "One in a line: a level (and a query), a colon, and margin <= 40, error <= 12, equal, fixed, or budget >= 0.01.";
  const fields = [
    make(
      "p",
      { className: "lead" },
      "Looks for the design with the least error that meets every requirement within (ε, δ) of the whole release. That it does is proved, and how much better another one could be at most.",
    ),
    make(
      "div",
      { className: "fields" },
      field("epsilon", "optimize-epsilon", target.epsilon),
      field("delta", "optimize-delta", target.delta),
    ),
    make(
      "div",
      { className: "field" },
      make("label", { htmlFor: "optimize-requirements" }, "Requirements"),
      wanted,
      make("small", { className: "quiet" }, help),
    ),
    choice("Make small", "optimize-minimize", MEASURES, "variance"),
  ];
  const form = workForm(dialog, "Optimise", fields, async (signal) => {
    const requirements = wanted.value
      .split("\n")
      .map((line) => line.trim())
      .filter(Boolean);
    const [epsilon, delta] = ["epsilon", "delta"].map((name) => byId(`optimize-${name}`).value.trim());
    const found = await ask(
      "/optimize",
      { design, epsilon, delta, requirements, minimize: chosen(dialog, "optimize-minimize") },
      signal,
    );
    const rows = found.levels.map(({ level, before, after }) => ({
      names: [level],
      cells: [
        `±${counted(before)}`,
        `±${counted(after)}`,
        before === after ? "the same" : change(before, after),
      ],
    }));
    const keep = make("input", { type: "checkbox", id: "optimize-keep", checked: true });
    const onclick = () => {
      dialog.close();
      apply(found.design, keep.checked);
    };
    return [
      make("p", { className: "statement" }, found.statement),
      ...costs(found.prices),
      make(
        "table",
        { className: "side-by-side" },
        make("caption", {}, "Largest 95% margin of a count"),
        ...headAndBody(["Level", "now", "then", "change"], rows),
      ),
      actions(
        make("button", { type: "button", className: "primary", id: "optimize-apply", onclick }, "Use this design"),
        make("label", { className: "check" }, keep, "keep the present design as a scenario"),
      ),
    ];
  });
  shell(dialog, "optimize-heading", "Optimise for requirements", form);
}
