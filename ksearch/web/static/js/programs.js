// Every attempt, in a table that draws only what is in sight.
import { html, useMemo, useRef, useState } from "./lib.js";
import { clock, latency, plural, times, words } from "./format.js";
import { model, useModel } from "./model.js";
import { go, href, set } from "./route.js";
import { Marks, NodeLink, Verdict, Virtual, Waiting } from "./parts.js";
import { useViewKeys } from "./keys.js";

const COLUMNS = [
  ["n", "#", (t) => t.n], ["verdict", "verdict", (t) => t.verdict ?? ""], ["node", "action", (t) => Number(t.node.slice(1)) || 0], ["speedup", "speedup", (t) => t.speedup?.[0]],
  ["gain", "gain", (t) => t.gain?.[0]], ["worst", "worst", (t) => t.worst], ["ms", "time", (t) => t.ms], ["roof", "roofline", (t) => t.roof], ["by", "written by", (t) => t.by ?? ""], ["at", "finished", (t) => t.done_at ?? t.at],
];

/** @param {{at: import("./route.js").Route}} props */
export function Programs({ at }) {
  useModel();
  const o = at.options;
  const [query, search] = useState(o.q ?? "");
  const rows = useMemo(() => chosen(o, query), [model.triesVersion, o.verdict, o.node, o.workload, o.flag, o.sort, o.down, query]);
  const [spot, setSpot] = useState(-1);
  const held = useRef(-1); // keys may come quicker than pages are drawn
  const move = (i) => { held.current = i; setSpot(i); };
  const step = (by) => move(Math.max(0, Math.min(rows.length - 1, held.current + by)));
  const open = (options = {}) => { const id = rows[held.current]?.program; if (id) go(href(model.run, "program", id, options)); };
  useViewKeys({ j: () => step(1), k: () => step(-1), ArrowDown: () => step(1), ArrowUp: () => step(-1), Enter: () => open(), d: () => open({ against: "parent" }) });
  if (!model.tries.size) return html`<${Waiting} what="The first attempt is awaited." since=${model.head.started_at} />`;
  const sort = o.sort ?? "n";
  const by = (name) => set({ sort: name, down: sort === name && o.down !== "1" ? 1 : null });
  return html`<div class="tableview"><div class="toolbar"><input type="search" placeholder="find  /" aria-label="find" value=${query} onInput=${(e) => { search(e.target.value); move(-1); }} />
      <${Choice} name="verdict" all="all verdicts" values=${Object.keys(model.head.mix)} value=${o.verdict} write=${words} />
      <${Choice} name="workload" all="all workloads" values=${workloads()} value=${o.workload} />
      <${Choice} name="flag" all="any mark" values=${["best", "improved", "doubt", "confirmed", "reviewed"]} value=${o.flag} />
      ${o.node ? html`<button onClick=${() => set({ node: null })}>action ${o.node} ✕</button>` : null}
      <span class="grow" /><span class="small soft">${plural(rows.length, "attempt")}${model.triesReady ? "" : ", reading…"}</span></div>
    <div class="programs" role="table" aria-label="programs"><div class="phead pcols" role="row">${COLUMNS.map(([name, label]) => html`<button class=${`plain ${["verdict", "node", "by"].includes(name) ? "" : "num"} p-${name}`} role="columnheader" aria-sort=${sort === name ? (o.down === "1" ? "descending" : "ascending") : "none"} onClick=${() => by(name)}>${label}${sort === name ? (o.down === "1" ? " ↓" : " ↑") : ""}</button>`)}</div>
    ${rows.length ? html`<${Virtual} rows=${rows} height=${28} at=${spot} label="programs" draw=${(t, i) => html`<${Line} t=${t} chosen=${i === spot} />`} />` : html`<${Waiting} what="No attempt fits these filters." />`}</div></div>`;
}

