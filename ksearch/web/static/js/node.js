// One action: the intent, what was said of it, what came of it, and each attempt.
import { html, useMemo } from "./lib.js";
import { clock, interval, latency, money, plural, priority, short, times } from "./format.js";
import { model, useList } from "./model.js";
import { href } from "./route.js";
import { Dumbbell, Glyph, Marks, ProgramLink, Verdict } from "./parts.js";
import { NodeVerbs } from "./verbs.js";

/** @param {{node: any, until: number|null, bestId: string|null, bestNode: string|null}} props `until`: shown as of then, seconds since 1970 */
export function NodePanel({ node, until, bestId, bestNode }) {
  const past = until != null;
  const root = node.parent == null;
  const best = node.program != null && node.program === bestId;
  const cycle = past ? null : model.head.cycles.find((c) => c.node === node.id);
  return html`<div class="panel">
    <div class="row" style=${{ alignItems: "flex-start", flexWrap: "nowrap" }}><span style=${{ paddingTop: "3px" }}><${Glyph} status=${node.status} best=${node.id === bestNode} size=${15} /></span><h1 class="text wrap grow">${root ? "The baseline" : node.title}</h1><span class="faint">${node.id}</span></div>
    <div class="row" style=${{ gap: "5px" }}><span class="chip">${words(node)}</span>${root ? null : html`<span class="chip">difficulty ${node.difficulty} of 5</span>`}${node.enabling ? html`<span class="chip">enabling step</span>` : null}${node.pinned ? html`<span class="chip">pinned</span>` : null}${node.origin !== "planner" && !root ? html`<span class="chip">from ${node.origin === "person" ? "a person" : node.origin}</span>` : null}${node.workloads.map((w) => html`<span class="chip text" title="aimed at this workload">${w}</span>`)}</div>
    ${root ? html`<p class="soft">Every program is measured against it. Its children are the first ideas.</p>` : null}
    ${node.why ? html`<p class="text wrap">${node.why}</p>` : null}
    ${root ? null : html`<${Facts} node=${node} cycle=${cycle} best=${best} />`}
    ${node.notes ? html`<div><h3>Planner's notes</h3><p class="text wrap">${node.notes}</p></div>` : null}
    ${past ? html`<p class="small faint">As it was after the edit that is shown.</p>` : html`<${NodeVerbs} node=${node} />`}
    <${Attempts} id=${node.id} bestId=${bestId} until=${until} /><${Remarks} id=${node.id} /></div>`;
}

function words(node) {
  const parent = model.nodes.get(node.parent);
  if (node.parent == null) return "root";
  if (node.status !== "open") return node.status === "active" ? "being worked on" : node.status;
  return parent?.status === "solved" ? "open, on the frontier" : `open, waits for ${node.parent}`;
}

/** @param {{node: any, cycle: any, best: boolean}} props */
function Facts({ node, cycle, best }) {
  const k = model.head.rules.stagnation;
  const left = cycle ? k - cycle.stale : null;
  return html`<div class="said-big"><${Dumbbell} predicted=${node.predicted} gain=${node.gain} width=${220} /><div class="small soft">◇ predicted ${times(node.predicted)}${" · "}● measured ${node.gain ? interval(node.gain) : node.status === "rejected" ? "nothing: no attempt passed" : "nothing yet"}<br />over its parent's program</div></div>
    <dl class="facts"><dt>speedup</dt><dd class=${best ? "best strong" : ""}>${node.speedup ? `${interval(node.speedup)} over the baseline` : "–"}${node.program ? html` <${ProgramLink} id=${node.program} />` : null}</dd>
    <dt>priority V</dt><dd>${priority(node.v)}</dd>
    <dt>attempts</dt><dd>${node.attempts} of at most ${node.limit}${cycle ? `; ${left > 0 ? `${plural(left, "more attempt")} without improvement end it` : "about to close"}` : ""}</dd>
    ${node.spent ? html`<dt>cost</dt><dd>${money(node.spent.usd)}, ${short(node.spent.tokens)} tokens, ${plural(node.spent.calls, "call")}${node.spent.unpriced ? ` (${node.spent.unpriced} of unknown price)` : ""}</dd>` : null}
    ${node.closed ? html`<dt>closed by</dt><dd class="text">${node.closed.replaceAll("_", " ")}</dd>` : null}</dl>`;
}

/** @param {{id: string, bestId: string|null, until: number|null}} props */
function Attempts({ id, bestId, until }) {
  const rows = useMemo(() => [...model.tries.values()].filter((t) => t.node === id && (until == null || (t.done_at ?? t.at) <= until)).sort((a, b) => a.n - b.n), [id, until, model.triesVersion]);
  if (!rows.length) return null;
  return html`<div><h3>Attempts</h3><table class="attempts"><thead><tr><th class="num">#</th><th>verdict</th><th class="num" title="over the baseline">speedup</th><th class="num" title="over the parent's program">gain</th><th class="num">time</th></tr></thead><tbody>
    ${rows.slice(-60).map((t) => html`<tr class=${t.improved ? "" : "soft"}><td class="num">${t.program ? html`<a href=${href(model.run, "program", t.program)}>${t.n}</a>` : t.n}</td>
      <td><${Verdict} verdict=${t.verdict} /> <${Marks} row=${{ ...t, best: t.best && t.program !== bestId }} />${t.program && t.program === bestId ? html`<span class="chip star">best</span>` : null}${t.reason && t.verdict !== "passed" ? html`<div class="small faint text cut reason" title=${t.reason}>${t.reason}</div>` : null}</td>
      <td class=${`num ${t.program === bestId && t.program ? "best strong" : ""}`}>${t.speedup ? times(t.speedup[0]) : ""}</td><td class="num">${t.gain ? times(t.gain[0]) : ""}</td><td class="num">${t.ms != null ? latency(t.ms) : ""}</td></tr>`)}</tbody></table>
    ${rows.length > 60 ? html`<p class="small faint">the last 60 of ${rows.length}; <a href=${href(model.run, "programs", null, { node: id })}>all</a></p>` : null}</div>`;
}

/** @param {{id: string}} props */
function Remarks({ id }) {
  const list = useList("remarks");
  const rows = list.rows.filter((r) => r.node === id);
  if (!rows.length) return null;
  return html`<div><h3>Notes by people</h3>${rows.map((r) => html`<p class="text wrap">${r.text} <span class="small faint">${r.author}, ${clock(r.at)}</span></p>`)}</div>`;
}
