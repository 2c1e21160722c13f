// How it stands, at one look.
import { html, useMemo } from "./lib.js";
import { ago, clock, count, duration, latency, plural, times, words } from "./format.js";
import { model, now, useModel } from "./model.js";
import { href, set } from "./route.js";
import { Gauge, NodeLink, ProgramLink, Waiting } from "./parts.js";
import { Staircase } from "./chart.js";

/** @param {{at: import("./route.js").Route}} props */
export function Overview({ at }) {
  useModel();
  const head = model.head;
  const by = at.options.by ?? "evaluations";
  return html`<div class="page"><div class="grid">
    <section class="card c4"><h2>Best program</h2><${Best} head=${head} /></section>
    <section class="card c8"><h2>Best so far <small>over the baseline</small><span class="grow" /><span class="switch">${["evaluations", "time", "money"].map((name) => html`<button class=${by === name ? "on" : ""} onClick=${() => set({ by: name === "evaluations" ? null : name })}>${name}</button>`)}</span></h2>
      ${head.mix.passed ? html`<${Staircase} tries=${model.tries} by=${by} height=${230} version=${model.triesVersion} />` : html`<${Waiting} what="The first program that passes is awaited." since=${head.started_at} />`}</section>
    <section class="card c4"><h2>Budget</h2><div style=${{ display: "grid", gap: "9px" }}>${head.budgets.map((g) => html`<${Gauge} gauge=${g} />`)}</div></section>
    <section class="card c4"><h2>Attempts <small>${count(head.counts.programs)} in all</small></h2><${Mix} mix=${head.mix} /></section>
    <section class="card c4"><h2>At work</h2><${AtWork} head=${head} /></section>
    <section class="card c4"><h2>Tree <small>${plural(head.tree.all, "action")}</small></h2><${Counts} tree=${head.tree} /></section>
    <section class="card c4"><h2>Predictions <small>gain over the parent, said and measured</small></h2><${Calibration} /></section>
    <section class="card c4"><h2>Run</h2><${About} head=${head} /></section>
  </div></div>`;
}

/** @param {{head: any}} props */
function Best({ head }) {
  const b = head.best;
  if (!b) return html`<${Waiting} what="No program has passed yet." since=${head.started_at} />`;
  return html`<div class="bigbest best">${times(b.speedup[0])}</div><p class="soft">95% interval ${times(b.speedup[1])} to ${times(b.speedup[2])} over the baseline${b.confirmed ? ", confirmed in fresh processes" : ", not confirmed yet"}</p>
    <dl class="facts" style=${{ marginTop: "9px" }}><dt>program</dt><dd><${ProgramLink} id=${b.program} /> at <${NodeLink} id=${b.node} title /></dd><dt>time</dt><dd>${latency(b.ms)}, mean over the workloads</dd>
      <dt>worst case</dt><dd class=${b.worst != null && b.worst < 1 ? "bad" : ""}>${times(b.worst)} on its worst workload</dd>
      <dt>roofline</dt><dd>${b.roof != null ? html`${Math.round(100 * b.roof)}% of what the machine allows; ${times(1 / b.roof)} is left` : "no bound is known for this task"}</dd>
      ${b.flags.length ? html`<dt>doubts</dt><dd class="bad">${b.flags.join("; ")}</dd>` : null}</dl>`;
}

/** @param {{mix: Record<string, number>}} props */
function Mix({ mix }) {
  const rows = Object.entries(mix).sort((a, b) => (a[0] === "passed" ? -1 : b[0] === "passed" ? 1 : b[1] - a[1]));
  const all = rows.reduce((sum, [, n]) => sum + n, 0);
  if (!all) return html`<${Waiting} what="No attempt is finished yet." />`;
  return html`<table class="mix">${rows.map(([name, n]) => html`<tr><td><a href=${href(model.run, "programs", null, { verdict: name })}>${words(name)}</a></td><td class="num">${n}</td><td class="num faint">${Math.round((100 * n) / all)}%</td><td class="barcell"><i class=${name === "passed" ? "ok" : ""} style=${{ width: `${(100 * n) / all}%` }} /></td></tr>`)}</table>`;
}

