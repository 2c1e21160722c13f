// What people say to a run. Each goes to the core, and comes back as an event with its author.
import { html, useEffect, useRef, useState } from "./lib.js";
import { changed, model, sync } from "./model.js";
import { isFrozen, say } from "./source.js";
import { useEscape } from "./keys.js";

/** @type {{text: string, bad: boolean, id: number}[]} */
let toasts = [];
let serial = 0;

/** @param {string} text @param {boolean} [bad] */
export function toast(text, bad = false) {
  const id = ++serial;
  toasts = [...toasts.slice(-3), { text, bad, id }];
  changed();
  setTimeout(() => { toasts = toasts.filter((t) => t.id !== id); changed(); }, bad ? 9000 : 4000);
}

export function Toasts() {
  return html`<div class="toasts" role="status" aria-live="polite">${toasts.map((t) => html`<div key=${t.id} class=${`toast ${t.bad ? "bad" : ""}`}>${t.text}</div>`)}</div>`;
}

/** @param {object} command @param {string} done what to say when it was taken */
export async function speak(command, done) {
  const key = crypto.randomUUID?.() ?? `${Date.now()}-${Math.random().toString(36).slice(2)}`;
  try {
    const answer = await say(/** @type {string} */ (model.run), command, key);
    toast(`${done} (event ${answer.from})`);
    await sync();
    return true;
  } catch (error) {
    toast(`Not taken: ${error.message}`, true);
    return false;
  }
}

/** Nothing can be said: the page is an exported file, or the run is open for viewing only. */
export const mute = () => isFrozen || !model.speaks;

/** Ask for what a verb needs, then say it. `fields`: [name, label, kind, value]; kinds: text, long, number, check.
 * @param {{title: string, explain?: string, fields: [string, string, string, any][], verb: string, submit: (values: any) => Promise<boolean>, close: () => void}} props */
export function Form({ title, explain = "", fields, verb, submit, close }) {
  const [values, set] = useState(Object.fromEntries(fields.map(([name, , , value]) => [name, value])));
  const [busy, work] = useState(false);
  const first = useRef(/** @type {HTMLElement|null} */ (null));
  useEscape(close);
  useEffect(() => /** @type {HTMLElement|null} */ (first.current?.querySelector("input,textarea"))?.focus(), []);
  const send = async () => {
    work(true);
    if (await submit(values)) close();
    else work(false);
  };
  const put = (name, value) => set({ ...values, [name]: value });
  return html`<div class="veil" onClick=${(e) => e.target === e.currentTarget && close()}><div class="dialog" role="dialog" aria-modal="true" aria-label=${title} ref=${first}
      onKeyDown=${(e) => { if (e.key === "Enter" && e.target.tagName === "INPUT") send(); }}>
    <h2>${title}</h2>${explain ? html`<p class="soft small">${explain}</p>` : null}
    <div class=${fields.length > 4 ? "pair" : ""} style=${{ display: "grid", gap: "10px" }}>${fields.map(([name, label, kind]) => kind === "check"
      ? html`<label class="check whole"><input type="checkbox" checked=${values[name]} onChange=${(e) => put(name, e.target.checked)} />${label}</label>`
      : html`<label class=${kind === "number" ? "" : "whole"}>${label}${kind === "long" ? html`<textarea rows="3" maxlength="4000" value=${values[name]} onInput=${(e) => put(name, e.target.value)} />`
        : html`<input type=${kind} step="any" maxlength="400" value=${values[name]} onInput=${(e) => put(name, e.target.value)} />`}</label>`)}</div>
    <div class="row"><button class="primary" disabled=${busy} onClick=${send}>${verb}</button><button onClick=${close}>Cancel</button></div></div></div>`;
}

const number = (text) => (text === "" || text == null ? null : Number(text));

/** Pause, resume, stop, budget, note. */
export function RunVerbs() {
  const [form, show] = useState("");
  const head = model.head;
  if (mute()) return null;
  const resting = head.paused || head.stopping || head.ended;
  const close = () => show("");
  return html`<span class="row" style=${{ gap: "4px", flexWrap: "nowrap" }}>
    ${resting ? html`<button onClick=${() => speak({ type: "resume" }, "Resumed")}>Resume</button>` : html`<button onClick=${() => show("pause")}>Pause</button>`}
    ${head.ended || head.stopping ? null : html`<button class="hide-narrow" onClick=${() => show("stop")}>Stop</button>`}
    <button class="hide-narrow" onClick=${() => show("budget")}>Budget</button><button class="hide-narrow" onClick=${() => show("note")}>Note</button>
    ${form === "pause" ? html`<${Form} title="Pause" explain="Nothing new is handed out until the run is resumed; what is out may finish." fields=${[["reason", "reason", "text", ""]]} verb="Pause" close=${close} submit=${(v) => speak({ type: "pause", reason: v.reason }, "Paused")} />` : null}
    ${form === "stop" ? html`<${Form} title="Stop" explain="The run ends: what is out may finish, open actions close with their best program." fields=${[["reason", "reason", "text", ""]]} verb="Stop the run" close=${close} submit=${(v) => speak({ type: "stop", reason: v.reason }, "Stopping")} />` : null}
    ${form === "note" ? html`<${Form} title="Note on the run" explain="The planner gets to read it." fields=${[["text", "text", "long", ""]]} verb="Leave it" close=${close} submit=${(v) => speak({ type: "note", text: v.text }, "Noted")} />` : null}
    ${form === "budget" ? html`<${BudgetForm} close=${close} />` : null}
  </span>`;
}

