// The view of one run: how far it is, its curves, its tasks and why they failed, checkpoints, logs; stop and delete.

import { html, useEffect, useState } from "./vendor/preact.js";
import { call, saved } from "./api.js";
import { FIRST, plotsOf, standing, stepsKnown } from "./curves.js";
import { ago, between, bytes, clock, count, duration, many, rate, scalar, short } from "./format.js";
import { useData, useTick } from "./live.js";
import { Logs } from "./logs.js";
import { Act, Bars, Card, Choice, Command, Failure, Notice, State, Table, Tile } from "./parts.js";
import { Plot } from "./plots.js";
import { Tables } from "./tables.js";
import { Timeline } from "./timeline.js";

const FINAL = ["SUCCEEDED", "FAILED", "STOPPED"];

export function RunPage({ id, config }) {
  const path = `/v1/runs/${encodeURIComponent(id)}`;
  const [ended, end] = useState(false);
  const [trace, traced] = useState(null);
  const of = (event) => event.run === id;
  const { data: run, error, look } = useData(path, ended ? 15 : 2, of);
  const { data: curves } = useData(`${path}/progress`, ended ? 15 : 1, of);
  useTick(!ended);
  const final = FINAL.includes(run?.state);
  useEffect(() => end(final), [final]);
  if (!run) return html`<${Failure} error=${error} missing=${`There is no run ${id}. It may have been deleted.`} />`;
  const tasks = curves?.tasks ?? [];
  return html`
    <${Head} run=${run} final=${final} path=${path} look=${look} traced=${traced} />
    <${Failure} error=${error} />
    <${Reason} run=${run} />
    <${Tiles} run=${run} tasks=${tasks} />
    <${Failures} run=${run} />
    ${trace ? html`<${Traced} name=${run.name} file=${trace} close=${() => traced(null)} />` : null}
    ${final ? null : html`<${Why} path=${path} />`}
    <${Curves} tasks=${tasks} final=${final} />
    <${RunTasks} run=${run} tasks=${tasks} />
    <${Standing} tasks=${tasks} />
    <${Tables} tables=${curves?.tables} tasks=${tasks} />
    <${Kept} run=${run} tasks=${tasks} config=${config} />
    <${Logs} run=${run} path=${path} />`;
}

function Head({ run, final, path, look, traced }) {
  const stop = () => call(`${path}:stop`, { method: "POST", body: { reason: "stopped in the dashboard" } });
  return html`
    <div class="head">
      <h1>${run.name} <${State} is=${run.state} /></h1>
      <span class="grow"></span>
      <div class="actions">
        <${Trace} path=${path} disabled=${final} then=${traced} />
        ${final
          ? html`<${Act} label="Delete" danger question=${`Forget run ${run.name}, its curves and its logs? They are gone then.`}
              act=${() => call(path, { method: "DELETE" })} then=${() => { location.hash = "#/"; }} />`
          : html`<${Act} label="Stop" danger sure="Stop the run" act=${stop} then=${look}
              question=${`Stop run ${run.name}? Its tasks get SIGTERM, parameter servers last, and are killed if they do not end.`} />`}
      </div>
      <p class="program"><code>${run.entrypoint.join(" ")}</code></p>
    </div>`;
}

/** Takes a trace of the next step of every task. */
function Trace({ path, disabled, then }) {
  const [state, set] = useState({});
  async function take() {
    set({ busy: true });
    try {
      then(await call(`${path}:trace`, { method: "POST", body: {}, limit: 120_000 }));
      set({});
    } catch (error) {
      set({ error: [404, 405, 501].includes(error.status) && !error.problem.type?.includes("no-such-run") ? new Error(`No trace can be taken here: ${error.message}`) : error });
    }
  }
  return html`
    <button type="button" disabled=${disabled || state.busy} onClick=${take}
      title="Shows the next step of all tasks, node by node">${state.busy ? "Tracing …" : "Trace"}</button>
    ${state.error ? html`<span class="refusal" role="alert">${state.error.message}</span>` : null}`;
}

