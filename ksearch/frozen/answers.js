// Answers the pages' questions from the data in this file, in the place of a server. Runs before the pages do.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("frozen").textContent);
  const lists = ["programs", "steps", "calls", "spans", "remarks"];

  /** The nodes after an event, from what changed at each step. @param {number} at */
  const treeAt = (at) => {
    const nodes = new Map();
    let best = null;
    for (const step of data.trees) {
      if (step.seq > at) break;
      for (const node of step.nodes) nodes.set(node.id, node);
      for (const id of step.gone) nodes.delete(id);
      best = step.best;
    }
    return { nodes, best };
  };

  const tree = (at, known) => {
    const { nodes, best } = treeAt(at);
    const gone = known == null ? [] : [...treeAt(known).nodes.keys()].filter((id) => !nodes.has(id));
    return { run: data.run, seq: at, known, nodes: [...nodes.values()], gone, best };
  };

  const workloads = (order, limit) => {
    const found = data.workloads[order] ?? data.workloads.best;
    return { ...found, rows: found.rows.slice(0, limit || found.rows.length) };
  };

  /** The answer to one question, undefined if it was not frozen. @param {string} address */
  const answer = (address) => {
    if (address.startsWith("blob/")) return own(data.blob, address.slice(5));
    const [name, query = ""] = address.split("?");
    const asked = new URLSearchParams(query);
    if (asked.has("run") && asked.get("run") !== data.run) return undefined;
    const since = Number(asked.get("since") ?? 0);
    if (name === "runs") return { runs: [{ run: data.run, events: data.snapshot.seq }], default: data.run };
    if (name === "snapshot") return { ...data.snapshot, since, nodes: since ? [] : data.snapshot.nodes };
    if (name === "tree") return tree(Number(asked.get("at")), asked.has("known") ? Number(asked.get("known")) : null);
    if (name === "workloads") return workloads(asked.get("order"), Number(asked.get("limit")));
    if (name === "program" || name === "sources") return own(data.program, asked.get("id"));
    if (lists.includes(name)) {
      return { rows: data[name].filter((row) => row.seq > since), next: data.snapshot.seq, more: false, since };
    }
    return undefined;
  };

  const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);

  globalThis.KSEARCH_FROZEN = new Proxy({}, {
    has: (_, address) => typeof address === "string" && answer(address) !== undefined,
    get: (_, address) => (typeof address === "string" ? answer(address) : undefined),
  });
})();
