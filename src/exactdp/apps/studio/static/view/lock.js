/** The lock of epsilon: after an edit the noise of one level, or of all, is scaled so that the release still has it. */

import { ask, failure } from "../ask/api.js";
import { LatestQuestion } from "../ask/latest.js";
import { asked } from "../ask/questions.js";
import { byId, listen } from "../dom.js";
import { levelNames } from "../state/design.js";
import { atMost } from "../state/numerals.js";
import { dismiss, notify } from "./notices.js";

const NEAR = 0.005; // epsilon below the lock that is left alone

export class Lock {
  epsilon = null; // the text of the locked epsilon
  #question = new LatestQuestion();

  /** `release()` gives the result of the whole release, or null. */
  constructor(store, release) {
    Object.assign(this, { store, release });
    listen("change", { lock: ({ target }) => this.#set(target.checked) });
  }

  #set(isOn) {
    const known = this.release()?.epsilon[0];
    this.epsilon = isOn && known ? atMost(known.upper, 6) : null;
    byId("lock").checked = this.epsilon !== null;
    byId("lock-by-label").hidden = this.epsilon === null;
    if (this.epsilon)
      notify("info", `ε is locked at ${this.epsilon}. After an edit the other budgets give way, and that is proved.`, {
        key: "lock",
        seconds: 6,
      });
  }

  /** Another design: the lock is open, and its levels are other ones. */
  update({ design }, cause) {
    const names = levelNames(design);
    const select = byId("lock-by");
    if (
      [...select.options]
        .slice(1)
        .map(({ value }) => value)
        .join("\n") !== names.join("\n")
    )
      select.replaceChildren(new Option("every level", ""), ...names.map((name) => new Option(name, name)));
    byId("lock").disabled = false;
    if (cause === "open") this.#set(false);
  }

  /** The release is known after an edit: hold it to the lock. */
  hold(cause) {
    const epsilon = this.release()?.epsilon[0];
    if (!this.epsilon || !epsilon || cause !== "edit") return;
    const gap = Number(this.epsilon) - epsilon.upper;
    if (gap >= 0 && gap < NEAR) return;
    const { state } = this.store;
    const question = {
      design: asked(state.design),
      epsilon: this.epsilon,
      delta: state.ask.delta,
      level: byId("lock-by").value || null,
    };
    this.#question.put(async (signal) => {
      dismiss("lock");
      try {
        const found = await ask("/hold", question, signal);
        if (this.store.state !== state) return;
        this.store.change({ ...state, design: found.design }, { cause: "lock" });
        notify("info", `ε stays locked at ${this.epsilon}. ${found.statement}`, { key: "lock", seconds: 12 });
      } catch (error) {
        const problem = failure(error);
        if (problem)
          notify("warning", `ε is locked at ${this.epsilon}, which this design misses. ${problem.message}`, {
            key: "lock",
          });
      }
    });
  }
}
