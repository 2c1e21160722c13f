// A person's word on numbers that look odd.
import { html, useState } from "./lib.js";
import { Form, mute, speak } from "./verbs.js";

/** @param {{id: string, review: boolean|null|undefined, small?: boolean}} props */
export function Review({ id, review, small = false }) {
  const [form, show] = useState("");
  if (mute()) return null;
  const close = () => show("");
  const ask = (accept) => html`<${Form} title=${accept ? "Accept these numbers" : "Do not accept these numbers"} explain="It is recorded with your name, and the planner gets to read it. It changes no verdict." fields=${[["text", "note", "long", ""]]} verb=${accept ? "Accept" : "Do not accept"} close=${close}
    submit=${(v) => speak({ type: "review", program_id: id, accept, text: v.text }, accept ? "Accepted" : "Not accepted")} />`;
  return html`<span class="row" style=${{ gap: "4px", flexWrap: "nowrap", display: small ? "inline-flex" : "flex" }}><button class=${review === true ? "on" : ""} onClick=${(e) => { e.stopPropagation(); show("accept"); }}>Accept</button><button class=${review === false ? "on" : ""} onClick=${(e) => { e.stopPropagation(); show("reject"); }}>Reject</button>
    ${small ? null : html`<${NoteButton} id=${id} />`}${form === "accept" ? ask(true) : form === "reject" ? ask(false) : null}</span>`;
}

/** @param {{id: string}} props */
function NoteButton({ id }) {
  const [open, show] = useState(false);
  return html`<button onClick=${() => show(true)}>Note</button>${open ? html`<${Form} title="Note on this program" explain="The planner gets to read it." fields=${[["text", "text", "long", ""]]} verb="Leave it" close=${() => show(false)} submit=${(v) => speak({ type: "note", text: v.text, program_id: id }, "Noted")} />` : null}`;
}
