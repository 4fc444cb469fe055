/** Scenarios side by side: A as it was kept, B as it is edited. */

import { headAndBody, make } from "../dom.js";
import { change, roundedUp } from "../state/format.js";
import { about, exactText } from "../state/numerals.js";
import { Rational, total } from "../state/rational.js";

function table(caption, heads, rows) {
  const parts = headAndBody(
    heads,
    rows.map(([name, ...cells]) => ({ names: [name], cells })),
  );
  const whole = make("table", { className: "side-by-side" }, make("caption", {}, caption), ...parts);
  return make("div", { className: "frame" }, whole);
}

function difference(from, to, digits = 4) {
  const gap = to - from;
  if (gap === 0) return "0";
  return `${gap > 0 ? "+" : "−"}${about(Math.abs(gap), digits)}`;
}

function row(name, from, to, shown) {
  return [name, shown(from), shown(to), difference(safe(from), safe(to)), change(safe(from), safe(to))];
}

const safe = (value) => value?.power ?? value?.upper ?? value;
const certified = (value) => (value ? roundedUp(value.lower, value.upper, 10) : "–");

function guaranteeRows(a, b, { delta, epsilon, alpha }) {
  const power = (answer) => answer.beta[0] && { lower: 1 - answer.beta[0].upper, upper: answer.beta[0].power };
  const rows = [row(`ε at δ = ${delta}`, a.epsilon[0], b.epsilon[0], certified)];
  if (a.delta[0] && b.delta[0]) rows.push(row(`δ at ε = ${epsilon}`, a.delta[0], b.delta[0], certified));
  if (power(a) && power(b)) rows.push(row(`Power at α = ${alpha}`, power(a), power(b), certified));
  const [from, to] = [Rational.parse(a.rho), Rational.parse(b.rho)];
  const less = to.plus(from.times(new Rational(-1n)));
  const sign = less.isPositive ? "+" : "";
  rows.push([
    "Total ρ",
    exactText(from),
    exactText(to),
    sign + exactText(less).replace("-", "−"),
    change(from.toNumber(), to.toNumber()),
  ]);
  return rows;
}

function levelRows(a, b, stateA, stateB) {
  const noise = (answer) =>
    new Map(
      answer.noise[0].levels.map(({ level, queries }) => [
        level,
        Math.min(...queries.map((query) => query.standard_error)),
      ]),
    );
  const budget = (state) =>
    new Map(state.design.levels.map((level) => [level.name, total(level.queries.map(({ rho }) => rho))]));
  const [noiseA, noiseB, rhoA, rhoB] = [noise(a), noise(b), budget(stateA), budget(stateB)];
  return [...new Set([...rhoA.keys(), ...rhoB.keys()])].map((level) => {
    const [from, to] = [rhoA.get(level), rhoB.get(level)];
    const error = (found) => (found === undefined ? "bypassed" : about(found, 4));
    const text = (sum) => (sum ? exactText(sum) : "–");
    return [
      level,
      text(from),
      text(to),
      from && to ? change(from.toNumber(), to.toNumber()) : "–",
      error(noiseA.get(level)),
      error(noiseB.get(level)),
      change(noiseA.get(level) ?? NaN, noiseB.get(level) ?? NaN),
    ];
  });
}

/** Draw the comparison, or say how to make one. */
export function showComparison(host, state, kept, answer) {
  const say = (sentence) => host.replaceChildren(make("p", { className: "empty" }, sentence));
  if (!state?.a)
    return say(
      "Keep the present design as A, go on editing, and see both side by side: in the charts, the headline and here.",
    );
  if (!kept || !answer) return say("Scenario A is being accounted for.");
  host.replaceChildren(
    make(
      "div",
      { className: "tables" },
      table("Guarantee of the pair shown", ["", "A", "B", "B − A", "relative"], guaranteeRows(kept, answer, state.ask)),
      table(
        "Levels: budget ρ and least standard error of a count on path 1",
        ["Level", "ρ of A", "ρ of B", "change", "error of A", "error of B", "change"],
        levelRows(kept, answer, state.a, state),
      ),
    ),
  );
}