/** @param {{head: any}} props */
function AtWork({ head }) {
  const k = head.rules.stagnation;
  if (!head.cycles.length && !head.out.length) return html`<p class="soft">${head.ended ? `Nothing: the run ended (${head.ended}).` : head.paused ? `Nothing: the run is paused (${head.paused}).` : html`Nothing is out, since ${ago(head.last_at, now())}.`}</p>`;
  return html`<div style=${{ display: "grid", gap: "10px" }}>${head.cycles.map((c) => html`<div><${NodeLink} id=${c.node} title />
      <div class="row small"><span class="countdown" title="attempts without improvement; at the last the action closes">${Array.from({ length: k }, (_, i) => html`<i class=${i < c.stale ? "gone" : ""} />`)}</span><span class="soft">${c.stale} of ${k} without improvement, ${plural(c.attempts, "attempt")}</span></div></div>`)}
    ${head.out.map((o) => html`<div class="small"><span class="strong">${o.kind}</span> <span class="soft">${o.request} ${o.holder ? html`by ${o.holder}, ${duration(now() - o.since)}` : "waits for somebody"}</span>${o.lost.length ? html`<div class="bad text wrap">lost: ${o.lost.at(-1)}</div>` : null}</div>`)}</div>`;
}

/** @param {{tree: Record<string, number>}} props */
function Counts({ tree }) {
  const rows = [["solved", tree.solved], ["being worked on", tree.active], ["open, on the frontier", tree.frontier], ["open, waiting for a parent", tree.open - tree.frontier], ["rejected", tree.rejected], ["pruned", tree.pruned]];
  return html`<table>${rows.map(([name, n]) => html`<tr><td>${name}</td><td class="num">${n}</td></tr>`)}</table>`;
}

/** Predicted against measured gain, both on a logarithmic scale: on the line, the planner was right. */
function Calibration() {
  const points = useMemo(() => [...model.nodes.values()].filter((n) => n.predicted && n.gain && n.status === "solved").map((n) => [n.predicted, n.gain[0], n]), [model.nodes]);
  const failed = [...model.nodes.values()].filter((n) => n.predicted && n.status === "rejected").length;
  if (!points.length) return html`<p class="soft">No prediction has been tried yet.</p>`;
  const at = (v) => Math.max(4, Math.min(156, 4 + ((Math.log2(v) + 1) / 4) * 152));
  const right = points.filter(([p, g]) => (p > 1) === (g > 1)).length;
  return html`<div class="row" style=${{ alignItems: "flex-start", flexWrap: "nowrap" }}><svg class="calibration" viewBox="0 0 160 160" width="150" height="150" role="img" aria-label="predicted against measured gain">
    <rect width="160" height="160" fill="var(--sunk)" rx="5" /><path d="M4 156L156 4" stroke="var(--line-strong)" stroke-dasharray="3 3" /><path d=${`M${at(1)} 0V160M0 ${160 - at(1)}H160`} stroke="var(--line-strong)" />
    ${points.slice(-800).map(([p, g, n]) => html`<a href=${href(model.run, "tree", n.id)}><circle cx=${at(p)} cy=${160 - at(g)} r="3.6" fill="var(--solved)" opacity=".75"><title>${n.id} ${n.title}: said ${times(p)}, got ${times(g)}</title></circle></a>`)}</svg>
    <div class="small soft"><p>→ said, ↑ measured, 0.5× to 8×; on the dashed line the planner was right.</p><p style=${{ marginTop: "6px" }}>Direction right in ${right} of ${points.length}.${failed ? ` ${plural(failed, "prediction")} without a passing program.` : ""}</p><p style=${{ marginTop: "6px" }}>${bias(points)}</p></div></div>`;
}

function bias(points) {
  const logs = points.map(([p, g]) => Math.log(p / g)).sort((a, b) => a - b);
  const m = Math.exp(logs[logs.length >> 1]);
  return m > 1.02 ? `Says ${times(m)} too much (median).` : m < 0.98 ? `Says ${times(1 / m)} too little (median).` : "Right in the median.";
}

/** @param {{head: any}} props */
function About({ head }) {
  const c = head.context;
  const r = head.rules;
  return html`<dl class="facts"><dt>task</dt><dd class="text">${c.task ?? "–"}</dd><dt>model</dt><dd class="text">${head.model.name || c.model || "–"}</dd><dt>began</dt><dd>${clock(head.started_at)}, ${ago(head.started_at, now())}</dd><dt>last event</dt><dd>${count(model.seq)}, ${ago(head.last_at, now())}</dd>
    <dt>rules</dt><dd>K = ${r.stagnation}, width ${r.width}, ${plural(r.max_active, "action")} at once, at most ${r.max_new_nodes} new a plan, difficulty ≤ ${r.max_difficulty}</dd><dt>version</dt><dd>${c.version ?? "–"}</dd>${head.best?.device ? html`<dt>device</dt><dd class="text">${head.best.device}</dd>` : null}</dl>`;
}
