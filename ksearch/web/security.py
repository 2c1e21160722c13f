"""Who may speak to the server: loopback names, our own origin, a token; and limits on what may be sent.

A plain ASGI wrapper, so that nothing is read of a request that fails a check.
"""

from __future__ import annotations

import hmac
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY = 64 * 1024  # bytes
MAX_QUERY = 2048  # bytes
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_UNLOCK = "This dashboard needs its token: open the address that `ksearch ui` printed, with ?token=... in it.\n"


@dataclass(frozen=True)
class Rules:
    """`hosts`: names by which the server may be called, without port. `token` None: nobody is asked for one."""

    token: str | None
    hosts: frozenset[str]
    cookie: str = "ksearch_token"

    @classmethod
    def of(cls, token: str | None, hosts: Iterable[str], port: int = 0) -> Rules:
        # A cookie is shared by all ports of a host: two dashboards must not overwrite each other's.
        names = frozenset(h.lower().strip("[]") for h in hosts)
        return cls(token, names, f"ksearch_token_{port}" if port else "ksearch_token")


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, rules: Rules, closing: threading.Event) -> None:
        self.app = app
        self.rules = rules
        self.closing = closing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no web sockets here
            return
        refused = self._refusal(scope) or self._unlocking(scope)
        if refused is not None:
            await refused(scope, receive, _with_headers(send))
            return
        await self.app(scope, _Limited(receive), _with_headers(send))

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Only GET and POST are answered here.\n", 405)
        if len(scope.get("query_string", b"")) > MAX_QUERY:
            return PlainTextResponse(f"The query is longer than {MAX_QUERY} bytes.\n", 414)
        # A page elsewhere can make its own name resolve to 127.0.0.1 (DNS rebinding): the name gives it away.
        if _name(headers.get("host", "")) not in self.rules.hosts:
            return PlainTextResponse(
                "This server is not called that: use the address that `ksearch ui` printed.\n", 421
            )
        if not _same_origin(headers):
            return PlainTextResponse("Requests from other sites are not answered.\n", 403)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY:
            return PlainTextResponse(f"A request may hold at most {MAX_BODY} bytes.\n", 413)
        return None

    def _unlocking(self, scope: Scope) -> Response | None:
        """None when the token is there. A token in the address is moved into a cookie, once."""
        token = self.rules.token
        if token is None:
            return None
        headers = Headers(scope=scope)
        given = _from_query(scope)
        if given is not None and scope["method"] == "GET" and not scope["path"].startswith("/api/"):
            if not _same(given, token):
                return PlainTextResponse(_UNLOCK, 401)
            there = RedirectResponse("./", 303)
            there.set_cookie(self.rules.cookie, token, httponly=True, samesite="strict")
            return there
        bearer = headers.get("authorization", "")
        if bearer.startswith("Bearer ") and _same(bearer.removeprefix("Bearer "), token):
            return None
        if _same(_cookie(headers, self.rules.cookie), token):
            return None
        return PlainTextResponse(_UNLOCK, 401)


class _Limited:
    """Counts the bytes of a body that does not say its length, and ends it at the limit."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._left = MAX_BODY

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                return {"type": "http.disconnect"}
        return message


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sending


def _name(host: str) -> str:
    """The host of a Host header, without its port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _same_origin(headers: Headers) -> bool:
    origin = headers.get("origin")
    if origin is not None:
        return _netloc(origin) == headers.get("host", "").lower()
    return headers.get("sec-fetch-site", "none") in ("none", "same-origin")


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc.lower()
    except ValueError:
        return ""


def _from_query(scope: Scope) -> str | None:
    found = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
    return found[0] if found else None


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())
