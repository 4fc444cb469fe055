/** Where a design lives: in the address of the page, in this browser, or in a file the user saves. */

const FORMAT = "exactdp studio design";
const VERSION = 2; // 1 had one scenario, A
const LONGEST_LINK = 12_000;
const STORED = "exactdp-studio/design/";
const MOST_STORED = 8;
const MOST_BYTES = 4_000_000;

/** The bytes after a stream; what grows beyond MOST_BYTES is refused. */
async function through(bytes, stream) {
  const parts = [];
  let length = 0;
  for await (const part of new Blob([bytes]).stream().pipeThrough(stream)) {
    length += part.length;
    if (length > MOST_BYTES) throw new Error("too long");
    parts.push(part);
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

function toBase64Url(bytes) {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
}

/** The state as the text of a link's fragment. */
async function packed(state) {
  const bytes = new TextEncoder().encode(JSON.stringify({ version: VERSION, ...state }));
  return toBase64Url(await through(bytes, new CompressionStream("deflate-raw")));
}

/** The state of a packed text; throws a sentence where it is none. */
async function unpacked(text) {
  let record;
  try {
    const bytes = await through(fromBase64Url(text), new DecompressionStream("deflate-raw"));
    record = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Error("The link is damaged or cut off. Ask for it again, or for the saved design file.");
  }
  return checked(record, "The link");
}

/** The fragment that stands for a state; what is too long for a link is kept in this browser. */
export async function toFragment(state) {
  const text = await packed(state);
  if (text.length <= LONGEST_LINK) return { fragment: `#d=${text}`, isLink: true };
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
  const key = toBase64Url(digest.slice(0, 12));
  store(key, text);
  return { fragment: `#s=${key}`, isLink: false };
}

function store(key, text) {
  const old = Object.keys(localStorage).filter((name) => name.startsWith(STORED) && name !== STORED + key);
  const byAge = old.sort((a, b) => age(a) - age(b));
  while (byAge.length >= MOST_STORED) localStorage.removeItem(byAge.shift());
  for (;;) {
    try {
      localStorage.setItem(STORED + key, JSON.stringify({ time: Date.now(), text }));
      return;
    } catch {
      if (!byAge.length)
        throw new Error("The design is too big for this browser's storage. Save a design file instead.");
      localStorage.removeItem(byAge.shift());
    }
  }
}

function age(name) {
  try {
    return JSON.parse(localStorage.getItem(name)).time ?? 0;
  } catch {
    return 0;
  }
}

/** The state that the page's address stands for, or null if it names none. */
export async function fromFragment(fragment) {
  const [, kind, text] = /^#([ds])=([\w-]+)$/.exec(fragment) ?? [];
  if (!kind) return null;
  if (kind === "d") return unpacked(text);
  const kept = localStorage.getItem(STORED + text);
  if (!kept)
    throw new Error("This link names a design that is kept in another browser. Ask for the saved design file.");
  return unpacked(JSON.parse(kept).text);
}

/** The text of a design file. */
export function toFile(state) {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, ...state }, null, 2)}\n`;
}

function formatOf(text) {
  try {
    return JSON.parse(text)?.format;
  } catch {
    return undefined;
  }
}

/** Whether the text is a budget file in JSON, which is for the server to read; design files of the studio are read here. */
export const isBudget = (text) => formatOf(text) === "exactdp design";

/** Whether the text is a certificate, of a pair or of a whole design: it is not opened but verified. */
export const isCertificate = (text) => ["exactdp certificate", "exactdp design certificate"].includes(formatOf(text));

/** The state in a design file; throws a sentence where the file is none. */
export function fromFile(text, name) {
  let record;
  try {
    record = JSON.parse(text);
  } catch {
    throw new Error(`${name} is not JSON. Open a design file that the studio saved, or a budget file.`);
  }
  if (record?.format !== FORMAT) {
    throw new Error(
      `${name} is not a design file of the studio. Open one that the studio saved, or a budget file (.toml, .csv, .json).`,
    );
  }
  return checked(record, name);
}

const isText = (value) => typeof value === "string";
const isList = (value, test) => Array.isArray(value) && value.every(test);

function isDesign(design) {
  const isQuery = (query) => isText(query?.name) && isText(query?.rho);
  const isLevel = (level) => isText(level?.name) && isList(level?.queries, isQuery);
  const isPath = (path) => Number.isInteger(path?.number) && isList(path?.bypassed, isText);
  return (
    isList(design?.levels, isLevel) &&
    design.levels.length > 0 &&
    isList(design?.paths, isPath) &&
    design.paths.length > 0 &&
    [design.name, design.title, design.source, design.unit_of_privacy ?? ""].every(isText)
  );
}

const isScenario = (value) =>
  isDesign(value?.design) && isList(value?.pair, (path) => isList(path, isText)) && value.pair.length === 2;
/** No lock, or the text of an epsilon and the level that gives way (empty: every level). */
const isLock = (value) => value === null || [value?.epsilon, value?.level].every(isText);
const isNamed = (value) => isText(value?.name) && value.name !== "" && isScenario(value);

/** A record of the right shape; the numbers in it are for the server to judge. */
function checked(record, what) {
  if (record?.version !== VERSION && record?.version !== 1)
    throw new Error(
      `${what} is of version ${record?.version ?? "unknown"}. This studio reads versions 1 and ${VERSION}.`,
    );
  const { design, pair, ask, kept, against, typical = {}, lock = null } = record.version === 1 ? ofVersion1(record) : record;
  const asksWell = isText(ask?.delta) && isText(ask?.alpha) && (ask?.epsilon === null || isText(ask?.epsilon));
  const isBoard = isList(kept, isNamed) && new Set(kept.map(({ name }) => name)).size === kept.length;
  if (
    !isScenario({ design, pair }) ||
    !asksWell ||
    !isBoard ||
    !isLock(lock) ||
    !isList(Object.entries(typical), (row) => row.every(isText))
  ) {
    throw new Error(`${what} lacks a part of the design. Save it again in the studio.`);
  }
  const { delta, alpha, epsilon } = ask;
  const scenarios = kept.map(({ name, design: own, pair: paths }) => ({ name, design: plainDesign(own), pair: paths }));
  const reference = scenarios.some(({ name }) => name === against) ? against : null;
  return {
    design: plainDesign(design),
    pair,
    ask: { delta, alpha, epsilon },
    kept: scenarios,
    against: reference,
    typical,
    lock: lock && { epsilon: lock.epsilon, level: lock.level },
  };
}

/** What version 1 called scenario A is the only one kept. */
function ofVersion1({ a = null, ...rest }) {
  return a ? { ...rest, kept: [{ ...a, name: "A" }], against: "A" } : { ...rest, kept: [], against: null };
}

/** Only what the page shows: nothing else in a link or a file may reach the server (a scale of the noise, for instance). */
function plainDesign({ name, title, source, unit_of_privacy = "", levels, paths }) {
  const query = ({ name, rho }) => ({ name, rho });
  const level = ({ name, queries }) => ({ name, queries: queries.map(query) });
  const path = ({ number, bypassed }) => ({ number, bypassed });
  return { name, title, source, unit_of_privacy, levels: levels.map(level), paths: paths.map(path) };
}
