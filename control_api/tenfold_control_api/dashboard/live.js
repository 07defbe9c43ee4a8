// What keeps the page up to date: data that is asked for again while somebody looks, and sooner when an event tells that
// something has changed. One event stream for the whole page; it rests while the page is hidden, because a browser
// has few connections for all its tabs.

import { call, follow } from "./api.js";
import { useEffect, useState } from "./vendor/preact.js";

/** Events that are kept for the view of events. */
const KEPT = 500;
/** Events before now that the first look brings. */
const BACKLOG = 300;

/** {state: "connecting" | "live" | "broken", since, error, again}. */
export const connection = subject({ state: "connecting", since: Date.now() });
/** The newest events, the newest first. */
export const news = subject([]);
const arrived = new Set();

function subject(first) {
  const listeners = new Set();
  return {
    value: first,
    set(value) {
      this.value = value;
      listeners.forEach((tell) => tell(value));
    },
    on(tell) {
      listeners.add(tell);
      return () => listeners.delete(tell);
    },
  };
}

/** The value of a subject, as it changes. */
export function useSubject(of) {
  const [value, set] = useState(of.value);
  useEffect(() => {
    set(of.value);
    return of.on(set);
  }, [of]);
  return value;
}

let ending = null;

/** Follows the events while the page is seen. Again after a token was given. */
export function begin() {
  ending?.abort();
  if (!document.hidden) listen((ending = new AbortController()).signal);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden) begin();
  else ending?.abort();
});

async function listen(signal) {
  const told = (state, error = null, again = null) => {
    const { state: before, since } = connection.value;
    connection.set({ state, error, again, since: state === before ? since : Date.now() });
  };
  let from = news.value[0]?.id ?? null;
  if (from === null) {
    try {
      from = Math.max(0, (await call("/v1/events", { signal })).next - BACKLOG);
    } catch (error) {
      if (signal.aborted) return;
      // the stream says what is wrong, and tries again
    }
  }
  follow("/v1/events", {
    signal,
    from: from === null ? null : String(from),
    onState: told,
    onEvent({ data }) {
      if (!data.kind) return;
      news.set([data, ...news.value].slice(0, KEPT));
      arrived.forEach((tell) => tell(data));
    },
  });
}

/**
 * {data, error, look}: what `path` answers, asked for every `seconds` while the page is seen, and at once when an event
 * comes for which `wakes` holds. `path` null asks for nothing. The last answer stays when a request fails.
 */
export function useData(path, seconds = 3, wakes = null) {
  const [found, set] = useState({ path });
  const [asked, ask] = useState(0);
  useEffect(() => {
    if (path === null) return undefined;
    const end = new AbortController();
    let timer = 0;
    let busy = false;
    let again = false;
    async function look() {
      clearTimeout(timer);
      if (busy) {
        again = true;
        return;
      }
      busy = true;
      again = false;
      try {
        const data = await call(path, { signal: end.signal });
        if (!end.signal.aborted) set({ path, data, at: Date.now() });
      } catch (error) {
        if (!end.signal.aborted) set((before) => ({ ...(before.path === path ? before : { path }), error }));
      }
      busy = false;
      if (!end.signal.aborted && !document.hidden) timer = setTimeout(look, again ? 200 : seconds * 1000);
    }
    const wake = (event) => wakes?.(event) && look();
    const seen = () => !document.hidden && look();
    arrived.add(wake);
    document.addEventListener("visibilitychange", seen);
    look();
    return () => {
      end.abort();
      clearTimeout(timer);
      arrived.delete(wake);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path, seconds, asked]);
  const look = () => ask((n) => n + 1);
  return found.path === path ? { ...found, look } : { look };
}

/** Draws again every second, for times that pass. */
export function useTick(on = true) {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => document.hidden || tick((n) => n + 1), 1000);
    return () => clearInterval(timer);
  }, [on]);
}
