import { html } from "./lib.js"; export function Programs() { return html`<p>Programs</p>`; }
