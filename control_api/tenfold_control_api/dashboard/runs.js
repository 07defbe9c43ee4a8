// The list of all runs: found by a text or a filter, sorted by any column, in the service's pages, chosen for Compare. The
// service filters and sorts, so that a page costs the same with ten runs and with ten thousand.

import { html, useEffect, useState } from "./vendor/preact.js";
import { keep } from "./address.js";
import { telling } from "./curves.js";
import { ago, between, clock, count, duration, rate, scalar } from "./format.js";
import { useData, useTick } from "./live.js";
import { Card, Choice, Command, Failure, Search, Spark, State, Table, flipped, route } from "./parts.js";

const STATES = ["PENDING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED"];
/** Runs of one page, and as many as the service compares. */
const PAGE = 50;
const COMPARED = 100;
/** Parameters that get a column, of those in which the runs of a page differ. */
const PARAMETERS = 3;
/** Milliseconds without a key before a text is looked for. */
const PAUSE = 250;

export const runLink = (name) => html`<a class="mono" href=${route("runs", name)}>${name}</a>`;

export const NoRuns = ({ config }) => html`<p class="quiet empty">No run yet. ${config?.runs
  ? html`<${Command}>tenfold submit -- python trainer.py<//> starts one.`
  : html`This service starts no programs (see <code>--allow-runs</code>); it shows those that report to it.`}</p>`;

/** One run's curve, asked for rarely once it has ended. */
function RunSpark({ run }) {
  const { data } = useData(`/v1/runs/${encodeURIComponent(run.name)}/progress`, run.ended ? 600 : 4);
  const curve = data && telling(data.tasks);
  return curve ? html`<${Spark} values=${curve.values} label=${`${curve.name}, now ${scalar(curve.values.at(-1))}`} />` : html`<span class="quiet">–</span>`;
}

/** The scalar that most of the runs have, a loss before others. */
export function scalarOf(runs) {
  const seen = new Map();
  for (const run of runs) for (const name of Object.keys(run.progress?.values ?? {})) seen.set(name, (seen.get(name) ?? 0) + 1);
  const rank = (name) => seen.get(name) + (/loss/i.test(name) ? runs.length : 0);
  return [...seen.keys()].sort((a, b) => rank(b) - rank(a))[0] ?? null;
}

/** The parameters in which the runs differ, those first that most of them have. */
function differing(runs) {
  const values = new Map();
  for (const run of runs) {
    for (const [name, value] of Object.entries(run.parameters)) {
      if (!values.has(name)) values.set(name, []);
      values.get(name).push(JSON.stringify(value));
    }
  }
  const differs = ([, found]) => new Set(found).size > 1 || found.length < runs.length;
  return [...values].filter(differs).sort((a, b) => b[1].length - a[1].length).map(([name]) => name);
}

/** A parameter or a scalar in a filter, whatever its name. */
const quoted = (kind, name) => (/^[\w./-]+$/.test(name) ? `${kind}.${name}` : `"${kind}.${name.replaceAll('"', "")}"`);

function program(run) {
  return html`${run.display_name || run.tags.length ? html`<div class="called"><strong>${run.display_name}</strong> ${run.tags.map((tag) => html`<span class="tag" key=${tag}>${tag}</span> `)}</div>` : null}
    <code class="clip" title=${run.entrypoint.join(" ")}>${run.entrypoint.join(" ")}</code>${run.state === "FAILED" ? html`<div class="why">${run.reason}</div>` : null}`;
}

function columnsOf(runs, sparks) {
  const shown = scalarOf(runs);
  const last = (name) => name.split("/").pop();
  return [
    { name: "run", cell: (run) => runLink(run.name), sort: "name" },
    { name: "state", cell: (run) => html`<${State} is=${run.state} />`, sort: "state" },
    { name: "program", wide: true, cell: program, sort: "program" },
    ...(sparks ? [] : differing(runs).slice(0, PARAMETERS).map((name) => ({
      name: last(name), num: true, cell: (run) => (name in run.parameters ? scalar(run.parameters[name]) : "–"), sort: quoted("param", name),
    }))),
    { name: "step", num: true, cell: (run) => count(run.progress?.global_step), sort: "step" },
    { name: "steps/s", num: true, cell: (run) => (run.state === "RUNNING" ? rate(run.progress?.steps_per_second) : "–"), sort: "steps_per_second" },
    ...(shown === null ? [] : [{ name: last(shown), num: true, cell: (run) => scalar(run.progress?.values[shown]), sort: quoted("metric", shown) }]),
    ...(sparks ? [{ name: "curve", cell: (run) => html`<${RunSpark} run=${run} />` }] : []),
    { name: "time", num: true, cell: (run) => (run.started ? duration(between(run.started, run.ended)) : "–"), sort: "seconds" },
    { name: "created", num: true, cell: (run) => html`<span title=${ago(run.created)}>${clock(run.created)}</span>`, sort: "created" },
  ];
}

