/** The curves of an answer as series of points, and the axes they are drawn on. */

import { fromLog10 } from "../state/format.js";
import { about, exactText } from "../state/numerals.js";
import { Rational } from "../state/rational.js";

const log10 = (value) => (value > 0 ? Math.log10(value) : NaN);
const DECADES = [-6, 0];

export const PROFILE_AXES = {
  x: { title: "ε", symbol: "ε", text: (value) => exactText(Rational.parse(String(value)), 8, 5) },
  y: { title: "δ (log scale)", log: true, text: (value) => fromLog10(value, 5) },
};

export const TRADEOFF_AXES = {
  linear: {
    x: { title: "type I error α", symbol: "α", range: [0, 1], text: (value) => about(value, 4) },
    y: { title: "type II error β", range: [0, 1], text: (value) => about(value, 5) },
  },
  log: {
    x: {
      title: "type I error α (log scale)",
      symbol: "α",
      log: true,
      range: DECADES,
      text: (value) => fromLog10(value, 4),
    },
    y: { title: "type II error β (log scale)", log: true, range: DECADES, text: (value) => fromLog10(value, 5) },
  },
};

/** A series of the points that both maps take to finite numbers. */
function line(id, name, x, y, [ofX, ofY] = [Number, log10]) {
  const points = x.map((value, i) => [ofX(value), ofY(y[i])]).filter((point) => point.every(Number.isFinite));
  return { id, name, x: points.map(([at]) => at), y: points.map(([, at]) => at) };
}

/** The series of the privacy profile, and the points that were asked about. */
export function profile(answer, kept, whole) {
  const { epsilon, upper, zcdp_optimal: optimal, zcdp_simple: simple, gaussian } = answer.delta_curve;
  const series = [
    line("exact", kept ? "exact, B" : "exact", epsilon, upper),
    line("optimal", "zCDP optimal", epsilon, optimal),
    line("simple", "zCDP simple", epsilon, simple),
    line("gaussian", "Gaussian, no bound", epsilon, gaussian),
  ];
  if (kept) series.push(line("kept", "exact, A", kept.delta_curve.epsilon, kept.delta_curve.upper));
  if (whole?.delta_curve) series.push(line("whole", "all pairs", whole.delta_curve.epsilon, whole.delta_curve.upper));
  const [atDelta, atEpsilon] = [answer.epsilon[0], answer.delta[0]];
  const marks = [{ x: atDelta.upper, y: Math.log10(Number(atDelta.delta)) }];
  if (atEpsilon) marks.push({ x: Number(atEpsilon.epsilon), y: Math.log10(atEpsilon.upper) });
  return [series, marks];
}

/** The series of the trade-off curve on linear or logarithmic axes, and the point that was asked about. */
export function tradeoff(scale, answer, zcdp, kept, whole) {
  const map = scale === "log" ? log10 : Number;
  const maps = [map, map];
  const { alpha, beta, gaussian } = answer.tradeoff;
  const series = [
    line("exact", kept ? "exact, B" : "exact", alpha, beta, maps),
    line("optimal", "zCDP", zcdp?.tradeoff.alpha ?? [], zcdp?.tradeoff.zcdp ?? [], maps),
    line("gaussian", "Gaussian, no bound", gaussian.alpha, gaussian.beta, maps),
  ];
  if (kept) series.push(line("kept", "exact, A", kept.tradeoff.alpha, kept.tradeoff.beta, maps));
  if (whole?.tradeoff) series.push(line("whole", "all pairs", whole.tradeoff.alpha, whole.tradeoff.beta, maps));
  return [series, answer.beta.slice(0, 1).map((asked) => ({ x: map(Number(asked.alpha)), y: map(asked.lower) }))];
}
