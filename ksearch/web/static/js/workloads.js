import { html } from "./lib.js"; export function Workloads() { return html`<p>Workloads</p>`; }
