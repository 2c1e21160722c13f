// Programs by shapes: a loss on one shape cannot hide behind a good mean.
import { html, useEffect, useState } from "./lib.js";
import { get } from "./source.js";
import { latency, plural, times } from "./format.js";
import { model, useModel } from "./model.js";
import { href, set } from "./route.js";
import { NodeLink, Waiting } from "./parts.js";

const ORDERS = [["best", "best mean"], ["worst", "best worst case"], ["newest", "newest"]];

/** @param {{at: import("./route.js").Route}} props */
export function Workloads({ at }) {
  useModel();
  const order = at.options.order ?? "best";
  const [found, put] = useState(/** @type {any} */ (null));
  const limit = Number(at.options.limit) || 60;
  useEffect(() => {
    let current = true;
    get("workloads", { run: model.run, order, limit: Math.min(500, limit) }).then((f) => current && put(f), (e) => current && put({ problem: e.message }));
    return () => { current = false; };
  }, [order, limit, model.run, model.head.mix.passed]);
  if (found?.problem) return html`<div class="waiting bad wrap">${found.problem}</div>`;
  if (!found) return html`<${Waiting} what="Reading the measurements…" />`;
  if (!found.rows.length) return html`<${Waiting} what=${model.head.mix.passed ? "The programs of this run were not measured workload by workload." : "The first program that passes is awaited."} since=${model.head.started_at} />`;
  return html`<div class="page"><div class="row"><h1>Speedup over the baseline, by workload</h1><span class="grow" /><span class="switch">${ORDERS.map(([name, label]) => html`<button class=${order === name ? "on" : ""} onClick=${() => set({ order: name === "best" ? null : name })}>${label}</button>`)}</span></div>
    <section class="card heatcard"><${Heat} found=${found} /></section>
    <div class="row small soft"><${Legend} found=${found} /><span class="grow" /><span>${found.rows.length} of ${plural(found.all, "passing program")}</span>${found.rows.length < found.all && limit < 500 ? html`<button onClick=${() => set({ limit: Math.min(500, limit * 3) })}>more</button>` : null}</div></div>`;
}

/** From which ratio to which the hue grows: from 1×, or from the least where all are far above it. */
function scaleOf(found) {
  const logs = found.rows.flatMap((r) => r.cells).filter(Boolean).map((c) => Math.log2(c[0]));
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  return { low: Math.max(0, least - 0.25 * (most - least)), high: Math.max(1, most) };
}

/** Colour of a ratio. @param {number} v @param {{low: number, high: number}} scale */
function heat(v, scale) {
  const strength = v >= 1 ? (Math.log2(v) - scale.low) / (scale.high - scale.low) : -Math.log2(v) / Math.max(1, scale.high);
  return `color-mix(in oklab, var(--${v >= 1 ? "solved" : "rejected"}) ${Math.round(8 + Math.max(0, Math.min(1, strength)) * 62)}%, var(--panel))`;
}

/** @param {{found: any}} props */
function Heat({ found }) {
  const names = found.workloads;
  const scale = scaleOf(found);
  return html`<div class="scroll"><table class="heat"><thead><tr><th>program</th><th class="num" title="the task's mean over all workloads">mean</th><th class="num">worst</th>${names.map((n) => html`<th class="shape"><span class="text" title=${n}>${n}</span></th>`)}</tr></thead><tbody>
    ${found.rows.map((r) => { const low = lowest(r.cells); return html`<tr class=${r.program === found.best ? "isbest" : ""}><td class="who"><a href=${href(model.run, "program", r.program, { show: "measured" })}>${r.program === found.best ? "★ " : ""}${r.n}</a> <${NodeLink} id=${r.node} /></td><td class="num strong">${times(r.mean ?? r.geomean)}</td><td class=${`num ${r.worst < 1 ? "bad" : ""}`}>${times(r.worst)}</td>
      ${r.cells.map((c, i) => (c ? html`<td class=${`cell ${i === low ? "low" : ""}`} style=${{ background: heat(c[0], scale) }} title=${`${names[i]}: ${times(c[0])} [${times(c[1])}, ${times(c[2])}], ${latency(c[3])}${c[4] ? `, ${Math.round((100 * c[4]) / c[3])}% of the roofline` : ""}`}>${c[0] < 1 ? "▾" : ""}${c[0].toFixed(c[0] < 10 ? 2 : 1)}</td>` : html`<td class="cell faint">–</td>`))}</tr>`; })}
    <tr class="top"><td class="who soft">best on each</td><td /><td />${names.map((_, i) => { const best = Math.max(...found.rows.map((r) => r.cells[i]?.[0] ?? 0)); return html`<td class="cell soft">${best ? times(best) : "–"}</td>`; })}</tr></tbody></table></div>`;
}

const lowest = (cells) => cells.reduce((low, c, i) => (c && (low < 0 || c[0] < cells[low][0]) ? i : low), -1);

/** @param {{found: any}} props */
function Legend({ found }) {
  const scale = scaleOf(found);
  const step = (scale.high - scale.low) / 4;
  const shown = [...(scale.low ? [] : [0.5, 0.8]), ...[0, 1, 2, 3, 4].map((i) => 2 ** (scale.low + i * step))];
  return html`<span class="row" style=${{ gap: "2px" }}>${shown.map((v) => html`<span class="swatch" style=${{ background: heat(v, scale) }}>${times(v)}</span>`)}<span style=${{ marginLeft: "8px" }}>▾ slower than the baseline; underlined: the program's worst</span></span>`;
}
