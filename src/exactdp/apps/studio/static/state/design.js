/** Edits of a design: each takes a state and gives a new one. Budgets stay the exact texts that were typed. */

import { product } from "./rational.js";

/** The state of a fresh design: the full path with itself, the questions people ask first, and the counts they look up. */
export function opened(design, typical = {}) {
  const full = fullPath(design);
  const ask = { delta: "1e-10", epsilon: null, alpha: "0.05" };
  return { design, pair: [full, full], ask, kept: [], against: null, typical, lock: null };
}

/** The bypassed levels of the path that bypasses the fewest. */
export function fullPath(design) {
  return [...design.paths].sort((p, q) => p.bypassed.length - q.bypassed.length || p.number - q.number)[0].bypassed;
}

/** The same text for the same set of levels, whatever their order. */
const setKey = (levels) => [...levels].sort().join("\n");

/** The number of the path with these bypassed levels, or null if the release has none. */
export function pathNumber(design, bypassed) {
  return design.paths.find((path) => setKey(path.bypassed) === setKey(bypassed))?.number ?? null;
}

/** A path in words. */
export function pathName(number, bypassed) {
  const words = bypassed.length ? `without ${bypassed.join(", ")}` : "full path";
  return number === null ? words : `${number}: ${words}`;
}

/** What paths of a release bypass, and which levels get the budget of those. */
export function pathWords(design, numbers) {
  const sentences = numbers.map((number) => {
    const { bypassed } = design.paths.find((path) => path.number === number) ?? { bypassed: [] };
    if (!bypassed.length) return `Path ${number} bypasses nothing.`;
    const names = levelNames(design);
    const heirs = bypassed.map((name) =>
      names.slice(0, names.indexOf(name)).findLast((above) => !bypassed.includes(above)),
    );
    return `Path ${number} bypasses ${listed(bypassed)}; their budget goes to ${listed([...new Set(heirs)])}.`;
  });
  return sentences.join(" ");
}

const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

export const levelNames = (design) => design.levels.map(({ name }) => name);

/** All queries in an order that agrees with every level's own. */
export function queryNames(design) {
  const names = [];
  for (const level of design.levels) {
    let place = 0;
    for (const { name } of level.queries) {
      const at = names.indexOf(name);
      if (at >= 0) place = at + 1;
      else names.splice(place++, 0, name);
    }
  }
  return names;
}

export function cellText(level, query) {
  return level.queries.find(({ name }) => name === query)?.rho ?? "";
}

function withDesign(state, changes) {
  return { ...state, design: { ...state.design, ...changes } };
}

function withLevels(state, change) {
  return withDesign(state, { levels: state.design.levels.map(change) });
}

function withLevel(state, name, change) {
  return withLevels(state, (level) => (level.name === name ? change(level) : level));
}

/** One budget as typed; an empty text means that the query is not asked at this level. */
export function withCell(state, levelName, query, rho) {
  const order = queryNames(state.design);
  return withLevel(state, levelName, (level) => {
    if (level.queries.some(({ name }) => name === query)) {
      return { ...level, queries: level.queries.map((old) => (old.name === query ? { ...old, rho } : old)) };
    }
    const before = order.slice(0, order.indexOf(query));
    const place = level.queries.findLastIndex(({ name }) => before.includes(name)) + 1;
    return { ...level, queries: level.queries.toSpliced(place, 0, { name: query, rho }) };
  });
}

function scaledLevel(level, factor) {
  return {
    ...level,
    queries: level.queries.map((query) => ({ ...query, rho: product(query.rho, factor) ?? query.rho })),
  };
}

/** Every budget of a level times a factor, exactly. */
export function withLevelTimes(state, levelName, factor) {
  return withLevel(state, levelName, (level) => scaledLevel(level, factor));
}

/** Every budget times a factor, exactly. */
export function withAllTimes(state, factor) {
  return withLevels(state, (level) => scaledLevel(level, factor));
}

export function withTitle(state, title) {
  return withDesign(state, { title });
}

/** One of the two paths shown, by its bypassed levels, in the order of the levels. */
export function withPath(state, which, bypassed) {
  const ordered = levelNames(state.design).filter((name) => bypassed.includes(name));
  return { ...state, pair: state.pair.map((old, i) => (i === which ? ordered : old)) };
}

export function withToggledLevel(state, which, level) {
  const now = state.pair[which];
  return withPath(state, which, now.includes(level) ? now.filter((name) => name !== level) : [...now, level]);
}

