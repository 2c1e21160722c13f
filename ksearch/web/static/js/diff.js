// Differences between two texts, line by line (Myers' algorithm), with what differs within a changed line.

const MOST = 20000; // lines; beyond it the texts are shown as all old, all new
const FARTHEST = 3000; // edits looked for

/** @typedef {{kind: " "|"-"|"+", a: number|null, b: number|null}} Edit lines counted from 0 */

/** @param {string[]} a @param {string[]} b @returns {Edit[]} */
export function diff(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middle = between(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const same = (i, j) => /** @type {Edit} */ ({ kind: " ", a: i, b: j });
  return [
    ...Array.from({ length: start }, (_, i) => same(i, i)),
    ...middle.map((e) => ({ kind: e.kind, a: e.a == null ? null : e.a + start, b: e.b == null ? null : e.b + start })),
    ...Array.from({ length: end }, (_, i) => same(a.length - end + i, b.length - end + i)),
  ];
}

/** @param {string[]} a @param {string[]} b @returns {Edit[]} */
function between(a, b) {
  const [n, m] = [a.length, b.length];
  if (!n || !m || n + m > MOST) return replaced(n, m);
  const size = Math.min(n + m, FARTHEST);
  let reach = new Int32Array(2 * size + 2);
  const trace = [];
  for (let d = 0; d <= size; d += 1) {
    trace.push(reach.slice(size - d, size + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = k === -d || (k !== d && reach[size + k - 1] < reach[size + k + 1]) ? reach[size + k + 1] : reach[size + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x += 1;
      reach[size + k] = x;
      if (x >= n && x - k >= m) return back(trace, n, m, d);
    }
  }
  return replaced(n, m);
}

/** @param {number} n @param {number} m @returns {Edit[]} */
function replaced(n, m) {
  return [...Array.from({ length: n }, (_, i) => /** @type {Edit} */ ({ kind: "-", a: i, b: null })), ...Array.from({ length: m }, (_, i) => /** @type {Edit} */ ({ kind: "+", a: null, b: i }))];
}

function back(trace, n, m, last) {
  const edits = [];
  let [x, y] = [n, m];
  for (let d = last; d > 0; d -= 1) {
    const reach = trace[d]; // of step d - 1, from diagonal -d on
    const at = (k) => reach[k + d];
    const k = x - y;
    const from = k === -d || (k !== d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
    const fx = at(from);
    const fy = fx - from;
    while (x > fx && y > fy) edits.push({ kind: " ", a: --x, b: --y });
    if (x === fx) edits.push({ kind: "+", a: null, b: --y });
    else edits.push({ kind: "-", a: --x, b: null });
  }
  while (x > 0) edits.push({ kind: " ", a: --x, b: --y });
  return edits.reverse();
}

/** Pairs of lines side by side: an old one beside the new one that took its place. @param {Edit[]} edits */
export function sideBySide(edits) {
  const rows = [];
  let i = 0;
  while (i < edits.length) {
    if (edits[i].kind === " ") { rows.push({ left: edits[i].a, right: edits[i].b, same: true }); i += 1; continue; }
    const old = [];
    const fresh = [];
    while (i < edits.length && edits[i].kind !== " ") { (edits[i].kind === "-" ? old : fresh).push(edits[i].kind === "-" ? edits[i].a : edits[i].b); i += 1; }
    for (let j = 0; j < Math.max(old.length, fresh.length); j += 1) rows.push({ left: old[j] ?? null, right: fresh[j] ?? null, same: false });
  }
  return rows;
}

/** Long stretches without a change, but for `around` lines, become one row {gap: n}. @param {any[]} rows @param {number} [around] */
export function folded(rows, around = 4) {
  const keep = new Uint8Array(rows.length);
  rows.forEach((row, i) => { if (!row.same) for (let j = Math.max(0, i - around); j <= Math.min(rows.length - 1, i + around); j += 1) keep[j] = 1; });
  const out = [];
  for (let i = 0; i < rows.length; i += 1) {
    if (keep[i]) { out.push(rows[i]); continue; }
    const from = i;
    while (i + 1 < rows.length && !keep[i + 1]) i += 1;
    out.push({ gap: i - from + 1, from, to: i + 1 });
  }
  return out;
}

/** Where two lines differ: [from, to in a, to in b], as the part between what they begin and end with alike. @param {string} a @param {string} b */
export function within(a, b) {
  let from = 0;
  while (from < a.length && from < b.length && a[from] === b[from]) from += 1;
  let tail = 0;
  while (tail < a.length - from && tail < b.length - from && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  return [from, a.length - tail, b.length - tail];
}
