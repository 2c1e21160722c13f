import { html } from "./lib.js"; export function ProgramView() { return html`<p>ProgramView</p>`; }
