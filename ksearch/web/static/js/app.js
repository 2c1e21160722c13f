// The frame: who, how it stands, where to go; the keys; what to do when a view fails.
import { html, render, useEffect, useErrorBoundary, useRef, useState } from "./lib.js";
import { ago, count, duration, interval, times } from "./format.js";
import { model, now, open, useModel } from "./model.js";
import { href, route, useRoute } from "./route.js";
import { Waiting } from "./parts.js";
import { RunVerbs, Toasts } from "./verbs.js";
import { Help, useKeys } from "./keys.js";
import { isFrozen } from "./source.js";
import { TreeView } from "./tree.js";
import { Overview } from "./overview.js";
import { Programs } from "./programs.js";
import { ProgramView } from "./program.js";
import { Workloads } from "./workloads.js";
import { Calls } from "./calls.js";
import { Workers } from "./workers.js";
import { Integrity } from "./integrity.js";
import { Compare } from "./compare.js";
import { Export } from "./export.js";

/** @type {[string, string, any][]} */
const VIEWS = [
  ["tree", "Tree", TreeView], ["overview", "Overview", Overview], ["programs", "Programs", Programs],
  ["workloads", "Workloads", Workloads], ["calls", "Calls and cost", Calls], ["workers", "Workers", Workers],
  ["integrity", "Integrity", Integrity], ["compare", "Compare", Compare], ["export", "Export", Export],
];

function App() {
  const at = useRoute();
  useModel();
  useEffect(() => { if (at.run !== model.run || !model.head) open(at.run); }, [at.run]);
  useEffect(() => {
    const best = model.head?.best?.speedup;
    document.title = `${model.run ?? "K-Search"}${best ? ` · ${times(best[0])}` : ""} · K-Search`;
  });
  const [help, showHelp] = useState(false);
  useKeys(at, () => showHelp((shown) => !shown));
  return html`<${Top} at=${at} help=${() => showHelp(true)} />
    <${Notices} />
    <main id="main" tabindex="-1"><${Body} at=${at} key=${`${model.run}/${at.view}`} /></main>
    <${Toasts} />${help ? html`<${Help} close=${() => showHelp(false)} />` : null}`;
}

/** @param {{at: import("./route.js").Route}} props */
function Body({ at }) {
  const [failed, again] = useErrorBoundary((error) => console.error(error));
  if (failed) return html`<div class="waiting bad">This view failed: ${String(failed.message ?? failed)}<p><button onClick=${again}>Draw it again</button></p></div>`;
  if (!model.head) return model.problem ? html`<div class="waiting bad wrap">${model.problem}</div>` : html`<${Waiting} what="Reading the run…" hint="A long log is read once, when it is first looked at." />`;
  if (model.seq === 0 && !model.head.error) return html`<${Waiting} what="This run has a name, but no first event yet." since=${model.head.started_at} hint="Begin it again by the same name: ksearch new." />`;
  if (at.view === "program") return html`<${ProgramView} at=${at} />`;
  const View = VIEWS.find(([name]) => name === at.view)?.[2];
  return View ? html`<${View} at=${at} />` : html`<div class="waiting">There is no view called “${at.view}”.</div>`;
}

/** @param {{at: import("./route.js").Route, help: () => void}} props */
function Top({ at, help }) {
  const head = model.head;
  const counts = { tree: head?.tree.all, programs: head?.counts.programs, calls: head?.counts.calls };
  return html`<header class="top">
    <div class="bar">
      <a class="brand" href=${href(model.run, "tree")}><img src="static/icon.svg" alt="" /><span class="hide-narrow">K-Search</span></a>
      <${RunPicker} />
      ${head ? html`<${Status} head=${head} /><${Best} head=${head} />` : null}
      ${head ? html`<${Health} head=${head} />` : null}
      ${head ? html`<${RunVerbs} />` : null}
      <${Theme} /><button class="plain" onClick=${help} aria-label="keys" title="keys (?)">?</button>
    </div>
    <nav class="tabs" aria-label="views">${VIEWS.map(([name, label]) => html`<a href=${href(model.run, name)} aria-current=${at.view === name || (name === "programs" && at.view === "program") ? "page" : null}>${label}${counts[name] ? html`<span class="n">${counts[name]}</span>` : null}</a>`)}</nav>
  </header>`;
}

