// A traced step as a timeline: a row for each thread of each task, a slice for each node. A click zooms in on a slice.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { bytes, count, many, micros, short } from "./format.js";
import { Table } from "./parts.js";
import { moments, read, sliceAt } from "./trace.js";

/** Pixels: a row, a task's name, the axis, the names of the tracks, a letter. */
const [ROW, NAME, AXIS, LETTER] = [18, 24, 22, 6.2];
const gutter = (width) => (width < 600 ? 84 : 168);
/** What a canvas can hold. */
const MOST_ROWS = 1000;
/** Below so many microseconds nobody zooms. */
const SHORTEST = 0.5;
const COLOURS = 8;

export function Timeline({ file }) {
  const [trace, set] = useState(() => ({ file, found: read(file) }));
  if (trace.file !== file) set({ file, found: read(file) });
  const { found } = trace;
  const [view, look] = useState(null);
  useEffect(() => look(null), [found]);
  const [from, to] = view ?? [0, found.until];
  const { lines, height, left } = rowsOf(found.tasks);
  const missing = file.metadata?.missing ?? [];
  return html`
    <p class="quiet">${many(found.tasks.length, "task")} · ${many(found.slices, "slice")} · ${micros(found.until)}.
      Click on a slice to zoom in; the keys + − ← → and Escape work, too.
      ${view ? html` <button type="button" class="small" onClick=${() => look(null)}>Whole step</button>` : null}</p>
    ${missing.map((each) => html`<p class="quiet" key=${each.task}>Not traced: ${short(each.task)}: ${each.reason}</p>`)}
    <${Canvas} lines=${lines} height=${height} from=${from} to=${to} until=${found.until} slices=${found.slices} look=${look} />
    ${left ? html`<p class="quiet">${many(left, "more row")} not drawn; the file has them.</p>` : null}
    <${Ops} ops=${found.ops} />`;
}

/** What is drawn, line by line: {y, name, row?}; a line without a row is a task's name. */
function rowsOf(tasks) {
  const lines = [];
  let [y, rows, left] = [AXIS, 0, 0];
  for (const task of tasks) {
    lines.push({ y, name: task.name });
    y += NAME;
    for (const track of task.tracks) {
      track.rows.forEach((row, depth) => {
        if (rows >= MOST_ROWS) {
          left += 1;
          return;
        }
        lines.push({ y, name: depth ? "" : track.name, row });
        y += ROW;
        rows += 1;
      });
    }
  }
  return { lines, height: y + 4, left };
}

function Canvas({ lines, height, from, to, until, slices, look }) {
  const place = useRef(null);
  const canvas = useRef(null);
  const [under, point] = useState(null);
  const draw = () => paint(canvas.current, lines, height, from, to, under?.slice);
  useEffect(() => {
    draw();
    const fit = new ResizeObserver(draw);
    fit.observe(place.current);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    theme.addEventListener("change", draw);
    return () => {
      theme.removeEventListener("change", draw);
      fit.disconnect();
    };
  }, [lines, from, to, under?.slice]);
  const found = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const line = lines.find((each) => each.row && y >= each.y && y < each.y + ROW);
    const left = gutter(box.width);
    const moment = from + ((x - left) / (box.width - left)) * (to - from);
    return line && x >= left ? sliceAt(line.row, moment) : null;
  };
  const hover = (event) => {
    const slice = found(event);
    const box = place.current.getBoundingClientRect();
    point(slice && { slice, x: event.clientX - box.left, y: event.clientY - box.top, right: event.clientX > box.left + box.width / 2 });
  };
  const zoom = (event) => {
    const slice = found(event);
    if (!slice) return;
    const room = Math.max((slice.to - slice.from) * 0.05, SHORTEST / 2);
    look(within(slice.from - room, slice.to + room, until));
  };
  const keys = (event) => {
    const step = KEYS[event.key];
    if (!step) return;
    event.preventDefault();
    look(step(from, to, until));
  };
  return html`
    <div class="timeline" ref=${place}>
      <div class="rows"><canvas ref=${canvas} tabindex="0" role="img" data-slices=${slices} data-from=${from} data-to=${to}
        aria-label=${`Timeline from ${micros(from)} to ${micros(to)}; the table below has what each op took.`}
        onMouseMove=${hover} onMouseLeave=${() => point(null)} onClick=${zoom} onDblClick=${() => look(null)} onKeyDown=${keys}></canvas></div>
      ${under ? html`<div class=${`readout${under.right ? " left" : ""}`} style=${{ left: `${under.x}px`, top: `${under.y + 14}px` }}>${told(under.slice)}</div>` : null}
    </div>`;
}

