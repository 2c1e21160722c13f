// Who did what when: a lane for each holder of leases.
import { html, useEffect, useMemo, useState } from "./lib.js";
import { get } from "./source.js";
import { ago, clock, compact, count, duration, plural, words } from "./format.js";
import { model, now, useList, useModel } from "./model.js";
import { set } from "./route.js";
import { NodeLink, ProgramLink, Waiting } from "./parts.js";

const WINDOWS = [["600", "10 min"], ["3600", "1 h"], ["21600", "6 h"], ["all", "all"]];
const HUE = { plan: "var(--soft)", write: "var(--solved)", build: "var(--line-strong)", check: "color-mix(in oklab, var(--active) 45%, var(--panel))", time: "var(--active)" };
// Stages of an evaluation by what they are for; those of a record that are not named here are checks.
const PART = { build: "build", compile: "build", screen: "time", time: "time", confirm: "time" };
const MOST = 3000; // bars drawn

/** @param {{at: import("./route.js").Route}} props */
export function Workers({ at }) {
  useModel();
  const list = useList("spans");
  const rows = list.rows;
  const end = model.head.at_work ? now() : Math.max(0, ...rows.slice(-50).map((s) => s.end ?? s.start));
  const span = at.options.window ?? (rows.length && end - rows[0].start < 5400 ? "all" : "3600");
  const start = span === "all" ? rows[0]?.start ?? end : end - Number(span);
  const stages = useStages(model.run, model.triesVersion);
  const lanes = useMemo(() => byHolder(rows, start, end), [rows, start, Math.round(end / 5)]);
  if (!rows.length) return html`<${Waiting} what=${list.ready ? "The first lease is awaited: nobody has taken work yet." : "Reading the leases…"} since=${model.head.started_at} />`;
  const lost = rows.filter((s) => /^(lost|expired|handed)/.test(s.outcome ?? "")).reverse();
  return html`<div class="page"><div class="row"><h1>Lanes</h1><span class="small soft">${Object.keys(HUE).map((k) => html`<span><span style=${{ color: HUE[k] }}>■</span> ${k} </span>`)}<span class="bad">■</span> lost</span><span class="grow" /><span class="switch">${WINDOWS.map(([name, label]) => html`<button class=${span === name ? "on" : ""} onClick=${() => set({ window: name })}>${label}</button>`)}</span></div>
    <section class="card">${lanes.length ? lanes.map((lane) => html`<${Lane} lane=${lane} stages=${stages} start=${start} end=${end} />`) : html`<${Waiting} what="Nothing was worked on in this window." />`}<div class="row small faint"><span>${clock(start)}</span><span class="grow" /><span>${clock(end)}</span></div></section>
    <div class="grid"><section class="card c6"><h2>Out now <small>${plural(model.head.out.length, "request")}</small></h2>${model.head.out.length ? html`<table>${model.head.out.map((o) => html`<tr><td>${o.kind} <span class="faint">${o.request}</span></td><td><${NodeLink} id=${o.node} title /></td><td class="text">${o.holder ?? html`<span class="soft">nobody holds it</span>`}</td><td class="num">${o.since ? duration(now() - o.since) : ""}</td><td class="num faint">${o.deadline ? (o.deadline < now() ? "overdue" : `until ${clock(o.deadline)}`) : ""}</td></tr>`)}</table>` : html`<p class="soft">Nothing.</p>`}</section>
      <section class="card c6"><h2>Lost and expired <small>never a verdict on a program; asked again</small></h2>${lost.length ? html`<div class="scroll"><table>${lost.slice(0, 30).map((s) => html`<tr><td>${s.kind} <span class="faint">${s.request}</span></td><td class="text">${s.holder}</td><td class="bad text wrap">${s.outcome}</td><td class="num soft">${ago(s.end, now())}</td></tr>`)}</table></div>` : html`<p class="soft">None.</p>`}</section>
      <section class="card c6"><h2>Devices</h2><${Devices} /></section><section class="card c12"><h2>Latest measurements <small>clocks, load and how the runner ended, from the records</small></h2><${Latest} stages=${stages} /></section></div></div>`;
}

