// Where the money went, and what came of it.
import { html, useMemo, useState } from "./lib.js";
import { clock, count, duration, money, plural, short, times, words } from "./format.js";
import { model, useList, useModel } from "./model.js";
import { Blob, NodeLink, Virtual, Waiting } from "./parts.js";
import { readPrompt } from "./program.js";
import { useEscape, useViewKeys } from "./keys.js";

const BAD = new Set(["unparsable", "truncated", "refused", "edits refused", "given up"]);

export function Calls() {
  useModel();
  const calls = useList("calls");
  const spans = useList("spans");
  const rows = calls.rows;
  const totals = useMemo(() => sums(rows), [rows]);
  const newest = useMemo(() => rows.slice().reverse(), [rows]);
  const [spot, move] = useState(-1);
  const [shown, show] = useState(/** @type {any} */ (null));
  useViewKeys({ j: () => move(Math.min(newest.length - 1, spot + 1)), k: () => move(Math.max(0, spot - 1)), Enter: () => newest[spot] && show(newest[spot]) });
  if (!rows.length) return html`<${Waiting} what=${calls.ready ? "The first model call is awaited." : "Reading the calls…"} since=${model.head.started_at} />`;
  const again = spans.rows.filter((s) => s.kind !== "evaluate" && /^(lost|expired|handed)/.test(s.outcome ?? "")).length;
  const all = totals.all;
  return html`<div class="page"><section class="card"><div class="figures"><div><h3>money</h3><b>${money(all.usd)}</b>${model.head.unpriced ? html`<div class="small faint">${plural(model.head.unpriced, "call")} of unknown price</div>` : null}</div><div><h3>tokens</h3><b>${short(all.tokens)}</b></div><div><h3>calls</h3><b>${count(all.n)}</b></div>
      <div><h3>without use</h3><b class=${all.bad ? "bad" : ""}>${all.bad} <span class="small soft">${Math.round((100 * all.bad) / all.n)}%, ${money(all.badUsd)}</span></b></div><div><h3>asked again</h3><b>${again}</b></div><div><h3>mean wait</h3><b>${duration(all.seconds / all.n)}</b></div><div><h3>money per new best</h3><b>${bests() ? money(all.usd / bests()) : "–"}</b></div></div></section>
    <div class="grid"><section class="card c6"><h2>By model and kind</h2><${Table} rows=${totals.models} name="model" /></section>
      <section class="card c6"><h2>How calls ended</h2><table class="mix">${totals.outcomes.map(([name, n]) => html`<tr><td class=${BAD.has(name) ? "bad" : ""}>${words(name)}</td><td class="num">${n}</td><td class="barcell"><i class=${BAD.has(name) ? "" : "ok"} style=${{ width: `${(100 * n) / all.n}%` }} /></td></tr>`)}</table><h3 style=${{ margin: "10px 0 4px" }}>The provider's words</h3><p class="small soft text">${totals.finishes.map(([name, n]) => `${name || "none"} ${n}`).join(" · ")}</p></section>
      <section class="card c12"><h2>By action <small>money per factor of gain over the parent</small></h2><${ByAction} rows=${totals.nodes} /></section></div>
    <section class="card"><h2>Calls <small>the newest first; Enter shows prompt and reply</small></h2><div class="calls"><div class="ccols phead"><span class="num">#</span><span>request</span><span>action</span><span>model</span><span>outcome</span><span class="num">tokens</span><span class="num">cost</span><span class="num">wait</span><span class="num">at</span></div>
      <${Virtual} rows=${newest} height=${26} at=${spot} label="calls" draw=${(c, i) => html`<div class=${`ccols pline ${i === spot ? "chosen" : ""}`} onClick=${() => show(c)}><span class="num">${c.i}</span><span>${c.kind} <span class="faint">${c.request}</span></span><span class="cut"><${NodeLink} id=${c.node} title /></span><span class="cut text soft">${c.model || "–"}</span><span class=${`cut ${BAD.has(c.outcome) ? "bad" : ""}`}>${words(c.outcome)}</span><span class="num">${count(c.tokens)}</span><span class="num">${money(c.usd)}</span><span class="num">${duration(c.seconds)}</span><span class="num soft">${clock(c.at)}</span></div>`} /></div></section>
    ${shown ? html`<${Exchange} call=${shown} close=${() => show(null)} />` : null}</div>`;
}