/** `by`: how the service sorts, as Table takes it; `chosen`, `choose`: names of runs, and what a tick changes. */
export function RunTable({ runs, sparks = false, by = null, chosen = null, choose = null, empty = "" }) {
  const tick = { name: "chosen", title: "", cell: (run) => html`<input type="checkbox" aria-label=${`choose ${run.name}`} checked=${chosen.has(run.name)} onChange=${() => choose(run.name)} />` };
  const columns = [...(chosen ? [tick] : []), ...columnsOf(runs, sparks)];
  return html`<${Table} id="runs" label="Runs" columns=${columns} rows=${runs} of=${(run) => run.name} by=${by} size=${Math.max(PAGE, runs.length)} empty=${empty} />`;
}

/** What the service filters by: the reader's filter, and the text in what people call a run. */
function filterOf(filter, text) {
  const word = text.trim().includes('"') ? `'${text.trim().replaceAll("'", "")}'` : `"${text.trim()}"`;
  const found = text.trim() && ["name", "tag", "program", "notes"].map((name) => `${name}~${word}`).join(" or ");
  if (!filter.trim() || !found) return filter.trim() || found;
  return `(${filter.trim()}) and (${found})`;
}

export function RunsPage({ config, asked }) {
  const [wanted, want] = useState({ state: asked.get("state") ?? "", filter: asked.get("filter") ?? "", text: asked.get("text") ?? "", sort: asked.get("sort") ?? "" });
  const [typed, type] = useState(wanted.text);
  const [places, go] = useState([null]);
  const [chosen, mark] = useState(new Set());
  const change = (more) => {
    const next = { ...wanted, ...more };
    want(next);
    go([null]);
    keep("runs", next);
  };
  useEffect(() => {
    if (typed === wanted.text) return undefined;
    const timer = setTimeout(() => change({ text: typed }), PAUSE);
    return () => clearTimeout(timer);
  }, [typed, wanted]);
  const after = places.at(-1);
  const filter = filterOf(wanted.filter, wanted.text);
  const query = new URLSearchParams({ limit: PAGE });
  for (const [name, value] of Object.entries({ state: wanted.state, filter, sort: wanted.sort, after })) if (value) query.set(name, value);
  const { data, error } = useData(`/v1/runs?${query}`, 3, (event) => event.kind === "run");
  useTick();
  const runs = data?.runs ?? [];
  const choose = (name) => mark((before) => flipped(before, name));
  const by = {
    order: wanted.sort ? { name: wanted.sort.replace(/^-/, ""), down: wanted.sort.startsWith("-") } : { name: "created", down: true },
    choose: ({ name, down }) => change({ sort: name === "created" && down ? "" : `${down ? "-" : ""}${name}` }),
  };
  const controls = html`<div class="controls">
    <${Chosen} chosen=${chosen} shown=${runs} clear=${() => mark(new Set())} />
    <${Search} label="Find a run" value=${typed} onChange=${type} />
    <label class="field"><span>filter</span><input id="filter" class="long" type="text" placeholder="tag=baseline and lr>0.01" value=${wanted.filter} onChange=${(e) => change({ filter: e.target.value })} /></label>
    <${Choice} label="state" value=${wanted.state} onChange=${(state) => change({ state })} options=${[["", "any"], ...STATES.map((each) => [each, each.toLowerCase()])]} /></div>`;
  const narrowed = wanted.state || filter;
  return html`<h1 class="hidden">Runs</h1><${Failure} error=${error} />
    <${Card} title="Runs" actions=${controls}>
      ${data && !runs.length && !narrowed ? html`<${NoRuns} config=${config} />`
        : html`<${RunTable} runs=${runs} by=${by} chosen=${chosen} choose=${choose} empty=${data ? "No run fits." : "Loading …"} />`}
      <nav class="pager" aria-label="Pages of runs">
        <button type="button" disabled=${places.length < 2} onClick=${() => go(places.slice(0, -1))}>Previous</button>
        <span>${runs.length ? `${count((places.length - 1) * PAGE + 1)}–${count((places.length - 1) * PAGE + runs.length)}` : ""}</span>
        <button type="button" disabled=${!data?.next} onClick=${() => go([...places, data.next])}>Next</button></nav><//>`;
}

/** The way to Compare: with the runs that are ticked, or else with those on the page. */
function Chosen({ chosen, shown, clear }) {
  const names = chosen.size ? [...chosen] : shown.map((run) => run.name);
  if (names.length < 2) return chosen.size ? html`<span class="quiet">tick another run to compare</span>` : null;
  const link = `${route("runs", "compare")}?${new URLSearchParams(names.slice(0, COMPARED).map((name) => ["run", name]))}`;
  return html`<a id="compare" href=${link}>Compare ${chosen.size ? `${count(chosen.size)} runs` : "this page"}</a>
    ${chosen.size > COMPARED ? html`<span>the first ${COMPARED}</span>` : null}
    ${chosen.size ? html`<button type="button" class="small" onClick=${clear}>Clear</button>` : null}`;
}
