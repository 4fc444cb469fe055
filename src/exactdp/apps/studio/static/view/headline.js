/** The numbers of the pair shown: certified ends rounded to the safe side, with the conversions beside them. */

import { byId, make, setText } from "../dom.js";
import { roundedDown, roundedUp } from "../state/format.js";
import { about, atMost, exactText, oneMinus } from "../state/numerals.js";
import { Rational } from "../state/rational.js";

/** A text with "e-12" as nodes with a superscript. */
function withSuperscript(text) {
  const [mantissa, exponent] = text.split("e");
  if (exponent === undefined) return [text];
  const raised = make("sup", {}, exponent.replace("-", "−").replace("+", ""));
  return [mantissa, make("span", { className: "power" }, " × 10", raised)];
}

/** Put a number in a tile; its title says more and the safe end is in data-value. */
export function showNumber(id, text, safe, title) {
  const node = byId(id);
  if (node.dataset.text !== text) {
    node.dataset.text = text;
    node.replaceChildren(...withSuperscript(text));
  }
  node.dataset.value = String(safe);
  node.title = title;
}

function notes(id, rows) {
  const text = JSON.stringify(rows);
  const list = byId(id);
  if (list.dataset.text === text) return;
  list.dataset.text = text;
  list.replaceChildren(
    ...rows.flatMap(([name, value, className = ""]) => [
      make("dt", { className }, name),
      make("dd", { className, title: value }, value),
    ]),
  );
}

const between = (lower, upper) => `Certified: at least ${lower}, at most ${upper}`;

/** Put the upper end of a certified interval in a tile; both ends are in its title. */
function showUpper(id, { lower, upper }, digits) {
  showNumber(id, roundedUp(lower, upper, digits), upper, between(lower, upper));
}

/** What is said of the Gaussian formula, and in which style: an alarm is a difference in the digits that people quote. */
const GRADES = {
  alarm: ["too low", "estimate warn"],
  remark: ["lower, below quoted digits", "estimate"],
  none: ["no bound", "estimate"],
};

function conversions(row, digits) {
  const [worth, className] = GRADES[row.grade];
  return [
    ["zCDP optimal", atMost(row.zcdp_optimal, digits)],
    ["zCDP simple", atMost(row.zcdp_simple, digits)],
    ["Gaussian", `${about(row.gaussian, digits)}, ${worth}`, className],
  ];
}

/** Draw the answer of one pair; `zcdpBeta` is what zCDP says of beta, or null. */
export function showPair(answer, ask, zcdpBeta) {
  const [epsilon, delta, beta] = [answer.epsilon[0], answer.delta[0], answer.beta[0]];
  setText(byId("epsilon-label"), `ε of this pair at δ = ${ask.delta}`);
  showUpper("epsilon-value", epsilon);
  notes("epsilon-notes", conversions(epsilon, 6));
  if (delta) {
    setText(byId("delta-label"), `δ at ε = ${ask.epsilon ?? delta.epsilon}`);
    showUpper("delta-value", delta, 11);
    notes("delta-notes", conversions(delta, 4));
  }
  if (beta) {
    const low = 1 - beta.upper;
    setText(byId("power-label"), `Power at α = ${ask.alpha}`);
    showNumber(
      "power-value",
      roundedUp(low, beta.power, 10),
      beta.power,
      `${between(low, beta.power)}. The best test with this rate of false alarms recognises the record that was used with this probability.`,
    );
    notes("power-notes", [
      ["misses (β)", roundedDown(beta.lower, beta.upper, 8)],
      ["zCDP", zcdpBeta === null ? "…" : atMost(oneMinus(zcdpBeta), 6)],
      ["Gaussian", `${about(oneMinus(beta.gaussian), 6)}, no bound`, "estimate"],
    ]);
  }
  const rho = answer.rho;
  showNumber("rho-value", exactText(Rational.parse(rho)), rho, `rho = ${rho} exactly`);
  notes("rho-notes", [
    ["exactly", rho],
    ["√(2ρ)", about(answer.mu, 6)],
    ["queries", `${answer.mechanisms} in the pair`],
  ]);
}

/** A sentence for people who do not see the page, said when the numbers have come to rest. */
export function inWords(answer) {
  const [epsilon, beta] = [answer.epsilon[0], answer.beta[0]];
  const power = beta ? ` Power at most ${atMost(beta.power, 4)} at alpha ${beta.alpha}.` : "";
  return `This pair: epsilon at most ${roundedUp(epsilon.lower, epsilon.upper, 6)} at delta ${epsilon.delta}.${power}`;
}