const bests = () => [...model.tries.values()].filter((t) => t.best).length;

/** @param {any[]} rows */
function sums(rows) {
  const zero = () => ({ n: 0, tokens: 0, usd: 0, bad: 0, badUsd: 0, seconds: 0 });
  const all = zero();
  const groups = { models: new Map(), nodes: new Map() };
  const outcomes = new Map();
  const finishes = new Map();
  const bump = (map, key) => map.set(key, (map.get(key) ?? 0) + 1);
  for (const c of rows) {
    const into = (map, key) => map.get(key) ?? (map.set(key, zero()), map.get(key));
    for (const g of [all, into(groups.models, `${c.model || "unnamed"} · ${c.kind}`), into(groups.nodes, c.node)]) {
      g.n += 1; g.tokens += c.tokens; g.usd += c.usd ?? 0; g.seconds += c.seconds ?? 0;
      if (BAD.has(c.outcome)) { g.bad += 1; g.badUsd += c.usd ?? 0; }
    }
    bump(outcomes, c.outcome ?? "waiting");
    bump(finishes, c.finish);
  }
  const sorted = (map) => [...map].sort((a, b) => b[1] - a[1]);
  return { all, models: [...groups.models].sort((a, b) => b[1].usd - a[1].usd), nodes: [...groups.nodes].sort((a, b) => b[1].usd - a[1].usd), outcomes: sorted(outcomes), finishes: sorted(finishes) };
}

/** @param {{rows: [string, any][], name: string}} props */
function Table({ rows, name }) {
  return html`<div class="scroll"><table><thead><tr><th>${name}</th><th class="num">calls</th><th class="num">tokens</th><th class="num">money</th><th class="num">without use</th><th class="num">wait</th></tr></thead><tbody>${rows.slice(0, 40).map(([key, g]) => html`<tr><td class="text">${key}</td><td class="num">${count(g.n)}</td><td class="num">${short(g.tokens)}</td><td class="num">${money(g.usd)}</td><td class=${`num ${g.bad ? "bad" : ""}`}>${g.bad}</td><td class="num">${duration(g.seconds / g.n)}</td></tr>`)}</tbody></table></div>`;
}

/** @param {{rows: [string, any][]}} props */
function ByAction({ rows }) {
  const [most, more] = useState(12);
  return html`<div class="scroll"><table><thead><tr><th>action</th><th class="num">calls</th><th class="num">tokens</th><th class="num">money</th><th class="num">gain</th><th class="num">money per gain</th></tr></thead><tbody>${rows.slice(0, most).map(([id, g]) => { const n = model.nodes.get(id); const gain = n?.gain?.[0]; return html`<tr><td><${NodeLink} id=${id} title /></td><td class="num">${g.n}</td><td class="num">${short(g.tokens)}</td><td class="num">${money(g.usd)}</td><td class="num">${gain ? times(gain) : "–"}</td><td class="num">${gain > 1 ? money(g.usd / Math.log2(gain)) + " a doubling" : "no gain"}</td></tr>`; })}</tbody></table></div>${rows.length > most ? html`<button class="small" onClick=${() => more(most * 4)}>${rows.length - most} more</button>` : null}`;
}

/** @param {{call: any, close: () => void}} props */
function Exchange({ call, close }) {
  useEscape(close);
  return html`<div class="veil" onClick=${(e) => e.target === e.currentTarget && close()}><div class="dialog" style=${{ width: "min(1100px, 100%)" }} role="dialog" aria-modal="true" aria-label="prompt and reply"><div class="row"><h2>${call.kind} ${call.request}</h2><span class="soft small text">${call.model}, ${count(call.tokens)} tokens, ${money(call.usd)}, ${duration(call.seconds)}${call.finish ? `, ended by “${call.finish}”` : ""}, ${words(call.outcome)}</span><span class="grow" /><button onClick=${close}>Close</button></div>${call.sent ? html`<p class="small soft text">asked with ${call.sent}</p>` : null}${call.notes.map((note) => html`<p class="small text">${note}</p>`)}<h3>Prompt</h3><${Blob} sha=${call.prompt} read=${readPrompt} /><h3>Raw reply</h3><${Blob} sha=${call.raw} /></div></div>`;
}
