// The pieces that views are made of. Text from the service goes through templates, which make text nodes of it.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { UNKNOWN, count } from "./format.js";

/** Colour by the state of a run, a task, a cluster or a session. */
const TONES = {
  ready: "good", SUCCEEDED: "good", succeeded: "good", finished: "done", closed: "done",
  RUNNING: "busy", running: "busy", PENDING: "wait", waiting: "wait", missing: "wait",
  STOPPED: "wait", stopped: "wait", FAILED: "bad", failed: "bad", lost: "bad", degraded: "bad", broken: "bad",
};

export const State = ({ is }) => html`<span class="state ${TONES[is] || "done"}">${String(is).toLowerCase()}</span>`;

/** A run, a cluster, …: the hash route of a view. */
export const route = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;

/** The set with the name, or without it if it has it. */
export function flipped(names, name) {
  const next = new Set(names);
  if (!next.delete(name)) next.add(name);
  return next;
}

export const Tile = ({ label, children, note, tone = "" }) => html`
  <div class="tile ${tone}"><div class="label">${label}</div><div class="value">${children}</div>
  ${note ? html`<div class="note">${note}</div>` : null}</div>`;

export const Card = ({ title, note, actions, children, id }) => html`
  <section class="card" id=${id} aria-label=${title}>
    <header><h2>${title}</h2>${note ? html`<span class="note">${note}</span>` : null}<span class="grow"></span>${actions}</header>
    ${children}
  </section>`;

export const Notice = ({ tone = "wait", children }) => html`<p class="notice ${tone}" role="status">${children}</p>`;

/** What a request that failed says, if it did; `missing` in its place where the thing is not there. */
export const Failure = ({ error, missing }) =>
  error ? html`<${Notice} tone="bad">${missing && error.status === 404 ? missing : error.message}<//>` : null;

/**
 * A table in pages: `columns` are {name, cell(row), key?(row) to sort by, num?}. Only the rows of one page are elements
 * of the document, whatever their number. On a narrow screen a row becomes a block with the columns' names. Rows that
 * somebody else sorts come with `by`: {order: {name, down}, choose(order)}; columns then have the name to sort by, `sort`.
 */
export function Table({ columns, rows, id, of, size = 50, label, detail = null, empty = "Nothing here.", by = null }) {
  const [page, turn] = useState(0);
  const [own, sortBy] = useState(null);
  const [open, unfold] = useState(null);
  const order = by ? by.order : own;
  const sortedBy = (column) => (by ? column.sort : column.key && column.name);
  const sorted = by || order === null ? rows : sort(rows, columns.find((each) => each.name === order.name)?.key, order.down);
  const pages = Math.max(1, Math.ceil(rows.length / size));
  const at = Math.min(page, pages - 1);
  const shown = sorted.slice(at * size, (at + 1) * size);
  const chosen = (name) => {
    const down = order?.name !== name || !order.down;
    if (by) by.choose({ name, down });
    else sortBy(order?.name === name && !order.down ? null : { name, down });
  };
  return html`
    <div class="table" id=${id}>
      <table>
        <caption class="hidden">${label}</caption>
        <thead><tr>${columns.map((column, at) => html`<${Head} key=${at} column=${column} name=${sortedBy(column)} order=${order} choose=${chosen} />`)}</tr></thead>
        <tbody>${shown.map((row) => html`
          <tr key=${of(row)}>
            ${columns.map((column, at) => {
              const cell = column.cell(row);
              const kind = [column.num && "num", column.wide && "wide", cell === UNKNOWN && "unknown"].filter(Boolean).join(" ");
              return html`<td class=${kind} data-label=${column.name}>${at === 0 && detail
                ? html`<button type="button" class="unfold" aria-expanded=${open === of(row)} onClick=${() => unfold(open === of(row) ? null : of(row))}>${cell}</button>`
                : cell}</td>`;
            })}
          </tr>
          ${open === of(row) && detail
            ? html`<tr key=${`${of(row)} more`} class="detail"><td colspan=${columns.length}>${detail(row)}</td></tr>`
            : null}`)}</tbody>
      </table>
      ${rows.length === 0 ? html`<p class="quiet empty">${empty}</p>` : null}
      ${pages > 1 ? html`<${Pager} at=${at} pages=${pages} turn=${turn} rows=${rows.length} size=${size} />` : null}
    </div>`;
}

