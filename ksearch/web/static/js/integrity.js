import { html } from "./lib.js"; export function Integrity() { return html`<p>Integrity</p>`; }
