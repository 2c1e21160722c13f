// The keys: j and k through whatever list is shown, d for the difference, / to search, ? for help.
import { html, useEffect } from "./lib.js";
import { model } from "./model.js";
import { go, href } from "./route.js";

/** What the view in sight does with a key; it sets itself, and takes itself back. @type {{[key: string]: () => void}} */
let local = {};

/** @param {{[key: string]: () => void}} keys */
export function useViewKeys(keys) {
  useEffect(() => {
    local = keys;
    return () => { if (local === keys) local = {}; };
  });
}

/** @param {import("./route.js").Route} at @param {() => void} help */
export function useKeys(at, help) {
  useEffect(() => {
    /** @param {KeyboardEvent} e */
    const pressed = (e) => {
      const target = /** @type {HTMLElement} */ (e.target);
      if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
        if (e.key === "Escape") target.blur();
        return;
      }
      if (document.querySelector(".veil")) {
        if (e.key === "?") help();
        return;
      }
      if (e.key === "?") help();
      else if (e.key === "/") search(at);
      else if (/^[1-9]$/.test(e.key)) document.querySelectorAll("nav.tabs a")[Number(e.key) - 1]?.click();
      else if (local[e.key]) local[e.key]();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [at.view, at.run]);
}

/** @param {import("./route.js").Route} at */
function search(at) {
  const field = /** @type {HTMLInputElement|null} */ (document.querySelector("input[type=search]"));
  if (field) {
    field.focus();
    field.select();
    return;
  }
  go(href(model.run, at.view === "program" ? "programs" : "tree"));
  setTimeout(() => /** @type {HTMLInputElement|null} */ (document.querySelector("input[type=search]"))?.focus(), 50);
}

const KEYS = [
  ["j  k", "next and previous: node, program"], ["h  l", "tree: fold and unfold"], ["Enter", "open what is chosen"],
  ["d", "program: difference to parent, best, baseline, none"], ["[  ]", "tree: one edit back and on"], ["\\", "tree: rows or map"],
  ["p", "tree: pin the node"], ["/", "search"], ["1 … 9", "the views, from left to right"], ["Esc", "close, leave a field"], ["?", "this help"],
];

/** @param {{close: () => void}} props */
export function Help({ close }) {
  useEscape(close);
  return html`<div class="veil" onClick=${(e) => e.target === e.currentTarget && close()}><div class="dialog" role="dialog" aria-modal="true" aria-label="keys">
    <h2>Keys</h2><table>${KEYS.map(([key, what]) => html`<tr><td style=${{ whiteSpace: "nowrap" }}>${key.split("  ").map((k) => html`<kbd>${k}</kbd> `)}</td><td>${what}</td></tr>`)}</table>
    <p class="soft small">Shapes: ● solved, ◐ being worked on, ○ open, ✕ rejected, – pruned, ★ the best program. A ratio above 1× means faster; [ ] holds its 95% interval.</p>
    <div class="row"><button class="primary" onClick=${close} autofocus>Close</button></div></div></div>`;
}

/** @param {() => void} close */
export function useEscape(close) {
  useEffect(() => {
    const pressed = (/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") close(); };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
