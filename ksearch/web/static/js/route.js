// Every object has an address: #/RUN/VIEW/ID?options. It works from a file as well.
import { useEffect, useState } from "./lib.js";

/** @typedef {{run: string|null, view: string, id: string|null, options: Record<string, string>}} Route */

/** @returns {Route} */
export function route() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const [run, view, id] = path.split("/").map((part) => {
    try { return decodeURIComponent(part); } catch { return part; }
  });
  return { run: run || null, view: view || "tree", id: id || null, options: Object.fromEntries(new URLSearchParams(query)) };
}

/** @param {string|null} run @param {string} view @param {string|null} [id] @param {Record<string, any>} [options] */
export function href(run, view, id = null, options = {}) {
  const kept = Object.entries(options).filter(([, v]) => v != null && v !== "");
  const query = new URLSearchParams(kept.map(([k, v]) => [k, String(v)])).toString();
  const path = [run, view, id].filter((part) => part != null).map((part) => encodeURIComponent(String(part))).join("/");
  return `#/${path}${query ? `?${query}` : ""}`;
}

/** Go there. @param {string} to @param {boolean} [quietly] without a step in the history */
export function go(to, quietly = false) {
  if (quietly) {
    history.replaceState(null, "", to);
    window.dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = to;
  }
}

/** Change options of the present address. @param {Record<string, any>} changes */
export function set(changes) {
  const at = route();
  go(href(at.run, at.view, at.id, { ...at.options, ...changes }), true);
}

/** @returns {Route} */
export function useRoute() {
  const [at, update] = useState(route());
  useEffect(() => {
    const changed = () => update(route());
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return at;
}
