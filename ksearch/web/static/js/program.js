// One program: what it is, how it differs, what asked for it, what was measured.
import { html, useEffect, useMemo, useState } from "./lib.js";
import { get } from "./source.js";
import { clock, compact, count, duration, error as errorText, interval, latency, money, shortId, times, words } from "./format.js";
import { model, useList, useModel } from "./model.js";
import { go, href, set } from "./route.js";
import { Blob, Marks, NodeLink, ProgramLink, Text, Verdict, Waiting } from "./parts.js";
import { Code, Diff } from "./code.js";
import { Histogram } from "./chart.js";
import { Review } from "./review.js";
import { useViewKeys } from "./keys.js";

const SHOWS = [["code", "Code"], ["measured", "Measurements"], ["asked", "Prompt and reply"], ["build", "Build and log"]];

/** @param {{at: import("./route.js").Route}} props */
export function ProgramView({ at }) {
  useModel();
  const id = at.id ?? "";
  const known = [...model.tries.values()].find((t) => t.program === id);
  const [found, put] = useState(/** @type {any} */ (null));
  useEffect(() => {
    let current = true;
    get("program", { run: model.run, id }).then((f) => current && put(f), (e) => current && put({ problem: e.message, id }));
    return () => { current = false; };
  }, [id, model.run, known?.seq]);
  const ready = found?.id === id ? found : null;
  const choices = useMemo(() => ["none", ...["parent", "best", "baseline"].filter((n) => ready?.compare?.[n])], [ready]);
  const against = choices.includes(at.options.against) ? at.options.against : "none";
  const beside = (by) => {
    const all = [...model.tries.values()].filter((t) => t.program).sort((a, b) => a.n - b.n);
    const next = all[all.findIndex((t) => t.program === id) + by];
    if (next) go(href(model.run, "program", next.program, at.options));
  };
  useViewKeys({ j: () => beside(1), k: () => beside(-1), d: () => { const next = choices[(choices.indexOf(against) + 1) % choices.length]; set({ show: null, against: next === "none" ? null : next }); } });
  if (!ready) return html`<${Waiting} what="Reading the program…" />`;
  if (ready.problem) return html`<div class="waiting bad wrap">${ready.problem}</div>`;
  const show = at.options.show ?? "code";
  return html`<div class="page"><${Head} p=${ready} />
    <div class="row"><span class="switch">${SHOWS.map(([name, label]) => html`<button class=${show === name ? "on" : ""} onClick=${() => set({ show: name === "code" ? null : name })}>${label}</button>`)}</span>
      ${show === "code" ? html`<span class="soft small">difference to</span><span class="switch">${["none", "parent", "best", "baseline"].map((n) => html`<button class=${against === n ? "on" : ""} disabled=${!choices.includes(n)} title=${choices.includes(n) ? "" : reason(n)} onClick=${() => set({ against: n === "none" ? null : n })}>${n}</button>`)}</span>` : null}
      <span class="grow" /><span class="small faint"><kbd>j</kbd> <kbd>k</kbd> other attempts <kbd>d</kbd> difference</span></div>
    ${show === "measured" ? html`<${Measured} p=${ready} />` : show === "asked" ? html`<${AskedFor} p=${ready} />` : show === "build" ? html`<${Build} p=${ready} />` : html`<${Source} p=${ready} against=${against} />`}</div>`;
}

const reason = (n) => ({ parent: "It was written from the baseline.", best: "It is the best, or there is none.", baseline: "The store does not hold the baseline's sources." }[n] ?? "");

/** @param {{p: any}} props */
function Head({ p }) {
  const t = p.attempt;
  const e = p.evaluation;
  const best = model.head.best?.program === p.id;
  return html`<section class="card"><div class="row" style=${{ alignItems: "baseline" }}><h1>${best ? html`<span class="best">★ </span>` : null}Attempt ${t.n}</h1><span class="mono faint" title=${p.id}>${shortId(p.id)}</span><${NodeLink} id=${t.node} title /><span class="grow" /><${Marks} row=${t} /></div>
    <div class="figures"><div><h3>verdict</h3><b><${Verdict} verdict=${e?.verdict ?? t.verdict} /></b></div><div><h3>over the baseline</h3><b class=${best ? "best" : ""}>${e?.speedup ? interval(e.speedup) : "–"}</b></div><div><h3>over its parent</h3><b>${t.gain ? interval(t.gain) : "–"}</b></div>
      <div><h3>worst workload</h3><b class=${e?.worst < 1 ? "bad" : ""}>${times(e?.worst)}</b></div><div><h3>time</h3><b>${latency(e?.ms)}</b></div><div><h3>of the roofline</h3><b>${e?.roof != null ? `${Math.round(100 * e.roof)}%` : "–"}</b></div><div><h3>written by</h3><b class="text">${t.by || "–"}</b></div></div>
    ${e?.reason || t.reason ? html`<p class="text wrap bad">${e?.reason || t.reason}</p>` : null}${(e?.flags ?? []).map((f) => html`<p class="text wrap bad">Doubt: ${f}</p>`)}
    ${e ? html`<${Review} id=${p.id} review=${t.review} />` : html`<p class="soft">It waits to be measured.</p>`}<${Said} id=${p.id} /></section>`;
}

