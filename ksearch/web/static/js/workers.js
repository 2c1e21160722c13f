import { html } from "./lib.js"; export function Workers() { return html`<p>Workers</p>`; }