/** @param {any} props */
function Choice({ name, all, values, value, write = (v) => v }) {
  return html`<select aria-label=${name} value=${value ?? ""} onChange=${(e) => set({ [name]: e.target.value || null })}><option value="">${all}</option>${values.map((v) => html`<option value=${v}>${write(v)}</option>`)}</select>`;
}

/** @param {{t: any, chosen: boolean}} props */
function Line({ t, chosen }) {
  const best = t.program && t.program === model.head.best?.program;
  const open = () => t.program && go(href(model.run, "program", t.program));
  return html`<div class=${`pcols pline ${chosen ? "chosen" : ""} ${t.program ? "" : "flat"}`} role="row" onClick=${open}>
    <span class="num p-n">${t.program ? html`<a href=${href(model.run, "program", t.program)}>${t.n}</a>` : t.n}</span><span class="row p-verdict" style=${{ gap: "5px", flexWrap: "nowrap", overflow: "hidden" }}><${Verdict} verdict=${t.verdict} /><${Marks} row=${t} /><span class="cut faint small" title=${t.reason}>${t.verdict !== "passed" ? t.reason : ""}</span></span>
    <span class="cut p-node"><${NodeLink} id=${t.node} title /></span><span class=${`num p-speedup ${best ? "best strong" : ""}`}>${best ? "★ " : ""}${t.speedup ? times(t.speedup[0]) : ""}<span class="faint small hide-narrow">${t.speedup ? ` ±${(50 * (t.speedup[2] - t.speedup[1]) / t.speedup[0]).toFixed(1)}%` : ""}</span></span>
    <span class="num p-gain">${t.gain ? times(t.gain[0]) : ""}</span><span class=${`num p-worst ${t.worst < 1 ? "bad" : ""}`}>${t.worst != null ? times(t.worst) : ""}</span><span class="num p-ms">${t.ms != null ? latency(t.ms) : ""}</span><span class="num p-roof">${t.roof != null ? `${Math.round(100 * t.roof)}%` : ""}</span><span class="cut p-by text soft">${t.by ?? ""}</span><span class="num p-at soft">${clock(t.done_at ?? t.at)}</span></div>`;
}

function workloads() {
  const found = new Set();
  for (const node of model.nodes.values()) for (const w of node.workloads) found.add(w);
  for (const t of model.tries.values()) for (const w of t.fails ?? []) found.add(w);
  return [...found].sort().slice(0, 200);
}

/** @param {Record<string, string>} o @param {string} query */
function chosen(o, query) {
  const wanted = query.toLowerCase().split(/\s+/).filter(Boolean);
  const flags = { best: (t) => t.best, improved: (t) => t.improved, doubt: (t) => t.flags?.length, confirmed: (t) => t.confirmed, reviewed: (t) => t.review != null };
  const rows = [...model.tries.values()].filter((t) => (!o.verdict || t.verdict === o.verdict) && (!o.node || t.node === o.node) && (!o.flag || flags[o.flag]?.(t))
    && (!o.workload || t.fails?.includes(o.workload) || model.nodes.get(t.node)?.workloads.includes(o.workload)) && (!wanted.length || wanted.every((w) => text(t).includes(w))));
  const of = (COLUMNS.find(([name]) => name === o.sort) ?? COLUMNS[0])[2];
  const sign = o.down === "1" ? -1 : 1;
  return rows.sort((a, b) => {
    const [x, y] = [of(a), of(b)];
    if (x == null || y == null) return x == null ? (y == null ? a.n - b.n : 1) : -1; // what has no value comes last, either way
    return (x < y ? -1 : x > y ? 1 : a.n - b.n) * sign;
  });
}

const text = (t) => `${t.n} ${t.program ?? ""} ${t.node} ${model.nodes.get(t.node)?.title ?? ""} ${t.verdict ?? ""} ${t.reason ?? ""} ${t.by ?? ""} ${(t.flags ?? []).join(" ")}`.toLowerCase();
