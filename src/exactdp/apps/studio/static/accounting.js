/** From a state to numbers on the page: the pair, scenario A beside it, errors that leave the last good answer there. */

import { ask, Lane, Refusal, Unreachable } from "./api.js";
import { askedPair, asked, pathNumber } from "./design.js";
import { byId, setText } from "./dom.js";
import { fromLog10, short } from "./format.js";
import { inWords, showHeadline } from "./headline.js";
import { LineChart } from "./linechart.js";
import { NoiseChart } from "./noisechart.js";
import { announce, dismiss, notify } from "./notices.js";
import { pathName } from "./table.js";

const CURVE = { num: 49, least: "1e-15" };
const TRADEOFF = { num: 65 };
const ZCDP_POINTS = 25;
const MOST_CONVERSIONS = 200;
const TYPING = 400; // ms for which an unfinished number is not called an error
const SLOW = 250; // ms after which the page says that it is working
const VERY_SLOW = 700; // ms after that when the numbers shown are called those of an earlier design
const RETRY = 1500;
const FIELDS = { delta: "ask-delta", epsilon: "ask-epsilon", alpha: "ask-alpha" };

/** The body of a question about one pair. */
export function pairQuestion({ design, pair }, { delta, epsilon, alpha }) {
  return {
    design: asked(design),
    pair: askedPair({ design, pair }),
    deltas: [delta],
    epsilons: epsilon === null ? [] : [epsilon],
    alphas: [alpha],
    delta_curve: CURVE,
    tradeoff: TRADEOFF,
    noise: true,
  };
}

