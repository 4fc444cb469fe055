/** The whole release: its guarantee in one sentence, what else is known of it, and how far the account is. */

import { byId, listen, make, measure, setText } from "../dom.js";
import { pathWords } from "../state/design.js";
import { counted, roundedDown, roundedUp } from "../state/format.js";
import { about, atMost, exactText, oneMinus } from "../state/numerals.js";
import { keepSetting, setting } from "../state/memory.js";
import { Rational } from "../state/rational.js";
import { showNumber } from "./headline.js";
import { announce } from "./notices.js";

const LONG = 3; // seconds after which the progress is told in words
const QUOTED = 5; // digits of epsilon in the sentence; its title has all of them
const NOTHING = "–";
const PLACES = ["overall-value", "overall-delta", "overall-power", "overall-rho", "overall-worst"];

export class ReleaseView {
  #pairs = null;
  #start = 0;
  #since = 0;
  #isKnown = false;
  #clock = null;
  #stage = [0, 1];

  /** Buttons and the box for asking without being told; `wanted()` is called when it is ticked, `design()` is the present one. */
  constructor({ run, cancel, wanted, design, show }) {
    Object.assign(this, { design, show });
    const box = byId("overall-auto");
    box.checked = setting("automatic", "yes") === "yes";
    box.addEventListener("change", () => {
      keepSetting("automatic", box.checked ? "yes" : "no");
      if (box.checked) wanted();
    });
    listen("click", { "overall-run": run, "overall-cancel": cancel });
  }

  get isAutomatic() {
    return byId("overall-auto").checked;
  }

