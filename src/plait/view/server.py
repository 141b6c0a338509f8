"""The server of `plait view`: pages, their data and downloads, on the loopback of this machine."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from plait.errors import MachineError, PlaitError, printable
from plait.view.assets import ASSETS, asset, index
from plait.view.downloads import download
from plait.view.guard import Guard, new_token
from plait.view.peers import TABLES
from plait.view.site import StudySite, UnknownPageError

LOOPBACK = "127.0.0.1"
SCRIPT, HTML = "text/javascript; charset=utf-8", "text/html; charset=utf-8"
ATTACHMENT_POLICY = "sandbox; default-src 'none'"


@dataclass
class ViewServer:
    """A server that is bound to its port and not yet running."""

    address: str
    _server: uvicorn.Server
    _socket: socket.socket
    _site: StudySite

    def run(self) -> None:
        """Serve until a signal, or `stop`, ends it."""
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._site.close()
            self._socket.close()

    def stop(self) -> None:
        """End the server after the requests that it answers; any thread may call this."""
        self._server.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._server.started


def serve(roots: Sequence[Path], port: int = 0) -> ViewServer:
    """Return the server of the studies below `roots`; port 0 is a free one.

    Raises:
        RequestError: a folder does not exist.
        MachineError: the port is in use, or this machine does not tell whose a connection is.
    """
    if not TABLES[0].is_file():
        raise MachineError(
            f"serving the pages: {TABLES[0]} does not exist, so plait cannot tell which user connects; mount /proc, "
            "or write the pages with --export DIR"
        )
    site = StudySite(roots, live=True)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen()  # a browser that is faster than the server waits for its answer
    except OSError as error:
        listening.close()
        raise MachineError(
            f"listening on port {port} of {LOOPBACK}: {error.strerror}; give another --port, or none"
        ) from error
    chosen = listening.getsockname()[1]
    token = new_token()
    app = Guard(application(site), token, chosen)
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=2,
        server_header=False, date_header=False, ws="none", h11_max_incomplete_event_size=16_384,
        proxy_headers=False,  # a request must not name the client that it comes from
    )  # fmt: skip
    return ViewServer(f"http://{LOOPBACK}:{chosen}/{token}/", uvicorn.Server(config), listening, site)


def application(site: StudySite) -> Starlette:
    """Return the application behind the guard: its paths have no token."""
    pages = _Pages(site)
    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/assets/{name}", pages.asset),
            Route("/data/{name:path}.js", pages.data),
            Route("/files/{path:path}", pages.file),
        ]
    )


class _Pages:
    def __init__(self, site: StudySite) -> None:
        self._site = site

    async def index(self, _: Request) -> Response:
        return Response(index(live=True), media_type=HTML)

    async def asset(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return _missing()
        content = await run_in_threadpool(asset, name)
        kind = "text/css; charset=utf-8" if name.endswith(".css") else SCRIPT
        return Response(content, media_type=kind, headers={"cache-control": "private, max-age=3600"})

    async def data(self, request: Request) -> Response:
        try:
            content = await run_in_threadpool(self._site.script, request.path_params["name"])
            return Response(content, media_type=SCRIPT)
        except UnknownPageError:
            return _missing()

    async def file(self, request: Request) -> Response:
        parts = request.path_params["path"].split("/")
        try:
            name, kind, content = await run_in_threadpool(download, self._site, parts)
        except UnknownPageError:
            return _missing()
        except PlaitError as error:
            return PlainTextResponse(f"{printable(str(error))}\n", 500)
        headers = {
            "content-disposition": f'attachment; filename="{name}"',
            "content-security-policy": ATTACHMENT_POLICY,
        }
        return Response(content, media_type=kind, headers=headers)


def _missing() -> Response:
    return PlainTextResponse("there is no such page\n", 404)
