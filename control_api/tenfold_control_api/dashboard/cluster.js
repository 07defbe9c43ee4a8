// The view of one cluster: who is there, who is missing and why, what the tasks use, and how variables and tables lie on
// the parameter servers.

import { html, useState } from "./vendor/preact.js";
import { call } from "./api.js";
import { ago, between, bytes, clock, count, duration, heavy, many, short } from "./format.js";
import { useData, useTick } from "./live.js";
import { Shares } from "./overview.js";
import { Act, Bars, Card, Choice, Failure, Notice, Search, State, Table } from "./parts.js";
import { Tables } from "./tables.js";

export function ClusterPage({ name }) {
  const path = `/v1/clusters/${encodeURIComponent(name)}`;
  const of = (event) => event.cluster === name;
  const cluster = useData(path, 3, of);
  const total = cluster.data ? Object.values(cluster.data.jobs).reduce((a, b) => a + b, 0) : 0;
  // a large cluster is asked for less often
  const jobs = useData(`${path}/jobs`, total > 200 ? 8 : 3, total > 200 ? null : of);
  useTick(total <= 200);
  if (!cluster.data) return html`<${Failure} error=${cluster.error} missing=${`There is no cluster ${name}.`} />`;
  const tasks = (jobs.data?.jobs ?? []).flatMap((job) => job.tasks);
  const complete = cluster.data.conditions.find((each) => each.type === "Complete");
  return html`
    <div class="head"><h1>${name} <${State} is=${cluster.data.state} /></h1><span class="grow"></span>
      <span class="quiet">spec version ${count(cluster.data.version)} · declared ${ago(cluster.data.created)}</span></div>
    <${Failure} error=${cluster.error ?? jobs.error} />
    ${complete && !complete.status ? html`<${Notice} tone=${cluster.data.counts.lost ? "bad" : "wait"}><span class="clamped" title=${complete.message}>${complete.message}</span><//>` : null}
    <div class="card slim"><${Shares} counts=${cluster.data.counts} total=${total} /></div>
    <${Variables} tasks=${tasks} />
    <${Tables} tables=${jobs.data?.tables} tasks=${tasks.filter((task) => task.figures)} />
    <${Tasks} tasks=${tasks} path=${path} look=${jobs.look} />`;
}

/** Bytes of variables on each parameter server, with a warning where one holds far more than its share. */
function Variables({ tasks }) {
  const servers = tasks.filter((task) => task.job === "ps" && task.state === "ready");
  const known = servers.filter((task) => typeof task.figures?.variable_bytes === "number");
  if (!servers.length) return null;
  if (!known.length) return html`<${Card} title="Variables" note="unknown"><p class="quiet empty">No parameter server has told how many bytes of variables it holds.</p><//>`;
  const parts = known.map((task) => ({ name: `ps/${task.index}`, value: task.figures.variable_bytes, variables: task.figures.variables }));
  const uneven = heavy(parts);
  const total = parts.reduce((sum, each) => sum + each.value, 0);
  return html`<${Card} title="Variables" id="variables" note=${`${bytes(total)} on ${many(known.length, "parameter server")}`}>
    ${uneven.length ? html`<${Notice}>Uneven: ${uneven.slice(0, 5).map((each) => `${each.name} holds ${bytes(each.value)}, ${each.times.toFixed(1)} times the mean`).join("; ")}. Its network and memory bound every step; a partitioner or <code>GreedyLoadBalancingStrategy</code> spreads large variables.<//>` : null}
    <${Bars} label="Bytes of variables" of=${parts.map(({ name, value, variables }) => ({ name, value, tone: uneven.some((each) => each.name === name) ? "wait" : "",
      text: `${bytes(value)}${typeof variables === "number" ? ` · ${many(variables, "variable")}` : ""}` }))} /><//>`;
}

const STATES = ["ready", "missing", "lost", "stopped", "finished"];
/** In which order tasks come unless the reader sorts them: first those that somebody waits for. */
const FIRST = ["lost", "missing", "stopped", "ready", "finished"];