  /** Mark what is shown as that of an earlier design. */
  stale() {
    if (!this.#pairs) return;
    byId("results").classList.add("release-stale");
    this.#state("before", "Of the design before the last change");
  }

  /** Another design: nothing is known of it yet. */
  reset() {
    this.#pairs = null;
    for (const id of PLACES) {
      const { dataset } = byId(id);
      byId(id).textContent = NOTHING;
      delete dataset.value;
      delete dataset.text;
      if (id !== "overall-value") this.#withoutNote(id);
    }
    setText(byId("sentence-rest"), "");
    byId("results").classList.remove("release-stale");
    this.#state("none", "Not worked out yet");
    this.#count();
  }

  begun(since) {
    this.#start = performance.now();
    this.#since = since;
    this.#isKnown = false;
    this.#showProgress(true);
    if (!this.#pairs) this.#state("working", "Being worked out");
    this.#clock = setInterval(() => this.#showSeconds(), 1000);
  }

  ended() {
    clearInterval(this.#clock);
    this.#count();
    this.#showProgress(false);
    if (byId("overall-state").dataset.state === "working") this.#state("none", "Not worked out");
  }

  advanced(done, steps) {
    this.#stage = [done, steps];
    byId("overall-bar").value = done / steps;
  }

  /** Show what is known so far of the present design, once its epsilon is: nothing of an earlier design beside it. */
  known({ pairs, rho, epsilon: [epsilon], delta: [delta], beta: [beta], worst_pair: [worst] }) {
    if (!epsilon) return;
    this.#pairs = pairs;
    byId("results").classList.remove("release-stale");
    this.#state(
      "proved",
      pairs === 1 ? "Proved for its one pair" : `Proved for all ${counted(pairs)} pairs`,
    );
    const quoted = epsilon.upper === Infinity ? "∞" : atMost(epsilon.upper, QUOTED);
    showNumber(
      "overall-value",
      quoted,
      epsilon.upper,
      `Certified: at least ${epsilon.lower}, at most ${epsilon.upper}`,
    );
    setText(byId("sentence-rest"), `; zCDP would say ${atMost(epsilon.zcdp_optimal, 4)}.`);
    this.#fact("overall-rho", rhoText(rho), rho, [`exactly ${rho}`, rho]);
    if (delta) this.#delta(delta);
    else this.#blank("overall-delta");
    if (beta) this.#power(beta);
    else this.#blank("overall-power");
    if (worst) this.#worst(worst);
    else this.#blank("overall-worst");
    if (!this.#isKnown) {
      measure("overall epsilon to paint", this.#start);
      measure("edit to release", this.#since, (duration) => this.told(duration));
      announce(
        `Whole release: epsilon at most ${quoted} at delta ${epsilon.delta}; zCDP would say ${atMost(epsilon.zcdp_optimal, 4)}.`,
      );
    }
    this.#isKnown = true;
  }

  /** How long it took from the edit to the painted epsilon. */
  told(duration) {
    setText(byId("release-latency"), `release ${about(duration / 1000, 2).slice(1)} s`);
  }

  done(result, seconds) {
    this.known(result);
    this.#count();
    byId("overall-label").title = `${about(seconds, 2)} s`;
    measure("overall to paint", this.#start);
  }

  #delta(row) {
    const { lower, upper } = row;
    const note = `zCDP ${atMost(row.zcdp_optimal, 4)} · Gaussian ${about(row.gaussian, 4)}, no bound`;
    this.#fact(
      "overall-delta",
      roundedUp(lower, upper, 8),
      upper,
      [note],
      `Certified: at least ${lower}, at most ${upper}`,
    );
  }

  #power(row) {
    const [low, high] = [1 - row.upper, row.power];
    const zcdp = row.zcdp === null ? "" : `zCDP ${atMost(oneMinus(row.zcdp), 4)} · `;
    const note = `${zcdp}misses at least ${roundedDown(row.lower, row.upper, 4)}`;
    const title = `Certified: at most ${high}. The best test with this rate of false alarms recognises the record with this probability.`;
    this.#fact("overall-power", roundedUp(low, high, 8), high, [note], title);
  }

  /** The worst pair on its paths: what they bypass, and where that budget goes. */
  #worst({ pair, tied }) {
    const [first, second] = pair;
    const words = pathWords(this.design(), first === second ? [first] : pair);
    const others = tied > 1 ? `, or one of ${counted(tied - 1)} others not told apart from it` : "";
    const text = `${first} and ${second}${others}`;
    const onclick = () => this.show(pair);
    const look = make("button", { type: "button", className: "inline", onclick }, "Look at this pair");
    showNumber("overall-worst", text, pair.join(), words);
    if (byId("overall-worst-note").dataset.text !== words) byId("overall-worst-note").replaceChildren(words, " ", look);
    byId("overall-worst-note").dataset.text = words;
  }

  #fact(id, text, safe, [note, full = note], title = full) {
    showNumber(id, text, safe, title);
    setText(byId(`${id}-note`), note);
    byId(`${id}-note`).title = full;
  }

  #blank(id) {
    const { dataset } = byId(id);
    setText(byId(id), "…");
    delete dataset.value;
    delete dataset.text;
    this.#withoutNote(id);
  }

  #withoutNote(id) {
    byId(`${id}-note`).replaceChildren();
    delete byId(`${id}-note`).dataset.text;
  }

  #state(state, text) {
    const chip = byId("overall-state");
    chip.dataset.state = state;
    setText(chip, text);
  }

  #count() {
    setText(byId("overall-label"), "");
  }

  #showProgress(isRunning) {
    byId("overall-progress").hidden = byId("overall-cancel").hidden = !isRunning;
    byId("overall-run").hidden = isRunning;
    this.advanced(0, 1);
  }

  /** From the third second on say how far the work is, and that it is no wonder. */
  #showSeconds() {
    const seconds = Math.round((performance.now() - this.#start) / 1000);
    if (seconds < LONG) return;
    const [done, steps] = this.#stage;
    setText(byId("overall-label"), `${done} of ${steps} steps, ${seconds} s`);
    byId("overall-label").title = "Levels whose queries have unequal budgets take longer.";
  }
}

/** A total rho: whole where it is short, else rounded up. */
export function rhoText(text) {
  const rho = Rational.parse(text);
  const shown = exactText(rho);
  return shown.startsWith("~") ? atMost(rho, 7) : shown;
}
