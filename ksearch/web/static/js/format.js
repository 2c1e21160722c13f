// Numbers and times in words: units always, digits that line up, nothing that pretends to be exact.

/** @param {number|null|undefined} v a ratio of times */
export function times(v) {
  if (v == null || !isFinite(v)) return "–";
  if (v >= 1000) return `${v.toExponential(1)}×`;
  return `${v.toFixed(v >= 100 ? 0 : v >= 10 ? 1 : 2)}×`;
}

/** @param {number[]|null|undefined} r [value, low, high] */
export function interval(r) {
  return r ? `${times(r[0])} [${times(r[1])}, ${times(r[2])}]` : "–";
}

/** @param {number|null|undefined} ms */
export function latency(ms) {
  if (ms == null || !isFinite(ms)) return "–";
  if (ms === 0) return "0 ms";
  const [value, unit] = ms < 1e-3 ? [ms * 1e6, "ns"] : ms < 1 ? [ms * 1e3, "µs"] : ms < 1e3 ? [ms, "ms"] : [ms / 1e3, "s"];
  return `${value >= 1000 ? count(value) : value.toPrecision(3)} ${unit}`;
}

/** @param {number|null|undefined} usd */
export function money(usd) {
  if (usd == null || !isFinite(usd)) return "–";
  return `$${usd.toFixed(usd > 0 && usd < 0.1 ? 3 : 2)}`;
}

/** @param {number|null|undefined} n */
export function count(n) {
  return n == null ? "–" : Math.round(n).toLocaleString("en-US");
}

/** Tokens and bytes, short. @param {number|null|undefined} n */
export function short(n) {
  if (n == null) return "–";
  if (n < 10000) return count(n);
  return n < 1e6 ? `${(n / 1e3).toFixed(n < 1e5 ? 1 : 0)} k` : `${(n / 1e6).toFixed(n < 1e7 ? 2 : 1)} M`;
}

/** @param {number|null|undefined} s seconds */
export function duration(s) {
  if (s == null || !isFinite(s)) return "–";
  if (s < 1) return `${Math.max(0, Math.round(s * 1000))} ms`;
  if (s < 90) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${(s / 3600).toFixed(1)} h`;
  return `${Math.round(s / 86400)} days`;
}

/** @param {number|null|undefined} at seconds since 1970  @param {number} now */
export function ago(at, now) {
  if (at == null) return "never";
  const s = Math.max(0, now - at);
  return s < 2 ? "just now" : `${duration(s)} ago`;
}

/** @param {number|null|undefined} at seconds since 1970 */
export function clock(at) {
  if (at == null) return "–";
  const d = new Date(at * 1000);
  const day = d.toDateString() === new Date().toDateString() ? "" : `${d.toLocaleDateString("en-CA")} `;
  return day + d.toLocaleTimeString("en-GB");
}

/** @param {string|null|undefined} id */
export function shortId(id) {
  return id ? id.slice(0, 10) : "–";
}

/** @param {number} n @param {string} what @param {string} [many] */
export function plural(n, what, many) {
  return `${count(n)} ${n === 1 ? what : many ?? what + "s"}`;
}

/** @param {number|null|undefined} v the planner's priority */
export function priority(v) {
  return v == null ? "–" : v.toFixed(2);
}

/** @param {number|null|undefined} e an error */
export function error(e) {
  return e == null ? "–" : e === 0 ? "0" : e.toExponential(1);
}

/** A verdict in words. @param {string|null|undefined} v */
export function words(v) {
  return v ? v.replaceAll("_", " ") : "waiting";
}

/** Whatever a record holds, in a line: names and values, numbers short. @param {unknown} v @returns {string} */
export function compact(v) {
  if (v == null) return "none";
  if (typeof v === "boolean") return v ? "yes" : "no";
  if (typeof v === "number") return Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(4)));
  if (Array.isArray(v)) return v.map(compact).join(" ");
  if (typeof v === "object") return Object.entries(v).map(([k, x]) => `${k.replaceAll("_", " ")} ${compact(x)}`).join(", ");
  return String(v);
}

/** One value of an edit, as text. @param {unknown} v */
export function fact(v) {
  if (v == null || v === "") return "–";
  if (Array.isArray(v)) return interval(/** @type {number[]} */ (v));
  if (typeof v === "number") return Number.isInteger(v) ? String(v) : v.toFixed(2);
  return String(v);
}
