// How the page talks to the service: requests with the token, errors as the service tells them, and event streams that
// come back by themselves. fetch instead of EventSource, which cannot send a token. Used by every view.

const KEY = "tenfold-token";
/** Seconds between attempts to reach a stream again. */
const AGAIN = [1, 2, 4, 8, 15];
/** A request that takes longer has failed, and so has a stream that is silent for longer: the service sends a comment every 10 s. */
const REQUEST_MS = 20_000;
const SILENCE_MS = 30_000;

/** What the service refused, in its own words. */
export class ProblemError extends Error {
  constructor(status, problem) {
    super(problem?.detail || `the service answered with ${status}`);
    this.status = status;
    this.problem = problem || {};
  }
}

/** Called when the service asks for the token. */
export const tokenNeeded = new Set();

export function keepToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

const withToken = (token, more) => (token ? { ...more, Authorization: `Bearer ${token}` } : more);

async function refused(answer, token) {
  let problem = null;
  try {
    problem = await answer.json();
  } catch {
    // a proxy's page, or nothing: the status has to do
  }
  // a late refusal of an older token says nothing of the newer one
  if (answer.status === 401 && token === sessionStorage.getItem(KEY)) tokenNeeded.forEach((tell) => tell());
  return new ProblemError(answer.status, problem);
}

/** One request; the JSON of the answer, or with `raw` the answer. Throws ProblemError, or TypeError for no connection. */
export async function call(path, { method = "GET", body, signal, raw = false, limit = REQUEST_MS } = {}) {
  const given = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { "Content-Type": "application/json" };
  const late = AbortSignal.timeout(limit);
  const token = sessionStorage.getItem(KEY);
  const answer = await fetch(path, {
    method,
    // credentials that the browser keeps would make it ask for them in a window of its own
    credentials: "omit",
    cache: "no-store",
    headers: withToken(token, { Accept: "application/json", ...type }),
    signal: signal ? AbortSignal.any([signal, late]) : late,
    ...given,
  });
  if (!answer.ok) throw await refused(answer, token);
  return raw ? answer : answer.json();
}

/**
 * Follows an event stream until `signal` ends it, and begins again where it was after a broken connection.
 * `onEvent({id, name, data})`; `onState("live" | "broken", error, seconds until the next attempt)`. An event named in
 * `last` ends it.
 */
export async function follow(path, { onEvent, onState = () => {}, signal, last = [], from = null }) {
  let place = from;
  let attempt = 0;
  while (!signal.aborted) {
    const silence = new AbortController();
    let watch = 0;
    const heard = () => {
      clearTimeout(watch);
      watch = setTimeout(() => silence.abort(new Error("the service is silent")), SILENCE_MS);
    };
    let error = new Error("the connection ended");
    const token = sessionStorage.getItem(KEY);
    try {
      heard();
      const answer = await fetch(path, {
        credentials: "omit",
        cache: "no-store",
        headers: withToken(token, { Accept: "text/event-stream", ...(place === null ? {} : { "Last-Event-ID": place }) }),
        signal: AbortSignal.any([signal, silence.signal]),
      });
      if (!answer.ok) throw await refused(answer, token);
      attempt = 0;
      onState("live");
      for await (const event of events(answer.body, heard)) {
        if (event.id !== null) place = event.id;
        if (event.name === "dropped") {
          place = null;
          break;
        }
        if (event.data !== "") onEvent({ ...event, data: JSON.parse(event.data) });
        if (last.includes(event.name)) return;
      }
    } catch (caught) {
      error = caught;
      if (caught instanceof ProblemError) {
        // a place that is gone: go on from now
        if (caught.status === 410 && place !== null) place = null;
        else if (caught.status < 500 && caught.status !== 429) {
          onState("broken", caught, null);
          return;
        }
      }
    } finally {
      clearTimeout(watch);
      silence.abort();
    }
    if (signal.aborted) return;
    const pause = AGAIN[Math.min(attempt++, AGAIN.length - 1)];
    onState("broken", error, pause);
    await slept(pause * 1000, signal);
  }
}

/** The events of a body, as the HTML standard reads them; comments and events without data come with empty data. */
async function* events(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) yield parsed(part);
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parsed(text) {
  const event = { id: null, name: "message", data: "" };
  for (const line of text.split("\n")) {
    const [, field, value] = /^([^:]*)(?:: ?(.*))?$/.exec(line);
    if (field === "id") event.id = value;
    else if (field === "event") event.name = value;
    else if (field === "data") event.data += event.data ? `\n${value}` : value;
  }
  return event;
}

function slept(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

/** Hands a blob to the browser as a file. */
export function saved(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
