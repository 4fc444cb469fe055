/** The tile of the whole release: its guarantee, the worst pair, and progress while it is accounted for. */

import { byId, listen, measure, setText, terms } from "../dom.js";
import { roundedUp } from "../state/format.js";
import { about } from "../state/numerals.js";
import { keepSetting, setting } from "../state/memory.js";
import { showUpper } from "./headline.js";

const LONG = 3; // seconds after which the progress is told in words

export class OverallTile {
  #pairs = null;
  #start = 0;
  #isKnown = false;
  #clock = null;
  #stage = [0, 1];

  /** Buttons and the box for asking without being told; `wanted()` is called when it is ticked. */
  constructor({ run, cancel, wanted }) {
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
    if (this.#pairs) byId("overall-value").closest(".tile").classList.add("is-stale");
  }

  /** Another design: nothing is known of it yet. */
  reset() {
    this.#pairs = null;
    const value = byId("overall-value");
    value.textContent = "–";
    delete value.dataset.value;
    delete value.dataset.text;
    byId("overall-notes").replaceChildren();
    this.#title();
  }

  begun() {
    this.#start = performance.now();
    this.#isKnown = false;
    this.#showProgress(true);
    this.#clock = setInterval(() => this.#showSeconds(), 1000);
  }

  ended() {
    clearInterval(this.#clock);
    this.#title();
    this.#showProgress(false);
  }

  advanced(done, steps) {
    this.#stage = [done, steps];
    byId("overall-bar").value = done / steps;
  }

  /** Show what is known so far of the present design, once its epsilon is: nothing of an earlier design beside it. */
  known({ pairs, epsilon: [epsilon], delta: [delta], beta: [beta], worst_pair: [worst] }) {
    if (!epsilon) return;
    this.#pairs = pairs;
    byId("overall-value").closest(".tile").classList.remove("is-stale");
    showUpper("overall-value", epsilon);
    const rows = [];
    if (worst) {
      const pair = `(${worst.pair.join(", ")})`;
      rows.push(["worst pair", worst.tied > 1 ? `${worst.tied} tied, such as ${pair}` : pair]);
    }
    if (delta) rows.push([`δ at ε = ${delta.epsilon}`, roundedUp(delta.lower, delta.upper, 8)]);
    if (beta) rows.push([`power at α = ${beta.alpha}`, roundedUp(1 - beta.upper, beta.power, 8)]);
    byId("overall-notes").replaceChildren(...terms(rows));
    if (!this.#isKnown) measure("overall epsilon to paint", this.#start);
    this.#isKnown = true;
  }

  done(result, seconds) {
    this.known(result);
    this.#title();
    byId("overall-label").title = `${about(seconds, 2)} s`;
    measure("overall to paint", this.#start);
  }

  #title() {
    const over = `ε over all ${this.#pairs === null ? "" : `${this.#pairs.toLocaleString("en")} `}pairs`;
    setText(byId("overall-label"), this.#pairs === 1 ? "ε of its one pair" : over);
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
    setText(byId("overall-label"), `All pairs: ${done} of ${steps} steps, ${seconds} s`);
    byId("overall-label").title =
      "Levels whose queries have unequal budgets take longer; the pair shown follows at once.";
  }
}
