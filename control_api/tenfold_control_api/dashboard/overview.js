// The first view: what the clusters lack, how the newest runs go, and which models are served.

import { html } from "./vendor/preact.js";
import { count, many } from "./format.js";
import { useData, useTick } from "./live.js";
import { Models } from "./models.js";
import { Card, Command, Failure, State, Tile, route } from "./parts.js";
import { NoRuns, RunTable } from "./runs.js";

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
    <${Models} config=${config} />
    <${Card} title="Clusters">${clusters.data && !all.length ? html`<p class="quiet empty">No cluster is declared. <${Command}>tenfold up --ps 1 --workers 2<//> starts one on this machine.</p>` : null}
      <div class="clusters">${all.slice(0, 50).map((cluster) => html`<${ClusterLine} key=${cluster.name} cluster=${cluster} />`)}</div>
      ${all.length > 50 ? html`<p class="quiet">and ${count(all.length - 50)} more</p>` : null}<//>`;
}

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