/** The release with the sets of both paths shown among its paths. */
export function withPathsAdded(state) {
  return state.pair.reduce((result, bypassed) => {
    if (pathNumber(result.design, bypassed) !== null) return result;
    const number = Math.max(0, ...result.design.paths.map((path) => path.number)) + 1;
    return withDesign(result, { paths: [...result.design.paths, { number, bypassed }] });
  }, state);
}

/** A new query, asked at every level with the smallest budget found there. */
export function withQueryAdded(state, name) {
  const added = ({ queries }) => [...queries, { name, rho: queries.at(-1)?.rho ?? "1/100" }];
  return withLevels(state, (level) => ({ ...level, queries: added(level) }));
}

/** A new lowest level, with the queries and budgets of the one above it. */
export function withLevelAdded(state, name) {
  const lowest = state.design.levels.at(-1);
  return withDesign(state, {
    levels: [...state.design.levels, { name, queries: lowest.queries.map((query) => ({ ...query })) }],
  });
}

export function withQueryRenamed(state, from, to) {
  const renamed = (query) => (query.name === from ? { ...query, name: to } : query);
  return withLevels(state, (level) => ({ ...level, queries: level.queries.map(renamed) }));
}

export function withQueryRemoved(state, name) {
  return withLevels(state, (level) => ({ ...level, queries: level.queries.filter((query) => query.name !== name) }));
}

function withLevelNames(state, change) {
  const names = (list) => list.map(change).filter((name) => name !== null);
  const paths = state.design.paths.map((path) => ({ ...path, bypassed: names(path.bypassed) }));
  return { ...withDesign(state, { paths }), pair: state.pair.map(names) };
}

export function withLevelRenamed(state, from, to) {
  const renamed = withLevel(state, from, (level) => ({ ...level, name: to }));
  return withLevelNames(renamed, (name) => (name === from ? to : name));
}

/** Without a level; paths that become equal are kept once, and the new top level is bypassed by none. */
export function withLevelRemoved(state, gone) {
  const levels = state.design.levels.filter(({ name }) => name !== gone);
  const top = levels[0]?.name;
  const result = withLevelNames(withDesign(state, { levels }), (name) => (name === gone || name === top ? null : name));
  const seen = new Set();
  const paths = result.design.paths.filter(({ bypassed }) => {
    const key = setKey(bypassed);
    return !seen.has(key) && seen.add(key);
  });
  return withDesign(result, { paths });
}

/** A typical count of a level, as typed; an empty text means that none is known. */
export function withTypical(state, level, text) {
  const { [level]: _, ...rest } = state.typical;
  return { ...state, typical: text ? { ...rest, [level]: text } : rest };
}

/** The typical counts that are whole numbers, by level. */
export function typicalCounts({ design, typical }) {
  const counts = levelNames(design).map((name) => [name, Number((typical[name] ?? "").replace(/[\s,]/g, ""))]);
  return new Map(counts.filter(([, count]) => Number.isInteger(count) && count > 0));
}

/** The scenario that the others are compared with, or null. */
export function reference({ kept, against }) {
  return kept.find(({ name }) => name === against) ?? null;
}

/** The present design among the scenarios, under the next free letter, and the one to compare with. */
export function withScenarioKept(state, name = nextName(state.kept)) {
  const { design, pair } = state;
  return { ...state, kept: [...state.kept, { name, design, pair }], against: name };
}

function nextName(kept) {
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"];
  const isFree = (name) => kept.every((one) => one.name !== name);
  return letters.find(isFree) ?? `Scenario ${kept.length + 1}`;
}

/** A scenario's design in the place of the present one. */
export function withScenarioOpened(state, name) {
  const { design, pair } = state.kept.find((one) => one.name === name);
  return { ...state, design, pair };
}

export function withScenarioRenamed(state, from, to) {
  const kept = state.kept.map((one) => (one.name === from ? { ...one, name: to } : one));
  return { ...state, kept, against: state.against === from ? to : state.against };
}

export function withScenarioRemoved(state, name) {
  const kept = state.kept.filter((one) => one.name !== name);
  const against = state.against === name ? (kept.at(-1)?.name ?? null) : state.against;
  return { ...state, kept, against };
}

/** A small design to start from. */
export const SMALL = {
  name: "my-design",
  title: "My design",
  source: "",
  unit_of_privacy: "",
  levels: ["Nation", "Region"].map((name) => ({
    name,
    queries: ["total", "age * sex"].map((query) => ({ name: query, rho: "1/4" })),
  })),
  paths: [
    { number: 1, bypassed: [] },
    { number: 2, bypassed: ["Region"] },
  ],
};
