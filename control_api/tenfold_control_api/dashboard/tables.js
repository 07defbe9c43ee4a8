// The tables of a cluster or a run: embedding variables and lookup tables, all parts of one together, and how they lie on
// the parameter servers. Used by cluster.js and run.js.

import { html } from "./vendor/preact.js";
import { UNKNOWN, bytes, count, heavy, many } from "./format.js";
import { Bars, Card, Notice, Table } from "./parts.js";

const share = (found, lookups) => (lookups ? `${((100 * found) / lookups).toFixed(1)}%` : UNKNOWN);
const times = (n) => (n === null || n === undefined ? UNKNOWN : `${n.toFixed(2)}×`);
const number = (name, member) => ({ name, num: true, cell: (table) => count(table[member]), key: (table) => table[member] });
const size = (name, member) => ({ name, num: true, cell: (table) => bytes(table[member]), key: (table) => table[member] });

const COLUMNS = [
  { name: "table", cell: (table) => html`<code>${table.name}</code>`, key: (table) => table.name },
  number("parts", "parts"), number("rows", "rows"), number("admitted", "admitted"), number("waiting", "waiting"), number("evicted", "evicted"),
  size("memory", "bytes"), size("quota", "quota_bytes"),
  { name: "hit rate", num: true, cell: (table) => share(table.found, table.lookups), key: (table) => table.hit_rate },
  { name: "uneven", num: true, cell: (table) => times(table.unevenness), key: (table) => table.unevenness },
  { name: "kind", cell: (table) => table.kind },
];

/** What a task of a cluster has of tables, or one of a run, which tells no sum once it has ended. */
function holding({ job, index, figures, tables = figures.tables ?? [] }) {
  return { name: `${job}/${index}`, job, tables, bytes: figures.table_bytes ?? tables.reduce((sum, each) => sum + each.bytes, 0) };
}

/** `tables` as the service sums them up, and all tasks that have told figures; nothing where there is no table. */
export function Tables({ tables, tasks }) {
  if (!tables) return null;
  const held = tasks.map(holding);
  const servers = held.filter((task) => task.job === "ps").map((task) => ({ name: task.name, value: task.bytes, text: bytes(task.bytes) }));
  const uneven = heavy(servers);
  const told = uneven.slice(0, 5).map((each) => `${each.name} holds ${bytes(each.value)}, ${each.times.toFixed(1)} times the mean`);
  return html`<${Card} title="Tables" id="tables" note=${[many(tables.rows, "row"), bytes(tables.bytes), tables.largest && `${tables.largest} holds ${times(tables.unevenness)} the mean`].filter(Boolean).join(" · ")}>
    ${told.length ? html`<${Notice}>Uneven: ${told.join("; ")}. A partitioner cuts a table into parts by its ids.<//>` : null}
    ${servers.length ? html`<${Bars} label="Bytes of tables" of=${servers.map((each) => ({ ...each, tone: uneven.some((other) => other.name === each.name) ? "wait" : "" }))} />` : null}
    <${Table} id="all-tables" label="Tables" columns=${COLUMNS} rows=${tables.tables} of=${(table) => `${table.name} ${table.kind}`} size=${20}
      detail=${(table) => html`<${Parts} of=${partsOf(table, held)} />`} />
    ${tables.left_out ? html`<p class="quiet">${many(tables.left_out, "part")} of tables, the smallest, are not listed.</p>` : null}<//>`;
}

/** Of each task its part, or parts, of the table. */
const partsOf = (table, tasks) =>
  tasks.flatMap((task) => task.tables.filter((each) => each.kind === table.kind && each.name.replace(/\/part_\d+$/, "") === table.name).map((part) => ({ task: task.name, ...part })));

const Parts = ({ of }) => html`<div class="more"><${Bars} label="Rows of each part" most=${50} of=${of.map((part) => ({
  name: part.task, value: part.rows,
  text: `${many(part.rows, "row")} · ${bytes(part.bytes)}${part.lookups ? ` · ${share(part.found, part.lookups)} of ${many(part.lookups, "lookup")}` : ""}` }))} /></div>`;
