// Source text in colour, and two of them side by side. No markup is ever made from text: only text nodes.
import hljs from "../vendor/highlight.js";
import cpp from "../vendor/highlight-cpp.js";
import python from "../vendor/highlight-python.js";
import { html, useMemo, useState } from "./lib.js";
import { diff, folded, sideBySide, within } from "./diff.js";
import { count, plural } from "./format.js";

hljs.registerLanguage("cpp", cpp);
hljs.registerLanguage("python", python);

const LONGEST_LINE = 2000; // characters of a line that are shown
const MOST = 300000; // characters that are coloured
const LINES = 4000; // lines that are drawn before one asks for more

/** @typedef {[string|null, string]} Piece class and text */

/** The lines of a text as pieces. @param {string} text @param {string} path @returns {Piece[][]} */
export function coloured(text, path) {
  const plain = text.split("\n").map((line) => /** @type {Piece[]} */ ([[null, line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE)}… (${count(line.length)} characters)` : line]]));
  if (text.length > MOST || text.split("\n").some((line) => line.length > LONGEST_LINE)) return plain;
  const language = /\.(py|triton)$/.test(path) ? "python" : /\.(c|cc|cpp|cxx|cu|cuh|h|hpp|hip)$/.test(path) ? "cpp" : null;
  return language ? pieces(hljs.highlight(text, { language, ignoreIllegals: true }).value) : plain;
}

const ENTITIES = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#x27;": "'" };

/** The highlighter's answer, taken apart: it knows spans, entities and text, and nothing else. @param {string} marked @returns {Piece[][]} */
function pieces(marked) {
  const lines = /** @type {Piece[][]} */ ([[]]);
  const open = /** @type {string[]} */ ([]);
  for (const part of marked.split(/(<span class="[^"]*">|<\/span>)/)) {
    const span = /^<span class="([^"]*)">$/.exec(part);
    if (span) open.push(span[1]);
    else if (part === "</span>") open.pop();
    else if (part) {
      part.replace(/&(amp|lt|gt|quot|#x27);/g, (e) => ENTITIES[e]).split("\n").forEach((text, i) => {
        if (i) lines.push([]);
        if (text) lines[lines.length - 1].push([open.at(-1) ?? null, text]);
      });
    }
  }
  return lines;
}

/** @param {Piece[]|undefined} line @param {[number, number]|null} [mark] characters to mark */
function draw(line, mark = null) {
  if (!line) return null;
  let at = 0;
  return line.flatMap(([name, text]) => {
    const from = at;
    at += text.length;
    if (!mark || mark[1] <= from || mark[0] >= at || mark[0] === mark[1]) return [html`<span class=${name}>${text}</span>`];
    const [a, b] = [Math.max(0, mark[0] - from), Math.min(text.length, mark[1] - from)];
    return [html`<span class=${name}>${text.slice(0, a)}</span>`, html`<mark><span class=${name}>${text.slice(a, b)}</span></mark>`, html`<span class=${name}>${text.slice(b)}</span>`];
  });
}

/** @param {{text: string, path: string}} props */
export function Code({ text, path }) {
  const lines = useMemo(() => coloured(text, path), [text, path]);
  const [most, more] = useState(LINES);
  return html`<div class="code scroll" dir="ltr"><table class="source"><tbody>${lines.slice(0, most).map((line, i) => html`<tr><td class="ln">${i + 1}</td><td class="src">${draw(line)}</td></tr>`)}</tbody></table>
    ${lines.length > most ? html`<button class="small" onClick=${() => more(most * 4)}>${count(lines.length - most)} more lines</button>` : null}</div>`;
}

/** @param {{before: string, after: string, path: string, names: [string, string], split: boolean}} props */
export function Diff({ before, after, path, names, split }) {
  const [opened, open] = useState(/** @type {Set<number>} */ (new Set()));
  const made = useMemo(() => {
    const [a, b] = [before.split("\n"), after.split("\n")];
    const rows = sideBySide(diff(a, b));
    return { a, b, rows, left: coloured(before, path), right: coloured(after, path), added: rows.filter((r) => !r.same && r.right != null).length, removed: rows.filter((r) => !r.same && r.left != null).length };
  }, [before, after, path]);
  const rows = folded(made.rows).flatMap((r) => (r.gap && opened.has(r.from) ? made.rows.slice(r.from, r.to) : [r])).slice(0, LINES);
  if (!made.added && !made.removed) return html`<p class="waiting">No difference in ${path}: both are the same text.</p>`;
  const gap = (r, span) => html`<tr class="gap"><td colspan=${span}><button class="plain small" onClick=${() => open(new Set([...opened, r.from]))}>${plural(r.gap, "line")} alike</button></td></tr>`;
  const marks = (r) => { // only where the two lines are much alike
    if (r.left == null || r.right == null) return null;
    const [a, b] = [made.a[r.left], made.b[r.right]];
    const found = within(a, b);
    return found[0] + a.length - found[1] > 0.35 * Math.max(a.length, b.length) ? found : null;
  };
  return html`<div class="code scroll" dir="ltr"><table class=${`source diff ${split ? "split" : ""}`}>${split ? html`<colgroup><col class="cln" /><col /><col class="cln" /><col /></colgroup>` : null}<thead><tr>${split ? html`<th colspan="2">${names[0]} <span class="del-count">−${made.removed}</span></th><th colspan="2">${names[1]} <span class="add-count">+${made.added}</span></th>` : html`<th colspan="3">${names[0]} <span class="del-count">−${made.removed}</span> → ${names[1]} <span class="add-count">+${made.added}</span></th>`}</tr></thead><tbody>
    ${split ? rows.map((r) => (r.gap ? gap(r, 4) : html`<${Pair} r=${r} made=${made} m=${marks(r)} />`)) : unified(rows).map((r) => (r.gap ? gap(r, 3) : html`<${One} r=${r} made=${made} m=${r.m ? marks(r.m) : null} />`))}</tbody></table></div>`;
}

/** @param {any} props */
function Pair({ r, made, m }) {
  return html`<tr><td class="ln">${r.left != null ? r.left + 1 : ""}</td><td class=${`src ${r.same ? "" : r.left == null ? "none" : "del"}`}>${r.left != null ? draw(made.left[r.left], m && !r.same ? [m[0], m[1]] : null) : ""}</td>
    <td class="ln">${r.right != null ? r.right + 1 : ""}</td><td class=${`src ${r.same ? "" : r.right == null ? "none" : "add"}`}>${r.right != null ? draw(made.right[r.right], m && !r.same ? [m[0], m[2]] : null) : ""}</td></tr>`;
}

/** @param {any} props */
function One({ r, made, m }) {
  const line = r.kind === "-" ? made.left[r.left] : made.right[r.right];
  return html`<tr><td class="ln">${r.left != null ? r.left + 1 : ""}</td><td class="ln">${r.right != null ? r.right + 1 : ""}</td><td class=${`src ${r.kind === "-" ? "del" : r.kind === "+" ? "add" : ""}`}>${draw(line, m ? [m[0], r.kind === "-" ? m[1] : m[2]] : null)}</td></tr>`;
}

/** Old lines of a change first, then the new ones. @param {any[]} rows */
function unified(rows) {
  const out = [];
  for (let i = 0; i < rows.length; i += 1) {
    if (rows[i].gap || rows[i].same) { out.push(rows[i].gap ? rows[i] : { kind: " ", left: rows[i].left, right: rows[i].right }); continue; }
    const from = i;
    while (i + 1 < rows.length && !rows[i + 1].same && !rows[i + 1].gap) i += 1;
    const block = rows.slice(from, i + 1);
    out.push(...block.filter((r) => r.left != null).map((r) => ({ kind: "-", left: r.left, right: null, m: r })), ...block.filter((r) => r.right != null).map((r) => ({ kind: "+", left: null, right: r.right, m: r })));
  }
  return out;
}
