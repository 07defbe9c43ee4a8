// The view of events: what happened, the newest first, as it happens.

import { html, useState } from "./vendor/preact.js";
import { ago, clock, count, short } from "./format.js";
import { news, useSubject, useTick } from "./live.js";
import { Card, Search, State, Table, route } from "./parts.js";

const KINDS = ["cluster", "task", "run", "checkpoint", "session"];

export function EventsPage() {
  const events = useSubject(news);
  const [kinds, choose] = useState(KINDS);
  const [text, search] = useState("");
  useTick();
  const fitting = events.filter((event) => kinds.includes(event.kind) && (!text || `${event.object} ${short(event.object)} ${event.action} ${event.message}`.toLowerCase().includes(text.toLowerCase())));
  const flip = (kind) => choose(kinds.includes(kind) ? kinds.filter((each) => each !== kind) : [...kinds, kind]);
  const controls = html`<div class="controls" role="group" aria-label="Kinds of events">
    ${KINDS.map((kind) => html`<button type="button" key=${kind} class="chip" aria-pressed=${kinds.includes(kind)} onClick=${() => flip(kind)}>${kind}</button>`)}
    <${Search} label="Find an event" value=${text} onChange=${search} /></div>`;
  const where = (event) => event.run
    ? html`<a class="mono" href=${route("runs", event.run)}>${event.run}</a>`
    : event.cluster ? html`<a href=${route("clusters", event.cluster)}>${event.cluster}</a>` : "–";
  const columns = [
    { name: "time", cell: (event) => html`<span title=${ago(event.time)}>${clock(event.time)}</span>` },
    { name: "kind", cell: (event) => event.kind },
    { name: "action", cell: (event) => html`<${State} is=${event.action} />` },
    { name: "object", cell: (event) => html`<code title=${event.object}>${short(event.object)}</code>` },
    { name: "in", cell: where },
    { name: "what happened", wide: true, cell: (event) => event.message },
  ];
  return html`<h1 class="hidden">Events</h1>
    <${Card} title="Events" note=${`the newest ${count(fitting.length)}`} actions=${controls}>
      <${Table} id="events" label="Events, the newest first" columns=${columns} rows=${fitting} size=${100} of=${(event) => event.id} empty="Nothing has happened yet." /><//>`;
}
