// From the nodes of a run to rows and to places on a map. Pruned branches fold into one line; they never vanish.
import { hierarchy, tidyTree } from "./lib.js";

/** @typedef {{key: string, node: any, depth: number, guides: boolean[], folded: number, pruned: string[]|null, x?: number, y?: number}} Row */

export const CARD = { width: 224, height: 44, gapX: 34, gapY: 10 };

/** The tree as d3 knows it, without what is folded.
 * @param {Map<string, any>} nodes @param {Set<string>} folded @param {Set<string>} opened parents whose pruned children are shown */
export function visible(nodes, folded, opened) {
  const children = new Map();
  for (const node of nodes.values()) {
    if (node.parent == null) continue;
    const siblings = children.get(node.parent);
    if (siblings) siblings.push(node);
    else children.set(node.parent, [node]);
  }
  const root = nodes.get("root");
  if (!root) return null;
  const kids = (item) => {
    if (item.pruned || folded.has(item.node.id)) return null;
    const all = children.get(item.node.id) ?? [];
    const pruned = all.filter((n) => n.status === "pruned");
    const show = opened.has(item.node.id) || !pruned.length;
    const kept = (show ? all : all.filter((n) => n.status !== "pruned")).map((node) => ({ node, pruned: null }));
    return show ? kept : [...kept, { node: item.node, pruned: pruned.map((n) => n.id) }];
  };
  const below = sizes(nodes);
  return { root: hierarchy({ node: root, pruned: null }, kids), below };
}

/** How many nodes hang under each. @param {Map<string, any>} nodes */
function sizes(nodes) {
  const below = new Map();
  for (const node of [...nodes.values()].reverse()) {
    if (node.parent != null) below.set(node.parent, (below.get(node.parent) ?? 0) + 1 + (below.get(node.id) ?? 0));
  }
  return below;
}

const keyOf = (data) => (data.pruned ? `${data.node.id}/pruned` : data.node.id);

/** One row a node, parents first. @param {Map<string, any>} nodes @param {Set<string>} folded @param {Set<string>} opened @returns {Row[]} */
export function asRows(nodes, folded, opened) {
  const found = visible(nodes, folded, opened);
  if (!found) return [];
  const rows = /** @type {Row[]} */ ([]);
  found.root.eachBefore((item) => {
    const last = item.parent ? item.parent.children[item.parent.children.length - 1] === item : true;
    // guides[level]: whether a line runs on below this row at that level
    item.guides = item.parent ? [...item.parent.guides, !last] : [];
    const { node, pruned } = item.data;
    rows.push({ key: keyOf(item.data), node, depth: item.depth, guides: item.guides, pruned, folded: folded.has(node.id) && !pruned ? found.below.get(node.id) ?? 0 : 0 });
  });
  return rows;
}

/** A tidy tree from left to right. @param {Map<string, any>} nodes @param {Set<string>} folded @param {Set<string>} opened */
export function asMap(nodes, folded, opened) {
  const found = visible(nodes, folded, opened);
  if (!found) return { cards: [], links: [], width: 0, height: 0 };
  const placed = tidyTree().nodeSize([CARD.height + CARD.gapY, CARD.width + CARD.gapX]).separation((a, b) => (a.parent === b.parent ? 1 : 1.2))(found.root);
  let [top, bottom, right] = [Infinity, -Infinity, 0];
  placed.each((item) => { top = Math.min(top, item.x); bottom = Math.max(bottom, item.x); right = Math.max(right, item.y); });
  const cards = [];
  const links = [];
  placed.eachBefore((item) => {
    const { node, pruned } = item.data;
    const card = { key: keyOf(item.data), node, pruned, depth: item.depth, guides: [], x: item.y + 16, y: item.x - top + 16, folded: folded.has(node.id) && !pruned ? found.below.get(node.id) ?? 0 : 0 };
    item.card = card;
    cards.push(card);
    if (item.parent) links.push({ from: item.parent.card, to: card });
  });
  return { cards, links, width: right + CARD.width + 32, height: bottom - top + CARD.height + 32 };
}

/** The nodes above one, nearest first. @param {Map<string, any>} nodes @param {string} id */
export function ancestors(nodes, id) {
  const found = [];
  let at = nodes.get(id)?.parent;
  while (at != null && found.length < 10000) {
    found.push(at);
    at = nodes.get(at)?.parent;
  }
  return found;
}
