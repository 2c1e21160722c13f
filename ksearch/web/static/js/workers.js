// Who did what when: a lane for each holder of leases.
import { html, useMemo } from "./lib.js";
import { ago, clock, count, duration, plural, words } from "./format.js";
import { model, now, useList, useModel } from "./model.js";
import { set } from "./route.js";
import { NodeLink, Waiting } from "./parts.js";

const WINDOWS = [["600", "10 min"], ["3600", "1 h"], ["21600", "6 h"], ["all", "all"]];
const HUE = { plan: "var(--soft)", write: "var(--solved)", evaluate: "var(--active)" };
const MOST = 3000; // bars drawn

/** @param {{at: import("./route.js").Route}} props */
export function Workers({ at }) {
  useModel();
  const list = useList("spans");
  const rows = list.rows;
  const end = model.head.at_work ? now() : Math.max(0, ...rows.slice(-50).map((s) => s.end ?? s.start));
  const span = at.options.window ?? (rows.length && end - rows[0].start < 5400 ? "all" : "3600");
  const start = span === "all" ? rows[0]?.start ?? end : end - Number(span);
  const lanes = useMemo(() => byHolder(rows, start, end), [rows, start, Math.round(end / 5)]);
  if (!rows.length) return html`<${Waiting} what=${list.ready ? "The first lease is awaited: nobody has taken work yet." : "Reading the leases…"} since=${model.head.started_at} />`;
  const lost = rows.filter((s) => /^(lost|expired|handed)/.test(s.outcome ?? "")).reverse();
  return html`<div class="page"><div class="row"><h1>Lanes</h1><span class="small soft">${Object.keys(HUE).map((k) => html`<span><span style=${{ color: HUE[k] }}>■</span> ${k} </span>`)}<span class="bad">■</span> lost</span><span class="grow" /><span class="switch">${WINDOWS.map(([name, label]) => html`<button class=${span === name ? "on" : ""} onClick=${() => set({ window: name })}>${label}</button>`)}</span></div>
    <section class="card">${lanes.length ? lanes.map((lane) => html`<${Lane} lane=${lane} start=${start} end=${end} />`) : html`<${Waiting} what="Nothing was worked on in this window." />`}<div class="row small faint"><span>${clock(start)}</span><span class="grow" /><span>${clock(end)}</span></div></section>
    <div class="grid"><section class="card c6"><h2>Out now <small>${plural(model.head.out.length, "request")}</small></h2>${model.head.out.length ? html`<table>${model.head.out.map((o) => html`<tr><td>${o.kind} <span class="faint">${o.request}</span></td><td><${NodeLink} id=${o.node} title /></td><td class="text">${o.holder ?? html`<span class="soft">nobody holds it</span>`}</td><td class="num">${o.since ? duration(now() - o.since) : ""}</td><td class="num faint">${o.deadline ? (o.deadline < now() ? "overdue" : `until ${clock(o.deadline)}`) : ""}</td></tr>`)}</table>` : html`<p class="soft">Nothing.</p>`}</section>
      <section class="card c6"><h2>Lost and expired <small>never a verdict on a program; asked again</small></h2>${lost.length ? html`<div class="scroll"><table>${lost.slice(0, 30).map((s) => html`<tr><td>${s.kind} <span class="faint">${s.request}</span></td><td class="text">${s.holder}</td><td class="bad text wrap">${s.outcome}</td><td class="num soft">${ago(s.end, now())}</td></tr>`)}</table></div>` : html`<p class="soft">None.</p>`}</section>
      <section class="card c6"><h2>Devices</h2><${Devices} /></section></div></div>`;
}

function byHolder(rows, start, end) {
  const lanes = new Map();
  for (const s of rows.slice(-20 * MOST)) {
    const to = s.end ?? end;
    if (to < start || s.start > end) continue;
    const name = `${s.holder}${s.pid ? ` · ${s.host} ${s.pid}` : s.host ? ` · ${s.host}` : ""}`;
    if (!lanes.has(name)) lanes.set(name, { name, spans: [], busy: 0 });
    const lane = lanes.get(name);
    lane.spans.push(s);
    lane.busy += Math.min(to, end) - Math.max(s.start, start);
  }
  return [...lanes.values()].slice(0, 100);
}

/** @param {{lane: any, start: number, end: number}} props */
function Lane({ lane, start, end }) {
  const x = (t) => ((Math.max(start, Math.min(end, t)) - start) / (end - start || 1)) * 1000;
  const shown = lane.spans.slice(-Math.min(MOST, 600));
  return html`<div class="lane"><div class="row small"><span class="text cut grow">${lane.name}</span><span class="soft">${plural(lane.spans.length, "lease")}, busy ${Math.min(100, Math.round((100 * lane.busy) / (end - start || 1)))}%</span></div>
    <svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${`work of ${lane.name}`}><rect width="1000" height="20" fill="var(--sunk)" />${shown.map((s) => { const bad = /^(lost|expired)/.test(s.outcome ?? ""); return html`<rect x=${x(s.start)} width=${Math.max(0.8, x(s.end ?? end) - x(s.start) - 0.4)} y=${bad ? 0 : 2} height=${bad ? 20 : 16} fill=${bad ? "var(--rejected)" : HUE[s.kind]}><title>${`${s.kind} ${s.request} for ${s.node}, ${duration((s.end ?? end) - s.start)}: ${words(s.outcome ?? "under way")}`}</title></rect>`; })}</svg></div>`;
}

function Devices() {
  const found = new Map();
  for (const t of model.tries.values()) if (t.device) { const d = found.get(t.device) ?? { n: 0, s: 0 }; d.n += 1; d.s += t.seconds ?? 0; found.set(t.device, d); }
  if (!found.size) return html`<p class="soft">No evaluation has named its device yet.</p>`;
  return html`<table>${[...found].map(([name, d]) => html`<tr><td class="text">${name}</td><td class="num">${count(d.n)} measured</td><td class="num soft">${duration(d.s)}</td></tr>`)}</table><p class="small faint" style=${{ marginTop: "6px" }}>Clocks, temperatures and how a runner ended are in each program's record: Programs, Measurements.</p>`;
}
