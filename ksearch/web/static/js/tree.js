// Home: what the planner believes. Rows or map at the left, one node at the right, the staircase on top, time below.
import { html, useEffect, useMemo, useState } from "./lib.js";
import { ancestors, asMap, asRows } from "./layout.js";
import { model, useList, useModel } from "./model.js";
import { go, href, route, set } from "./route.js";
import { Waiting } from "./parts.js";
import { Staircase } from "./chart.js";
import { NodePanel } from "./node.js";
import { Replay, useReplay } from "./replay.js";
import { RowsPane } from "./rows.js";
import { MapPane } from "./map.js";
import { useViewKeys } from "./keys.js";
import { mute, speak } from "./verbs.js";

/** @param {{at: import("./route.js").Route}} props */
export function TreeView({ at }) {
  useModel();
  const steps = useList("steps");
  const step = at.options.step != null ? Math.min(Number(at.options.step), steps.rows.length - 1) : -1;
  const replay = useReplay(step >= 0 ? steps.rows[step] : null);
  const nodes = replay?.nodes ?? model.nodes;
  const bestId = replay ? replay.best : model.head.best?.program;
  const [folded, fold] = useState(/** @type {Set<string>} */ (new Set()));
  const [opened, show] = useState(/** @type {Set<string>} */ (new Set()));
  const map = at.options.map === "1";
  const rows = useMemo(() => asRows(nodes, folded, opened), [nodes, folded, opened]);
  const drawn = useMemo(() => (map ? asMap(nodes, folded, opened) : null), [map, nodes, folded, opened]);
  const bestNode = useMemo(() => holder(bestId), [bestId, model.triesVersion]);
  const chosen = at.id && nodes.has(at.id) ? at.id : usual(nodes, bestNode);
  const [query, search] = useState("");
  const found = useMemo(() => matches(nodes, query), [nodes, query]);
  const choose = (id) => go(href(model.run, "tree", id, at.options), true);
  const toggle = (id) => fold(flipped(folded, id));
  const reveal = (id) => show(flipped(opened, id));
  useEffect(() => { // what is chosen is never inside a fold
    if (!at.id || !nodes.has(at.id)) return;
    const above = ancestors(nodes, at.id);
    if (above.some((id) => folded.has(id))) fold(new Set([...folded].filter((id) => !above.includes(id))));
    const hidden = [at.id, ...above].filter((id) => nodes.get(id)?.status === "pruned").map((id) => nodes.get(id).parent).filter((id) => id && !opened.has(id));
    if (hidden.length) show(new Set([...opened, ...hidden]));
  }, [at.id]);
  const walk = (by) => {
    const ids = rows.filter((r) => !r.pruned && (!found || found.has(r.node.id))).map((r) => r.node.id);
    const from = route().id ?? chosen; // keys may come quicker than pages are drawn
    const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(from) + by))];
    if (next) choose(next);
  };
  useViewKeys({
    j: () => walk(1), k: () => walk(-1), ArrowDown: () => walk(1), ArrowUp: () => walk(-1),
    h: () => chosen && !folded.has(chosen) && toggle(chosen), l: () => chosen && folded.has(chosen) && toggle(chosen),
    "[": () => steps.rows.length && set({ step: Math.max(0, (step < 0 ? steps.rows.length : step) - 1) }),
    "]": () => step >= 0 && set({ step: step + 1 < steps.rows.length ? step + 1 : null }),
    "\\": () => set({ map: map ? null : 1 }),
    p: () => { const n = model.nodes.get(chosen); if (n?.status === "open" && !mute()) speak({ type: "pin", node_id: n.id, pinned: !n.pinned }, n.pinned ? `${n.id} is no longer pinned` : `${n.id} is pinned`); },
    Enter: () => { const p = nodes.get(chosen)?.program; if (p) go(href(model.run, "program", p)); },
  });
  const touched = step >= 0 ? new Set(steps.rows[step].changes.map((c) => c.id)) : null;
  const shared = { chosen, choose, toggle, reveal, bestId, bestNode, found, touched, stagnation: model.head.rules.stagnation, cycles: replay ? [] : model.head.cycles };
  const pruned = model.head.tree.pruned;
  return html`<div class="treeview">
    <${Top} at=${at} />
    <div class="treebody">
      <section class="treepane" aria-label="world model">
        <div class="toolbar"><input type="search" placeholder="find an action  /" aria-label="find an action" value=${query} onInput=${(e) => search(e.target.value)} />
          ${found ? html`<span class="small soft">${found.size} found</span>` : null}
          <span class="grow" />
          ${pruned ? html`<button class="plain small" onClick=${() => show(opened.size ? new Set() : new Set([...nodes.values()].filter((n) => n.status === "pruned").map((n) => n.parent)))}>${opened.size ? "fold" : "show"} ${pruned} pruned</button>` : null}
          <span class="switch"><button class=${map ? "" : "on"} onClick=${() => set({ map: null })}>Rows</button><button class=${map ? "on" : ""} onClick=${() => set({ map: 1 })}>Map</button></span></div>
        ${nodes.size < 2 && !replay ? html`<${Waiting} what="The tree holds the root alone: the planner's first answer is awaited." since=${model.head.started_at} />`
    : map ? html`<${MapPane} drawn=${drawn} ...${shared} />` : html`<${RowsPane} rows=${rows} ...${shared} />`}
        <${Replay} steps=${steps} step=${step} busy=${replay?.busy} />
      </section>
      <aside class="detail" aria-label="node">${chosen && nodes.get(chosen) ? html`<${NodePanel} key=${chosen} node=${nodes.get(chosen)} until=${step >= 0 ? steps.rows[step].at : null} bestId=${bestId} bestNode=${bestNode} />` : null}</aside>
    </div></div>`;
}

