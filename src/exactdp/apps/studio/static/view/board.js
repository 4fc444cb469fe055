/** The board of scenarios: named designs side by side, each as a whole release, and the noise that they leave. */

import { byId, make } from "../dom.js";
import * as design from "../state/design.js";
import { change, counted, roundedUp } from "../state/format.js";
import { atMost } from "../state/numerals.js";
import { rhoText } from "./release.js";

const EMPTY =
  "Keep this design, go on editing, and see both side by side: the guarantee of the whole release, the margins of every level, and both curves in the charts.";

export class Board {
  #shown = null;

  /** The store that holds the scenarios; they are renamed, opened, compared with and removed here. */
  constructor(store) {
    this.store = store;
    this.host = byId("compare-body");
    this.#empty();
  }

  #empty() {
    this.host.replaceChildren(make("p", { className: "empty" }, EMPTY));
    this.#shown = null;
  }

  /** Draw the board: `whole` and `answer` are those of the present design, `scenarios` knows the others. */
  draw(state, whole, answer, scenarios) {
    if (!state.kept.length) {
      if (this.#shown !== null) this.#empty();
      return;
    }
    const rows = [
      { name: null, whole, noise: answer.noise?.[0] ?? null },
      ...state.kept.map((one) => ({ name: one.name, ...scenarios.known(one, state.ask) })),
    ];
    const key = JSON.stringify([
      state.ask,
      state.against,
      rows.map((row) => [row.name, row.whole?.epsilon, row.error, row.noise]),
    ]);
    if (key === this.#shown || this.host.contains(document.activeElement?.closest("input[type=text]"))) return;
    this.#shown = key;
    this.host.replaceChildren(
      make("div", { className: "tables" }, this.#guarantees(state, rows), margins(rows, state.against)),
    );
  }

  #guarantees(state, rows) {
    const heads = [
      "Scenario",
      `ε at δ = ${state.ask.delta}`,
      "against",
      "zCDP says",
      `δ at ε = ${state.ask.epsilon ?? ""}`,
      "Total ρ",
      "",
    ];
    const against = rows.find(({ name }) => name !== null && name === state.against);
    const body = rows.map((row) => {
      const cells = guarantee(row, against).map((text) => make("td", {}, text));
      const name = row.name === null ? make("b", {}, "Now, as you edit") : this.#name(row.name);
      return make(
        "tr",
        { data: { scenario: row.name ?? "" } },
        make("th", { scope: "row" }, name),
        ...cells,
        this.#acts(state, row.name),
      );
    });
    return framed("Guarantee of the whole release", heads, body);
  }

  #name(name) {
    const input = make("input", {
      type: "text",
      value: name,
      maxLength: 60,
      className: "scenario-name",
      aria: { label: `Name of scenario ${name}` },
    });
    input.addEventListener("change", () => {
      const wanted = input.value.trim().replace(/\s+/g, " ");
      const isTaken = this.store.state.kept.some((one) => one.name === wanted && wanted !== name);
      this.#shown = null;
      if (!wanted || isTaken) input.value = name;
      else if (wanted !== name) {
        input.blur();
        this.store.change(design.withScenarioRenamed(this.store.state, name, wanted));
      }
    });
    return input;
  }

  #acts(state, name) {
    if (name === null) return make("td", {});
    const act = (label, edit, title) => {
      const onclick = () => this.store.change(edit(this.store.state, name));
      return make(
        "button",
        { type: "button", className: "small", title, onclick, aria: { label: `${label}: ${name}` } },
        label,
      );
    };
    const isAgainst = state.against === name;
    const pressed = make(
      "button",
      {
        type: "button",
        className: "small",
        title: "Compare with this one in tables and charts",
        onclick: () => this.store.change({ ...this.store.state, against: isAgainst ? null : name }),
        aria: { pressed: String(isAgainst), label: `Compare with ${name}` },
      },
      "Compare",
    );
    const open = act("Open", design.withScenarioOpened, "Put this design into the table");
    const remove = act("Remove", design.withScenarioRemoved, "Take this scenario off the board");
    return make("td", { className: "acts" }, pressed, open, remove);
  }
}

/** The cells of one row: certified numbers rounded up, and how epsilon compares. */
function guarantee({ name, whole, error }, against) {
  if (error) return [error, "", "", "", ""];
  if (!whole) return ["being worked out", "", "", "", ""];
  const [epsilon, delta] = [whole.epsilon[0], whole.delta[0]];
  return [
    roundedUp(epsilon.lower, epsilon.upper, 8),
    name !== null && name === against?.name ? "reference" : compared(epsilon, against?.whole?.epsilon[0]),
    atMost(epsilon.zcdp_optimal, 5),
    delta ? roundedUp(delta.lower, delta.upper, 4) : "–",
    rhoText(whole.rho),
  ];
}

function compared(epsilon, before) {
  if (!before) return "–";
  return before.upper === epsilon.upper ? "the same" : change(before.upper, epsilon.upper);
}

/** The largest 95% margin of each level in every scenario. */
function margins(rows, against) {
  const worst = rows.map(
    ({ noise }) =>
      new Map(
        (noise?.levels ?? []).map(({ level, queries }) => [level, Math.max(...queries.map((query) => query.margin95))]),
      ),
  );
  const base = rows.findIndex(({ name }) => name !== null && name === against);
  const levels = [...new Set(worst.flatMap((found) => [...found.keys()]))];
  const heads = [
    "Level",
    ...rows.flatMap(({ name }, i) => [name ?? "Now", ...(i === 0 && base > 0 ? [`against ${against}`] : [])]),
  ];
  const body = levels.map((level) => {
    const cells = worst.flatMap((found, i) => {
      const text = found.has(level) ? `±${counted(found.get(level))}` : "–";
      const compared =
        i === 0 && base > 0
          ? [
              worst[base].get(level) === found.get(level)
                ? "the same"
                : change(worst[base].get(level) ?? NaN, found.get(level) ?? NaN),
            ]
          : [];
      return [text, ...compared].map((cell) => make("td", {}, cell));
    });
    return make("tr", {}, make("th", { scope: "row" }, level), ...cells);
  });
  return framed("Largest 95% margin of a count by level, on the full path", heads, body);
}

function framed(caption, heads, body) {
  const head = make("tr", {}, ...heads.map((text) => (text ? make("th", { scope: "col" }, text) : make("td", {}))));
  const table = make(
    "table",
    { className: "side-by-side" },
    make("caption", {}, caption),
    make("thead", {}, head),
    make("tbody", {}, ...body),
  );
  return make("div", { className: "frame", tabIndex: 0, role: "region", aria: { label: caption } }, table);
}
