// The tree as a map: a tidy tree from left to right, of which only what is in sight is drawn.
import { html, useEffect, useRef, useState } from "./lib.js";
import { CARD } from "./layout.js";
import { Glyph } from "./parts.js";
import { Speedup } from "./rows.js";
import { plural, priority, times } from "./format.js";

const MARGIN = 300;

/** @param {any} props */
export function MapPane({ drawn, chosen, choose, toggle, reveal, bestId, bestNode, found, touched }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [view, look] = useState({ x: 0, y: 0, w: 1600, h: 1000 });
  const measure = () => { const b = box.current; if (b) look({ x: b.scrollLeft, y: b.scrollTop, w: b.clientWidth, h: b.clientHeight }); };
  useEffect(() => {
    measure();
    const seen = new ResizeObserver(measure);
    if (box.current) seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    const card = drawn.cards.find((c) => c.key === chosen);
    const b = box.current;
    if (!card || !b) return;
    const inside = card.x >= b.scrollLeft && card.x + CARD.width <= b.scrollLeft + b.clientWidth && card.y >= b.scrollTop && card.y + CARD.height <= b.scrollTop + b.clientHeight;
    if (!inside) b.scrollTo({ left: Math.max(0, card.x - b.clientWidth / 2 + CARD.width / 2), top: Math.max(0, card.y - b.clientHeight / 2) });
  }, [chosen, drawn.width, drawn.height]);
  const near = (x, y, w = CARD.width, h = CARD.height) => x + w > view.x - MARGIN && x < view.x + view.w + MARGIN && y + h > view.y - MARGIN && y < view.y + view.h + MARGIN;
  const cards = drawn.cards.filter((c) => near(c.x, c.y));
  const links = drawn.links.filter(({ from, to }) => near(from.x, Math.min(from.y, to.y), to.x + CARD.width - from.x, Math.abs(to.y - from.y) + CARD.height));
  return html`<div class="map" ref=${box} onScroll=${measure} role="tree" aria-label="actions"><div style=${{ width: `${drawn.width}px`, height: `${drawn.height}px`, position: "relative" }}>
    <svg width=${drawn.width} height=${drawn.height} aria-hidden="true">${links.map(({ from, to }) => html`<path key=${to.key} class=${to.pruned || to.node.status === "pruned" ? "faded" : ""} d=${curve(from, to)} />`)}</svg>
    ${cards.map((c) => (c.pruned ? html`<button key=${c.key} class="mapfold plain small" style=${place(c)} onClick=${() => reveal(c.node.id)}><${Glyph} status="pruned" /> ${plural(c.pruned.length, "pruned branch", "pruned branches")}</button>`
    : html`<${Card} key=${c.key} card=${c} chosen=${c.key === chosen} choose=${choose} toggle=${toggle} best=${c.node.id === bestNode && !c.pruned} bestId=${bestId} dim=${found && !found.has(c.key)} touched=${touched?.has(c.key)} />`))}
  </div></div>`;
}

const place = (c) => ({ left: `${c.x}px`, top: `${c.y}px`, width: `${CARD.width}px` });

function curve(from, to) {
  const [x1, y1, x2, y2] = [from.x + CARD.width, from.y + CARD.height / 2, to.x, to.y + (to.pruned ? 11 : CARD.height / 2)];
  const m = (x1 + x2) / 2;
  return `M${x1} ${y1}C${m} ${y1} ${m} ${y2} ${x2} ${y2}`;
}

/** @param {any} props */
function Card({ card, chosen, choose, toggle, best, bestId, dim, touched }) {
  const n = card.node;
  const root = n.parent == null;
  return html`<div class=${`mapcard ${n.status} ${chosen ? "chosen" : ""} ${best ? "isbest" : ""} ${dim ? "dim" : ""} ${touched ? "touched" : ""}`} style=${{ ...place(card), height: `${CARD.height}px` }} role="treeitem" aria-selected=${chosen} aria-level=${card.depth + 1} data-node=${n.id} title=${n.title} onClick=${() => choose(n.id)} onDblClick=${() => toggle(n.id)}>
    <div class="mapline"><${Glyph} status=${n.status} best=${best} /><span class="cut grow">${root ? "baseline" : n.title}</span><${Speedup} n=${n} best=${best} bestId=${bestId} /></div>
    <div class="mapline small faint"><span class="nid">${root ? "" : n.id}</span>${root ? null : html`<span>V ${priority(n.v)}</span>`}${n.attempts ? html`<span>${n.attempts}/${n.limit}</span>` : null}<span class="grow" />${root ? null : html`<span title="predicted → measured, over its parent">${n.predicted != null ? `◇${times(n.predicted)}` : ""}${n.gain ? ` ●${times(n.gain[0])}` : n.status === "rejected" ? " none" : ""}</span>`}</div>
    ${n.pinned ? html`<span class="pin" title="pinned">▲</span>` : null}${card.folded ? html`<button class="more small" onClick=${(e) => { e.stopPropagation(); toggle(n.id); }}>+${card.folded}</button>` : null}</div>`;
}
