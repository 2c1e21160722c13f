// Charts: uPlot with the page's own colours, drawn again when the theme changes.
import { html, useEffect, useRef, useState } from "./lib.js";
import { duration, latency, money, times } from "./format.js";

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Number of times the theme was changed: what is painted with fixed colours is painted again. */
export function useTheme() {
  const [n, set] = useState(0);
  useEffect(() => {
    const again = () => set((v) => v + 1);
    const system = matchMedia("(prefers-color-scheme: dark)");
    addEventListener("themechange", again);
    system.addEventListener("change", again);
    return () => { removeEventListener("themechange", again); system.removeEventListener("change", again); };
  }, []);
  return n;
}

/** @param {{data: any[], options: (colour: (name: string) => string) => any, height: number, label: string}} props */
export function Plot({ data, options, height, label }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const theme = useTheme();
  useEffect(() => {
    const b = box.current;
    if (!b) return;
    const made = new globalThis.uPlot({ width: Math.max(80, b.clientWidth), height, ...options(colour) }, data, b);
    plot.current = made;
    const sized = new ResizeObserver(() => made.setSize({ width: Math.max(80, b.clientWidth), height }));
    sized.observe(b);
    return () => { sized.disconnect(); made.destroy(); plot.current = null; };
  }, [theme, height, options]);
  useEffect(() => { plot.current?.setData(data); }, [data]);
  return html`<div class="plot" ref=${box} role="img" aria-label=${label} style=${{ minHeight: `${height}px` }} />`;
}

/** @param {(name: string) => string} c @param {(v: number) => string} write @param {number} [size] */
export const axis = (c, write, size = 44) => ({
  stroke: c("soft"), font: "11px system-ui, sans-serif", size, gap: 4,
  grid: { stroke: c("line"), width: 1 }, ticks: { show: false }, values: (_, vs) => vs.map((v) => (v == null ? "" : write(v))),
});

const AXES = {
  evaluations: { of: (t) => t.eval, write: (v) => (Number.isInteger(v) ? String(v) : "") },
  time: { of: (t) => t.worked_s, write: (v) => duration(v) },
  money: { of: (t) => t.spent_usd, write: (v) => money(v) },
};
const OPTIONS = Object.fromEntries(Object.keys(AXES).map((name) => [name, (c) => staircaseOptions(c, name)]));

function staircaseOptions(c, name) {
  return {
    padding: [8, 12, 0, 0], legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false } },
    scales: { x: { time: false }, n: { auto: false, range: [0, 1] }, y: { range: (_, low, high) => [Math.min(1, low ?? 1) * 0.95, Math.max(1.2, (high ?? 1) * 1.06)] } },
    axes: [{ ...axis(c, AXES[name].write, 22), space: 60 }, { ...axis(c, (v) => `${+v.toFixed(1)}×`, 40), space: 26 }],
    series: [{},
      { stroke: "transparent", paths: () => null, points: { show: true, size: 4.5, fill: c("faint"), stroke: c("faint"), width: 0, filter: thinned } },
      { scale: "n", stroke: "transparent", paths: () => null, points: { show: false } },
      { stroke: c("best"), width: 2, paths: globalThis.uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
    hooks: { draw: [(u) => one(u, c)], setCursor: [hover] },
  };
}

/** Of very many points only so many are drawn that single ones can be told apart. */
function thinned(u, series, show, gaps) {
  if (!show) return null;
  const every = Math.ceil(u.data[0].length / 1500);
  return every === 1 ? null : u.data[0].flatMap((_, i) => (i % every === 0 && u.data[series][i] != null ? [i] : []));
}

/** The baseline: a line at 1×. */
function one(u, c) {
  const y = Math.round(u.valToPos(1, "y", true));
  u.ctx.save();
  u.ctx.strokeStyle = c("line-strong");
  u.ctx.setLineDash([4, 4]);
  u.ctx.beginPath();
  u.ctx.moveTo(u.bbox.left, y);
  u.ctx.lineTo(u.bbox.left + u.bbox.width, y);
  u.ctx.stroke();
  u.ctx.restore();
}

