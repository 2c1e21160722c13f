// Ways out of here: what to type, and what can be taken at once.
import { html, useEffect, useState } from "./lib.js";
import { get, isFrozen } from "./source.js";
import { model, useModel } from "./model.js";
import { shortId } from "./format.js";
import { href } from "./route.js";

/** [what it gives, the command]; only commands that exist. @param {string} run @returns {[string, string][]} */
const commands = (run) => [
  ["The best program's files, with its evaluation", `ksearch best ${run} -o out/`],
  ["Measured again so that a sceptic can judge it: a certificate", `ksearch verify ${run}`],
  ["Every event, a line each", `ksearch show ${run} --events --json`],
  ["How it stands, for scripts", `ksearch status ${run} --json`],
  ["The story of one action", `ksearch show ${run} n1`],
];

export function Export() {
  useModel();
  const best = model.head.best;
  const here = location.href.split("#")[0] + href(model.run, "tree");
  return html`<div class="page"><div class="grid"><section class="card c7"><h2>At the shell</h2><table>${commands(/** @type {string} */ (model.run)).map(([what, command]) => html`<tr><td>${what}</td><td><code>${command}</code></td><td><${Copy} text=${command} /></td></tr>`)}</table></section>
    <section class="card c5"><h2>From here</h2>${best ? html`<p>Best program <a href=${href(model.run, "program", best.program)} class="mono">${shortId(best.program)}</a></p><${Files} id=${best.program} />` : html`<p class="soft">No program has passed yet.</p>`}
      ${isFrozen ? null : html`<p style=${{ marginTop: "10px" }}>This page's address works for everybody who has opened the dashboard with its token: <${Copy} text=${here} label="copy the link" /></p>`}</section></div></div>`;
}

/** @param {{text: string, label?: string}} props */
function Copy({ text, label = "copy" }) {
  const [done, set] = useState(false);
  return html`<button class="small" onClick=${() => navigator.clipboard?.writeText(text).then(() => { set(true); setTimeout(() => set(false), 1500); })}>${done ? "copied" : label}</button>`;
}

/** @param {{id: string}} props */
function Files({ id }) {
  const [found, put] = useState(/** @type {any} */ (null));
  useEffect(() => { get("sources", { id }).then(put, () => put(null)); }, [id]);
  const save = (path, text) => {
    const a = document.createElement("a");
    a.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    a.download = path.split("/").at(-1);
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 1000);
  };
  return found ? html`<div class="row">${Object.entries(found.sources).map(([path, text]) => html`<button class="cut" style=${{ maxWidth: "100%" }} onClick=${() => save(path, text)}>Save ${path}</button>`)}</div>` : null;
}
