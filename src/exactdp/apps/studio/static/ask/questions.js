/** The bodies of the questions that are asked of the server. */

import { fullPath, pathNumber } from "../state/design.js";

const NOTHING = { delta: "1e-10", epsilon: null, alpha: "0.05" };

/** The design without the cells that are empty. */
export function asked(design) {
  const levels = design.levels.map((level) => ({ ...level, queries: level.queries.filter(({ rho }) => rho !== "") }));
  return { ...design, levels };
}

/** The numbers of the paths, or sets of levels where a set has no number. */
export function askedPair({ design, pair }) {
  return pair.map((bypassed) => pathNumber(design, bypassed) ?? bypassed);
}

function releaseQuestion(design, { delta, epsilon, alpha }) {
  return { design: asked(design), deltas: [delta], epsilons: epsilon === null ? [] : [epsilon], alphas: [alpha] };
}

/** The pair of a scenario, with its noise and curves if `rest` asks for them. */
export function pairQuestion(scenario, ask, rest) {
  return { ...releaseQuestion(scenario.design, ask), pair: askedPair(scenario), ...rest };
}

/** All pairs of a design, with the worst of them. */
export function overallQuestion({ design, ask }) {
  const curves = { delta_curve: { num: 97, least: "1e-15" }, tradeoff: { num: 101 } };
  return { ...releaseQuestion(design, ask), ...curves, worst_pair: true };
}

/** The noise of a scenario's full path. */
export function noiseQuestion({ design }) {
  const full = fullPath(design);
  return pairQuestion({ design, pair: [full, full] }, NOTHING, { delta_curve: null, tradeoff: null, noise: true });
}