function hover(u) {
  const note = u.root.parentElement?.parentElement?.querySelector(".reading");
  if (!note) return;
  const i = u.cursor.idx;
  const v = i == null ? null : u.data[1][i];
  note.textContent = i == null ? "" : `evaluation ${u.data[2][i]}: ${v == null ? "not passed" : times(v)}, best ${times(u.data[3][i])}`;
}

/** The best so far against what it took. @param {{tries: Map<number, any>, by?: string, height?: number, version: number}} props */
export function Staircase({ tries, by = "evaluations", height = 130, version }) {
  const data = useStaircase(tries, by, version);
  if (!data) return null;
  return html`<div class="staircase"><div class="reading small soft" aria-live="off" /><${Plot} data=${data} options=${OPTIONS[by]} height=${height} label=${`best speedup over ${by}`} /></div>`;
}

function useStaircase(tries, by, version) {
  const kept = useRef(/** @type {any} */ ({}));
  const k = kept.current;
  if (k.version !== version || k.by !== by || k.of !== tries) {
    k.of = tries;
    k.version = version;
    k.by = by;
    const done = [...tries.values()].filter((t) => t.eval != null).sort((a, b) => a.eval - b.eval);
    let best = 1;
    const steps = done.map((t) => (best = t.best && t.speedup ? t.speedup[0] : best));
    k.data = done.length ? [[...done.map(AXES[by].of)], done.map((t) => t.speedup?.[0] ?? null), done.map((t) => t.eval), steps] : null;
  }
  return k.data;
}

/** Where the times of two programs lie. @param {{ours: number[], base: number[], names: [string, string]}} props */
export function Histogram({ ours, base, names }) {
  const all = [...ours, ...base].sort((a, b) => a - b);
  if (!all.length) return null;
  const low = all[0] * 0.98;
  const high = all[Math.min(all.length - 1, Math.floor(all.length * 0.97))] * 1.02;
  const bins = 60;
  const hist = (xs) => { const h = new Array(bins).fill(0); for (const x of xs) h[Math.min(bins - 1, Math.max(0, Math.floor(((x - low) / (high - low || 1)) * bins)))] += 1; return h; };
  const [a, b] = [hist(ours), hist(base)];
  const top = Math.max(...a, ...b, 1);
  const x = (v) => ((v - low) / (high - low || 1)) * 600;
  const median = (xs) => { const s = [...xs].sort((p, q) => p - q); return s[s.length >> 1]; };
  const bars = (h, hue) => h.map((n, i) => n ? html`<rect x=${i * 10 + 0.5} y=${70 - (n / top) * 64} width="9" height=${(n / top) * 64} fill=${hue} opacity=".75" />` : null);
  return html`<figure class="histogram"><svg viewBox="0 0 600 74" preserveAspectRatio="none" role="img" aria-label=${`times of ${names[0]} and ${names[1]}`}>
      ${bars(b, "var(--line-strong)")}${bars(a, "var(--solved)")}<path d="M0 70.5H600" stroke="var(--line-strong)" />
      ${ours.length ? html`<path d=${`M${x(median(ours))} 0V70`} stroke="var(--solved)" stroke-width="1.5" stroke-dasharray="3 2" />` : null}${base.length ? html`<path d=${`M${x(median(base))} 0V70`} stroke="var(--soft)" stroke-width="1.5" stroke-dasharray="3 2" />` : null}</svg>
    <figcaption class="small soft row"><span>${latency(low)}</span><span class="grow" style=${{ textAlign: "center" }}><span style=${{ color: "var(--solved)" }}>■</span> ${names[0]} ${ours.length ? latency(median(ours)) : "–"}${base.length ? html` <span class="faint">■ ${names[1]} ${latency(median(base))}</span>` : null} · ${ours.length + base.length} samples</span><span>${latency(high)}</span></figcaption></figure>`;
}
