/** What can be saved: budget files, the design file, tables, pictures, the report. */

import { ask, file } from "./api.js";
import { byId, make } from "./dom.js";
import { standalone, toPng } from "./svg.js";

/** Offer a text or a blob as a download. */
export function save(content, name, type = "text/plain") {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** A name that every file system takes. */
export function fileName(design) {
  return (
    (design.name || design.title || "design")
      .toLowerCase()
      .replace(/[^a-z0-9._-]+/g, "-")
      .replace(/^[-.]+|-+$/g, "")
      .slice(0, 80) || "design"
  );
}

export async function saveBudget(design, kind) {
  const found = await ask("/export", { design });
  if (found[kind] === null) throw new Error(found.remark);
  save(found[kind], `${found.file_name ?? fileName(design)}.${kind}`, kind === "csv" ? "text/csv" : "application/toml");
}

/** A file that the server makes, saved unchanged. */
export async function saveFromServer(path, body, otherwise, type, signal) {
  const { text, name } = await file(path, body, signal);
  save(text, name ?? otherwise, type);
}

/** Buttons that show the numbers of a chart and save it as PNG and SVG. */
export function chartButtons(host, chart, title, name) {
  host.append(chart.numbers.button);
  for (const kind of ["PNG", "SVG"]) {
    const button = make(
      "button",
      {
        type: "button",
        className: "small quietly",
        title: `Save this chart as ${kind}`,
        aria: { label: `Save ${title} as ${kind}` },
      },
      kind,
    );
    button.addEventListener("click", async () => {
      if (!chart.drawing.hasAttribute("viewBox")) return; // nothing is drawn yet
      const text = standalone(chart.drawing, `${title}: ${byId("title").value}`, chart.legendItems);
      if (kind === "SVG") save(text, `${name()}.svg`, "image/svg+xml");
      else save(await toPng(text), `${name()}.png`);
    });
    host.append(button);
  }
}

/** A button that opens a list of commands; arrow keys move in it, Escape closes it. */
export function menu(button, list, items) {
  const open = (isOpen) => {
    list.hidden = !isOpen;
    button.setAttribute("aria-expanded", String(isOpen));
  };
  list.replaceChildren(
    ...items.map((item) => {
      if (!item) return make("hr");
      const entry = make(
        "button",
        { type: "button", tabIndex: -1 },
        make("span", {}, item.name),
        make("small", {}, item.note ?? ""),
      );
      entry.setAttribute("role", "menuitem");
      entry.addEventListener("click", () => {
        open(false);
        button.focus();
        item.act();
      });
      return entry;
    }),
  );
  const entries = () => [...list.querySelectorAll("button")];
  button.addEventListener("click", () => {
    open(list.hidden);
    if (!list.hidden) entries()[0].focus();
  });
  list.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(document.activeElement);
    const to = {
      ArrowDown: (at + 1) % all.length,
      ArrowUp: (at + all.length - 1) % all.length,
      Home: 0,
      End: all.length - 1,
    }[event.key];
    if (to !== undefined) all[to].focus();
    else if (event.key === "Escape" || event.key === "Tab") {
      open(false);
      button.focus();
    } else return;
    event.preventDefault();
  });
  document.addEventListener(
    "pointerdown",
    ({ target }) => !list.hidden && !list.contains(target) && !button.contains(target) && open(false),
  );
}
