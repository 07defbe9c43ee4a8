// What the service tells of a run's progress → the plots of the run's view. Pure.

/** What a task's process uses, over time: the member, and what it is called. */
const USED = [["memory", "memory"], ["variables", "bytes of variables"], ["tables", "bytes of tables"], ["rows", "rows of tables"], ["processor", "processor cores"], ["sent", "bytes sent per second"], ["received", "bytes received per second"]];
/** How many plots are shown before somebody asks for the rest. */
export const FIRST = 12;

const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : null);
const named = (task) => `${task.job}/${task.index}`;

/** A line of a plot from one curve, over "step" or "time". Steps have to grow: what repeats them is left out. */
export function lineOf(name, curve, x) {
  const xs = [];
  const ys = [];
  curve.values.forEach((value, at) => {
    const place = x === "time" ? curve.times[at] : curve.steps[at];
    if (place === null || place === undefined || (xs.length && place <= xs[xs.length - 1])) return;
    xs.push(place);
    ys.push(number(value));
  });
  return { name, xs, ys };
}

/** Whether any curve of the run knows its steps: without them time is all there is. */
export const stepsKnown = (tasks) =>
  tasks.some((task) => Object.values(task.curves).some((curve) => curve.steps.some((step) => step !== null)));

/** [{title, lines}], losses first; then what the tasks tell of themselves: speed, what they use, global step, staleness. */
export function plotsOf(tasks, x) {
  const byName = new Map();
  for (const task of tasks) {
    for (const [name, curve] of Object.entries(task.curves)) {
      if (!byName.has(name)) byName.set(name, []);
      byName.get(name).push(lineOf(named(task), curve, x));
    }
  }
  const rank = (name) => (/loss/i.test(name) ? 0 : /acc|error|cost/i.test(name) ? 1 : 2);
  const scalars = [...byName.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const of = (member) => tasks.filter((task) => task[member]?.values.length > 1).map((task) => lineOf(named(task), task[member], x));
  const own = [
    { title: "steps per second", lines: of("speed"), own: "speed" },
    ...USED.map(([name, title]) => ({ title, lines: tasks.filter((task) => task.used?.[name]?.values.length > 1).map((task) => lineOf(named(task), task.used[name], "time")), x: "time", own: name })),
    { title: "global step", lines: tasks.filter((task) => task.global_steps?.values.length > 1).map((task) => lineOf(named(task), task.global_steps, "time")), x: "time", own: "step" },
    { title: "steps behind the furthest task", lines: staleness(tasks), x: "time", own: "staleness" },
  ];
  const plots = scalars.map((title) => ({ title, lines: byName.get(title).filter((each) => each.xs.length) }));
  return [...plots.slice(0, 1), ...own, ...plots.slice(1), ...histograms(tasks, x)].filter((plot) => plot.lines.length);
}

/** What is drawn of a histogram, from above. */
const PARTS = [["highest", "highest"], ["p95", "95%"], ["median", "median"], ["p5", "5%"], ["lowest", "lowest"]];

/** The norms of all histograms in one plot, and a plot for each with how its values are spread. */
function histograms(tasks, x) {
  const all = tasks.flatMap((task) => Object.entries(task.distributions ?? {}).map(([name, found]) => ({ task: named(task), name, found })));
  const several = new Set(all.map((each) => each.task)).size > 1;
  const titled = all.map((each) => ({ ...each, title: several ? `${each.name} of ${each.task}` : each.name }));
  const line = (name, { times, steps }, values) => lineOf(name, { times, steps, values }, x);
  if (!all.length) return [];
  return [
    { title: "norms", lines: titled.map(({ title, found }) => line(title, found, found.norm)) },
    ...titled.map(({ title, found }) => ({ title: `spread of ${title}`, lines: PARTS.map(([part, name]) => line(name, found, found[part])) })),
  ];
}

/** At most so many moments are compared, and so many tasks. */
const MOMENTS = 400;
const COMPARED = 50;
/** A task that has told nothing for so many seconds more than another stands still; before, its next report is due. */
const SILENT = 5;

/**
 * For each task, over time, how many steps the global step that it has seen is behind the furthest one. Between two looks
 * a task is taken to have gone on evenly; what is not told yet counts for nothing, unless it stands still.
 */
function staleness(tasks) {
  const known = tasks.filter((task) => task.global_steps?.values.length > 1).slice(0, COMPARED);
  if (known.length < 2) return [];
  const all = [...new Set(known.flatMap((task) => task.global_steps.times))].sort((a, b) => a - b);
  const moments = all.filter((_, at) => at % Math.ceil(all.length / MOMENTS) === 0 || at === all.length - 1);
  const seen = known.map((task) => stepsAt(task.global_steps, moments));
  const furthest = moments.map((_, at) => Math.max(...seen.map((steps) => steps[at] ?? 0)));
  const lines = known.map((task, which) => {
    const told = counted(task, all.at(-1));
    const ys = seen[which].map((step, at) => (step === null || moments[at] > told ? null : Math.round(furthest[at] - step)));
    return { name: named(task), xs: moments, ys };
  });
  return lines.some((each) => each.ys.some((behind) => behind > 0)) ? lines : [];
}

/** Until when what a task has seen is compared: its last look, or now where it is silent. */
function counted(task, now) {
  const last = task.global_steps.times.at(-1);
  return now - last > SILENT ? now : last;
}

/** The global step of a curve at each of the moments, which grow; null before its first point. */
function stepsAt({ times, values }, moments) {
  let at = 0;
  return moments.map((moment) => {
    while (at + 1 < times.length && times[at + 1] <= moment) at += 1;
    if (moment < times[0]) return null;
    if (at + 1 >= times.length) return values[at];
    return values[at] + ((values[at + 1] - values[at]) * (moment - times[at])) / (times[at + 1] - times[at]);
  });
}

/** The tasks by the global step that they saw last, beside what others had seen at that moment. */
export function standing(tasks) {
  const known = tasks.filter((task) => task.global_step !== null && task.global_steps.values.length);
  const now = Math.max(...known.map((task) => task.global_steps.times.at(-1)));
  return known.map((task) => {
    const moment = counted(task, now);
    const furthest = Math.max(...known.map((each) => stepsAt(each.global_steps, [moment])[0] ?? 0));
    return { name: named(task), step: task.global_step, behind: Math.max(0, Math.round(furthest - task.global_step)), updated: task.updated };
  });
}

/** The numbers of the curve that says most about a run, for a sparkline, and its name. */
export function telling(tasks) {
  const found = tasks.flatMap((task) => Object.entries(task.curves));
  const [name, curve] = found.find(([each]) => /loss/i.test(each)) ?? found[0] ?? [null, null];
  return curve ? { name, values: curve.values.filter((v) => number(v) !== null) } : null;
}