/** The traced step, and the same as a file for Perfetto. */
function Traced({ name, file, close }) {
  const save = () => saved(new Blob([JSON.stringify(file)], { type: "application/json" }), `${name}-trace.json`);
  const actions = html`<div class="actions">
    <button type="button" title="For ui.perfetto.dev or chrome://tracing" onClick=${save}>Save as file</button>
    <button type="button" onClick=${close}>Close</button></div>`;
  return html`<${Card} title="Traced step" id="trace" actions=${actions}><${Timeline} file=${file} /><//>`;
}

/** Asks every task what it waits for, when the reader wants to know, and says who keeps the others waiting. */
function Why({ path }) {
  const [state, set] = useState({});
  async function ask() {
    set({ busy: true });
    try {
      set({ found: await call(`${path}:why`) });
    } catch (error) {
      set({ error });
    }
  }
  const { found, error, busy } = state;
  const button = html`<button type="button" id="ask-why" disabled=${busy} onClick=${ask}
    title="Asks every task what its steps wait for and where its threads are; takes two seconds at most">${busy ? "Asking …" : found ? "Ask again" : "Why?"}</button>`;
  return html`<${Card} title="Why does it stand still?" id="why" actions=${button}>
    ${error ? html`<p class="refusal" role="alert">${error.message}</p>` : null}
    ${found ? html`<${Suspect} found=${found} />` : error ? null : html`<p class="quiet">Nothing is collected until you ask.</p>`}<//>`;
}

function Suspect({ found }) {
  return html`
    <p class="message" role="status"><strong>${found.suspect}</strong></p>
    ${found.because.length ? html`<ul>${found.because.map((each, at) => html`<li key=${at}>${each}</li>`)}</ul>` : null}
    ${found.tasks.map((task) => html`<details key=${task.name}>
      <summary><code>${short(task.name)}</code> <${State} is=${task.state} /> ${task.silence ? "did not answer" : many(task.waits.length, "wait")}</summary>
      ${task.silence || task.reason ? html`<p class="quiet">${task.silence || task.reason}</p>` : null}
      ${task.waits.length ? html`<ul>${task.waits.map((wait, at) => html`<li key=${at}>${wait.text}${wait.seconds === null ? "" : `, for ${duration(wait.seconds)}`}</li>`)}</ul>` : null}
      ${task.threads.map((thread, at) => html`<pre key=${at} tabindex="0">${stack(thread)}</pre>`)}
    </details>`)}`;
}

function stack(thread) {
  const doing = thread.node ? `computes '${thread.node}' (${thread.op})` : thread.doing;
  return [`${thread.name} ${doing}`, ...thread.frames.map((each) => `  ${each.file}:${each.line} in ${each.function}`)].join("\n");
}

function Reason({ run }) {
  if (run.state === "SUCCEEDED" || run.state === "RUNNING") return run.stop ? html`<${Notice}>It stops: ${run.stop}<//>` : null;
  return html`<${Notice} tone=${run.state === "FAILED" ? "bad" : "wait"}>${run.reason}<//>`;
}

