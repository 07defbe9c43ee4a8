// The view that sets runs side by side: what they differ in as a table, a parallel coordinate plot, and their curves laid
// over each other. What it shows is what GET /v1/runs:compare and `tenfold compare` give.

import { html, useState } from "./vendor/preact.js";
import { Coordinates } from "./coordinates.js";
import { lineOf } from "./curves.js";
import { count, many, scalar } from "./format.js";
import { useData } from "./live.js";
import { Card, Choice, Failure, Notice, State, Table, flipped } from "./parts.js";
import { LINES, Plot } from "./plots.js";
import { runLink, scalarOf } from "./runs.js";

/** Points of each curve: of many runs fewer, so that the answer stays small. */
const POINTS = (runs) => (runs > 20 ? 60 : 250);
/** Curves that are drawn before somebody asks for the rest. */
const FIRST = 6;

export function ComparePage({ asked }) {
  const names = asked.getAll("run");
  const query = new URLSearchParams([...names.map((name) => ["run", name]), ["points", POINTS(names.length)]]);
  const { data, error } = useData(names.length ? `/v1/runs:compare?${query}` : null, 10, (event) => names.includes(event.run));
  if (!names.length) return html`<h1>Compare</h1><${Notice}>No run is chosen. Tick some in the <a href="#/runs">list of runs</a>.<//>`;
  return html`<div class="head"><h1>Compare ${many(names.length, "run")}</h1></div>
    <${Failure} error=${error} />
    ${data ? html`<${Comparison} found=${data} />` : null}`;
}

function Comparison({ found }) {
  const [hidden, hide] = useState(new Set());
  const flip = (name) => hide((before) => flipped(before, name));
  const rows = found.runs.map((run, at) => ({ run, at, name: run.display_name || run.name, drawn: !hidden.has(run.name) }));
  return html`<${Values} found=${found} rows=${rows} flip=${flip} />
    <${Axes} found=${found} rows=${rows} />
    <${Curves} found=${found} rows=${rows} />`;
}

/** A row for each run, and a column for each thing: first those in which the runs differ. */
function Values({ found, rows, flip }) {
  const [all, showAll] = useState(false);
  const told = [
    ...found.parameters.map((row) => ({ ...row, kind: "parameter" })),
    ...found.scalars.map((row) => ({ name: row.name, kind: "newest value", values: row.newest, differs: new Set(row.newest).size > 1 })),
    ...found.facts.filter((row) => row.name !== "state").map((row) => ({ ...row, kind: "fact" })),
  ];
  const same = told.filter((row) => !row.differs);
  const shown = [...told.filter((row) => row.differs), ...(all ? same : [])];
  const numeric = (row) => row.values.every((value) => value === null || typeof value === "number");
  const text = (value) => (value === null ? "–" : scalar(value));
  const columns = [
    { name: "run", cell: ({ run, at, name, drawn }) => html`<label class="drawn"><input type="checkbox" aria-label=${`draw ${name}`} checked=${drawn} onChange=${() => flip(run.name)} /><i class=${`key c${at % LINES}`}></i></label> ${runLink(run.name)} ${run.display_name ?? ""}`, key: ({ name }) => name },
    { name: "state", cell: ({ run }) => html`<${State} is=${run.state} />`, key: ({ run }) => run.state },
    ...shown.map((row) => ({
      name: row.name, title: row.kind, num: numeric(row), cell: ({ at }) => text(row.values[at]),
      key: ({ at }) => (numeric(row) ? row.values[at] : row.values[at] === null ? null : String(row.values[at])),
    })),
  ];
  const more = same.length ? html`<button type="button" class="small" aria-expanded=${all} onClick=${() => showAll(!all)}>${all ? "Hide" : "Show"} ${many(same.length, "column")} in which they agree</button>` : null;
  return html`<${Card} title="Values" id="values" note=${many(told.length - same.length, "difference")} actions=${more}>
    <${Table} label="What the runs differ in" columns=${columns} rows=${rows} of=${({ run }) => run.name} size=${20} /><//>`;
}

/** An axis for each parameter in which the runs differ, the last one for a scalar that the reader chooses. */
function Axes({ found, rows }) {
  const scalars = found.scalars.map((each) => each.name);
  const [chosen, choose] = useState(scalarOf(found.runs) ?? "");
  const last = found.scalars.find((each) => each.name === chosen);
  const axes = [...found.parameters.filter((row) => row.differs), ...(last ? [{ name: last.name, values: last.newest }] : [])];
  if (axes.length < 2) return null;
  const controls = scalars.length > 1 ? html`<${Choice} label="coloured by" value=${chosen} onChange=${choose} options=${scalars.map((name) => [name, name])} />` : null;
  return html`<${Card} title="Parameters and result" id="coordinates" actions=${controls}><${Coordinates} axes=${axes} runs=${rows} /><//>`;
}

function Curves({ found, rows }) {
  const [wanted, over] = useState("step");
  const [scale, setScale] = useState("linear");
  const [smooth, setSmooth] = useState("0");
  const [all, showAll] = useState(false);
  const stepped = found.scalars.some((each) => each.curves.some((curve) => curve?.steps.some((step) => step !== null)));
  const x = stepped ? wanted : "time";
  const plots = found.scalars.map(({ name, curves }) => ({
    name,
    lines: rows.filter(({ at, drawn }) => drawn && curves[at]).map(({ at, name: run }) => ({ ...lineOf(run, curves[at], x), colour: at })).filter((line) => line.xs.length),
  })).filter(({ lines }) => lines.length);
  const controls = html`<div class="controls">
    ${stepped ? html`<${Choice} label="over" value=${x} onChange=${over} options=${[["step", "steps"], ["time", "time"]]} />` : null}
    <${Choice} label="scale" value=${scale} onChange=${setScale} options=${[["linear", "linear"], ["log", "logarithmic"]]} />
    <${Choice} label="smoothing" value=${smooth} onChange=${setSmooth} options=${[["0", "none"], ["0.6", "some"], ["0.9", "much"]]} /></div>`;
  const shown = all ? plots : plots.slice(0, FIRST);
  return html`<${Card} title="Curves" id="curves" actions=${controls}>
    ${plots.length ? null : html`<p class="quiet empty">None of these runs has reported a scalar.</p>`}
    <div class="plots wide">${shown.map(({ name, lines }) => html`<${Plot} key=${name} title=${name} lines=${lines} x=${x} most=${rows.length} log=${scale === "log"} smooth=${Number(smooth)} />`)}</div>
    ${plots.length > shown.length ? html`<p class="more"><button type="button" onClick=${() => showAll(true)}>Show ${count(plots.length - shown.length)} more</button></p>` : null}<//>`;
}
