import { html } from "./lib.js"; export function Overview() { return html`<p>Overview</p>`; }
