// A parallel coordinate plot: an axis for each column, a line for each run, coloured by the last axis. Drawn as SVG.
// Used by compare.js.

import { html, useState } from "./vendor/preact.js";
import { scalar } from "./format.js";

const WIDTH = 1000;
const HEIGHT = 300;
/** Above the axes stand their names, beside and below them room for words. */
const TOP = 34;
const BOTTOM = 26;
const SIDE = 70;
/** Axes that fit; of more the first ones and the last are drawn. */
const AXES = 9;
/** Values of this ratio or more, all above zero, are spread by their logarithms, as learning rates are. */
const WIDE = 50;
/** Where what has no value lies, in [0, 1] from above. */
const NOTHING = 1.08;

/** {place(value) in [0, 1] from above, ticks: [[place, text]]}. Texts are in their order, evenly apart. */
function scaleOf(values) {
  const known = values.filter((value) => value !== null && value !== undefined);
  if (known.length && known.every((value) => typeof value === "number")) {
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const log = low > 0 && high / low >= WIDE;
    const at = (value) => (log ? Math.log(value) : value);
    const span = at(high) - at(low) || 1;
    const place = (value) => (high === low ? 0.5 : 1 - (at(value) - at(low)) / span);
    const middle = log ? Math.sqrt(low * high) : (low + high) / 2;
    return { place, ticks: [...new Set(high === low ? [low] : [low, middle, high])].map((value) => [place(value), scalar(value)]) };
  }
  const words = [...new Set(known.map(String))].sort();
  const place = (value) => (words.length < 2 ? 0.5 : 1 - words.indexOf(String(value)) / (words.length - 1));
  const every = Math.ceil(words.length / 8);
  return { place, ticks: words.filter((_, at) => at % every === 0).map((word) => [place(word), word]) };
}

const cut = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}…` : text);

/** `axes`: [{name, values: one for each run}], `runs`: [{name, at, drawn}]. A run without a value lies below the axis. */
export function Coordinates({ axes, runs }) {
  const [over, point] = useState(null);
  const drawn = axes.length > AXES ? [...axes.slice(0, AXES - 1), axes.at(-1)] : axes;
  const scales = drawn.map((axis) => scaleOf(axis.values));
  const x = (axis) => SIDE + (axis * (WIDTH - 2 * SIDE)) / (drawn.length - 1);
  const y = (place) => TOP + place * (HEIGHT - TOP - BOTTOM);
  const at = (axis, run) => {
    const value = drawn[axis].values[run];
    return value === null || value === undefined ? NOTHING : scales[axis].place(value);
  };
  const last = drawn.length - 1;
  const colour = (run) => (at(last, run) > 1 ? "var(--none)" : `color-mix(in oklab, var(--c1) ${Math.round(100 * (1 - at(last, run)))}%, var(--c0))`);
  const shown = runs.filter((run) => run.drawn);
  const told = runs.find((run) => run.at === over);
  return html`<div class="coordinates">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label=${`A line for each of ${shown.length} runs over ${drawn.map((axis) => axis.name).join(", ")}`}>
      ${shown.map((run) => html`<polyline key=${run.at} class=${over === run.at ? "on" : over === null ? "" : "dim"} style=${{ stroke: colour(run.at) }}
        points=${drawn.map((_, axis) => `${x(axis).toFixed(1)},${y(at(axis, run.at)).toFixed(1)}`).join(" ")}
        onMouseEnter=${() => point(run.at)} onMouseLeave=${() => point(null)}><title>${run.name}</title></polyline>`)}
      ${drawn.map((axis, which) => html`<g key=${axis.name}>
        <line x1=${x(which)} x2=${x(which)} y1=${y(0)} y2=${y(1)} />
        <text class="name" x=${x(which)} y="14" text-anchor="middle">${cut(axis.name.split("/").pop(), 16)}<title>${axis.name}</title></text>
        ${scales[which].ticks.map(([place, text]) => html`<text key=${text} x=${x(which) + 6} y=${y(place) + 4}>${cut(text, 14)}</text>`)}</g>`)}
    </svg>
    <p class="quiet" role="status">${told ? `${told.name}: ${drawn.map((axis) => `${axis.name} ${axis.values[told.at] === null ? "–" : scalar(axis.values[told.at])}`).join(", ")}` : "Point at a line to read its run."}</p></div>`;
}