/** @param {{close: () => void}} props */
function BudgetForm({ close }) {
  const b = model.head.rules.budget;
  const text = (v) => (v == null ? "" : String(v));
  return html`<${Form} title="Budget" explain="Limits in all, spent ones included; an empty field is no limit. An ended run may go on when there is room again." close=${close} verb="Set"
    fields=${[["evaluations", "evaluations", "number", text(b.evaluations)], ["attempts", "attempts", "number", text(b.attempts)], ["tokens", "tokens", "number", text(b.tokens)], ["usd", "money, $", "number", text(b.usd)], ["minutes", "working time, min", "number", text(b.seconds == null ? null : b.seconds / 60)]]}
    submit=${(v) => speak({ type: "set_budget", budget: { evaluations: number(v.evaluations) ?? 0, attempts: number(v.attempts), tokens: number(v.tokens), usd: number(v.usd), seconds: number(v.minutes) == null ? null : number(v.minutes) * 60 } }, "Budget set")} />`;
}

/** Pin, boost, prune, add, note, on one node. @param {{node: any}} props */
export function NodeVerbs({ node }) {
  const [form, show] = useState("");
  if (mute()) return null;
  const close = () => show("");
  const id = node.id;
  const open = node.status === "open";
  return html`<div class="row" style=${{ gap: "4px" }}>
    <button disabled=${!open} title="work on it next (p)" onClick=${() => speak({ type: "pin", node_id: id, pinned: !node.pinned }, node.pinned ? `${id} is no longer pinned` : `${id} is pinned`)}>${node.pinned ? "Unpin" : "Pin"}</button>
    <button disabled=${!open} title="set the priority V" onClick=${() => show("boost")}>Boost</button>
    <button disabled=${!open} title="withdraw it and all below it" onClick=${() => show("prune")}>Prune</button>
    <button disabled=${["rejected", "pruned"].includes(node.status)} onClick=${() => show("add")}>Add action</button>
    <button onClick=${() => show("note")}>Note</button>
    ${form === "boost" ? html`<${Form} title=${`Boost ${id}`} fields=${[["value", "V, the priority, 0 to 1", "number", Math.min(1, node.v + 0.2).toFixed(2)]]} verb="Set V" close=${close} submit=${(v) => speak({ type: "boost", node_id: id, value: Number(v.value) }, `V of ${id} set`)} />` : null}
    ${form === "prune" ? html`<${Form} title=${`Prune ${id}`} explain="It and all that is open below it are withdrawn. They stay in the tree." fields=${[["reason", "reason, for the planner", "text", ""]]} verb="Prune" close=${close} submit=${(v) => speak({ type: "prune_node", node_id: id, reason: v.reason }, `${id} pruned`)} />` : null}
    ${form === "note" ? html`<${Form} title=${`Note on ${id}`} explain="The planner gets to read it." fields=${[["text", "text", "long", ""]]} verb="Leave it" close=${close} submit=${(v) => speak({ type: "note", text: v.text, node_id: id }, "Noted")} />` : null}
    ${form === "add" ? html`<${AddForm} parent=${id} close=${close} />` : null}
  </div>`;
}

/** @param {{parent: string, close: () => void}} props */
function AddForm({ parent, close }) {
  return html`<${Form} title=${`New action under ${parent}`} verb="Add" close=${close}
    fields=${[["title", "title: one structural change", "text", ""], ["rationale", "why it should pay", "long", ""], ["value", "V, 0 to 1", "number", "0.8"], ["difficulty", "difficulty, 1 to 5", "number", "3"], ["predicted", "expected speedup over the parent, ×", "number", ""], ["enabling", "an enabling step: may be slower, its children are to pay off", "check", false]]}
    submit=${(v) => speak({ type: "add_action", parent_id: parent, value: Number(v.value), action: { title: v.title, rationale: v.rationale, difficulty: Number(v.difficulty), predicted_speedup: number(v.predicted), enabling: v.enabling } }, "Added")} />`;
}
