// The views of sessions: which are open, and where the nodes of one's graph were placed, and why.

import { html, useState } from "./vendor/preact.js";
import { call } from "./api.js";
import { ago, bytes, count, duration, many, short } from "./format.js";
import { useData, useTick } from "./live.js";
import { Act, Bars, Card, Failure, Notice, State, Table, route } from "./parts.js";

/** Nodes that one request gives. */
const PAGE = 200;

export function SessionsPage() {
  const { data, error, look } = useData("/v1/sessions?limit=1000", 4, (event) => event.kind === "session");
  useTick();
  const columns = [
    { name: "session", cell: (each) => html`<a class="mono" href=${route("sessions", each.name)}>${each.name}</a>` },
    { name: "state", cell: (each) => html`<${State} is=${each.state} />`, key: (each) => each.state },
    { name: "cluster", cell: (each) => html`<a href=${route("clusters", each.cluster)}>${each.cluster}</a>`, key: (each) => each.cluster },
    { name: "master", cell: (each) => html`<code>${each.job}/${each.index}</code>`, key: (each) => each.master },
    { name: "graph version", num: true, cell: (each) => count(each.graph_version), key: (each) => each.graph_version },
    { name: "idle", num: true, cell: (each) => duration(each.idle), key: (each) => each.idle },
    { name: "created", num: true, cell: (each) => ago(each.created), key: (each) => each.created },
    { name: "", cell: (each) => html`<${Close} name=${each.name} then=${look} />` },
  ];
  return html`<h1 class="hidden">Sessions</h1><${Failure} error=${error} />
    <${Card} title="Sessions" note="opened over REST">
      <${Table} id="sessions" label="Open sessions" columns=${columns} rows=${data?.sessions ?? []} of=${(each) => each.name} empty="No session is open." /><//>`;
}

const Close = ({ name, then }) => html`<${Act} label="Close" danger sure="Close the session" then=${then}
  act=${() => call(`/v1/sessions/${encodeURIComponent(name)}`, { method: "DELETE" })}
  question=${`Close session ${name}? Steps that it runs are cancelled; variables live on in their tasks.`} />`;

export function SessionPage({ id }) {
  const path = `/v1/sessions/${encodeURIComponent(id)}`;
  const { data, error } = useData(path, 4, (event) => event.kind === "session" && event.object === id);
  if (!data) return html`<${Failure} error=${error} missing=${`There is no session ${id}. It may have been closed.`} />`;
  return html`
    <div class="head"><h1 class="mono">${id} <${State} is=${data.state} /></h1><span class="grow"></span>
      <div class="actions"><${Close} name=${id} then=${() => { location.hash = "#/sessions"; }} /></div>
      <p class="program">master <code>${data.master}</code> of cluster <a href=${route("clusters", data.cluster)}>${data.cluster}</a>, <code>${data.target}</code></p></div>
    <${Placement} key=${data.graph_version} path=${path} />`;
}

/** Where each node was put. Made anew when the graph has grown. */
function Placement({ path }) {
  const [places, go] = useState([null]);
  const after = places.at(-1);
  const { data, error } = useData(`${path}/placement?limit=${PAGE}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`, 30);
  if (error && !data) {
    const untold = [404, 405, 501].includes(error.status);
    return html`<${Card} title="Placement"><${Notice} tone=${untold ? "wait" : "bad"}>${untold ? "Where the graph's nodes are placed is not told here." : error.message}<//><//>`;
  }
  const columns = [
    { name: "node", cell: (node) => html`<code>${node.name}</code>`, key: (node) => node.name },
    { name: "op", cell: (node) => node.op, key: (node) => node.op },
    { name: "requested", cell: (node) => html`<code>${node.requested || "–"}</code>`, key: (node) => node.requested },
    { name: "assigned", cell: (node) => html`<code>${node.assigned || "–"}</code>`, key: (node) => node.assigned },
    { name: "why", wide: true, cell: (node) => node.reason ?? "" },
  ];
  const tasks = data?.tasks ?? [];
  return html`
    ${tasks.length ? html`<${Card} title="By task">
      <${Bars} label="Nodes by task" of=${tasks.map((task) => ({ name: short(task.task), value: task.nodes, text: `${many(task.nodes, "node")} · ${bytes(task.variable_bytes)} of variables` }))} /><//>` : null}
    <${Card} title="Placement" id="placement">
      <${Table} label="Nodes of the graph" columns=${columns} rows=${data?.nodes ?? []} of=${(node) => node.name} empty=${data ? "The graph has no nodes." : ""} />
      ${places.length > 1 || data?.next ? html`<nav class="pager" aria-label="Pages of nodes">
        <button type="button" disabled=${places.length < 2} onClick=${() => go(places.slice(0, -1))}>Previous ${PAGE}</button>
        <button type="button" disabled=${!data?.next} onClick=${() => go([...places, data.next])}>Next ${PAGE}</button></nav>` : null}<//>`;
}