/** @param {{id: string}} props */
function Said({ id }) {
  const rows = useList("remarks").rows.filter((r) => r.program === id && r.text);
  return html`${rows.map((r) => html`<p class="text wrap soft">“${r.text}” <span class="small faint">${r.author}, ${clock(r.at)}</span></p>`)}`;
}

/** @param {{p: any, against: string}} props */
function Source({ p, against }) {
  const other = against === "none" ? null : p.compare[against];
  const [theirs, put] = useState(/** @type {any} */ (null));
  const [wide, setWide] = useState(innerWidth > 1150);
  useEffect(() => { const sized = () => setWide(innerWidth > 1150); addEventListener("resize", sized); return () => removeEventListener("resize", sized); }, []);
  useEffect(() => {
    let current = true;
    put(null);
    if (other) get("sources", { id: other }).then((f) => current && put({ ...f, id: other }), (e) => current && put({ id: other, missing: e.message, sources: {} }));
    return () => { current = false; };
  }, [other]);
  if (p.missing) return html`<div class="waiting bad wrap">${p.missing}</div>`;
  const paths = [...new Set([...Object.keys(p.sources), ...(theirs ? Object.keys(theirs.sources) : [])])];
  return paths.map((path) => html`<section class="card codecard"><h2 class="text">${path} <small>${p.language}${p.entry_point?.startsWith(`${path}::`) ? `, entry ${p.entry_point.split("::")[1]}` : ""}</small></h2>
    ${!other ? html`<${Code} text=${p.sources[path] ?? ""} path=${path} />` : !theirs ? html`<p class="waiting">Reading the ${against}…</p>` : theirs.missing ? html`<p class="waiting bad wrap">${theirs.missing}</p>` : html`<${Diff} before=${theirs.sources[path] ?? ""} after=${p.sources[path] ?? ""} path=${path} split=${wide} names=${[`${against} ${shortId(other)}`, `this ${shortId(p.id)}`]} />`}</section>`);
}

/** @param {{p: any}} props */
function Measured({ p }) {
  const e = p.evaluation;
  if (!e) return html`<${Waiting} what="Its measurement is awaited." since=${p.attempt.at} />`;
  const m = p.measured ?? {};
  const seeds = m.seeds ?? {};
  return html`<section class="card"><h2>Workloads <small>each output checked, each time taken beside the baseline's</small></h2>${e.workloads.length ? html`<div class="scroll"><table><thead><tr><th>workload</th><th>correct</th><th class="num">time</th><th class="num">baseline</th><th class="num">speedup</th><th class="num">roofline</th><th class="num">abs. error</th><th class="num">rel. error</th><th>seeds</th></tr></thead><tbody>
      ${e.workloads.map((w) => html`<tr><td class="text">${w.name}</td><td><${Verdict} verdict=${w.verdict} />${w.reason ? html`<div class="small bad text wrap">${w.reason}</div>` : null}</td><td class="num">${latency(w.ms)}</td><td class="num">${latency(w.baseline_ms)}</td><td class=${`num ${w.speedup && w.speedup[0] < 1 ? "bad" : ""}`}>${w.speedup ? interval(w.speedup) : "–"}</td><td class="num">${w.floor_ms && w.ms ? `${Math.round((100 * w.floor_ms) / w.ms)}%` : "–"}</td><td class="num">${errorText(w.max_abs_error)}</td><td class="num">${errorText(w.max_rel_error)}</td><td class="small faint text">${seedsOf(seeds, w.name)}</td></tr>`)}</tbody></table></div>` : html`<p class="soft">No workload was reached: it ended at ${e.stage || "the start"}.</p>`}</section>
    ${m.damaged ? html`<p class="bad wrap">${m.damaged}</p>` : null}<${Samples} timing=${m.timing} id=${p.id} baseline=${m.baseline} />
    <section class="card"><h2>Circumstances</h2><dl class="facts"><dt>stage reached</dt><dd>${e.stage || "–"}</dd><dt>took</dt><dd>${duration(e.seconds)}${m.stage_seconds ? ` (${Object.entries(m.stage_seconds).map(([k, v]) => `${k} ${duration(v)}`).join(", ")})` : ""}</dd><dt>device</dt><dd class="text">${e.device || "–"}</dd>${["machine", "load", "sandbox", "ending", "versions", "counters", "profile", "disabled_defences"].filter((k) => m[k] != null && m[k].length !== 0).map((k) => html`<dt>${k.replace("_", " ")}</dt><dd class="mono text wrap">${compact(m[k])}</dd>`)}
      ${Object.keys(e.against).length ? html`<dt>timed beside</dt><dd>${Object.entries(e.against).map(([id, r]) => html`<div><${ProgramLink} id=${id} /> ${interval(r)}</div>`)}</dd>` : null}</dl></section>`;
}

