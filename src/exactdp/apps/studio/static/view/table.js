/** The budget table: one cell for each level and query, controls for whole levels, and the two paths of the pair. */

import { make, setText } from "../dom.js";
import { cellText, levelNames, pathName, pathNumber, queryNames } from "../state/design.js";
import { inCell } from "../state/format.js";
import { atMost } from "../state/numerals.js";
import { total } from "../state/rational.js";
import { actOf } from "../state/shortcuts.js";

const PATHS = [
  { title: "Path 1", long: "first path" },
  { title: "Path 2", long: "second path" },
];

const STEPS = { up: [-1, 0], previous: [-1, 0], down: [1, 0], next: [1, 0], left: [0, -1], right: [0, 1] };
const NUMBER = { type: "text", inputMode: "decimal", autocomplete: "off", spellcheck: false };
const NAME_WIDTH = 178;
const LEVEL_WIDTH = 54;
const [PADDING, DIGIT_WIDTH] = [14, 7.1]; // pixels of a cell
const NOT_BOLD = 0.2; // digits by which a count is narrower than a total of as many

let formCount = 0;

export class BudgetTable {
  /**
   * `on` has the functions cell(level, query, text, event), typical(level, text), block(cells, left), closeCell(),
   * multiply(level, factor, input),
   * toggle(which, level), choose(which, bypassed) and name(what, name), where what is "level" or "query".
   */
  constructor(table, on) {
    this.table = table;
    this.on = on;
    this.style = "decimal";
    this.shape = null;
    this.state = null;
    this.view = null;
    this.cells = []; // of budgets: their elements, and what was shown in them last
    this.sums = new WeakMap();
    this.sentence = make("p", { className: "cell-error", id: "cell-error", role: "alert" });
    this.#listen();
  }

  update(state) {
    this.state = state;
    const { design } = state;
    const shape = JSON.stringify([levelNames(design), queryNames(design), design.paths]);
    if (shape !== this.shape) this.#build(shape);
    this.#fill();
  }

  /** Show other texts than budgets, by "level newline query", each with its heat between 0 and 1; null: budgets again. */
  setView(view) {
    if (view === null && this.view === null) return;
    this.view = view;
    if (this.state) this.#fill();
  }

  setStyle(style) {
    this.style = style;
    if (this.state) this.#fill();
  }

  /** Show a sentence beside a cell (null: nowhere). The cell is told apart by colour, frame and text. */
  setError(error) {
    for (const input of this.table.querySelectorAll('input[aria-invalid="true"]')) {
      input.removeAttribute("aria-invalid");
      input.removeAttribute("aria-describedby");
    }
    this.sentence.remove();
    if (!error) return;
    const input = this.#input(error.level, error.query);
    if (!input) return;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", "cell-error");
    this.sentence.textContent = error.sentence;
    const cell = input.closest("td");
    this.sentence.classList.toggle("leftward", cell.cellIndex > this.state.design.levels.length / 2);
    cell.append(this.sentence);
  }

