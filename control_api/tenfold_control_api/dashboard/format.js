// Numbers, sizes and times as people read them. Pure.

const WHOLE = new Intl.NumberFormat("en");
const DAY = 86_400;
/** In the place of what is not known. */
export const UNKNOWN = "–";

/** 12,345; "–" for what is not known. */
export const count = (n) => (n === null || n === undefined ? UNKNOWN : WHOLE.format(n));

/** "1 variable", "2 variables". */
export const many = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;

/** A scalar: four digits, whatever its size. NaN and the infinities come as words. */
export function scalar(value) {
  if (value === null || value === undefined) return UNKNOWN;
  if (typeof value === "string" || !Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return Number.isInteger(value) ? WHOLE.format(value) : String(Number(value.toPrecision(4)));
}

export function bytes(n) {
  if (n === null || n === undefined) return UNKNOWN;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (n >= 1000 && at < units.length - 1) {
    n /= 1024;
    at += 1;
  }
  return `${at === 0 || n >= 100 ? Math.round(n) : n.toFixed(1)} ${units[at]}`;
}

/** More is uneven: so many times the mean, and so many bytes more than it. */
const UNEVEN = 2;
const WORTH_A_WORD = 4 * 1024 * 1024;

/** Those of [{name, value}] that hold far more bytes than the others, with how many `times` the mean. */
export function heavy(of) {
  const mean = of.reduce((sum, each) => sum + each.value, 0) / of.length;
  return of.filter((each) => each.value > UNEVEN * mean && each.value - mean > WORTH_A_WORD).map((each) => ({ ...each, times: each.value / mean }));
}

/** Steps a second. */
export function rate(n) {
  if (n === null || n === undefined) return UNKNOWN;
  return n >= 100 ? WHOLE.format(Math.round(n)) : n.toFixed(n >= 10 ? 1 : 2);
}

/** Microseconds, in the unit that fits. */
export function micros(n) {
  if (!Number.isFinite(n)) return UNKNOWN;
  const [size, unit] = Math.abs(n) < 1000 ? [n, "µs"] : Math.abs(n) < 1e6 ? [n / 1000, "ms"] : [n / 1e6, "s"];
  return `${Number(size.toPrecision(4))} ${unit}`;
}

export function duration(seconds) {
  if (!Number.isFinite(seconds)) return UNKNOWN;
  const s = Math.max(0, seconds);
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${String(Math.floor(s % 60)).padStart(2, "0")} s`;
  if (s < DAY) return `${Math.floor(s / 3600)} h ${String(Math.floor((s % 3600) / 60)).padStart(2, "0")} min`;
  return `${Math.floor(s / DAY)} d ${Math.floor((s % DAY) / 3600)} h`;
}

/** Seconds from one time stamp to another, or to now. */
export const between = (from, to = null) => ((to === null ? Date.now() : Date.parse(to)) - Date.parse(from)) / 1000;

/** "5 s ago". */
export function ago(stamp) {
  if (!stamp) return UNKNOWN;
  const s = between(stamp);
  return s < 1 ? "now" : `${s < 60 ? `${Math.floor(s)} s` : duration(s).replace(/ \d+ (s|min|h)$/, "")} ago`;
}

/** The time of day here; with the date if that is not today. */
export function clock(stamp) {
  if (!stamp) return UNKNOWN;
  const time = new Date(stamp);
  const day = time.toDateString() === new Date().toDateString() ? "" : `${time.toLocaleDateString("en-CA")} `;
  return day + time.toLocaleTimeString("en-GB");
}

/** "worker/0" of "/job:worker/replica:0/task:0". */
export const short = (task) => task.replace(/^\/job:([^/]+)\/(?:replica:\d+\/)?task:(\d+)$/, "$1/$2");
