import { html } from "./lib.js"; export function Compare() { return html`<p>Compare</p>`; }