const log10 = (value) => (value > 0 ? Math.log10(value) : NaN);
const DECADES = [-6, 0];
const SCALES = {
  linear: {
    x: { title: "type I error α", symbol: "α", range: [0, 1], text: (value) => short(value, 4) },
    y: { title: "type II error β", range: [0, 1], text: (value) => short(value, 5) },
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

function profileSeries(answer, kept, whole) {
  const { epsilon, upper, zcdp_optimal: optimal, zcdp_simple: simple, gaussian } = answer.delta_curve;
  const series = [
    line("exact", kept ? "exact, B" : "exact", epsilon, upper),
    line("optimal", "zCDP optimal", epsilon, optimal),
    line("simple", "zCDP simple", epsilon, simple),
    line("gaussian", "Gaussian, no bound", epsilon, gaussian),
  ];
  if (kept) series.push(line("kept", "exact, A", kept.delta_curve.epsilon, kept.delta_curve.upper));
  if (whole?.delta_curve) series.push(line("whole", "all pairs", whole.delta_curve.epsilon, whole.delta_curve.upper));
  return series;
}

function tradeoffSeries(scale, answer, zcdp, kept, whole) {
  const maps = scale === "log" ? [log10, log10] : [Number, Number];
  const { alpha, beta, gaussian } = answer.tradeoff;
  const series = [
    line("exact", kept ? "exact, B" : "exact", alpha, beta, maps),
    line("optimal", "zCDP", zcdp?.tradeoff.alpha ?? [], zcdp?.tradeoff.zcdp ?? [], maps),
    line("gaussian", "Gaussian, no bound", gaussian.alpha, gaussian.beta, maps),
  ];
  if (kept) series.push(line("kept", "exact, A", kept.tradeoff.alpha, kept.tradeoff.beta, maps));
  if (whole?.tradeoff) series.push(line("whole", "all pairs", whole.tradeoff.alpha, whole.tradeoff.beta, maps));
  return series;
}

export class Accounting {
  answer = null;
  kept = null;
  whole = null;
  scale = "linear";
  #lane = new Lane();
  #laneOfA = new Lane();
  #laneOfZcdp = new Lane();
  #conversions = new Map();
  #error = null;
  #working = null;

  /** `painted()` is called after every new answer, `first(answer)` where epsilon was not asked yet. */
  constructor(table, { painted, first }) {
    Object.assign(this, { table, painted, first });
    this.profile = new LineChart(byId("profile-chart"), "Privacy profile: delta by epsilon", {
      x: { title: "ε", symbol: "ε", text: (value) => short(value, 5) },
      y: { title: "δ (log scale)", log: true, text: (value) => fromLog10(value, 5) },
    });
    this.tradeoff = new LineChart(
      byId("tradeoff-chart"),
      "Trade-off curve: type II error beta by type I error alpha",
      SCALES.linear,
    );
    this.noise = new NoiseChart(byId("noise-chart"));
  }

  /** Account for the state; `since` is when the user acted. */
  account(state, since) {
    this.state = this.shown = state;
    this.#lane.put((signal) => this.#account(state, since, signal));
    this.#showWorking(true);
  }

  /** Account for scenario A, with the same questions. */
  accountA(state) {
    this.kept = null;
    this.shown = state;
    this.draw();
    if (!state.a) return;
    this.#laneOfA.put(async (signal) => {
      try {
        this.kept = await ask("/pair", pairQuestion(state.a, state.ask), signal);
        this.draw();
      } catch (error) {
        if (error instanceof Refusal) notify("error", `Scenario A: ${error.message}`, { key: "scenario-a" });
        else if (error.name !== "AbortError" && !(error instanceof Unreachable)) throw error;
      }
    });
  }

  /** The axes of the trade-off curve: "linear" or "log". */
  setScale(scale) {
    this.scale = scale;
    this.tradeoff.axes = SCALES[scale];
    if (this.answer) this.draw();
  }

  /** The whole release's curves, or null when they belong to an earlier design. */
  setWhole(result) {
    this.whole = result;
    if (this.answer) this.draw();
  }

  async #account(state, since, signal) {
    try {
      const answer = await ask("/pair", pairQuestion(state, state.ask), signal);
      this.answer = answer;
      this.#clearErrors();
      this.draw();
      this.#measure(since);
      announce(inWords(answer));
      for (const remark of answer.remarks ?? []) notify("warning", remark, { key: "remark" });
      this.#convert(answer);
      if (state.ask.epsilon === null) this.first(answer);
      this.painted();
    } catch (error) {
      if (error.name === "AbortError") return;
      if (error instanceof Refusal) this.#refused(error, state);
      else if (error instanceof Unreachable) this.#unreachable(since);
      else throw error;
    } finally {
      if (state === this.state) this.#showWorking(false);
    }
  }

  /** zCDP's trade-off curve depends on rho alone and takes longer than the rest: it follows, and is kept. */
  #convert(answer) {
    const [rho, alpha] = [answer.rho, answer.beta[0]?.alpha];
    const key = `${rho} ${alpha}`;
    if (alpha === undefined || this.#conversions.has(key)) return;
    this.#laneOfZcdp.put(async (signal) => {
      try {
        const found = await ask("/convert", { rho, alphas: [alpha], tradeoff: ZCDP_POINTS }, signal);
        if (this.#conversions.size >= MOST_CONVERSIONS) this.#conversions.clear();
        this.#conversions.set(key, found);
        if (this.answer?.rho === rho) this.draw();
      } catch (error) {
        if (error.name !== "AbortError" && !(error instanceof Refusal) && !(error instanceof Unreachable)) throw error;
      }
    });
  }

  /** Draw everything that is known. */
  draw() {
    const { answer, kept, whole, shown } = this;
    if (!answer) return;
    const zcdp = this.#conversions.get(`${answer.rho} ${answer.beta[0]?.alpha}`);
    this.lastZcdp = zcdp ?? this.lastZcdp;
    showHeadline(answer, kept, zcdp?.beta[0]?.zcdp ?? null);
    const [epsilon, delta, beta] = [answer.epsilon[0], answer.delta[0], answer.beta[0]];
    const marks = [{ x: epsilon.upper, y: Math.log10(Number(epsilon.delta)) }];
    if (delta) marks.push({ x: Number(delta.epsilon), y: Math.log10(delta.upper) });
    this.profile.update(profileSeries(answer, kept, whole), marks);
    const map = this.scale === "log" ? log10 : Number;
    this.tradeoff.update(
      tradeoffSeries(this.scale, answer, this.lastZcdp, kept, whole),
      beta ? [{ x: map(Number(beta.alpha)), y: map(beta.lower) }] : [],
    );
    this.noise.update(answer.noise[0], kept?.noise[0] ?? null);
    const first = shown.pair[0];
    setText(byId("noise-path"), `on path ${pathName(pathNumber(shown.design, first), first)}`);
    this.drawn?.(shown);
  }

  #measure(since) {
    requestAnimationFrame(() =>
      setTimeout(() => {
        const { duration } = performance.measure("edit to paint", { start: since, end: performance.now() });
        setText(byId("latency"), `Numbers followed in ${Math.round(duration)} ms`);
      }),
    );
  }

  #clearErrors() {
    clearTimeout(this.#error);
    this.table.setError(null);
    for (const id of Object.values(FIELDS)) byId(id).removeAttribute("aria-invalid");
    for (const key of ["refusal", "gone", "scenario-a", "remark"]) dismiss(key);
    byId("stale").hidden = true;
    byId("results").classList.remove("is-stale");
    document.body.classList.remove("stale-charts");
  }

  /** Show the server's sentence where it belongs, once the user stops typing; the last good numbers stay, marked. */
  #refused(error, state) {
    clearTimeout(this.#error);
    const isTyping = document.activeElement?.matches("#budget-table input, .tile-label input");
    this.#error = setTimeout(
      () => {
        if (state !== this.state) return;
        this.#markStale();
        this.#place(error);
      },
      isTyping ? TYPING : 0,
    );
  }

  #place(error) {
    const { level, query, field = "" } = error.where ?? {};
    if (level !== undefined && query !== undefined) {
      this.table.setError({ level, query, sentence: error.message });
      return;
    }
    const input = FIELDS[field];
    if (input) byId(input).setAttribute("aria-invalid", "true");
    const isPassing = error.status === 429 || error.status === 503;
    const again = ["Try again", () => this.account(this.state, performance.now())];
    notify("error", error.message, { key: "refusal", actions: isPassing ? [again] : [] });
  }

  #unreachable(since) {
    notify(
      "error",
      "The studio's server does not answer; trying again. Start it with: exactdp studio. Your design is safe in this page.",
      { key: "gone" },
    );
    this.#markStale();
    setTimeout(() => !this.#lane.isBusy && this.account(this.state, since), RETRY);
  }

  #showWorking(isWorking) {
    clearTimeout(this.#working);
    if (isWorking) {
      this.#working = setTimeout(() => {
        byId("working").hidden = false;
        this.#working = setTimeout(() => this.#markStale(), VERY_SLOW);
      }, SLOW);
    } else byId("working").hidden = true;
  }

  /** Say that the numbers shown are those of an earlier design. */
  #markStale() {
    byId("stale").hidden = !this.answer;
    byId("results").classList.toggle("is-stale", Boolean(this.answer));
    document.body.classList.toggle("stale-charts", Boolean(this.answer));
  }
}
