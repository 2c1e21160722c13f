import { html } from "./lib.js"; export function Calls() { return html`<p>Calls</p>`; }