/** @param {{at: import("./route.js").Route}} props */
function Top({ at }) {
  const by = at.options.by ?? "evaluations";
  const [open, set2] = useState(stored() !== "no");
  const flip = () => { keep(open ? "no" : "yes"); set2(!open); };
  return html`<section class="stairs" aria-label="best so far">
    <div class="toolbar"><button class="plain small" aria-expanded=${open} onClick=${flip}>${open ? "▾" : "▸"} Best so far, over the baseline</button>
      ${open ? html`<span class="switch small">${["evaluations", "time", "money"].map((name) => html`<button class=${by === name ? "on" : ""} onClick=${() => set({ by: name === "evaluations" ? null : name })}>${name}</button>`)}</span>` : null}</div>
    ${open ? (model.head.mix.passed ? html`<${Staircase} tries=${model.tries} by=${by} height=${104} version=${model.triesVersion} />` : html`<p class="small faint" style=${{ padding: "0 14px 10px" }}>No program has passed yet.</p>`) : null}
  </section>`;
}

const stored = () => { try { return localStorage.getItem("ksearch-stairs"); } catch { return null; } };
const keep = (v) => { try { localStorage.setItem("ksearch-stairs", v); } catch { /* storage may be forbidden */ } };

/** The action whose attempt the best program is; a cycle may have closed with another. @param {string|null|undefined} bestId */
function holder(bestId) {
  if (bestId) for (const t of model.tries.values()) if (t.program === bestId) return t.node;
  return null;
}

/** What is shown when nothing was chosen: the action at work, else the best one. @param {Map<string, any>} nodes @param {string|null} bestNode */
function usual(nodes, bestNode) {
  for (const node of nodes.values()) if (node.status === "active") return node.id;
  return bestNode && nodes.has(bestNode) ? bestNode : "root";
}

/** @param {Map<string, any>} nodes @param {string} query @returns {Set<string>|null} */
function matches(nodes, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return null;
  const text = (n) => `${n.id} ${n.title} ${n.why} ${n.notes} ${n.status}`.toLowerCase();
  return new Set([...nodes.values()].filter((n) => { const t = text(n); return words.every((w) => t.includes(w)); }).map((n) => n.id));
}

/** @param {Set<string>} was @param {string} id */
function flipped(was, id) {
  const now = new Set(was);
  if (!now.delete(id)) now.add(id);
  return now;
}
