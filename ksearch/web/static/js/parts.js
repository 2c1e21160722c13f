// Small things that several views show.
import { html, useEffect, useRef, useState } from "./lib.js";
import { blob } from "./source.js";
import { ago, count, duration, plural, shortId, short, money, times, words } from "./format.js";
import { model, now } from "./model.js";
import { href } from "./route.js";

/** A node's status as a shape and a hue, so that either alone tells. @param {{status: string, best?: boolean, size?: number}} props */
export function Glyph({ status, best = false, size = 12 }) {
  best = best && status !== "active"; // what is being worked on stays to be seen; the star is beside its speedup
  const name = best ? "best" : status;
  return html`<svg class="glyph" width=${size} height=${size} viewBox="-6 -6 12 12" role="img" aria-label=${best ? "best, solved" : status}>${shape(name)}</svg>`;
}

/** The drawing itself, around 0,0 and 12 wide. @param {string} name */
export function shape(name) {
  const hue = `var(--${name})`;
  switch (name) {
    case "best": return html`<path d="M0-5.6 1.7-1.9 5.6-1.6 2.6 1 3.6 5 0 2.9-3.6 5-2.6 1-5.6-1.6-1.7-1.9Z" fill=${hue} />`;
    case "solved": return html`<circle r="4.4" fill=${hue} />`;
    case "active": return html`<circle r="4" fill="none" stroke=${hue} stroke-width="1.6" /><path d="M0-4a4 4 0 0 1 0 8Z" fill=${hue} />`;
    case "rejected": return html`<path d="M-3.6-3.6 3.6 3.6M-3.6 3.6 3.6-3.6" stroke=${hue} stroke-width="1.9" fill="none" stroke-linecap="round" />`;
    case "pruned": return html`<path d="M-3.4 0H3.4" stroke=${hue} stroke-width="1.6" fill="none" stroke-linecap="round" />`;
    default: return html`<circle r="4" fill="var(--panel)" stroke=${hue} stroke-width="1.5" />`;
  }
}

/** What is awaited, and since when. @param {{what: string, since?: number|null, hint?: string}} props */
export function Waiting({ what, since = null, hint = "" }) {
  return html`<div class="waiting">${what}<span class="small">${since != null ? `since ${ago(since, now())}. ` : ""}${hint}</span></div>`;
}

/** A program's name as a link. @param {{id: string|null, n?: number|null}} props */
export function ProgramLink({ id, n = null }) {
  if (!id) return html`<span class="faint">–</span>`;
  return html`<a class="mono" href=${href(model.run, "program", id)} title=${id}>${n != null ? `#${n}` : shortId(id)}</a>`;
}

/** @param {{id: string|null, title?: boolean}} props */
export function NodeLink({ id, title = false }) {
  if (!id) return html`<span class="faint">–</span>`;
  const node = model.nodes.get(id);
  return html`<a class="text" href=${href(model.run, "tree", id)} title=${node?.title ?? ""}>${id}${title && node && node.parent != null ? html` <span class="soft">${node.title}</span>` : null}</a>`;
}

/** @param {{verdict: string|null|undefined}} props */
export function Verdict({ verdict }) {
  const kind = verdict == null ? "faint" : verdict === "passed" ? "" : "bad";
  return html`<span class=${`verdict ${kind}`}>${words(verdict)}</span>`;
}

/** A limit with what is spent and what is set aside. @param {{gauge: any}} props */
export function Gauge({ gauge }) {
  const write = gauge.unit === "$" ? money : gauge.unit === "s" ? duration : short;
  const held = gauge.committed - gauge.used;
  const part = (v) => `${Math.min(100, (100 * v) / (gauge.limit || 1))}%`;
  return html`<div>
    <div class="row small"><span class="grow soft">${gauge.name}</span><span class="num">${write(gauge.used)}<span class="faint"> of ${gauge.limit == null ? "no limit" : write(gauge.limit)}</span></span></div>
    <div class="meter" role="meter" aria-label=${gauge.name} aria-valuenow=${gauge.used} aria-valuemax=${gauge.limit ?? ""} title=${held > 0 ? `${write(held)} set aside` : ""}>
      ${gauge.limit ? html`<i style=${{ width: part(gauge.used) }} /><i class="held" style=${{ width: part(held) }} />` : null}
    </div></div>`;
}

