// The first view: what the clusters lack, and how the newest runs go. Also the list of all runs, in the service's pages.

import { html, useEffect, useState } from "./vendor/preact.js";
import { telling } from "./curves.js";
import { ago, between, count, duration, many, rate, scalar } from "./format.js";
import { useData, useTick } from "./live.js";
import { Card, Choice, Command, Failure, Spark, State, Table, Tile, route } from "./parts.js";
import { runLink } from "./run.js";

const STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"];

export function Overview({ config }) {
  const clusters = useData("/v1/clusters?limit=1000", 3, (event) => ["cluster", "task"].includes(event.kind));
  const runs = useData("/v1/runs?limit=8", 2, (event) => event.kind === "run");
  const sessions = useData("/v1/sessions?limit=1000", 5, (event) => event.kind === "session");
  useTick();
  const all = clusters.data?.clusters ?? [];
  const counts = (state) => all.reduce((sum, cluster) => sum + (cluster.counts[state] ?? 0), 0);
  const missing = all.reduce((sum, cluster) => sum + cluster.missing_tasks.length, 0);
  const running = runs.data?.runs.filter((run) => run.state === "RUNNING").length;
  return html`
    <h1 class="hidden">Overview</h1>
    <${Failure} error=${clusters.error ?? runs.error} />
    <div class="tiles">
      <${Tile} label="tasks ready" note=${`in ${many(all.length, "cluster")}`}>${clusters.data ? count(counts("ready")) : "–"}<//>
      <${Tile} label="tasks missing or lost" tone=${counts("lost") ? "bad" : missing ? "wait" : ""}>${clusters.data ? count(missing) : "–"}<//>
      <${Tile} label="runs now">${count(running)}<//>
      <${Tile} label="open sessions">${count(sessions.data?.sessions.length)}${sessions.data?.next ? "+" : ""}<//>
    </div>
    <${Card} title="Newest runs" actions=${html`<a href="#/runs">All runs</a>`}>
      ${runs.data && !runs.data.runs.length ? html`<${NoRuns} config=${config} />` : html`<${RunTable} runs=${runs.data?.runs ?? []} sparks />`}<//>
    <${Card} title="Clusters">${clusters.data && !all.length ? html`<p class="quiet empty">No cluster is declared. <${Command}>tenfold up --ps 1 --workers 2<//> starts one on this machine.</p>` : null}
      <div class="clusters">${all.slice(0, 50).map((cluster) => html`<${ClusterLine} key=${cluster.name} cluster=${cluster} />`)}</div>
      ${all.length > 50 ? html`<p class="quiet">and ${count(all.length - 50)} more</p>` : null}<//>`;
}

const NoRuns = ({ config }) => html`<p class="quiet empty">No run yet. ${config?.runs
  ? html`<${Command}>tenfold submit -- python trainer.py<//> starts one.`
  : html`This service starts no programs (see <code>--allow-runs</code>); it shows those that report to it.`}</p>`;

function ClusterLine({ cluster }) {
  const complete = cluster.conditions.find((each) => each.type === "Complete");
  const total = Object.values(cluster.jobs).reduce((a, b) => a + b, 0);
  return html`<div class="cluster">
    <div><a class="name" href=${route("clusters", cluster.name)}>${cluster.name}</a> <${State} is=${cluster.state} />
      <span class="quiet">${Object.entries(cluster.jobs).map(([job, size]) => `${count(size)} ${job}`).join(" · ")}</span></div>
    <${Shares} counts=${cluster.counts} total=${total} />
    ${complete && !complete.status ? html`<p class="why" title=${complete.message}>${complete.message}</p>` : null}
  </div>`;
}

const WORDS = { ready: "good", finished: "done", stopped: "wait", missing: "none", lost: "bad" };

/** How many tasks are in which state, as one bar. */
export function Shares({ counts, total }) {
  const parts = Object.entries(WORDS).filter(([state]) => counts[state]);
  const told = parts.map(([state]) => `${count(counts[state])} ${state}`).join(", ");
  return html`<div class="shares" role="img" aria-label=${told} title=${told}>${parts.map(([state, tone]) => html`<span key=${state} class=${tone} style=${{ width: `${(100 * counts[state]) / total}%` }}></span>`)}</div>
    <span class="quiet told">${told}</span>`;
}

/** One run's curve, asked for rarely once it has ended. */
function RunSpark({ run }) {
  const { data } = useData(`/v1/runs/${encodeURIComponent(run.name)}/progress`, run.ended ? 600 : 4);
  const curve = data && telling(data.tasks);
  return curve ? html`<${Spark} values=${curve.values} label=${`${curve.name}, now ${scalar(curve.values.at(-1))}`} />` : html`<span class="quiet">–</span>`;
}

function valueOf(run) {
  const values = Object.entries(run.progress?.values ?? {});
  const [name, value] = values.find(([each]) => /loss/i.test(each)) ?? values[0] ?? [];
  return name === undefined ? "–" : `${name.split("/").pop()} ${scalar(value)}`;
}

export function RunTable({ runs, sparks = false }) {
  const columns = [
    { name: "run", cell: (run) => runLink(run.name) },
    { name: "state", cell: (run) => html`<${State} is=${run.state} />` },
    { name: "program", wide: true, cell: (run) => html`<code class="clip" title=${run.entrypoint.join(" ")}>${run.entrypoint.join(" ")}</code>${run.state === "FAILED" ? html`<div class="why">${run.reason}</div>` : null}` },
    { name: "step", num: true, cell: (run) => count(run.progress?.global_step) },
    { name: "steps/s", num: true, cell: (run) => (run.state === "RUNNING" ? rate(run.progress?.steps_per_second) : "–") },
    { name: "value", num: true, cell: valueOf },
    ...(sparks ? [{ name: "curve", cell: (run) => html`<${RunSpark} run=${run} />` }] : []),
    { name: "time", num: true, cell: (run) => (run.started ? duration(between(run.started, run.ended)) : "–") },
    { name: "created", num: true, cell: (run) => ago(run.created) },
  ];
  return html`<${Table} id="runs" label="Runs" columns=${columns} rows=${runs} of=${(run) => run.name} empty="" />`;
}

export function RunsPage({ config }) {
  const [state, choose] = useState("");
  const [places, go] = useState([null]);
  useEffect(() => go([null]), [state]);
  const after = places.at(-1);
  const { data, error } = useData(`/v1/runs?limit=25${state ? `&state=${state}` : ""}${after ? `&after=${encodeURIComponent(after)}` : ""}`, 3, (event) => event.kind === "run");
  useTick();
  const controls = html`<div class="controls"><${Choice} label="state" value=${state} onChange=${choose} options=${[["", "any"], ...STATES.map((each) => [each, each.toLowerCase()])]} /></div>`;
  return html`<h1 class="hidden">Runs</h1><${Failure} error=${error} />
    <${Card} title="Runs" actions=${controls}>
      ${data && !data.runs.length ? html`<${NoRuns} config=${config} />` : html`<${RunTable} runs=${data?.runs ?? []} />`}
      ${places.length > 1 || data?.next ? html`<nav class="pager" aria-label="Pages of runs">
        <button type="button" disabled=${places.length < 2} onClick=${() => go(places.slice(0, -1))}>Newer</button>
        <button type="button" disabled=${!data?.next} onClick=${() => go([...places, data.next])}>Older</button></nav>` : null}<//>`;
}