/** Seeds of a workload; the record keeps those of checks and of timed calls apart, as NAME/c and NAME/t. */
function seedsOf(seeds, name) {
  const kinds = { "": "", c: "check ", t: "timed " };
  const found = Object.keys(kinds).flatMap((k) => {
    const list = seeds?.[k ? `${name}/${k}` : name];
    return Array.isArray(list) ? [`${kinds[k]}${list.slice(0, 2).map((s) => String(s).slice(0, 8)).join(", ")}${list.length > 2 ? ` and ${list.length - 2} more` : ""}`] : [];
  });
  return found.join("; ") || "–";
}

/** @param {{timing: any, id: string, baseline?: string}} props */
function Samples({ timing, id, baseline }) {
  const rows = Object.entries(timing ?? {});
  if (!rows.length) return html`<p class="soft small">No single samples were recorded.</p>`;
  return html`<section class="card"><h2>Timing <small>every sample; dashed: medians</small></h2><div class="histograms">${rows.slice(0, 60).map(([name, by]) => { const other = baseline && by[baseline] ? baseline : Object.keys(by).find((k) => k !== id); return html`<div><h3 class="text">${name}</h3><${Histogram} ours=${by[id] ?? []} base=${other ? by[other] : []} names=${["this", other === baseline || other === "baseline" ? "baseline" : shortId(other ?? "")]} /></div>`; })}</div></section>`;
}

/** @param {{p: any}} props */
function AskedFor({ p }) {
  const t = p.attempt;
  const call = useList("calls").rows[t.call ?? -1];
  return html`<div class="grid"><section class="card c6"><h2>Prompt ${call ? html`<small>${call.request}${call.model ? `, to ${call.model}` : ""}</small>` : null}</h2><${Blob} sha=${t.prompt} empty="It was submitted: nobody was asked for it." read=${readPrompt} /></section>
    <section class="card c6"><h2>Raw reply ${call ? html`<small>${count(call.tokens)} tokens, ${money(call.usd)}, ${duration(call.seconds)}${call.finish ? `, ended by “${call.finish}”` : ""}</small>` : null}</h2><${Blob} sha=${t.raw} empty="There is no reply." /></section></div>`;
}

/** A prompt is stored as JSON with its parts: shown as the text that was sent. @param {string} text */
export function readPrompt(text) {
  try {
    const body = JSON.parse(text);
    if (typeof body?.text === "string") return body.system ? `${body.system}\n\n──────────\n\n${body.text}` : body.text;
  } catch { /* plain text */ }
  return text;
}

/** @param {{p: any}} props */
function Build({ p }) {
  const e = p.evaluation;
  const b = p.measured?.build;
  if (!e) return html`<${Waiting} what="Its build is awaited." since=${p.attempt.at} />`;
  return html`<section class="card"><h2>Build ${b?.seconds != null ? html`<small>${duration(b.seconds)}</small>` : null}</h2>${b ? html`<dl class="facts"><dt>command</dt><dd class="mono text">${(b.command ?? []).join(" ") || "nothing to build"}</dd><dt>compiler</dt><dd class="text">${b.compiler ?? "–"}</dd></dl>` : null}<h3 style=${{ margin: "10px 0 5px" }}>Log</h3>${b?.log || e.log ? html`<${Text} text=${b?.log || e.log} />` : html`<p class="soft">The log is empty: ${words(e.verdict)}${e.stage ? `, ${e.stage}` : ""}.</p>`}${b?.log && e.log && b.log !== e.log ? html`<h3 style=${{ margin: "10px 0 5px" }}>Run</h3><${Text} text=${e.log} />` : null}</section>`;
}