function Tiles({ run, tasks }) {
  const { progress } = run;
  const ran = run.started ? between(run.started, run.ended) : null;
  const examples = progress?.examples_per_second;
  const loss = Object.entries(progress?.values ?? {}).find(([name]) => /loss/i.test(name));
  const sizes = Object.entries(run.jobs).map(([job, size]) => `${size} ${job}`).join(" · ");
  const memory = tasks.reduce((sum, task) => sum + (task.figures.resident_bytes ?? 0), 0);
  return html`
    <div class="tiles">
      <${Tile} label="global step" note=${howFar(progress)}>${count(progress?.global_step)}<//>
      <${Tile} label="steps per second" note=${examples ? `${rate(examples)} examples/s` : null}>${rate(progress?.steps_per_second)}<//>
      ${loss ? html`<${Tile} label=${loss[0]}>${scalar(loss[1])}<//>` : null}
      <${Tile} label=${run.ended ? "ran for" : "running for"} note=${run.started ? `since ${clock(run.started)}` : "not started yet"}>${ran === null ? "–" : duration(ran)}<//>
      <${Tile} label="attempt" note=${`${run.restarts_used} of ${run.restarts.limit} restarts used`}>${run.attempt || "–"}<//>
      <${Tile} label="tasks" note=${memory ? `${bytes(memory)} resident` : null}><span class="words">${sizes}</span><//>
    </div>`;
}

/** "24% of 5,000 · 45 s left"; nothing where the end is not known. */
function howFar(progress) {
  const { percent, last_step: last, seconds_left: left } = progress ?? {};
  if (percent === null || percent === undefined) return null;
  return `${Math.floor(percent)}% of ${count(last)}${left ? ` · ${duration(left)} left` : ""}`;
}

/** What failed, where, and what it wrote last. */
function Failures({ run }) {
  const failed = run.tasks.filter((task) => task.error || (task.state === "failed" && task.last_lines.length));
  if (!failed.length) return null;
  return html`<${Card} title="What failed" id="failures">${failed.slice(0, 10).map((task, at) => html`
    <div class="failure" key=${task.name}>
      <h3><code>${task.job}/${task.index}</code> ${task.error?.type ?? "ended"} <span class="quiet">${ending(task)}</span></h3>
      <${Message} text=${task.error?.message} />
      <dl class="where">${task.error?.node ? html`<dt>node</dt><dd><code>${task.error.node}</code></dd>` : null}
        ${task.error?.task ? html`<dt>task</dt><dd><code title=${task.error.task}>${short(task.error.task)}</code></dd>` : null}
        ${task.host ? html`<dt>host</dt><dd>${task.host}, process ${task.pid ?? "–"}</dd>` : null}</dl>
      ${task.last_lines.length ? html`<details open=${at === 0}><summary>Its last ${count(task.last_lines.length)} lines</summary><pre tabindex="0">${task.last_lines.join("\n")}</pre></details>` : null}
    </div>`)}
    ${failed.length > 10 ? html`<p class="quiet">${count(failed.length - 10)} more tasks failed; the table of tasks has them.</p>` : null}<//>`;
}

/** An error's message; where its operation was defined is folded away. */
function Message({ text }) {
  if (!text) return null;
  const [what, ...rest] = text.split(/\n\s*\n/);
  return html`<p class="message">${what}</p>${rest.length ? html`<details><summary>Where it comes from</summary><pre tabindex="0">${rest.join("\n\n")}</pre></details>` : null}`;
}

function ending(task) {
  if (task.signal) return task.signal;
  return task.exit_code === null ? "" : `exit code ${task.exit_code}`;
}

/** How the values of plots are written that are no scalars of the program. */
const FORMATS = { speed: rate, processor: rate, memory: bytes, variables: bytes, tables: bytes, rows: count, sent: bytes, received: bytes };

function Curves({ tasks, final }) {
  const [wanted, over] = useState("step");
  const [scale, setScale] = useState("linear");
  const [smooth, setSmooth] = useState("0");
  const [all, showAll] = useState(false);
  const known = stepsKnown(tasks);
  const x = known ? wanted : "time";
  const plots = plotsOf(tasks, x);
  if (!plots.length) return html`<${Card} title="Curves"><p class="quiet empty">${final ? "No program reported a scalar." : "No scalar yet. Floating scalars that the program fetches or writes as summaries appear here by themselves."}</p><//>`;
  const controls = html`<div class="controls">
    ${known ? html`<${Choice} label="over" value=${x} onChange=${over} options=${[["step", "steps"], ["time", "time"]]} />` : null}
    <${Choice} label="scale" value=${scale} onChange=${setScale} options=${[["linear", "linear"], ["log", "logarithmic"]]} />
    <${Choice} label="smoothing" value=${smooth} onChange=${setSmooth} options=${[["0", "none"], ["0.6", "some"], ["0.9", "much"]]} /></div>`;
  const shown = all ? plots : plots.slice(0, FIRST);
  return html`<${Card} title="Curves" id="curves" actions=${controls}>
    <div class="plots">${shown.map((plot) => html`<${Plot} key=${plot.title + (plot.own ?? "")} title=${plot.title} lines=${plot.lines} x=${plot.x ?? x}
      log=${scale === "log" && !plot.own} smooth=${plot.own ? 0 : Number(smooth)} format=${FORMATS[plot.own] ?? scalar} />`)}</div>
    ${plots.length > shown.length ? html`<p class="more"><button type="button" onClick=${() => showAll(true)}>Show ${count(plots.length - shown.length)} more</button></p>` : null}<//>`;
}

