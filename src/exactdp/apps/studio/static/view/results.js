/** What is known, on the page: the pair, the charts, the scenarios; refusals where they belong, old numbers marked. */

import { profile, PROFILE_AXES, tradeoff, TRADEOFF_AXES } from "../charts/curves.js";
import { LineChart } from "../charts/linechart.js";
import { NoiseChart } from "../charts/noisechart.js";
import { byId, listen, make, measure, setText } from "../dom.js";
import { pathName, pathNumber, reference, typicalCounts } from "../state/design.js";
import { counted } from "../state/format.js";
import { about } from "../state/numerals.js";
import { chartButtons } from "./files.js";
import { FIELDS } from "./frame.js";
import { inWords, showPair } from "./headline.js";
import { announce, dismiss, notify } from "./notices.js";

const LITTLE = 1e-4; // of a count: a margin smaller than that is not told apart
const TYPING = 400; // ms for which an unfinished number is not called an error
const SLOW = 250; // ms after which the page says that it is working
const VERY_SLOW = 700; // ms after that when the numbers shown are called those of an earlier design

export class Results {
  #scale = "log";
  #lastZcdp = null;
  #error = null;
  #working = null;

  /** `known()` gives the answer of the pair, what zCDP says, the guarantee of the whole release, and what is known of scenarios. */
  constructor(store, table, board, known) {
    Object.assign(this, { store, table, board, known });
    const profileLabel = "Privacy profile: delta by epsilon";
    const tradeoffLabel = "Trade-off curve: type II error beta by type I error alpha";
    this.profile = new LineChart(byId("profile-chart"), profileLabel, PROFILE_AXES);
    this.tradeoff = new LineChart(byId("tradeoff-chart"), tradeoffLabel, TRADEOFF_AXES.log);
    this.noise = new NoiseChart(byId("noise-chart"));
    const titles = { profile: "Privacy profile", tradeoff: "Trade-off", noise: "Noise by level" };
    for (const [name, title] of Object.entries(titles))
      chartButtons(byId(`${name}-tools`), this[name], title, () => `${known().answer.file_name}-${name}`);
    listen("change", {
      "noise-measure": ({ target }) => {
        this.noise.measure = target.value;
        this.draw();
      },
      "tradeoff-scale": ({ target }) => {
        this.#scale = target.value;
        this.tradeoff.axes = TRADEOFF_AXES[target.value];
        this.draw();
      },
    });
    byId("tune").addEventListener("toggle", () => this.draw());
  }

  get isTuning() {
    return byId("tune").open;
  }

  /** Draw everything that is known. */
  draw() {
    const { answer, zcdp, whole, scenarios } = this.known();
    const { state } = this.store;
    if (!answer || !state) return;
    this.#lastZcdp = zcdp ?? this.#lastZcdp;
    showPair(answer, state.ask, zcdp?.beta[0]?.zcdp ?? null);
    const numbers = state.pair.map((bypassed) => pathNumber(state.design, bypassed) ?? "of your choice");
    setText(byId("tune-line"), `paths ${numbers.join(" and ")}: ε at most ${byId("epsilon-value").dataset.text}`);
    const against = reference(state);
    const kept = against && { name: against.name, ...scenarios.known(against, state.ask) };
    const shown = this.isTuning || !whole ? answer : null;
    this.profile.update(...profile({ answer, shown, whole, kept: kept?.whole && kept }));
    this.tradeoff.update(...tradeoff(this.#scale, { answer, shown, whole, kept: kept?.whole && kept }, this.#lastZcdp));
    this.noise.update(answer.noise[0], kept?.noise ?? null);
    const first = state.pair[0];
    setText(byId("noise-path"), `on path ${pathName(pathNumber(state.design, first), first)}`);
    showUsefulness(answer.noise[0], typicalCounts(state));
    this.board.draw(state, whole, answer, scenarios);
  }

  answered(answer, since) {
    this.#clearErrors();
    this.draw();
    const inMilliseconds = (duration) => `Followed in: pair ${Math.round(duration)} ms`;
    measure("edit to paint", since, (duration) => setText(byId("latency"), inMilliseconds(duration)));
    if (this.isTuning) announce(inWords(answer));
    for (const remark of answer.remarks ?? []) notify("warning", remark, { key: "remark" });
  }

  /** Show the server's sentence where it belongs, once the user stops typing; the last good numbers stay, marked. */
  refused(error, isPresent, again) {
    clearTimeout(this.#error);
    const isTyping = document.activeElement?.matches("#budget-table input, #results input");
    this.#error = setTimeout(
      () => {
        if (!isPresent()) return;
        this.#markStale(true);
        this.#place(error, again);
      },
      isTyping ? TYPING : 0,
    );
  }

  unreachable() {
    notify(
      "error",
      "The studio's server does not answer; trying again. Start it with: exactdp studio. Your design is safe in this page.",
      { key: "gone" },
    );
    this.#markStale(true);
  }

  working(isWorking) {
    clearTimeout(this.#working);
    if (isWorking) {
      this.#working = setTimeout(() => {
        byId("working").hidden = false;
        this.#working = setTimeout(() => this.#markStale(true), VERY_SLOW);
      }, SLOW);
    } else byId("working").hidden = true;
  }

  #clearErrors() {
    clearTimeout(this.#error);
    this.table.setError(null);
    for (const id of Object.values(FIELDS)) byId(id).removeAttribute("aria-invalid");
    for (const key of ["refusal", "gone", "remark"]) dismiss(key);
    this.#markStale(false);
  }

  #place(error, again) {
    const { level, query, field } = error.where ?? {};
    if (level !== undefined && query !== undefined) {
      this.table.setError({ level, query, sentence: error.message });
      return;
    }
    if (FIELDS[field]) byId(FIELDS[field]).setAttribute("aria-invalid", "true");
    const isPassing = error.status === 429 || error.status === 503;
    notify("error", error.message, { key: "refusal", actions: isPassing ? [["Try again", again]] : [] });
  }

  /** Say, or no longer say, that the numbers shown are those of an earlier design. */
  #markStale(isStale) {
    const isMarked = isStale && Boolean(this.known().answer);
    byId("stale").hidden = !isMarked;
    byId("results").classList.toggle("is-stale", isMarked);
    document.body.classList.toggle("stale-charts", isMarked);
  }
}

/** What the noise means for counts that people look up: "Block: a count of 23, ±59". */
function showUsefulness({ levels }, counts) {
  const told = levels.flatMap(({ level, queries }) => {
    const count = counts.get(level);
    if (!count) return [];
    const margin = Math.max(...queries.map(({ margin95 }) => margin95));
    const share = margin / count;
    const judged = share >= 1 ? "unusable" : share < LITTLE ? `below ${100 * LITTLE}%` : `${about(100 * share, 2)}%`;
    const text = `${level}: a count of ${counted(count)}, ±${counted(margin)} (${judged})`;
    return [{ text, className: share >= 1 ? "unusable" : "" }];
  });
  const host = byId("usefulness");
  host.hidden = !told.length;
  if (host.children.length !== told.length) host.replaceChildren(...told.map(() => make("span")));
  told.forEach(({ text, className }, i) => {
    setText(host.children[i], text);
    if (host.children[i].className !== className) host.children[i].className = className;
  });
}