  #input(level, query) {
    return this.cells.find((one) => one.level === level && one.query === query)?.input;
  }

  #build(shape) {
    const active = document.activeElement;
    const place = this.table.contains(active) ? [active.dataset.level, active.dataset.query] : null;
    this.shape = shape;
    const { design } = this.state;
    this.queries = queryNames(design);
    this.cells = [];
    const caption = make(
      "caption",
      { className: "hidden" },
      "Budget rho by level (columns) and query (rows). Cells can be edited; arrow keys move between them.",
    );
    const head = make("thead", {}, this.#headRow(design));
    const body = make("tbody", {}, ...this.queries.map((query, row) => this.#queryRow(design, query, row)));
    const foot = make(
      "tfoot",
      {},
      this.#totalRow(design),
      this.#multiplyRow(design),
      this.#typicalRow(design),
      ...PATHS.map((_, which) => this.#pathRow(design, which)),
    );
    for (const row of [...body.rows, ...foot.rows]) ownForm(row);
    this.table.replaceChildren(caption, head, body, foot);
    if (place?.[1] !== undefined) this.#input(...place)?.focus();
  }

  #headRow(design) {
    const corner = make("th", { scope: "col", className: "corner" }, "Query");
    const levels = levelNames(design).map((name) => make("th", { scope: "col" }, this.#name("level", name)));
    return make("tr", {}, corner, ...levels);
  }

  #name(what, name) {
    const title = `${name}: rename or remove this ${what}`;
    return make("button", { type: "button", className: "name", title, onclick: () => this.on.name(what, name) }, name);
  }

  #queryRow(design, query, row) {
    const cells = levelNames(design).map((level, column) => {
      const data = { level, query, row, column };
      const input = make("input", { ...NUMBER, data, aria: { label: `${query}, ${level}` } });
      const cell = make("td", {}, input);
      this.cells.push({ input, cell, level, query, looks: null, text: null });
      return cell;
    });
    return make("tr", {}, make("th", { scope: "row" }, this.#name("query", query)), ...cells);
  }

  #totalRow(design) {
    this.totals = design.levels.map(() => make("td", { className: "number" }));
    return make("tr", { className: "total" }, make("th", { scope: "row" }, "Level total"), ...this.totals);
  }

  #multiplyRow(design) {
    const row = this.queries.length;
    const cells = levelNames(design).map((level, column) => {
      const input = make("input", {
        ...NUMBER,
        placeholder: "×",
        className: "factor",
        data: { times: level, row, column },
        aria: { label: `Multiply every rho of ${level} by` },
        title: "A factor such as 1.1 or 9/10, then Enter",
      });
      return make("td", {}, input);
    });
    return make("tr", { className: "multiply" }, make("th", { scope: "row" }, "Multiply level by"), ...cells);
  }

  #typicalRow(design) {
    const row = this.queries.length + 1;
    const cells = levelNames(design).map((level, column) => {
      const input = make("input", {
        ...NUMBER,
        placeholder: "–",
        className: "factor",
        data: { typical: level, row, column },
        aria: { label: `Typical count at ${level}` },
        title: "A count that people will look up at this level, such as 23: margins are judged by it",
      });
      return make("td", {}, input);
    });
    return make("tr", { className: "typical" }, make("th", { scope: "row", title: "What people look up at a level; edit it. For the 2020 Census: people by area, on average" }, "Typical count"), ...cells);
  }

  #pathRow(design, which) {
    const id = `path-${which + 1}`;
    const select = make(
      "select",
      { id, data: { which } },
      ...design.paths.map(({ number, bypassed }) => new Option(pathName(number, bypassed), String(number))),
    );
    select.append(new Option("own choice of levels", ""));
    const name = make("label", { htmlFor: id, title: `Levels that the ${PATHS[which].long} uses` }, PATHS[which].title);
    const cells = levelNames(design).map((level, column) => {
      const label = column
        ? `${level} is used by the ${PATHS[which].long}`
        : `${level}, the top level, is used by every path`;
      const box = make("input", {
        type: "checkbox",
        disabled: column === 0,
        data: { toggle: level, which },
        aria: { label },
        title: label,
      });
      return make("td", {}, make("label", { className: "target" }, box)); // all of the cell can be pressed
    });
    return make("tr", { className: "path" }, make("th", { scope: "row" }, make("div", {}, name, select)), ...cells);
  }

  #fill() {
    const { design, pair } = this.state;
    const levels = new Map(design.levels.map((level) => [level.name, level]));
    const unused = new Set(pair[0].filter((level) => pair[1].includes(level)));
    let longest = 0;
    const active = document.activeElement;
    for (const one of this.cells) {
      const { input, level, query } = one;
      const text = cellText(levels.get(level), query);
      if (one.text !== text || one.style !== this.style) {
        Object.assign(one, { text, style: this.style, short: inCell(text, this.style) });
        input.dataset.exact = text;
      }
      const seen = this.view && text !== "" ? this.view.get(`${level}\n${query}`) : null;
      this.#look(one, seen, unused.has(level));
      const shown = this.view ? (seen?.text ?? "") : input === active ? text : one.short;
      if (input.value !== shown) input.value = shown;
      if (input !== active) longest = Math.max(longest, shown.length);
      const title = shown.startsWith("~") ? text : "";
      if (input.title !== title) input.title = title;
    }
    design.levels.forEach((level, i) => {
      const sum = this.#sum(level);
      setText(this.totals[i], totalText(sum, this.style));
      longest = Math.max(longest, this.totals[i].textContent.length);
      if (this.totals[i].title !== sum.toString()) this.totals[i].title = sum.toString();
    });
    for (const text of Object.values(this.state.typical)) longest = Math.max(longest, text.length - NOT_BOLD);
    const width = Math.max(LEVEL_WIDTH, Math.ceil(PADDING + DIGIT_WIDTH * longest)); // so that no digit is cut
    const least = `${NAME_WIDTH + width * design.levels.length}px`;
    if (this.table.style.minWidth !== least) this.table.style.minWidth = least;
    for (const input of this.table.querySelectorAll("input[data-typical]")) {
      const text = this.state.typical[input.dataset.typical] ?? "";
      if (input !== document.activeElement && input.value !== text) input.value = text;
    }
    for (const box of this.table.querySelectorAll("input[data-toggle]"))
      box.checked = !pair[box.dataset.which].includes(box.dataset.toggle);
    for (const select of this.table.querySelectorAll("select")) {
      const bypassed = pair[select.dataset.which];
      const number = pathNumber(design, bypassed);
      const chosen = number === null ? "" : String(number);
      if (select.value !== chosen) select.value = chosen;
      select.lastChild.hidden = number !== null;
      select.title = pathName(number, bypassed);
    }
  }

  /** The colour and the marks of a cell; most edits leave those of the others as they are. */
  #look(one, seen, isUnused) {
    const heat = seen ? `${Math.round(60 * seen.heat)}%` : "0%";
    const looks = `${this.view !== null} ${isUnused} ${heat}`;
    if (looks === one.looks) return;
    one.looks = looks;
    one.cell.classList.toggle("seen", this.view !== null);
    one.cell.classList.toggle("bypassed", isUnused);
    one.cell.style.setProperty("--heat", heat);
    one.input.readOnly = this.view !== null;
  }

  /** The total of a level, added up once: a level that is edited becomes another object. */
  #sum(level) {
    if (!this.sums.has(level)) this.sums.set(level, total(level.queries.map(({ rho }) => rho)));
    return this.sums.get(level);
  }

  #listen() {
    this.table.addEventListener("focusin", ({ target }) => {
      if (!("query" in target.dataset) || this.view) return;
      target.value = target.dataset.exact;
      target.classList.toggle("wide", target.value.length > 9);
      target.dataset.before = target.value;
      target.select();
    });
    this.table.addEventListener("focusout", ({ target }) => {
      if (!("query" in target.dataset) || this.view) return;
      target.classList.remove("wide");
      target.value = inCell(target.dataset.exact, this.style);
      this.on.closeCell();
    });
    this.table.addEventListener("input", (event) => {
      const { level, query, typical } = event.target.dataset;
      if (query !== undefined) this.on.cell(level, query, event.target.value.trim(), event);
      if (typical !== undefined) this.on.typical(typical, event.target.value.trim());
    });
    this.table.addEventListener("change", ({ target }) => {
      if (target.dataset.toggle) this.on.toggle(Number(target.dataset.which), target.dataset.toggle);
      else if (target.tagName === "SELECT" && target.value) {
        this.on.choose(
          Number(target.dataset.which),
          this.state.design.paths.find(({ number }) => String(number) === target.value).bypassed,
        );
      }
    });
    this.table.addEventListener("keydown", (event) => this.#key(event));
    this.table.addEventListener("paste", (event) => this.#paste(event));
  }

  #key(event) {
    const { target } = event;
    if (target.tagName !== "INPUT" || target.type !== "text" || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = actOf(event, "table");
    const isEnter = act === "next" || act === "previous";
    if (act === "take back" && target.dataset.query !== undefined && !this.view) {
      if (target.value !== target.dataset.before) {
        target.value = target.dataset.before;
        this.on.cell(target.dataset.level, target.dataset.query, target.value, event);
      }
      target.select();
    } else if (isEnter && target.dataset.times) {
      if (target.value.trim()) this.on.multiply(target.dataset.times, target.value.trim(), target);
    } else if (act in STEPS && (STEPS[act][0] || leaves(target, STEPS[act][1]))) this.#move(target, ...STEPS[act]);
    else return;
    event.preventDefault();
  }

  /** A block of a spreadsheet goes into the cells from the one in focus on; one value is pasted as everywhere. */
  #paste(event) {
    const { row, column, query } = event.target.dataset;
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (query === undefined || this.view || !/[\t\n]/.test(text.trim())) return;
    event.preventDefault();
    const names = levelNames(this.state.design);
    const lines = text.replace(/\r/g, "").replace(/\n+$/, "").split("\n");
    const cells = lines.flatMap((line, i) =>
      line.split("\t").map((value, j) => [names[Number(column) + j], this.queries[Number(row) + i], value.trim()]),
    );
    const inside = cells.filter(([level, name]) => level !== undefined && name !== undefined);
    this.on.block(inside, cells.length - inside.length);
  }

  #move(from, down, right) {
    const [row, column] = [Number(from.dataset.row) + down, Number(from.dataset.column) + right];
    this.table.querySelector(`input[data-row="${row}"][data-column="${column}"]`)?.focus();
  }
}

/**
 * A form for the fields of one row. Browsers look through the whole form of a field, for what they could fill in, at every key
 * and every answer of the server; fields without a form are one form for them, the whole page.
 */
function ownForm(row) {
  const id = `row-${(formCount += 1)}`;
  for (const field of row.querySelectorAll("input, select")) field.setAttribute("form", id);
  row.cells[0].append(make("form", { id, hidden: true }));
}

/** Whether an arrow key leads out of a field: its text is selected as a whole, or the cursor is at that end of it. */
function leaves({ selectionStart, selectionEnd, value }, step) {
  if (selectionStart === selectionEnd) return selectionStart === (step < 0 ? 0 : value.length);
  return selectionStart === 0 && selectionEnd === value.length;
}

/** A total: exact where that is short, else rounded up. */
function totalText(sum, style) {
  const text = inCell(sum.toString(), style);
  return text.startsWith("~") ? atMost(sum, 5) : text;
}
