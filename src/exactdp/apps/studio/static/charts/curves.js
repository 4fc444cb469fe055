/** The curves of an answer as series of points, and the axes they are drawn on. */

import { fromLog10 } from "../state/format.js";
import { about, exactText } from "../state/numerals.js";
import { Rational } from "../state/rational.js";

const log10 = (value) => (value > 0 ? Math.log10(value) : NaN);

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
      deepest: -12,
      text: (value) => fromLog10(value, 4),
    },
    y: { title: "type II error β (log scale)", log: true, deepest: -12, text: (value) => fromLog10(value, 5) },
  },
};

/** A series of the points that both maps take to finite numbers, and of those that its line is drawn through. */
function line(id, name, x, y, [ofX, ofY] = [Number, log10], drawn = [x, y]) {
  const mapped = ([xs, ys]) =>
    xs.map((value, i) => [ofX(value), ofY(ys[i])]).filter((point) => point.every(Number.isFinite));
  const points = mapped([x, y]);
  return { id, name, x: points.map(([at]) => at), y: points.map(([, at]) => at), drawn: mapped(drawn) };
}

const ofEpsilon = [Number, log10];
const profileLine = (id, name, { epsilon, upper }) => line(id, name, epsilon, upper, ofEpsilon, above(epsilon, upper));

/**
 * The series of the privacy profile, and the points that were asked about: the whole release where it is known, the pair
 * shown beside it or until then, and a scenario that was kept.
 */
export function profile({ answer, shown, whole, kept }) {
  const leading = whole?.delta_curve ?? answer.delta_curve;
  const { epsilon, zcdp_optimal: optimal, zcdp_simple: simple, gaussian } = leading;
  const series = [
    ...(whole ? [profileLine("exact", "whole release", whole.delta_curve)] : []),
    ...(shown ? [profileLine("pair", "pair shown", shown.delta_curve)] : []),
    line("optimal", "zCDP optimal", epsilon, optimal),
    line("simple", "zCDP simple", epsilon, simple),
    line("gaussian", "Gaussian, no bound", epsilon, gaussian),
  ];
  if (kept) series.push(profileLine("kept", `scenario ${kept.name}`, kept.whole.delta_curve));
  const [atDelta, atEpsilon] = [(whole ?? answer).epsilon[0], (whole ?? answer).delta[0]];
  const marks = [{ x: atDelta.upper, y: log10(Number(atDelta.delta)) }];
  if (atEpsilon) marks.push({ x: Number(atEpsilon.epsilon), y: log10(atEpsilon.upper) });
  return [series, marks];
}

/** The series of the trade-off curve on linear or logarithmic axes, and the point that was asked about. */
export function tradeoff(scale, { answer, shown, whole, kept }, zcdp) {
  const map = scale === "log" ? log10 : Number;
  const maps = [map, map];
  const { gaussian } = answer.tradeoff;
  const curve = (id, name, { alpha, beta }) => line(id, name, alpha, beta, maps, below(alpha, beta));
  const series = [
    ...(whole ? [curve("exact", "whole release", whole.tradeoff)] : []),
    ...(shown ? [curve("pair", "pair shown", shown.tradeoff)] : []),
    line("optimal", "zCDP", zcdp?.tradeoff.alpha ?? [], zcdp?.tradeoff.zcdp ?? [], maps),
    line("gaussian", "Gaussian, no bound", gaussian.alpha, gaussian.beta, maps),
  ];
  if (kept) series.push(curve("kept", `scenario ${kept.name}`, kept.whole.tradeoff));
  const asked = (whole ?? answer).beta.slice(0, 1);
  return [series, asked.map((one) => ({ x: map(Number(one.alpha)), y: map(one.lower) }))];
}

const BETWEEN = 3; // points of a chord that is bent on the page

/**
 * Points of a curve that is above delta between its certified values, too: chords in e^epsilon, in which delta is convex.
 * The values themselves come through unchanged.
 */
function above(epsilons, deltas) {
  const [xs, ys] = [[], []];
  epsilons.forEach((x, i) => {
    xs.push(x);
    ys.push(deltas[i]);
    const next = epsilons[i + 1];
    if (next === undefined || !(deltas[i + 1] > 0)) return;
    for (let k = 1; k <= BETWEEN; k += 1) {
      const step = (k * (next - x)) / (BETWEEN + 1);
      const share = Math.expm1(step) / Math.expm1(next - x);
      xs.push(x + step);
      ys.push(deltas[i] + share * (deltas[i + 1] - deltas[i]));
    }
  });
  return [xs, ys];
}

/**
 * Points of a curve that is below beta between its certified values, too: beta is convex, so the chords on both sides,
 * made longer, are below it until they meet.
 */
function below(alphas, betas) {
  const [xs, ys] = [[], []];
  const slope = (i) => (betas[i + 1] - betas[i]) / (alphas[i + 1] - alphas[i]);
  alphas.forEach((x, i) => {
    xs.push(x);
    ys.push(betas[i]);
    if (i < 1 || i > alphas.length - 3) return;
    const [left, right] = [slope(i - 1), slope(i + 1)];
    const width = alphas[i + 1] - x;
    const meet = (betas[i + 1] - betas[i] - right * width) / (left - right);
    if (!(meet > 0 && meet < width)) return; // the curve is straight here
    xs.push(x + meet);
    ys.push(Math.max(0, betas[i] + left * meet));
  });
  return [xs, ys];
}