/** A column's head: its name, and where one can sort by it a mark that says so, or which way it is sorted. */
function Head({ column, name, order, choose }) {
  const sorted = name && order?.name === name;
  const mark = sorted ? (order.down ? "↓" : "↑") : "↕";
  return html`<th scope="col" class=${column.num ? "num" : ""} aria-sort=${sorted ? (order.down ? "descending" : "ascending") : undefined}>
    ${name ? html`<button type="button" class="sort" onClick=${() => choose(name)}>${column.name}<span class=${sorted ? "mark" : "mark off"} aria-hidden="true">${mark}</span></button>` : column.title ?? column.name}</th>`;
}

function sort(rows, key, down) {
  if (!key) return rows;
  const value = (row) => key(row) ?? null;
  // what is not known comes last, whatever the direction
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
  });
}

const Pager = ({ at, pages, turn, rows, size }) => html`
  <nav class="pager" aria-label="Pages">
    <button type="button" disabled=${at === 0} onClick=${() => turn(at - 1)}>Previous</button>
    <span>${count(at * size + 1)}–${count(Math.min(rows, (at + 1) * size))} of ${count(rows)}</span>
    <button type="button" disabled=${at >= pages - 1} onClick=${() => turn(at + 1)}>Next</button>
  </nav>`;

/** A button that asks first, and says what the service refused. */
export function Act({ label, question, sure, danger = false, act, then = () => {} }) {
  const dialog = useRef(null);
  const [state, set] = useState({});
  async function go() {
    set({ busy: true });
    try {
      await act();
      dialog.current?.close();
      set({});
      then();
    } catch (error) {
      set({ error });
    }
  }
  return html`
    <button type="button" class=${danger ? "danger" : ""} onClick=${() => { set({}); dialog.current.showModal(); }}>${label}</button>
    <dialog ref=${dialog} aria-label=${label}>
      <p>${question}</p>
      <${Failure} error=${state.error} />
      <div class="actions">
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="button" class=${danger ? "danger solid" : "solid"} disabled=${state.busy} onClick=${go}>${sure || label}</button>
      </div>
    </dialog>`;
}

/** A command to type, with a button that copies it. */
export function Command({ children }) {
  const [copied, set] = useState(false);
  useEffect(() => {
    const timer = copied ? setTimeout(() => set(false), 2000) : 0;
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => navigator.clipboard?.writeText(children).then(() => set(true), () => {});
  return html`<span class="command"><code>${children}</code><button type="button" class="small" onClick=${copy}>${copied ? "Copied" : "Copy"}</button></span>`;
}

/** Bars that compare, at most `most` of them, the longest first: [{name, value, text, tone}]. */
export function Bars({ of, label, most = 12 }) {
  const longest = Math.max(...of.map((each) => each.value), 0);
  const shown = [...of].sort((a, b) => b.value - a.value).slice(0, most);
  return html`
    <ul class="bars" aria-label=${label}>${shown.map((each) => html`
      <li key=${each.name}><span class="name">${each.name}</span>
        <span class="track"><span class="bar ${each.tone || ""}" style=${{ width: `${longest ? (100 * each.value) / longest : 0}%` }}></span></span>
        <span class="num">${each.text}</span></li>`)}
      ${of.length > most ? html`<li class="quiet">and ${count(of.length - most)} more</li>` : null}</ul>`;
}

/** A curve as small as a word. */
export function Spark({ values, label }) {
  const finite = values.filter(Number.isFinite);
  if (finite.length < 2) return html`<span class="quiet">–</span>`;
  const [width, height] = [96, 24];
  const low = Math.min(...finite);
  const span = Math.max(...finite) - low || 1;
  const points = finite.map((v, at) => `${((at / (finite.length - 1)) * width).toFixed(1)},${(height - 2 - ((v - low) / span) * (height - 4)).toFixed(1)}`);
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" role="img" aria-label=${label}><polyline points=${points.join(" ")} /></svg>`;
}

/** Lines to choose from. */
export const Choice = ({ label, value, onChange, options }) => html`
  <label class="field"><span>${label}</span><select value=${value} onChange=${(e) => onChange(e.target.value)}>
    ${options.map(([key, name]) => html`<option value=${key} selected=${key === value}>${name}</option>`)}</select></label>`;

export const Search = ({ label, value, onChange }) => html`
  <label class="field"><span class="hidden">${label}</span><input type="search" placeholder=${label} value=${value} onInput=${(e) => onChange(e.target.value)} /></label>`;
