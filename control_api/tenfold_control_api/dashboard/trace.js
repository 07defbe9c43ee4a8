// A trace as docs/traces.md describes it → rows of slices for the timeline, and what each op took in all. Pure.

import { short } from "./format.js";

/**
 * {tasks: [{name, tracks: [{name, rows}]}], ops, slices, until}. A row is a list of slices that do not overlap, by their
 * times; what runs inside another slice is a row below. Times are microseconds from the beginning of the trace.
 */
export function read(file) {
  const tasks = new Map();
  const tracks = new Map();
  for (const event of file.traceEvents) {
    if (event.ph !== "M") continue;
    if (event.name === "process_name") tasks.set(event.pid, { name: short(event.args.name), tracks: [] });
    if (event.name === "thread_name") tracks.set(`${event.pid} ${event.tid}`, { name: event.args.name, pid: event.pid, tid: event.tid, slices: [] });
  }
  let until = 0;
  let slices = 0;
  for (const event of file.traceEvents) {
    const track = event.ph === "X" && tracks.get(`${event.pid} ${event.tid}`);
    if (!track) continue;
    const { node, bytes, inputs, error } = event.args;
    track.slices.push({ name: event.name, from: event.ts, to: event.ts + event.dur, isOp: event.cat === "Op", node, bytes, inputs, error, task: tasks.get(event.pid)?.name ?? "", track: track.name });
    until = Math.max(until, event.ts + event.dur);
    slices += 1;
  }
  for (const { pid, name, slices: found } of [...tracks.values()].sort((a, b) => a.pid - b.pid || a.tid - b.tid)) {
    if (found.length) tasks.get(pid)?.tracks.push({ name, rows: nested(found) });
  }
  const known = [...tasks.values()].filter((task) => task.tracks.length);
  return { tasks: known, ops: summed(known), slices, until: until || 1 };
}

/** The slices of a track by depth: a slice is below the one inside which it runs. */
function nested(slices) {
  const rows = [];
  const open = [];
  for (const slice of [...slices].sort((a, b) => a.from - b.from || b.to - a.to)) {
    while (open.length && open.at(-1).to <= slice.from) open.pop();
    const depth = open.length;
    open.push(slice);
    (rows[depth] ??= []).push(slice);
  }
  return rows;
}

/** [{op, calls, took, longest}], what took longest in all first. */
function summed(tasks) {
  const ops = new Map();
  for (const slice of tasks.flatMap((task) => task.tracks.flatMap((track) => track.rows.flat()))) {
    if (!slice.isOp) continue;
    const took = slice.to - slice.from;
    const found = ops.get(slice.name) ?? { op: slice.name, calls: 0, took: 0, longest: slice };
    if (took > found.longest.to - found.longest.from) found.longest = slice;
    ops.set(slice.name, { ...found, calls: found.calls + 1, took: found.took + took });
  }
  return [...ops.values()].sort((a, b) => b.took - a.took);
}

/** The slice of a row at a moment, or null: rows may be long, and a pointer moves often. */
export function sliceAt(row, moment) {
  let [low, high] = [0, row.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (row[middle].from <= moment) low = middle + 1;
    else high = middle;
  }
  const found = row[low - 1];
  return found && moment < found.to ? found : null;
}

/** Round moments between two others, about `many` of them. */
export function moments(from, to, many) {
  const rough = (to - from) / many;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const first = Math.ceil(from / step);
  return Array.from({ length: Math.max(0, Math.floor(to / step) - first + 1) }, (_, at) => (first + at) * step);
}
