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
  #question = new LatestQuestion();

  /** The lock is part of the store's state, so that links and reloads keep it. `release()` gives the whole release, or null. */
  constructor(store, release) {
    Object.assign(this, { store, release });
    listen("change", {
      lock: ({ target }) => this.#set(target.checked),
      "lock-by": ({ target }) => this.#keep({ ...this.store.state.lock, level: target.value }),
    });
  }

  /** The text of the locked epsilon, or null. */
  get epsilon() {
    return this.store.state?.lock?.epsilon ?? null;
  }

  #keep(lock) {
    this.store.amend({ ...this.store.state, lock }, "lock");
  }

  #set(isOn) {
    const known = this.release()?.epsilon[0];
    this.#keep(isOn && known ? { epsilon: atMost(known.upper, 6), level: "" } : null);
    if (this.epsilon)
      notify("info", `ε is locked at ${this.epsilon}. After an edit the other budgets give way, and that is proved.`, {
        key: "lock",
        seconds: 6,
      });
  }

  /** Show the lock of a state, with the levels of its design. */
  update({ design, lock }) {
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
    byId("lock").checked = Boolean(lock);
    byId("lock-by-label").hidden = !lock;
    select.value = lock && names.includes(lock.level) ? lock.level : "";
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
      level: state.lock.level || null,
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