function RunTasks({ run, tasks }) {
  const reported = new Map(tasks.map((task) => [`${task.job}/${task.index}`, task]));
  const of = (task) => reported.get(`${task.job}/${task.index}`);
  const columns = [
    { name: "task", cell: (task) => html`<code>${task.job}/${task.index}</code>`, key: (task) => task.name },
    { name: "state", cell: (task) => html`<${State} is=${task.state} />`, key: (task) => task.state },
    { name: "ended by", cell: (task) => ending(task) || "–", key: (task) => task.exit_code },
    { name: "step", num: true, cell: (task) => count(of(task)?.global_step), key: (task) => of(task)?.global_step },
    { name: "steps/s", num: true, cell: (task) => rate(of(task)?.steps_per_second), key: (task) => of(task)?.steps_per_second },
    { name: "memory", num: true, cell: (task) => bytes(of(task)?.figures.resident_bytes), key: (task) => of(task)?.figures.resident_bytes },
    { name: "processor", num: true, cell: (task) => (of(task)?.figures.cpu_seconds === undefined ? "–" : duration(of(task).figures.cpu_seconds)), key: (task) => of(task)?.figures.cpu_seconds },
    { name: "starts", num: true, cell: (task) => count(task.starts), key: (task) => task.starts },
    { name: "process", cell: (task) => { const where = task.pid ? `${task.pid} on ${task.host}` : "–"; return task.page ? html`<a href=${task.page} rel="noreferrer">${where}</a>` : where; } },
    { name: "error", wide: true, cell: (task) => (task.error ? `${task.error.type ?? "error"}${task.error.node ? ` at ${task.error.node}` : ""}${task.error.task ? ` on ${short(task.error.task)}` : ""}` : "") },
  ];
  return html`<${Card} title="Tasks" note=${`${count(run.tasks.length)} of ${count(Object.values(run.jobs).reduce((a, b) => a + b, 0))} started`}>
    <${Table} id="run-tasks" label="Tasks of the run" columns=${columns} rows=${run.tasks} of=${(task) => task.name} empty="No task was started yet." /><//>`;
}

/** Which tasks lag behind: the global step that each saw last. */
function Standing({ tasks }) {
  const known = standing(tasks);
  if (known.length < 2) return null;
  const worst = Math.max(...known.map((each) => each.behind));
  return html`<${Card} title="Staleness" note=${worst ? `the furthest behind is ${many(worst, "step")} behind` : "all have seen the same step"}>
    <${Bars} label="Steps behind the furthest task" of=${known.map((each) => ({ name: each.name, value: each.behind, text: `${count(each.behind)} behind · step ${count(each.step)} · ${ago(each.updated)}` }))} /><//>`;
}

/** What the run left on disks: checkpoints, and event files for TensorBoard. */
function Kept({ run, tasks, config }) {
  const checkpoints = tasks.flatMap((task) => task.checkpoints.map((each) => ({ ...each, of: `${task.job}/${task.index}` }))).sort((a, b) => b.time - a.time);
  const folders = [...new Set(tasks.flatMap((task) => task.logdirs ?? []))];
  if (!checkpoints.length && !folders.length) return null;
  const columns = [
    { name: "written", cell: (each) => clock(each.time * 1000) },
    { name: "by", cell: (each) => html`<code>${each.of}</code>` },
    { name: "checkpoint", wide: true, cell: (each) => html`<code>${each.path}</code>` },
  ];
  return html`<${Card} title="Checkpoints and event files">
    ${folders.length ? html`<div class="tensorboard" id="tensorboard"><p>Event files in ${folders.map((each) => html`<code key=${each}>${each}</code> `)}</p>
      <p>TensorBoard: ${config?.tensorboard ? html`<a href=${config.tensorboard} rel="noreferrer">open it</a>, or type ` : "type "}<${Command}>${`tenfold tensorboard ${run.name}`}<//></p></div>` : null}
    ${checkpoints.length ? html`<${Table} label="Checkpoints" columns=${columns} rows=${checkpoints} size=${10} of=${(each) => `${each.of} ${each.time} ${each.path}`} />` : null}<//>`;
}