function RunPicker() {
  const names = model.runs.map((r) => r.run);
  if (model.run && !names.includes(model.run)) names.unshift(model.run);
  if (names.length < 2) return html`<span class="strong cut">${model.run ?? ""}</span>`;
  return html`<select aria-label="run" value=${model.run} onChange=${(e) => { location.hash = href(e.target.value, route().view === "program" ? "programs" : route().view); }}>
    ${names.map((name) => html`<option value=${name}>${name}</option>`)}</select>`;
}

/** @param {{head: any}} props */
function Status({ head }) {
  const [kind, text] = head.error ? ["broken", "log damaged"]
    : head.ended ? ["ended", `ended: ${head.ended}`] : head.paused ? ["paused", `paused: ${head.paused}`]
    : head.stopping ? ["paused", `stopping: ${head.stopping}`] : head.at_work ? ["running", "running"] : ["idle", "nobody at work"];
  return html`<span class=${`pill ${kind}`} title=${text}><span class="dot" /><span class="cut">${text}</span></span>`;
}

/** @param {{head: any}} props */
function Best({ head }) {
  const best = head.best;
  const seen = useRef(best?.program);
  const news = seen.current !== best?.program && seen.current !== undefined;
  useEffect(() => { seen.current = best?.program ?? null; });
  if (!best?.speedup) return html`<span class="faint small">no program passed yet</span>`;
  return html`<a class=${`headline best ${news ? "news" : ""}`} key=${best.program} href=${href(model.run, "program", best.program)} title=${`best: ${interval(best.speedup)} over the baseline`} style=${{ textDecoration: "none" }}>★ ${times(best.speedup[0])} <small class="hide-narrow">[${times(best.speedup[1])}, ${times(best.speedup[2])}]</small></a>`;
}

/** @param {{head: any}} props */
function Health({ head }) {
  const [, tick] = useState(0);
  useEffect(() => { const t = setInterval(() => tick((n) => n + 1), 1000); return () => clearInterval(t); }, []);
  const quiet = now() - (head.last_at ?? 0);
  const stale = !head.ended && !head.paused && head.at_work && quiet > 900;
  const lost = head.model.lost;
  return html`<div class="health" role="status" aria-live="off">
    <span class=${stale ? "bad" : ""}>last event ${ago(head.last_at, now())}</span>
    ${head.model.name ? html`<span class=${`hide-narrow ${lost ? "bad" : ""}`} title=${lost ?? `last answer ${ago(head.model.at, now())}`}>model ${lost ? "lost" : "ok"}</span>` : null}
    ${head.paused_until ? html`<span class=${head.paused_until < now() - 30 ? "bad" : ""}>${head.paused_until < now() - 30 ? "nobody is at work" : `goes on by itself in ${duration(Math.max(0, head.paused_until - now()))}`}</span>` : null}
    ${head.out.length ? html`<span>${head.out.map((o) => o.kind).slice(0, 3).join(", ")} out${head.out[0].since ? ` ${duration(now() - head.out[0].since)}` : ""}</span>` : null}
    ${isFrozen ? html`<span>exported</span>` : html`<span class=${model.line === "lost" ? "bad" : "faint"} title="the line to the server">${model.line === "live" ? "● live" : model.line === "lost" ? "○ line lost" : "○ connecting"}</span>`}
  </div>`;
}

function Theme() {
  const shown = () => document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const [theme, set] = useState(shown());
  const change = () => {
    const next = theme === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try { localStorage.setItem("ksearch-theme", next); } catch { /* storage may be forbidden */ }
    set(next);
    dispatchEvent(new Event("themechange"));
  };
  return html`<button class="plain" onClick=${change} title="light or dark" aria-label=${`theme: ${theme}`}>${theme === "dark" ? "☾" : "☀"}</button>`;
}

function Notices() {
  const head = model.head;
  if (!head) return null;
  const idle = !head.ended && !head.paused && !head.at_work && head.last_at != null;
  return html`${model.problem ? html`<div class="notice bad">${model.problem}. What is shown is of event ${model.seq}, ${ago(head.last_at, now())}.</div>` : null}
    ${head.error ? html`<div class="notice bad">${head.error} What is shown is the run up to event ${model.seq}.</div>` : null}
    ${model.seq < head.total && !head.error ? html`<div class="notice" role="status">Reading the log: event ${count(model.seq)} of ${count(head.total)}. What is shown is the run up to there.</div>` : null}
    ${idle && !head.error && model.seq >= head.total ? html`<div class="notice">Nobody works on this run; the last event came ${ago(head.last_at, now())}. <code>ksearch resume ${model.run}</code> goes on with it.</div>` : null}
    ${head.notes.map((note) => html`<div class="notice">${note}</div>`)}`;
}

const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${App} />`, root);
