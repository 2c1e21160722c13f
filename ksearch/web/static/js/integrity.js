// Numbers that a sceptic would ask about, and what people said of them.
import { html, useMemo } from "./lib.js";
import { clock, interval, plural, times, words } from "./format.js";
import { model, useList, useModel } from "./model.js";
import { set } from "./route.js";
import { NodeLink, ProgramLink, Verdict, Waiting } from "./parts.js";
import { Review } from "./review.js";

const CAUGHT = ["too_fast", "forged", "input_changed", "lower_precision", "stale_output", "late_write", "forbidden_library"];
const WIDE = 0.1; // width of the interval over its value
const LEAP = 2; // over the best before it

/** @param {{at: import("./route.js").Route}} props */
export function Integrity({ at }) {
  useModel();
  const said = useList("remarks");
  const found = useMemo(() => doubts(), [model.triesVersion]);
  const only = at.options.only ?? "open";
  const open = found.filter((d) => d.t.review == null && !d.caught);
  const rows = only === "open" ? open : only === "caught" ? found.filter((d) => d.caught) : only === "reviewed" ? found.filter((d) => d.t.review != null) : found;
  const verdicts = CAUGHT.filter((v) => model.head.mix[v]);
  return html`<div class="page"><div class="row"><h1>Integrity</h1><span class="soft small">${plural(open.length, "open doubt")}; ${verdicts.length ? `caught: ${verdicts.map((v) => `${words(v)} ${model.head.mix[v]}`).join(", ")}` : "no attempt at cheating was caught"}</span><span class="grow" />
      <span class="switch">${[["open", "open"], ["caught", "caught"], ["reviewed", "reviewed"], ["all", "all"]].map(([name, label]) => html`<button class=${only === name ? "on" : ""} onClick=${() => set({ only: name === "open" ? null : name })}>${label}</button>`)}</span></div>
    <section class="card">${rows.length ? html`<div class="scroll"><table><thead><tr><th class="num">#</th><th>what looks odd</th><th>action</th><th>verdict</th><th class="num">speedup</th><th>a person's word</th></tr></thead><tbody>
      ${rows.slice(-300).reverse().map((d) => html`<tr><td class="num">${d.t.program ? html`<${ProgramLink} id=${d.t.program} n=${d.t.n} />` : d.t.n}</td><td class="text wrap">${d.why.map((w) => html`<div>${w}</div>`)}</td><td><${NodeLink} id=${d.t.node} /></td><td><${Verdict} verdict=${d.t.verdict} /></td><td class="num">${d.t.speedup ? interval(d.t.speedup) : "–"}</td><td>${d.t.review != null ? html`<span class="chip">${d.t.review ? "accepted" : "not accepted"}</span>` : null}${d.t.program ? html`<${Review} id=${d.t.program} review=${d.t.review} small />` : null}</td></tr>`)}</tbody></table></div>`
    : html`<${Waiting} what=${only === "open" ? "No open doubt." : "Nothing here."} hint="A doubt is a flag of the evaluator, a time under the roofline, an unsteady time, or a leap that was not confirmed." />`}</section>
    <section class="card"><h2>What people said</h2>${said.rows.length ? html`<table>${said.rows.slice(-50).reverse().map((r) => html`<tr><td class="soft">${clock(r.at)}</td><td class="text">${r.author}</td><td>${r.program ? html`<${ProgramLink} id=${r.program} />` : r.node ? html`<${NodeLink} id=${r.node} />` : "the run"}</td><td class="text wrap">${r.accept != null ? html`<span class="chip">${r.accept ? "accepted" : "not accepted"}</span> ` : null}${r.text}</td></tr>`)}</table>` : html`<p class="soft">Nothing yet.</p>`}</section></div>`;
}

function doubts() {
  const found = [];
  let best = 1;
  for (const t of [...model.tries.values()].sort((a, b) => a.n - b.n)) {
    const why = [...(t.flags ?? [])];
    const caught = CAUGHT.includes(t.verdict);
    if (caught) why.push(t.reason || words(t.verdict));
    if (t.speedup) {
      if (t.roof > 1) why.push(`faster than the roofline: ${times(t.roof)} of what the bytes and operations allow`);
      const width = (t.speedup[2] - t.speedup[1]) / t.speedup[0];
      if (width > WIDE) why.push(`unsteady: the interval is ${Math.round(100 * width)}% wide`);
      if (t.best && !t.confirmed && t.speedup[0] > LEAP * best) why.push(`${times(t.speedup[0] / best)} of the best before it, not confirmed`);
      if (t.best) best = t.speedup[0];
    }
    if (why.length) found.push({ t, why, caught });
  }
  return found;
}
