"""Hostile cases of the API: limits, breakdowns, rejections, and bodies that are no completion."""

from __future__ import annotations

from ksearch.testing.hostile_case import as_json, body, failing, http, pausing, taken, typed, waiting
from ksearch.testing.model_server import Scripted, chat, cut, drip, hang, raw, status, wire

_HTML = b"<!DOCTYPE html><html><head><title>Bad gateway</title></head><body>Please log in to the network</body></html>"

LIMITS = (
    failing("429", "too many requests, without a time", status(429, "slow down"), "answered 429", times=2),
    failing(
        "429, short Retry-After", "`Retry-After: 0.05`", status(429, headers={"Retry-After": "0.05"}), "429", times=2
    ),
    waiting("429, long Retry-After", "longer than a call waits", status(429, headers={"Retry-After": "0.4"}), "429"),
    waiting("429, in words", "`try again in 0.4s`", status(429, "Please try again in 0.4s."), "try again in 0.4s"),
    failing("429, no time", "`Retry-After: soon`", status(429, headers={"Retry-After": "soon"}), "429", times=2),
    pausing(
        "429, absurd time", "`Retry-After: 1e300`", status(429, headers={"Retry-After": "1e300"}), "resume the run"
    ),
    pausing("quota, 429", "`insufficient_quota`", status(429, "insufficient_quota"), "top it up"),
    pausing("quota, 402", "payment required", status(402, "pay"), "top it up"),
    waiting("quota with a reset", "used up for a time", status(429, "insufficient_quota. Try again in 0.4s"), "quota"),
)

BREAKDOWNS = (
    failing("500", "internal error", status(500), "answered 500", times=2),
    failing("502", "an HTML page from a proxy", raw(_HTML, 502, "text/html"), "answered 502", times=2),
    failing("503", "overloaded", status(503, "overloaded"), "overloaded", times=2),
    waiting("503, Retry-After", "maintenance", status(503, headers={"Retry-After": "0.4"}), "answered 503"),
    failing("504", "a gateway gave up: the model may have worked", status(504), "answered 504", billed=True),
    failing("hang", "takes the request and says nothing", hang(), "no whole reply within", billed=True),
    failing("drip", "a byte now and then", lambda t: drip(chat(t), 0.05), "no whole reply within", billed=True),
    failing("cut", "closes in the middle of the body", lambda t: cut(chat(t), 90), "broke the connection", billed=True),
    failing("closed", "closes before the first byte", wire(b""), "broke the connection", billed=True),
    failing("no HTTP", "speaks another protocol", wire(b"220 mail.example ESMTP\r\n"), "broke the", billed=True),
    failing(
        "chunks cut",
        "chunked, without the last chunk",
        lambda t: wire(http("Transfer-Encoding: chunked", b"50\r\n" + chat(t).body[:80] + b"\r\n")),
        "broke the connection",
        billed=True,
    ),
    failing(
        "gzip", "says gzip, sends something else", lambda t: typed(chat(t), Content_Encoding="gzip"), "", billed=True
    ),
)

REJECTIONS = (
    pausing("401", "key not accepted", status(401, "Incorrect API key provided: sk-abcdefgh12"), "Check the key"),
    pausing("403", "forbidden", status(403, "forbidden"), "Check the key"),
    pausing("404", "no such model", status(404, "model m does not exist"), "Check the model's name"),
    pausing("400", "unknown parameter", status(400, "unknown parameter: foo"), "foo"),
    pausing("413", "prompt too large", status(413, "too large"), "context window"),
    pausing("context", "prompt too long, in words", status(400, "maximum context length is 8192"), "context window"),
    pausing("redirect", "another host", Scripted(302, b"", {"Location": "http://127.0.0.1:9/"}), "not followed"),
)


def _error_inside(message: str, code: int) -> Scripted:
    return as_json({"error": {"message": message, "code": code}})


BODIES = (
    failing("HTML with 200", "a log-in page of the network", raw(_HTML, 200, "text/html"), "log in", billed=True),
    failing("empty body", "200 and nothing", raw(b""), "no valid response", billed=True),
    failing("204", "no content", Scripted(204), "no valid response", billed=True),
    failing("half JSON", "cut, but with the right length", lambda t: raw(chat(t).body[:-30]), "", billed=True),
    failing("JSON list", "`[]`", raw(b"[]"), "no valid response", billed=True),
    failing("deep JSON", "100,000 brackets", raw(b"[" * 100_000), "no valid response", billed=True),
    failing("no choices", "`choices: []`", lambda t: as_json(body(t, choices=[])), "no valid response", billed=True),
    failing(
        "stream", "events, not asked for", lambda t: raw(b"data: " + chat(t).body + b"\n\n"), "", billed=True
    ),
    failing("200, error 503", "an error in the body", _error_inside("busy", 503), "busy", times=2),
    pausing("200, error 402", "no credit, in the body", _error_inside("no credits", 402), "top it"),
    taken("content type", "sound JSON as text/plain", lambda t: raw(chat(t).body, 200, "text/plain")),
    taken("two choices", "a second choice that is another", lambda t: as_json(
        body(t, choices=[*body(t)["choices"], {**body("other")["choices"][0], "index": 1}]))),
    taken("doubled keys", "the choices twice, the last one whole", lambda t: raw(
        b'{"choices": [], ' + chat(t).body.lstrip(b"{"))),
    taken("another model", "a model's name of 100,000 characters", lambda t: chat(t, model="m" * 100_000)),
    taken("no model", "`model: null`", lambda t: as_json(body(t, model=None))),
)  # fmt: skip