/** A part of the trace, inside it and not too short; null for all of it. */
function within(from, to, until) {
  const size = Math.max(to - from, SHORTEST);
  if (size >= until) return null;
  const start = Math.min(Math.max(from, 0), until - size);
  return [start, start + size];
}

const scaled = (factor) => (from, to, until) => within((from + to) / 2 - ((to - from) / 2) * factor, (from + to) / 2 + ((to - from) / 2) * factor, until);
const moved = (share) => (from, to, until) => within(from + (to - from) * share, to + (to - from) * share, until);
const KEYS = { "+": scaled(0.5), "=": scaled(0.5), "-": scaled(2), ArrowLeft: moved(-0.25), ArrowRight: moved(0.25), Escape: () => null };

/** What the pointer is on. */
function told(slice) {
  const lines = [`${slice.name}  ${micros(slice.to - slice.from)}`];
  if (slice.node && slice.node !== slice.name) lines.push(slice.node);
  lines.push(`${slice.task} · ${slice.track} · at ${micros(slice.from)}`);
  if (slice.bytes) lines.push(bytes(slice.bytes));
  if (slice.error) lines.push(slice.error);
  return lines.join("\n");
}

/** The same op has the same colour everywhere. */
function colourOf(name) {
  let hash = 0;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return hash % (COLOURS - 1);
}

function paint(canvas, lines, height, from, to, under) {
  const width = canvas.parentElement.clientWidth || 320;
  const density = devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  pen.scale(density, density);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const palette = Array.from({ length: COLOURS }, (_, at) => colour(`--c${at}`));
  const left = gutter(width);
  const scale = (width - left) / (to - from);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  axis(pen, { from, to, left, scale, height, line: colour("--line"), text: colour("--muted"), width });
  const written = (text, room) => (text.length * LETTER <= room ? text : `${text.slice(0, Math.max(0, Math.floor(room / LETTER) - 1))}…`);
  for (const { y, name, row } of lines) {
    pen.fillStyle = colour(row ? "--muted" : "--text");
    pen.fillText(written(name, row ? left - 14 : width), row ? 10 : 2, y + (row ? ROW : NAME) / 2);
    let drawn = -1;
    for (const slice of row ?? []) {
      if (slice.to < from || slice.from > to) continue;
      const x = left + Math.max(0, (slice.from - from) * scale);
      const end = left + Math.min((slice.to - from) * scale, width - left);
      // of those that share a pixel one is enough
      if (end <= drawn && slice !== under) continue;
      const wide = Math.max(1, end - x - 0.5);
      pen.fillStyle = palette[slice.isOp ? colourOf(slice.name) : COLOURS - 1];
      pen.globalAlpha = under && slice !== under ? 0.65 : 1;
      pen.fillRect(x, y + 1, wide, ROW - 2);
      pen.globalAlpha = 1;
      drawn = Math.floor(x + 1);
      if (wide < 24) continue;
      pen.fillStyle = colour("--on-accent");
      pen.fillText(written(slice.name, wide - 6), x + 3, y + ROW / 2);
    }
  }
}

function axis(pen, { from, to, left, scale, height, line, text, width }) {
  pen.strokeStyle = line;
  pen.fillStyle = text;
  pen.lineWidth = 1;
  for (const moment of moments(from, to, Math.max(2, (width - left) / 110))) {
    const x = Math.round(left + (moment - from) * scale) + 0.5;
    pen.beginPath();
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, height);
    pen.stroke();
    pen.fillText(micros(moment), x + 3, AXIS / 2 - 2);
  }
}

/** What each op took in all, which the timeline shows one by one. */
function Ops({ ops }) {
  const columns = [
    { name: "op", cell: (each) => html`<code>${each.op}</code>`, key: (each) => each.op },
    { name: "calls", num: true, cell: (each) => count(each.calls), key: (each) => each.calls },
    { name: "in all", num: true, cell: (each) => micros(each.took), key: (each) => each.took },
    { name: "longest", num: true, cell: (each) => micros(each.longest.to - each.longest.from), key: (each) => each.longest.to - each.longest.from },
    { name: "at node", wide: true, cell: (each) => html`<code>${each.longest.node}</code> on ${each.longest.task}` },
  ];
  return html`<${Table} id="trace-ops" label="Time by op" columns=${columns} rows=${ops} of=${(each) => each.op} size=${10} empty="No node ran." />`;
}
