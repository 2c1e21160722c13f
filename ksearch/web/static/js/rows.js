// The tree as rows: structure at the left, columns that line up at the right.
import { html } from "./lib.js";
import { model } from "./model.js";
import { Dumbbell, Glyph, Virtual } from "./parts.js";
import { money, plural, priority, times } from "./format.js";

export const ROW = 30;
const STEP = 18;
const DEEPEST = 16; // levels drawn; deeper ones keep this place and say how deep they are

/** @param {any} props */
export function RowsPane({ rows, chosen, choose, toggle, reveal, bestId, bestNode, found, touched, stagnation, cycles }) {
  const at = rows.findIndex((r) => r.key === chosen);
  const stale = new Map(cycles.map((c) => [c.node, c.stale]));
  const draw = (row) => (row.pruned
    ? html`<${Folded} row=${row} reveal=${reveal} />`
    : html`<${Line} row=${row} chosen=${row.node.id === chosen} choose=${choose} toggle=${toggle} best=${row.node.id === bestNode} bestId=${bestId}
        dim=${found && !found.has(row.node.id)} touched=${touched?.has(row.node.id)} stale=${stale.get(row.node.id)} stagnation=${stagnation} />`);
  return html`<div class="rows" role="tree" aria-label="actions">
    <div class="rowhead cols"><span>action</span><span class="num" title="the planner's priority, 0 to 1">V</span><span class="num" title="attempts, of at most 3 K">attempts</span><span class="num" title="over the baseline">speedup</span><span class="said" title="over its parent: ◇ predicted, ● measured with its interval; the line is 1×">said → gain</span><span class="num cost" title="model calls for this action">cost</span></div>
    <${Virtual} rows=${rows} height=${ROW} draw=${draw} at=${at} label="actions" /></div>`;
}

/** @param {any} props */
function Line({ row, chosen, choose, toggle, best, bestId, dim, touched, stale, stagnation }) {
  const n = row.node;
  const root = n.parent == null;
  return html`<div class=${`line cols ${chosen ? "chosen" : ""} ${dim ? "dim" : ""} ${touched ? "touched" : ""} ${n.status}`} role="treeitem" aria-selected=${chosen} aria-level=${row.depth + 1} data-node=${n.id} onClick=${() => choose(n.id)} onDblClick=${() => toggle(n.id)}>
    <span class="action"><${Branch} row=${row} /><${Glyph} status=${n.status} best=${best} />
      <span class="nid">${root ? "" : n.id}</span><span class="cut title" title=${n.title}>${root ? "baseline" : n.title}</span>
      ${n.pinned ? html`<span class="chip" title="a person wants it next">pinned</span>` : null}${n.enabling ? html`<span class="chip hide-narrow" title="may be slower: its children are to pay off">enabling</span>` : null}
      ${n.origin === "person" || n.origin === "submitted" || n.origin === "portfolio" ? html`<span class="chip hide-narrow">${n.origin}</span>` : null}
      ${row.folded ? html`<button class="plain small" onClick=${(e) => { e.stopPropagation(); toggle(n.id); }}>+${row.folded}</button>` : null}</span>
    <span class="num v">${root ? "" : html`<i style=${{ width: `${Math.round(34 * n.v)}px` }} />${priority(n.v)}`}</span>
    <span class="num soft">${root || !n.attempts ? "" : html`${n.attempts}<span class="faint">/${n.limit}</span>`}${stale ? html`<span class="faint" title=${`${stale} of ${stagnation} attempts in a row without improvement`}> ·${stale}</span>` : null}</span>
    <${Speedup} n=${n} best=${best} bestId=${bestId} />
    <span class="said">${root || (n.predicted == null && !n.gain) ? "" : html`<${Dumbbell} predicted=${n.predicted} gain=${n.gain} /><span class="num small">${n.gain ? times(n.gain[0]) : n.status === "rejected" ? "none" : ""}</span>`}</span>
    <span class="num cost soft">${n.spent ? money(n.spent.usd) : ""}</span></div>`;
}

/** Of the node's program; where another attempt of it is the best of the run, that one. @param {{n: any, best: boolean, bestId: string|null}} props */
export function Speedup({ n, best, bestId }) {
  if (n.parent == null) return html`<span class="num">1.00×</span>`;
  const other = best && n.program !== bestId ? model.head.best : null;
  const shown = other?.program === bestId && other?.speedup ? other.speedup : n.speedup;
  const title = other && n.speedup ? `the best of the run is an attempt at this action; the action closed with ${times(n.speedup[0])}` : "";
  return html`<span class=${`num ${best ? "best strong" : ""}`} title=${title}>${shown ? `${best ? "★ " : ""}${times(shown[0])}` : ""}</span>`;
}

/** The lines that lead to a row. @param {{row: import("./layout.js").Row}} props */
function Branch({ row }) {
  if (!row.depth) return null;
  const hidden = Math.max(0, row.depth - DEEPEST);
  const guides = row.guides.slice(hidden);
  const mid = ROW / 2;
  let d = "";
  guides.forEach((on, level) => {
    const x = level * STEP + 6;
    if (level === guides.length - 1) d += `M${x} 0V${mid - 6}Q${x} ${mid} ${x + 6} ${mid}H${x + STEP - 8}${on ? `M${x} 0V${ROW}` : ""}`;
    else if (on) d += `M${x} 0V${ROW}`;
  });
  return html`<svg class="branch" width=${guides.length * STEP} height=${ROW} aria-hidden="true"><path d=${d} /></svg>${hidden ? html`<span class="chip">depth ${row.depth}</span>` : null}`;
}

/** @param {{row: import("./layout.js").Row, reveal: (id: string) => void}} props */
function Folded({ row, reveal }) {
  return html`<div class="line cols pruned" role="treeitem" aria-level=${row.depth + 1}><span class="action"><${Branch} row=${row} /><${Glyph} status="pruned" />
    <button class="plain small" onClick=${() => reveal(row.node.id)}>${plural(row.pruned?.length ?? 0, "pruned branch", "pruned branches")}</button></span></div>`;
}
