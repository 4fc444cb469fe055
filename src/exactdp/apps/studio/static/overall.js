/** The guarantee over all pairs of paths: asked for on request or when the user rests, shown with progress. */

import { lines, Refusal, Unreachable } from "./api.js";
import { byId, make, setText } from "./dom.js";
import { roundedUp, short, withSuperscript } from "./format.js";

const LONG = 3; // seconds after which the progress is told in words
const REST = 700; // ms without a change before the whole release is accounted for

export class Overall {
  #controller = null;
  #resting = null;
  #clock = null;

  /** `request()` gives the body of the question; `done(result)` and `failed(error)` hear how it went. */
  constructor({ request, done, failed }) {
    Object.assign(this, { request, done, failed });
    this.result = null;
    byId("overall-run").addEventListener("click", () => this.run());
    byId("overall-cancel").addEventListener("click", () => this.cancel());
  }

  get isAutomatic() {
    return byId("overall-auto").checked;
  }

  /** The design has changed: what is shown is marked as old, and a run for it is ended. */
  invalidate() {
    this.cancel();
    if (this.result) byId("overall-value").closest(".tile").classList.add("is-stale");
    byId("overall-run").disabled = false;
    clearTimeout(this.#resting);
  }

  /** Another design: nothing is known of it yet. */
  reset() {
    this.cancel();
    this.result = null;
    byId("overall-value").textContent = "–";
    delete byId("overall-value").dataset.value;
    byId("overall-notes").replaceChildren();
    setText(byId("overall-label"), this.#title());
  }

  /** The pair's numbers are there: go on with the whole release once the user rests. */
  rest() {
    clearTimeout(this.#resting);
    if (this.isAutomatic) this.#resting = setTimeout(() => this.run(), REST);
  }

  cancel() {
    this.#controller?.abort();
    this.#controller = null;
    this.#showProgress(false);
  }

  async run() {
    this.cancel();
    clearTimeout(this.#resting);
    const controller = new AbortController();
    this.#controller = controller;
    const start = performance.now();
    this.#showProgress(true);
    this.#showSeconds(start);
    try {
      for await (const line of lines("/overall", this.request(), controller.signal)) {
        if (line.event === "error") throw new Refusal(line.error);
        if (line.event === "start") this.#advance(0, line.steps);
        if (line.event === "part") this.#advance(line.done, line.steps);
        if (line.event === "done") {
          this.result = line.result;
          this.#show(line);
          this.done(line.result);
          requestAnimationFrame(() =>
            setTimeout(() => performance.measure("overall to paint", { start, end: performance.now() })),
          );
        }
      }
    } catch (error) {
      if (error.name !== "AbortError" && (error instanceof Refusal || error instanceof Unreachable)) this.failed(error);
      else if (error.name !== "AbortError") throw error;
    } finally {
      if (this.#controller === controller) {
        this.#controller = null;
        this.#showProgress(false);
      }
    }
  }

  #showProgress(isRunning) {
    byId("overall-progress").hidden = !isRunning;
    byId("overall-cancel").hidden = !isRunning;
    byId("overall-run").hidden = isRunning;
    if (!isRunning) {
      clearInterval(this.#clock);
      setText(byId("overall-label"), this.#title());
    }
    this.#advance(0, 1);
  }

  #title() {
    if (!this.result) return "ε over all pairs";
    const { pairs } = this.result;
    return pairs === 1 ? "ε of its one pair" : `ε over all ${pairs.toLocaleString("en")} pairs`;
  }

  #advance(done, steps) {
    this.stage = { done, steps };
    byId("overall-bar").value = done / steps;
  }

  /** From the third second on say how far the work is, and that it is no wonder. */
  #showSeconds(start) {
    clearInterval(this.#clock);
    this.#clock = setInterval(() => {
      const seconds = Math.round((performance.now() - start) / 1000);
      if (seconds < LONG) return;
      const { done, steps } = this.stage;
      setText(byId("overall-label"), `All pairs: ${done} of ${steps} steps, ${seconds} s`);
      byId("overall-label").title =
        "Levels whose queries have unequal budgets take longer; the pair shown follows at once.";
    }, 1000);
  }

  #show({ result, seconds }) {
    const value = byId("overall-value");
    const epsilon = result.epsilon[0];
    value.closest(".tile").classList.remove("is-stale");
    value.replaceChildren(...withSuperscript(roundedUp(epsilon.lower, epsilon.upper)));
    value.dataset.value = String(epsilon.upper);
    value.title = `Certified: at least ${epsilon.lower}, at most ${epsilon.upper}`;
    const worst = result.worst_pair[0];
    const rows = [];
    if (worst)
      rows.push([
        "worst pair",
        worst.tied > 1 ? `${worst.tied} tied, such as (${worst.pair.join(", ")})` : `(${worst.pair.join(", ")})`,
      ]);
    const [delta, beta] = [result.delta[0], result.beta[0]];
    if (delta) rows.push([`δ at ε = ${delta.epsilon}`, roundedUp(delta.lower, delta.upper, 8)]);
    if (beta) rows.push([`power at α = ${beta.alpha}`, roundedUp(1 - beta.upper, beta.power ?? 1 - beta.lower, 8)]);
    byId("overall-notes").replaceChildren(
      ...rows.flatMap(([name, text]) => [make("dt", {}, name), make("dd", {}, text)]),
    );
    setText(byId("overall-label"), this.#title());
    byId("overall-label").title = `${short(seconds, 2)} s`;
  }
}