function Tasks({ tasks, path, look }) {
  const [state, choose] = useState("");
  const [text, search] = useState("");
  const fitting = tasks.filter((task) => (!state || task.state === state) && (!text || `${task.job}/${task.index} ${task.address ?? ""} ${task.reason}`.includes(text)));
  const ranked = [...fitting].sort((a, b) => FIRST.indexOf(a.state) - FIRST.indexOf(b.state));
  const figure = (member) => (task) => task.figures?.[member] ?? null;
  const size = (name, member) => ({ name, num: true, cell: (task) => bytes(figure(member)(task)), key: figure(member) });
  const columns = [
    { name: "task", cell: (task) => html`<code>${task.job}/${task.index}</code>`, key: (task) => `${task.job} ${String(task.index).padStart(6, "0")}` },
    { name: "state", cell: (task) => html`<${State} is=${task.state} />`, key: (task) => task.state },
    { name: "since", num: true, cell: (task) => html`<span title=${clock(task.since)}>${ago(task.since)}</span>`, key: (task) => task.since },
    { name: "heartbeat", num: true, cell: (task) => (task.last_heartbeat_age === null ? "–" : duration(task.last_heartbeat_age)), key: (task) => task.last_heartbeat_age },
    size("memory", "resident_bytes"),
    size("variables", "variable_bytes"),
    size("sent", "bytes_sent"),
    size("received", "bytes_received"),
    { name: "steps", num: true, cell: (task) => count(figure("steps")(task)), key: figure("steps") },
    { name: "address", cell: (task) => html`<code>${task.address ?? "–"}</code>` },
    { name: "why", wide: true, cell: (task) => `${task.reason}${task.exit_code === null || task.exit_code < 0 ? "" : ` (exit code ${task.exit_code})`}` },
  ];
  const controls = html`<div class="controls">
    <${Choice} label="state" value=${state} onChange=${choose} options=${[["", "any"], ...STATES.map((each) => [each, each])]} />
    <${Search} label="Find a task" value=${text} onChange=${search} /></div>`;
  return html`<${Card} title="Tasks" note=${fitting.length === tasks.length ? count(tasks.length) : `${count(fitting.length)} of ${count(tasks.length)}`} actions=${controls}>
    <${Table} id="tasks" label="Tasks of the cluster" columns=${columns} rows=${ranked} of=${(task) => task.name} detail=${(task) => html`<${Detail} task=${task} path=${path} look=${look} />`} empty="No task fits." /><//>`;
}

/** More of one task: what it uses, whom it talks to, its queues. */
function Detail({ task, path, look }) {
  const { figures } = task;
  const take = () => call(`${path}/tasks/${encodeURIComponent(task.job)}/${task.index}?reason=${encodeURIComponent("taken off in the dashboard")}`, { method: "DELETE" });
  const facts = figures && [
    ["resident", bytes(figures.resident_bytes)], ["shared", bytes(figures.shared_bytes)],
    ["processor time", typeof figures.cpu_seconds === "number" ? duration(figures.cpu_seconds) : "–"], ["minor faults", count(figures.minor_faults)],
    ["threads", count(figures.threads)], ["sessions", count(figures.sessions)], ["long kernels", count(figures.long_kernels)],
    ["told", figures.updated ? `${duration(between(figures.updated))} ago` : "–"],
  ];
  return html`<div class="more">
    ${facts ? html`<dl class="facts">${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>` : html`<p class="quiet">What it uses is unknown: it has not told yet.</p>`}
    ${task.devices.length ? html`<p class="quiet">devices ${task.devices.map((each) => html`<code key=${each.name}>${each.name}</code> `)}</p>` : null}
    ${figures?.peers?.length ? html`<h3>Traffic by peer</h3><${Bars} label="Bytes to and from each peer" of=${figures.peers.map((peer) => ({ name: short(peer.task), value: (peer.bytes_sent ?? 0) + (peer.bytes_received ?? 0), text: `${bytes(peer.bytes_sent)} sent · ${bytes(peer.bytes_received)} received` }))} />` : null}
    ${figures?.queues?.length ? html`<h3>Queues</h3><${Bars} label="Fillings of queues" of=${figures.queues.map((queue) => ({ name: queue.name, value: queue.capacity > 0 ? queue.size / queue.capacity : queue.size, text: `${count(queue.size)} of ${queue.capacity > 0 ? count(queue.capacity) : "no bound"}` }))} />` : null}
    ${task.state === "ready" ? html`<div class="actions"><${Act} label="Take off its index" danger sure="Take it off" act=${take} then=${look}
      question=${`Take ${task.job}/${task.index} off? Its lease ends, and the index is free for another process.`} /></div>` : null}
  </div>`;
}
