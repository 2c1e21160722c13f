import { html } from "./lib.js"; export function Export() { return html`<p>Export</p>`; }