/** A stored text, a page of it at first. @param {{sha: string|null|undefined, empty?: string, read?: (text: string) => string}} props */
export function Blob({ sha, empty = "nothing was recorded", read = (text) => text }) {
  const [found, set] = useState(/** @type {any} */ (null));
  const [limit, grow] = useState(262144);
  useEffect(() => {
    let current = true;
    if (sha) blob(sha, limit).then((f) => current && set(f), (e) => current && set({ problem: e.message }));
    return () => { current = false; };
  }, [sha, limit]);
  if (!sha) return html`<p class="faint">${empty}</p>`;
  if (!found) return html`<p class="faint">reading…</p>`;
  if (found.problem) return html`<p class="bad wrap">${found.problem}</p>`;
  const more = found.total > limit;
  return html`<${Text} text=${more ? found.text : read(found.text)} />
    ${more ? html`<div class="row small faint">${count(limit)} of ${count(found.total)} bytes <button onClick=${() => grow(Math.min(1048576, limit * 4))} disabled=${limit >= 1048576}>more</button>
      <a href=${`api/blob/${sha}`} target="_blank" rel="noreferrer">as plain text</a></div>` : null}`;
}

/** Text from a model or a kernel: never as markup, long lines broken, other writing directions kept inside. @param {{text: string, limit?: number}} props */
export function Text({ text, limit = 60000 }) {
  const [all, show] = useState(false);
  const cut = !all && text.length > limit;
  return html`<pre class="blob text" dir="auto">${cut ? text.slice(0, limit) : text}</pre>
    ${cut ? html`<button class="small" onClick=${() => show(true)}>show all ${count(text.length)} characters</button>` : null}`;
}

/** Rows of which only those in sight are drawn. @param {{rows: any[], height: number, draw: (row: any, i: number) => any, at?: number, label: string}} props */
export function Virtual({ rows, height, draw, at = -1, label }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [[top, size], look] = useState([0, 800]);
  const measure = () => box.current && look([box.current.scrollTop, box.current.clientHeight]);
  useEffect(() => {
    measure();
    const seen = new ResizeObserver(measure);
    if (box.current) seen.observe(box.current);
    return () => seen.disconnect();
  }, []);
  useEffect(() => {
    const b = box.current;
    if (at < 0 || !b) return;
    if (at * height < b.scrollTop) b.scrollTop = at * height;
    else if ((at + 1) * height > b.scrollTop + b.clientHeight) b.scrollTop = (at + 1) * height - b.clientHeight;
  }, [at]);
  const first = Math.max(0, Math.floor(top / height) - 6);
  const last = Math.min(rows.length, Math.ceil((top + size) / height) + 6);
  return html`<div class="virtual" ref=${box} onScroll=${measure} role="rowgroup" aria-label=${label} tabindex="-1">
    <div style=${{ height: `${rows.length * height}px`, position: "relative" }}>
      ${rows.slice(first, last).map((row, i) => html`<div key=${row.key ?? first + i} class="vrow" style=${{ top: `${(first + i) * height}px`, height: `${height}px` }}>${draw(row, first + i)}</div>`)}
    </div></div>`;
}

/** @param {{row: any}} props */
export function Marks({ row }) {
  return html`${row.best ? html`<span class="chip star">new best</span>` : null}
    ${row.confirmed ? html`<span class="chip" title="measured again in fresh processes on unseen seeds">confirmed</span>` : null}
    ${row.flags?.length ? html`<span class="chip flag" title=${row.flags.join("\n")}>${plural(row.flags.length, "doubt")}</span>` : null}
    ${row.review != null ? html`<span class="chip">${row.review ? "accepted" : "not accepted"}</span>` : null}`;
}

/** Said and measured, on one logarithmic scale from half to eight times. @param {{predicted?: number|null, gain?: number[]|null, width?: number}} props */
export function Dumbbell({ predicted = null, gain = null, width = 104 }) {
  const x = (v) => 4 + ((Math.log2(Math.min(8, Math.max(0.5, v))) + 1) / 4) * (width - 8);
  const said = predicted != null ? x(predicted) : null;
  const got = gain ? x(gain[0]) : null;
  return html`<svg class="dumbbell" width=${width} height="14" viewBox=${`0 0 ${width} 14`} role="img" aria-label=${`predicted ${times(predicted)}, measured ${gain ? times(gain[0]) : "nothing yet"}`}>
    <title>${`predicted ${times(predicted)}, measured ${gain ? times(gain[0]) : "nothing yet"} over its parent; the line is 1×, the scale 0.5× to 8×`}</title>
    <path d=${`M4 7H${width - 4}`} stroke="var(--line)" /><path d=${`M${x(1)} 2V12`} stroke="var(--line-strong)" />
    ${said != null && got != null ? html`<path d=${`M${said} 7H${got}`} stroke="var(--faint)" stroke-width="1.5" />` : null}
    ${gain ? html`<path d=${`M${x(gain[1])} 7H${x(gain[2])}`} stroke="var(--text)" stroke-width="3" opacity=".35" />` : null}
    ${said != null ? html`<path d=${`M${said} 3.4l3.6 3.6l-3.6 3.6l-3.6-3.6Z`} fill="var(--panel)" stroke="var(--soft)" stroke-width="1.2" />` : null}
    ${got != null ? html`<circle cx=${got} cy="7" r="3.4" fill=${gain && gain[1] > 1 ? "var(--solved)" : "var(--soft)"} />` : null}
  </svg>`;
}
