/** The way to the server: JSON questions, streams of lines, one sentence for every failure. */

const ROOT = "/api/v1";

/** What the server refused, in its own sentence; `where` is the place in the request, if it is known. */
export class Refusal extends Error {
  constructor(sentence, where = null, status = 0) {
    super(sentence);
    Object.assign(this, { where, status });
  }
}

/** The server did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super("The studio's server does not answer.");
  }
}

/** What to tell the user of an error: null where the question was ended on purpose. A defect of the page is thrown on. */
export function failure(error) {
  if (error.name === "AbortError") return null;
  if (error instanceof Refusal || error instanceof Unreachable) return error;
  throw error;
}

async function reach(path, options) {
  let response;
  try {
    response = await fetch(ROOT + path, { ...options, cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable();
  }
  if (response.ok) return response;
  const found = await response.json().catch(() => ({}));
  const sentence = found.error ?? `The server answered with status ${response.status}. Try again.`;
  throw new Refusal(sentence, found.where ?? null, response.status);
}

/** The request for a JSON body. */
function posted(body, signal) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), signal };
}

export async function get(path) {
  return (await reach(path, {})).json();
}

export async function ask(path, body, signal) {
  return (await reach(path, posted(body, signal))).json();
}

/** The answer as a text, to be saved unchanged, and the name the server gives it. */
export async function file(path, body, signal) {
  const response = await reach(path, posted(body, signal));
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition"))[1];
  return { text: await response.text(), name };
}

/** The objects of an answer in lines, as they arrive. */
export async function* lines(path, body, signal) {
  const response = await reach(path, posted(body, signal));
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      const parts = (rest + (value ?? "")).split("\n");
      rest = done ? "" : parts.pop();
      for (const part of parts) if (part.trim()) yield JSON.parse(part);
      if (done) return;
    }
  } catch (error) {
    if (error.name === "AbortError" || !(error instanceof TypeError)) throw error;
    throw new Unreachable();
  } finally {
    reader.cancel().catch(() => {});
  }
}
