// Two runs side by side.
import { html, useEffect, useMemo, useState } from "./lib.js";
import { get } from "./source.js";
import { count, interval, latency, money, plural, short, times, words } from "./format.js";
import { model, useModel } from "./model.js";
import { href, set } from "./route.js";
import { Waiting } from "./parts.js";
import { axis, Plot } from "./chart.js";

/** @param {{at: import("./route.js").Route}} props */
export function Compare({ at }) {
  useModel();
  const others = model.runs.map((r) => r.run).filter((name) => name !== model.run);
  const name = at.options.with ?? others[0];
  const [other, put] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let current = true;
    put(null);
    if (name) read(name).then((f) => current && put(f), (e) => current && put({ problem: e.message }));
    return () => { current = false; };
  }, [name]);
  if (!name) return html`<${Waiting} what="This store holds no other run to compare with." hint="Bring one in with the store it is in: ksearch ui --store PATH." />`;
  const mine = { head: model.head, nodes: model.nodes, tries: model.tries, run: model.run };
  return html`<div class="page"><div class="row"><h1>${model.run}</h1><span class="soft">beside</span><select aria-label="other run" value=${name} onChange=${(e) => set({ with: e.target.value })}>${[...new Set([name, ...others])].map((n) => html`<option value=${n}>${n}</option>`)}</select></div>
    ${!other ? html`<${Waiting} what="Reading the other run…" />` : other.problem ? html`<p class="bad wrap">${other.problem}</p>` : html`<${Beside} a=${mine} b=${other} />`}</div>`;
}

async function read(run) {
  const snapshot = await get("snapshot", { run, since: 0 });
  const tries = new Map();
  for (let since = 0, more = true; more;) {
    const page = await get("programs", { run, since, limit: 2000 });
    for (const row of page.rows) tries.set(row.n, row);
    since = page.next;
    more = page.more;
  }
  return { head: snapshot.head, tries, run };
}

/** @param {{a: any, b: any}} props */
function Beside({ a, b }) {
  const same = a.head.context.task_hash && a.head.context.task_hash === b.head.context.task_hash;
  const sameDevice = a.head.best?.device === b.head.best?.device;
  const rows = [
    ["task", (r) => r.head.context.task ?? "–"], ["model", (r) => r.head.model.name || "–"], ["device", (r) => r.head.best?.device || "–"],
    ["best over its baseline", (r) => interval(r.head.best?.speedup)], ["time of the best", (r) => latency(r.head.best?.ms)], ["worst workload", (r) => times(r.head.best?.worst)],
    ["evaluations", (r) => count(r.head.budgets[0].used)], ["passed", (r) => `${r.head.mix.passed ?? 0} of ${Object.values(r.head.mix).reduce((s, n) => s + n, 0)}`], ["to reach its best", (r) => plural(bestAt(r)?.eval ?? 0, "evaluation")],
    ["money", (r) => money(r.head.budgets[3].used)], ["tokens", (r) => short(r.head.budgets[2].used)], ["actions solved", (r) => r.head.tree.solved], ["most frequent failure", (r) => failure(r.head.mix)], ["rules", (r) => `K = ${r.head.rules.stagnation}, width ${r.head.rules.width}`],
  ];
  return html`${same || !a.head.context.task_hash ? null : html`<p class="notice">These runs are of different tasks (or of different versions of one): their numbers cannot be compared.</p>`}${sameDevice ? null : html`<p class="notice">These runs were measured on different devices: compare speedups over the baseline with care, times not at all.</p>`}
    <div class="grid"><section class="card c6"><table><thead><tr><th /><th>${a.run}</th><th><a href=${href(b.run, "tree")}>${b.run}</a></th></tr></thead><tbody>${rows.map(([label, of]) => html`<tr><td class="soft">${label}</td><td class="text">${of(a)}</td><td class="text">${of(b)}</td></tr>`)}</tbody></table></section>
      <section class="card c6"><h2>Best so far <small>over evaluations: <span class="best">━</span> ${a.run}, <span style=${{ color: "var(--solved)" }}>┅</span> ${b.run}</small></h2><${Both} a=${a} b=${b} /></section></div>`;
}

const bestAt = (r) => [...r.tries.values()].filter((t) => t.best).sort((x, y) => x.eval - y.eval).at(-1);
const failure = (mix) => { const worst = Object.entries(mix).filter(([k]) => k !== "passed").sort((x, y) => y[1] - x[1])[0]; return worst ? `${words(worst[0])} (${worst[1]})` : "none"; };

/** @param {{a: any, b: any}} props */
function Both({ a, b }) {
  const data = useMemo(() => {
    const [x, y] = [stairs(a), stairs(b)];
    const n = Math.max(x.length, y.length);
    return [Array.from({ length: n }, (_, i) => i + 1), Array.from({ length: n }, (_, i) => x[i] ?? null), Array.from({ length: n }, (_, i) => y[i] ?? null)];
  }, [a.tries, a.tries.size, b]);
  return html`<${Plot} data=${data} options=${OPTIONS} height=${280} label="best speedup of both runs" />`;
}

const OPTIONS = (c) => ({
  legend: { show: false }, cursor: { y: false }, padding: [8, 12, 0, 0], scales: { x: { time: false } },
  axes: [axis(c, (v) => (Number.isInteger(v) ? String(v) : ""), 24), axis(c, (v) => `${+v.toFixed(1)}×`)],
  series: [{}, { stroke: c("best"), width: 2, paths: globalThis.uPlot.paths.stepped({ align: 1 }), points: { show: false } }, { stroke: c("solved"), width: 2, dash: [5, 3], paths: globalThis.uPlot.paths.stepped({ align: 1 }), points: { show: false } }],
});

function stairs(r) {
  let best = 1;
  return [...r.tries.values()].filter((t) => t.eval != null).sort((x, y) => x.eval - y.eval).map((t) => (best = t.best && t.speedup ? t.speedup[0] : best));
}
