// Curves by uPlot: a line for each task, over steps or time. The plot is made anew when its lines or axes change, and gets
// its new points otherwise. Used by run.js.

import { html, useEffect, useRef } from "./vendor/preact.js";
import { clock, count, scalar } from "./format.js";

/** Lines in one plot, unless it is made for more: so many colours there are. Of more tasks the first ones are drawn, which the
 * title says; further lines of a plot for more have the same colours, and dashes. */
export const LINES = 8;
const DASHES = [undefined, [7, 4], [2, 3]];
/** Lines whose values are told beside the pointer. */
const TOLD = 16;
const HEIGHT = 190;

/**
 * One plot. `lines`: [{name, xs, ys, colour?}] with numbers, null where there is none. `x` is "step" or "time".
 * `smooth` in [0, 1) is the weight of what was before.
 */
export function Plot({ title, lines, x = "step", log = false, smooth = 0, format = scalar, most = LINES }) {
  const place = useRef(null);
  const plot = useRef(null);
  const drawn = lines.slice(0, most).map((line, at) => ({ colour: at, ...line }));
  const positive = log && drawn.some((line) => line.ys.some((v) => v > 0));
  const data = joined(drawn, smooth, positive);
  const shape = JSON.stringify([drawn.map((line) => [line.name, line.colour]), x, positive]);
  useEffect(() => {
    const made = new window.uPlot(options(place.current, drawn, x, positive, format), data, place.current);
    plot.current = made;
    const fit = new ResizeObserver(() => made.setSize({ width: place.current.clientWidth, height: HEIGHT }));
    fit.observe(place.current);
    const theme = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => made.redraw();
    theme.addEventListener("change", redraw);
    return () => {
      theme.removeEventListener("change", redraw);
      fit.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    // a part that somebody has zoomed in on stays where it is
    plot.current.setData(data, !plot.current.zoomed);
    if (plot.current.zoomed) plot.current.redraw();
  });
  const newest = drawn.map((line) => [line.name, line.ys.findLast((v) => v !== null)]);
  const points = Math.max(0, ...drawn.map((line) => line.xs.length));
  return html`
    <figure class="plot" data-plot=${title} data-points=${points}>
      <figcaption><span class="title" title=${title}>${title}</span>
        <span class="newest">${newest.slice(0, LINES).map(([name, value], at) => html`<span key=${at} title=${name}><i class="key c${drawn[at].colour % LINES}"></i>${drawn.length > 1 ? html`<span class="name">${name}</span> ` : null}${format(value)}</span>`)}
        ${drawn.length > LINES ? html`<span class="quiet">and ${count(drawn.length - LINES)} more</span>` : null}
        ${lines.length > most ? html`<span class="quiet">${count(lines.length - most)} more not drawn</span>` : null}</span></figcaption>
      <div ref=${place} class="canvas" role="img"
        aria-label=${`${title}: ${newest.slice(0, LINES).map(([name, value]) => `${name} ${format(value)}`).join(", ")}`}></div>
    </figure>`;
}

/** One column of x for all lines, as uPlot wants it. */
function joined(lines, smooth, positive) {
  if (!lines.length) return [[]];
  const ys = (line) => (smooth ? smoothed(line.ys, smooth) : line.ys);
  return window.uPlot.join(lines.map((line) => [line.xs, positive ? ys(line).map((v) => (v > 0 ? v : null)) : ys(line)]));
}

/** An exponential mean, unbiased at its beginning. */
function smoothed(ys, weight) {
  let mean = 0;
  let seen = 0;
  return ys.map((y) => {
    if (y === null) return null;
    mean = weight * mean + (1 - weight) * y;
    seen += 1;
    return mean / (1 - weight ** seen);
  });
}

function options(place, lines, x, log, format) {
  const names = lines.map((line) => line.name);
  // read with each drawing: the colours follow the system's
  const colour = (name) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  const moment = (seconds) => clock(seconds * 1000);
  return {
    width: place.clientWidth || 320,
    height: HEIGHT,
    legend: { show: false },
    cursor: { points: { size: 6 }, drag: { x: true, y: false } },
    scales: { x: { time: x === "time" }, y: { distr: log ? 3 : 1 } },
    axes: [
      { ...axis, space: 60, size: 28, ...(x === "time" ? { values: (_, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB")), space: 80 } : { values: (_, ticks) => ticks.map((t) => (Number.isInteger(t) ? count(t) : "")) }) },
      { ...axis, size: 56, values: (_, ticks) => ticks.map((t) => (t === null ? "" : format(t))) },
    ],
    series: [{}, ...lines.map(({ name, colour: at }) => ({ label: name, stroke: colour(`--c${at % LINES}`), dash: DASHES[Math.floor(at / LINES) % DASHES.length], width: 1.6, spanGaps: true, points: { show: false } }))],
    plugins: [readout(names, x === "time" ? moment : (step) => `step ${count(step)}`, format)],
  };
}

/** What the curves are where the pointer is, beside it. */
function readout(names, where, format) {
  let box = null;
  return {
    hooks: {
      init(plot) {
        plot.over.addEventListener("dblclick", () => { plot.zoomed = false; });
        box = document.createElement("div");
        box.className = "readout";
        box.hidden = true;
        plot.over.append(box);
      },
      setSelect(plot) {
        if (plot.select.width > 0) plot.zoomed = true;
      },
      setCursor(plot) {
        const { idx, left } = plot.cursor;
        box.hidden = idx === null || idx === undefined || left < 0;
        if (box.hidden) return;
        const values = names.map((name, at) => [name, plot.data[at + 1][idx]]).filter(([, value]) => value !== null && value !== undefined);
        const more = values.length > TOLD ? [`and ${count(values.length - TOLD)} more`] : [];
        box.textContent = [where(plot.data[0][idx]), ...values.slice(0, TOLD).map(([name, value]) => (names.length > 1 ? `${name} ${format(value)}` : format(value))), ...more].join("\n");
        box.classList.toggle("left", left > plot.over.clientWidth / 2);
        box.style.left = `${left}px`;
      },
    },
  };
}