function byHolder(rows, start, end) {
  const lanes = new Map();
  for (const s of rows.slice(-20 * MOST)) {
    const to = s.end ?? end;
    if (to < start || s.start > end) continue;
    const who = `${s.holder}${s.host ? ` · ${s.host}` : ""}`;
    let slot = 0; // several processes of one name: a lane each, where they work at the same time
    while ((lanes.get(`${who}/${slot}`)?.until ?? -1) > s.start + 0.001) slot += 1;
    const key = `${who}/${slot}`;
    if (!lanes.has(key)) lanes.set(key, { name: slot ? `${who} (${slot + 1})` : who, spans: [], busy: 0 });
    const lane = lanes.get(key);
    lane.until = to;
    lane.spans.push(s);
    lane.busy += Math.min(to, end) - Math.max(s.start, start);
  }
  return [...lanes.values()].slice(0, 100);
}

/** Stages of the newest evaluations; asked for again when another is done. */
function useStages(run, version) {
  const [found, put] = useState(/** @type {Record<string, any>} */ ({}));
  useEffect(() => {
    let current = true;
    const t = setTimeout(() => get("stages", { run }).then((f) => current && put(f.stages), () => {}), 300);
    return () => { current = false; clearTimeout(t); };
  }, [run, version]);
  return found;
}

/** What a lease was spent on: [kind, from, to]. An evaluation by its stages, in their order, scaled to the lease. */
function parts(s, end, stages) {
  const to = s.end ?? end;
  if (s.kind !== "evaluate") return [[s.kind, s.start, to]];
  const seconds = Object.entries(stages[s.program]?.seconds ?? {});
  const all = seconds.reduce((sum, [, v]) => sum + v, 0);
  if (!all) return [["time", s.start, to]];
  let at = s.start;
  return seconds.map(([name, v]) => { const from = at; at += (v / all) * (to - s.start); return [PART[name] ?? "check", from, at]; });
}

/** @param {{lane: any, start: number, end: number, stages: Record<string, any>}} props */
function Lane({ lane, start, end, stages }) {
  const x = (t) => ((Math.max(start, Math.min(end, t)) - start) / (end - start || 1)) * 1000;
  const shown = lane.spans.slice(-Math.min(MOST, 600));
  return html`<div class="lane"><div class="row small"><span class="text cut grow">${lane.name}</span><span class="soft">${plural(lane.spans.length, "lease")}, busy ${Math.min(100, Math.round((100 * lane.busy) / (end - start || 1)))}%</span></div>
    <svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label=${`work of ${lane.name}`}><rect width="1000" height="20" fill="var(--sunk)" />${shown.map((s) => { const bad = /^(lost|expired)/.test(s.outcome ?? ""); const drawn = bad ? [["lost", s.start, s.end ?? end]] : parts(s, end, stages);
      return html`<g>${drawn.map(([kind, from, to]) => html`<rect x=${x(from)} width=${Math.max(0.8, x(to) - x(from) - 0.3)} y=${bad ? 0 : 2} height=${bad ? 20 : 16} fill=${bad ? "var(--rejected)" : HUE[kind]} />`)}<title>${`${s.kind} ${s.request} for ${s.node}, ${duration((s.end ?? end) - s.start)}: ${words(s.outcome ?? "under way")}${s.kind === "evaluate" && stages[s.program] ? ` (${Object.entries(stages[s.program].seconds).map(([k, v]) => `${k} ${duration(v)}`).join(", ")})` : ""}`}</title></g>`; })}</svg></div>`;
}

function Devices() {
  const found = new Map();
  for (const t of model.tries.values()) if (t.device) { const d = found.get(t.device) ?? { n: 0, s: 0 }; d.n += 1; d.s += t.seconds ?? 0; found.set(t.device, d); }
  if (!found.size) return html`<p class="soft">No evaluation has named its device yet.</p>`;
  return html`<table>${[...found].map(([name, d]) => html`<tr><td class="text">${name}</td><td class="num">${count(d.n)} measured</td><td class="num soft">${duration(d.s)}</td></tr>`)}</table>`;
}

/** @param {{stages: Record<string, any>}} props */
function Latest({ stages }) {
  const rows = Object.entries(stages).slice(-6).reverse();
  if (!rows.length) return html`<p class="soft">No record holds stages yet.</p>`;
  return html`<table>${rows.map(([id, s]) => html`<tr><td><${ProgramLink} id=${id} /></td><td class="small text wrap">${Object.entries(s.seconds).map(([k, v]) => `${k} ${duration(v)}`).join(", ")}</td><td class="small soft text wrap">${["state", "ending", "load"].filter((k) => s[k] != null).map((k) => `${k === "state" ? "" : `${k}: `}${compact(s[k]).slice(0, 200)}`).join("; ")}</td></tr>`)}</table>`;
}
