// Where the data come from: the server, or, in a file that was exported, the data frozen into the page.

/** @typedef {Record<string, string|number|null|undefined>} Params */

/** Set by an exported page before this module loads: {"name?sorted=params": answer}. */
const frozen = /** @type {Record<string, any>|undefined} */ (globalThis.KSEARCH_FROZEN);
export const isFrozen = frozen !== undefined;

export class Refused extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {string} name @param {Params} params */
export function address(name, params = {}) {
  const query = Object.entries(params).filter(([, v]) => v != null).map(([k, v]) => `${k}=${encodeURIComponent(String(v))}`);
  return query.length ? `${name}?${query.sort().join("&")}` : name;
}

/** @param {string} name @param {Params} [params] @returns {Promise<any>} */
export async function get(name, params = {}) {
  const at = address(name, params);
  if (frozen) {
    if (at in frozen) return frozen[at];
    throw new Refused(404, "this was not frozen into the exported file");
  }
  const reply = await fetch(`api/${at}`, { headers: { accept: "application/json" } });
  return answer(reply);
}

/** A blob's text, a page of it. @param {string} sha @param {number} [limit] bytes */
export async function blob(sha, limit = 262144) {
  if (frozen) {
    const text = frozen[`blob/${sha}`];
    if (text === undefined) throw new Refused(404, "this text was not frozen into the exported file");
    return { text, total: text.length };
  }
  const reply = await fetch(`api/blob/${sha}?limit=${limit}`);
  if (!reply.ok) await answer(reply);
  return { text: await reply.text(), total: Number(reply.headers.get("x-total-bytes")) };
}

/** @param {string} run @param {object} command @param {string} key made once for one click */
export async function say(run, command, key) {
  const reply = await fetch("api/command", {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": key },
    body: JSON.stringify({ run, command }),
  });
  return answer(reply);
}

/** @param {Response} reply */
async function answer(reply) {
  const text = await reply.text();
  let body = null;
  try { body = JSON.parse(text); } catch { /* a plain text refusal */ }
  if (!reply.ok) throw new Refused(reply.status, body?.error ?? body?.detail ?? (text.slice(0, 300) || reply.statusText));
  return body;
}
