// The slider: the tree after each of its edits, with before, after, the reason, and what was refused.
import { html, useEffect, useRef, useState } from "./lib.js";
import { get } from "./source.js";
import { changed, model } from "./model.js";
import { set } from "./route.js";
import { clock, fact, plural, priority, times } from "./format.js";
import { NodeLink } from "./parts.js";

/** The tree as it was after a step; only what differs from the tree at hand is asked for. @param {any} step */
export function useReplay(step) {
  const kept = useRef(/** @type {any} */ (null));
  const [, drawn] = useState(0);
  const seq = step?.seq ?? null;
  useEffect(() => {
    if (seq == null) { kept.current = null; return undefined; }
    let current = true;
    const was = kept.current?.run === model.run ? kept.current : null;
    get("tree", { run: model.run, at: seq, known: was?.seq }).then((found) => {
      if (!current) return;
      const nodes = new Map(was?.nodes ?? []);
      for (const node of found.nodes) nodes.set(node.id, node);
      for (const id of found.gone) nodes.delete(id);
      kept.current = { run: model.run, seq, nodes, best: found.best };
      drawn((n) => n + 1);
    }, (error) => { model.problem = error.message; changed(); });
    return () => { current = false; };
  }, [seq, model.run]);
  if (seq == null) return null;
  return kept.current ? { ...kept.current, busy: kept.current.seq !== seq } : { nodes: model.nodes, best: null, busy: true };
}

const HUES = { plan: "solved", refused: "rejected", "given up": "rejected", solved: "solved", rejected: "rejected", "cut short": "open", submitted: "active" };

/** @param {{steps: import("./model.js").List, step: number, busy?: boolean}} props */
export function Replay({ steps, step, busy }) {
  const rows = steps.rows;
  const [playing, play] = useState(false);
  useEffect(() => {
    if (!playing) return undefined;
    const next = step < 0 ? 0 : step + 1;
    if (next >= rows.length) { play(false); set({ step: null }); return undefined; }
    const t = setTimeout(() => set({ step: next }), 900);
    return () => clearTimeout(t);
  }, [playing, step, rows.length]);
  if (!rows.length) return null;
  const to = (i) => { play(false); set({ step: i >= rows.length - 1 && i !== step ? rows.length - 1 : i }); };
  const now = step >= 0 ? rows[step] : null;
  return html`<div class="replay" aria-label="edits of the tree">
    ${now ? html`<${Step} step=${now} />` : null}
    <div class="toolbar"><button class="plain" aria-label=${playing ? "stop" : "play the edits"} onClick=${() => { if (!playing && step < 0) set({ step: 0 }); play(!playing); }}>${playing ? "❚❚" : "▶"}</button>
      <button class="plain" aria-label="one edit back" disabled=${step === 0} onClick=${() => to((step < 0 ? rows.length : step) - 1)}>‹</button>
      <span class="track"><${Ticks} rows=${rows} /><input type="range" min="0" max=${rows.length} value=${step < 0 ? rows.length : step} aria-label="edit" onInput=${(e) => { const i = Number(e.target.value); play(false); set({ step: i >= rows.length ? null : i }); }} /></span>
      <button class="plain" aria-label="one edit on" disabled=${step < 0} onClick=${() => (step + 1 < rows.length ? to(step + 1) : set({ step: null }))}>›</button>
      <span class="small soft num" style=${{ minWidth: "108px" }}>${step < 0 ? plural(rows.length, "edit") : `edit ${step + 1} of ${rows.length}`}${busy ? "…" : ""}</span>
      <button class=${step < 0 ? "on" : ""} onClick=${() => { play(false); set({ step: null }); }}>Now</button></div></div>`;
}

/** Where among the edits something was refused or solved. @param {{rows: any[]}} props */
function Ticks({ rows }) {
  const every = Math.max(1, Math.ceil(rows.length / 400));
  const shown = rows.filter((r, i) => i % every === 0 || r.kind === "refused");
  return html`<svg class="ticks" viewBox=${`0 0 ${rows.length} 6`} preserveAspectRatio="none" aria-hidden="true">${shown.map((r) => html`<rect x=${r.i + 0.15} y=${r.kind === "plan" ? 2.5 : 0} width=${0.7 * every} height=${r.kind === "plan" ? 1 : 6} fill=${`var(--${HUES[r.kind] ?? "soft"})`} />`)}</svg>`;
}

/** @param {{step: any}} props */
function Step({ step }) {
  return html`<div class="step"><div class="row"><span class=${`strong ${step.kind === "refused" || step.kind === "given up" ? "bad" : ""}`}>${title(step)}</span><span class="soft small">by ${step.by} at ${clock(step.at)}, event ${step.seq}</span></div>
    ${step.text ? html`<p class="text wrap">${step.text}</p>` : null}
    ${step.reason ? html`<p class="text wrap soft">“${step.reason}”</p>` : null}
    ${step.kind === "refused" ? html`<${Offered} edits=${step.edits ?? []} />` : null}
    ${step.changes.length ? html`<${Changes} changes=${step.changes} edits=${step.edits ?? []} />` : null}
    ${step.dropped?.length ? html`<p class="small bad wrap">left out: ${step.dropped.join("; ")}</p>` : null}</div>`;
}

function title(step) {
  if (step.kind === "plan") return `plan ${step.request}, ${step.why === "start" ? "the first" : step.why === "closed" ? `after ${step.node}` : "the frontier was empty"}`;
  if (step.kind === "refused") return `plan ${step.request} refused`;
  if (step.kind === "given up") return `plan ${step.request} given up`;
  return `${step.kind} ${step.node ?? ""}`;
}

/** @param {{changes: any[], edits: any[]}} props */
function Changes({ changes, edits }) {
  const why = new Map(edits.filter((e) => e.why).map((e) => [e.node, e.why]));
  return html`<table class="changes"><thead><tr><th>node</th><th>what</th><th>before</th><th>after</th></tr></thead><tbody>
    ${changes.flatMap((c) => (c.before ? [] : [html`<tr><td><${NodeLink} id=${c.id} /> <span class="soft text">${c.title}</span></td><td class="soft">inserted</td><td class="del">–</td><td class="add text">under ${c.after.parent}, V ${priority(c.after.V)}, difficulty ${c.after.difficulty}${c.after.predicted != null ? `, predicted ${times(c.after.predicted)}` : ""}</td></tr>`]))}
    ${changes.filter((c) => c.before).flatMap((c) => Object.keys(c.after ?? {}).filter((k) => k !== "why").map((k, i) => html`<tr><td>${i === 0 ? html`<${NodeLink} id=${c.id} /> <span class="soft text">${c.title}</span>${why.get(c.id) ? html`<div class="small faint text cut" title=${why.get(c.id)}>${why.get(c.id)}</div>` : null}` : null}</td><td class="soft">${k.replace("_", " ")}</td><td class="del text">${fact(c.before[k])}</td><td class="add text">${fact(c.after[k])}</td></tr>`))}</tbody></table>`;
}

/** Edits that were not taken. @param {{edits: any[]}} props */
function Offered({ edits }) {
  return html`<ul class="offered">${edits.map((e) => html`<li class="text"><s>${e.verb} ${e.verb === "insert" ? `“${e.title}” under ${e.parent}, V ${priority(e.v)}` : e.node}${e.v != null && e.verb === "update" ? `, V ${priority(e.v)}` : ""}</s>${e.why ? html` <span class="faint">${e.why}</span>` : null}</li>`)}</ul>`;
}
