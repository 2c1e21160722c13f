// What the page knows of a run. The stream says that something is new; what is new is then asked for.
import { get, isFrozen, address } from "./source.js";
import { useEffect, useState } from "./lib.js";

/** @typedef {{rows: any[], next: number, wanted: boolean, ready: boolean}} List */

const PAGE = 2000;
const CALM_MS = 120; // news is gathered for this long before it is asked for
const FALLBACK_MS = 5000; // asked anyway, where a proxy swallows the stream

export const model = {
  run: /** @type {string|null} */ (null),
  runs: /** @type {any[]} */ ([]),
  head: /** @type {any} */ (null),
  seq: 0,
  nodes: /** @type {Map<string, any>} */ (new Map()),
  tries: /** @type {Map<number, any>} */ (new Map()),
  triesNext: 0,
  triesVersion: 0, // changes when an attempt did
  triesReady: false,
  lists: /** @type {Record<string, List>} */ ({}),
  speaks: false, // whether commands are taken
  line: "connecting", // live, lost
  problem: /** @type {string|null} */ (null),
  skew: 0, // server's clock - ours, seconds
  version: 0,
};

const listeners = new Set();
let frame = 0;

export function changed() {
  model.version += 1;
  if (frame) return;
  frame = requestAnimationFrame(() => {
    frame = 0;
    for (const listener of listeners) listener(model.version);
  });
}

/** Draw again when the model changes. */
export function useModel() {
  const [, set] = useState(0);
  useEffect(() => {
    listeners.add(set);
    return () => listeners.delete(set);
  }, []);
  return model;
}

export function now() {
  return Date.now() / 1000 + model.skew;
}

/** A list that this page needs from now on. @param {"steps"|"calls"|"spans"|"remarks"} name */
export function useList(name) {
  useEffect(() => {
    list(name).wanted = true;
    sync();
  }, [name, model.run]);
  return list(name);
}

/** @param {string} name */
function list(name) {
  return (model.lists[name] ??= { rows: [], next: 0, wanted: false, ready: false });
}

let stream = /** @type {EventSource|null} */ (null);
let timer = 0;
let busy = false;
let again = false;
let opened = 0;

/** Begin to follow a run. @param {string|null} run */
export async function open(run) {
  stream?.close();
  stream = null;
  opened += 1;
  const wanted = Object.fromEntries(Object.entries(model.lists).filter(([, l]) => l.wanted).map(([name]) => [name, fresh(true)]));
  Object.assign(model, { run, head: null, seq: 0, nodes: new Map(), tries: new Map(), triesNext: 0, triesReady: false,
    lists: wanted, line: "connecting", problem: null });
  changed();
  await sync();
  get("runs").then((found) => { model.runs = found.runs; changed(); }, () => {});
}

const fresh = (wanted) => ({ rows: [], next: 0, wanted, ready: false });

/** Ask for what is new. Calls while one is under way are gathered into one more. */
export async function sync() {
  if (busy) {
    again = true;
    return;
  }
  busy = true;
  const mine = opened;
  try {
    await pull(mine);
    model.problem = null;
    const behind = model.head && model.seq < model.head.total && !model.head.error; // a long log is read by and by
    if (behind) again = true;
    else if (!isFrozen && !stream && mine === opened) follow();
  } catch (error) {
    if (mine === opened) model.problem = String(error.message ?? error);
  }
  busy = false;
  changed();
  if (again) {
    again = false;
    setTimeout(sync, CALM_MS);
  }
}

/** @param {number} mine */
async function pull(mine) {
  const snapshot = await get("snapshot", { run: model.run, since: model.seq });
  if (mine !== opened) return;
  takeSnapshot(snapshot);
  changed();
  await pages("programs", model.triesNext, mine, (page) => {
    for (const row of page.rows) model.tries.set(row.n, row);
    if (page.rows.length) model.triesVersion += 1;
    model.triesNext = page.next;
    model.triesReady = !page.more;
  });
  for (const [name, kept] of Object.entries(model.lists)) {
    if (!kept.wanted) continue;
    await pages(name, kept.next, mine, (page) => {
      if (page.rows.length) kept.rows = kept.rows.slice(); // a new list, so that what is drawn from it is drawn again
      for (const row of page.rows) kept.rows[row.i] = row;
      kept.next = page.next;
      kept.ready = !page.more;
    });
  }
}

/** @param {any} snapshot */
function takeSnapshot(snapshot) {
  model.run = snapshot.run;
  model.head = snapshot.head;
  model.speaks = snapshot.speaks === true;
  model.skew = snapshot.head.now - Date.now() / 1000;
  if (snapshot.nodes.length || !model.nodes.size) {
    model.nodes = new Map(model.nodes);
    for (const node of snapshot.nodes) model.nodes.set(node.id, node);
  }
  model.seq = snapshot.seq;
}

/** @param {string} name @param {number} since @param {number} mine @param {(page: any) => void} take */
async function pages(name, since, mine, take) {
  for (;;) {
    const page = await get(name, { run: model.run, since, limit: PAGE });
    if (mine !== opened) return;
    take(page);
    changed();
    if (!page.more) return;
    since = page.next;
  }
}

function follow() {
  stream?.close();
  if (document.hidden || !model.run || !model.head) return;
  stream = new EventSource(`api/${address("stream", { run: model.run, after: model.seq })}`);
  stream.onopen = () => { model.line = "live"; soon(); changed(); };
  stream.onmessage = (e) => { if (Number(e.lastEventId) > model.seq) soon(); };
  stream.onerror = () => { model.line = "lost"; changed(); };
}

function hangUp() {
  stream?.close();
  stream = null;
}

function soon() {
  if (timer) return;
  timer = setTimeout(() => { timer = 0; sync(); }, CALM_MS);
}

if (!isFrozen) {
  // A browser gives a host six connections: a page that nobody sees keeps none of them.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) hangUp();
    else soon(); // which follows again
  });
  setInterval(() => {
    if (document.hidden) return;
    if (model.line !== "live" || !model.head) soon();
    if (stream?.readyState === 2) hangUp();
  }, FALLBACK_MS);
}
