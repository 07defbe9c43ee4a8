// The logs of a run as they come, by an event stream. Only the newest lines are kept, and fewer are elements of the page.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { call, follow, saved } from "./api.js";
import { Card, Choice, Notice, Search } from "./parts.js";
import { clock, count } from "./format.js";

const KEPT = 5000;
const SHOWN = 500;
const LEVELS = { DEBUG: 0, INFO: 1, WARNING: 2, ERROR: 3, CRITICAL: 4, FATAL: 4 };

export function Logs({ run, path }) {
  const [task, choose] = useState("");
  const [level, atLeast] = useState("DEBUG");
  const [text, search] = useState("");
  const [following, setFollowing] = useState(true);
  const [state, set] = useState({ lines: [], tone: "connecting" });
  const box = useRef(null);

  useEffect(() => {
    let lines = [];
    let number = 0;
    let frame = 0;
    let stream = new AbortController();
    let place = null;
    let over = false;
    const show = () => {
      frame = 0;
      set((before) => ({ ...before, lines }));
    };
    const begin = () => {
      stream = new AbortController();
      follow(`${path}/logs?follow=true&tail=${SHOWN}${task ? `&task=${encodeURIComponent(task)}` : ""}`, {
        signal: stream.signal,
        from: place,
        last: ["end"],
        onState: (tone, error) => set((before) => ({ ...before, tone, error })),
        onEvent({ id, name, data }) {
          if (id !== null) place = id;
          if (name === "end") {
            over = true;
            set((before) => ({ ...before, tone: "ended" }));
            return;
          }
          lines = [...lines, ...data.lines.map((each) => ({ ...each, number: (number += 1) }))].slice(-KEPT);
          frame ||= requestAnimationFrame(show);
        },
      });
    };
    const seen = () => {
      stream.abort();
      if (!document.hidden && !over) begin();
    };
    set({ lines: [], tone: "connecting" });
    begin();
    document.addEventListener("visibilitychange", seen);
    return () => {
      stream.abort();
      cancelAnimationFrame(frame);
      document.removeEventListener("visibilitychange", seen);
    };
    // the attempts of a run share its logs: a new one needs no new stream
  }, [path, task]);

  useEffect(() => {
    if (following && box.current) box.current.scrollTop = box.current.scrollHeight;
  });

  const wanted = text.toLowerCase();
  const fitting = state.lines.filter((line) => (LEVELS[line.level] ?? 1) >= LEVELS[level] && (!wanted || line.text.toLowerCase().includes(wanted)));
  const tasks = run.tasks.slice(0, 1000).map((each) => `${each.job}/${each.index}`);
  const word = { connecting: "connecting …", live: "live", broken: "no connection, trying again", ended: "the run has ended" }[state.tone];
  const controls = html`<div class="controls">
    <${Choice} label="task" value=${task} onChange=${choose} options=${[["", "all"], ...tasks.map((each) => [each, each])]} />
    <${Choice} label="level" value=${level} onChange=${atLeast} options=${["DEBUG", "INFO", "WARNING", "ERROR"].map((each) => [each, each === "DEBUG" ? "all" : `${each.toLowerCase()} and above`])} />
    <${Search} label="Find in logs" value=${text} onChange=${search} />
    <${Download} run=${run} path=${path} task=${task} />
    <label class="field check"><input type="checkbox" checked=${following} onChange=${(e) => setFollowing(e.target.checked)} /><span>follow</span></label></div>`;
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const atEnd = scrollHeight - scrollTop - clientHeight < 30;
    if (following && !atEnd) setFollowing(false);
    if (!following && atEnd) setFollowing(true);
  };
  return html`<${Card} title="Logs" id="logs" note=${word} actions=${controls}>
    ${state.tone === "broken" && state.error?.status ? html`<${Notice} tone="bad">${state.error.message}<//>` : null}
    <div class="log" ref=${box} tabindex="0" role="log" aria-label="Log lines" onScroll=${scrolled}>
      ${fitting.length > SHOWN ? html`<p class="quiet">${count(fitting.length - SHOWN)} earlier lines are not shown; <code>tenfold logs</code> has them.</p>` : null}
      ${fitting.slice(-SHOWN).map((line) => html`<div key=${line.number} class=${`line ${line.level.toLowerCase()}`}><span class="time" title=${line.time}>${clock(line.time)}</span> <span class="task">${line.task}</span> <span class="text">${line.text}</span></div>`)}
      ${fitting.length ? null : html`<p class="quiet">${state.lines.length ? "No line fits." : "Nothing was written yet."}</p>`}
    </div><//>`;
}

/** Lines that the service gives at once. */
const MOST = 100_000;

/** What the tasks wrote, as a file of text: of one task if one is chosen. */
function Download({ run, path, task }) {
  const [state, set] = useState({});
  async function take() {
    set({ busy: true });
    try {
      const answer = await call(`${path}/logs?format=text&tail=${MOST}${task ? `&task=${encodeURIComponent(task)}` : ""}`, { raw: true, limit: 120_000 });
      saved(await answer.blob(), `${run.name}${task ? `-${task.replace("/", "-")}` : ""}.log`);
      set({});
    } catch (error) {
      set({ error });
    }
  }
  return html`<button type="button" class="small" disabled=${state.busy} onClick=${take} title=${`The newest ${count(MOST)} lines as a file`}>Download</button>
    ${state.error ? html`<span class="refusal" role="alert">${state.error.message}</span>` : null}`;
}
