"""Checks of every request (user, token, host name), and the strict policy in every answer.

The server listens on the loopback only. That alone would not stop another page in the same browser from sending
requests to it, nor another user of this machine. So the connection must belong to this user or to root. Every address
begins with a secret token, and the Host header must name the loopback: a page of another name that resolves to
127.0.0.1 (DNS rebinding) is refused.
"""

from __future__ import annotations

import secrets

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plait.view.peers import is_trusted

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LONGEST_PATH = 300


def new_token() -> str:
    """Return a token of 128 random bits for addresses."""
    return secrets.token_hex(16)


class Guard:
    """Passes on requests of this user that have the token and name the loopback; the token is taken off the path."""

    def __init__(self, app: ASGIApp, token: str, port: int) -> None:
        self._app = app
        self._token = token
        self._hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        refusal = await run_in_threadpool(self._refusal_of_user, scope) or self._refusal(scope)
        guarded = self._with_headers(send)
        if refusal is not None:
            await refusal(scope, receive, guarded)
            return
        inside = scope["path"][len(self._token) + 1 :]
        await self._app(
            {**scope, "path": inside, "raw_path": inside.encode(), "root_path": ""}, receive, guarded
        )

    @staticmethod
    def _refusal_of_user(scope: Scope) -> PlainTextResponse | None:
        """Refuse a connection of another user."""
        if scope["client"] is not None and is_trusted(tuple(scope["client"]), tuple(scope["server"])):
            return None
        return PlainTextResponse("this server answers only to the user who started it\n", 403)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        path: str = scope["path"]
        if scope["method"] not in {"GET", "HEAD"}:
            return PlainTextResponse("only GET\n", 405)
        hosts = Headers(scope=scope).getlist("host")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return PlainTextResponse("this server answers only to the name of the loopback\n", 421)
        token, slash, _ = path[1:].partition("/")
        has_token = secrets.compare_digest(token.encode(errors="replace"), self._token.encode())
        if len(path) > LONGEST_PATH or not has_token or not slash:
            return PlainTextResponse("open the address that `plait view` printed\n", 403)
        return None

    @staticmethod
    def _with_headers(send: Send) -> Send:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        return guarded
