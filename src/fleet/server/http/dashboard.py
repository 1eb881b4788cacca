"""The dashboard's files: the shell at `/`, the rest below `/ui/<hash>/`, kept by browsers for good."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import posixpath
import re
import secrets
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import Response

import fleet
from fleet.domain.data import NamedTuple
from fleet.server.http.routes import accepts_gzip

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FILES = Path(fleet.__file__).parent / "web"
SHELL = "index.html"
HASH, NONCE = "{hash}", "{nonce}"  # placeholders in the shell
STYLE, HINTS = "{style}", "{hints}"  # more of them
SCREEN = re.compile(r"at: /\^\\/(\w*).*\./screens/(\w+)\.js")  # a row of web/router.js
FIRST = ("css/tokens.css", "css/shell.css")  # in the shell: it is painted before anything else came
STYLES = ("css/base.css", "css/parts.css", "css/screens.css", "css/task.css", "css/figures.css")
SHEET = "page.css"  # all of these, in this order
IMPORT = re.compile(r'^import\b[^;"]*"(\.[^"]+)";$', re.MULTILINE)
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
PACKED = frozenset({".png", ".woff2", ".ico"})  # compressed by themselves
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)


class PageFile(NamedTuple):
    """`packed`: with gzip; empty when that saves nothing."""

    kind: str
    body: bytes
    packed: bytes


class PageFiles(NamedTuple):
    """`hash`: over the names and the bytes of all of them."""

    hash: str
    by_name: Mapping[str, PageFile]


def read_files(directory: Path = FILES) -> PageFiles:
    paths = sorted(p for p in directory.rglob("*") if p.suffix in TYPES and p.is_file())
    digest, by_name = hashlib.sha256(), {}
    for path in paths:
        name, body = path.relative_to(directory).as_posix(), path.read_bytes()
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
        by_name[name] = _page_file(path.suffix, body)
    by_name[SHEET] = _page_file(".css", b"".join(by_name.pop(name).body for name in STYLES))
    return PageFiles(digest.hexdigest()[:16], by_name)


def _page_file(suffix: str, body: bytes) -> PageFile:
    packed = b"" if suffix in PACKED else gzip.compress(body, 9, mtime=0)
    return PageFile(TYPES[suffix], body, packed)


@cache
def screens() -> dict[str, str]:
    """Return the screens' modules, by the first word of their addresses."""
    return dict(SCREEN.findall((FILES / "router.js").read_text("utf-8")))


def modules_at(files: PageFiles, path: str) -> tuple[str, ...]:
    """Return the modules that the page needs first at this address."""
    first, _, rest = path[1:].partition("/")
    names = ("app.js", f"screens/{screens().get(first)}.js", f"screens/{rest.partition('/')[2]}.js")
    return tuple(name for name in names if name in files.by_name)


def with_imports(files: PageFiles, modules: tuple[str, ...]) -> list[str]:
    """These, what they import, and so on: each once, what is needed first at the front."""
    known: dict[str, None] = {}
    names = [*modules]
    while names:
        name = names.pop(0)
        if name not in known:
            known[name] = None
            imported = IMPORT.findall(files.by_name[name].body.decode())
            folder = posixpath.dirname(name)
            names += [posixpath.normpath(posixpath.join(folder, other)) for other in imported]
    return list(known)


def shell_with(files: PageFiles, modules: tuple[str, ...]) -> str:
    """Return the shell with its first styles, and preload hints for the modules of this page.

    Without hints a browser finds each module only after it has loaded the one that imports it.
    """
    style = "".join(files.by_name[name].body.decode() for name in FIRST)
    hint = f'<link rel="modulepreload" href="/ui/{HASH}/%s">'
    hints = "\n    ".join(hint % name for name in with_imports(files, modules))
    shell = files.by_name[SHELL].body.decode().replace(STYLE, style).replace(HINTS, hints)
    return shell.replace(HASH, files.hash)


class Dashboard:
    """Nothing here needs a token: the files are the same for everybody, and have no data."""

    def __init__(self, directory: Path = FILES) -> None:
        self._directory = directory
        self._reading: asyncio.Future[PageFiles] | None = None
        self._shells: dict[tuple[str, ...], str] = {}

    def begin(self) -> None:
        """Read and compress the files in a thread, while the server starts."""
        self._reading = asyncio.ensure_future(asyncio.to_thread(read_files, self._directory))

    async def _files(self) -> PageFiles:
        if self._reading is None:
            self.begin()
        assert self._reading is not None
        return await self._reading

    async def shell(self, request: Request) -> Response:
        """Reply with the shell, whose script reads the address to choose the screen."""
        files = await self._files()
        modules = modules_at(files, request.scope["path"])
        if modules not in self._shells:
            self._shells[modules] = shell_with(files, modules)
        return html(request, self._shells[modules])

    async def file(self, request: Request) -> Response:
        files = await self._files()
        file = files.by_name.get(request.path_params["name"])
        if file is None or request.path_params["hash"] != files.hash:
            raise HTTPException(404)
        headers = {
            "cache-control": "public, max-age=31536000, immutable",
            "vary": "accept-encoding",
            "x-content-type-options": "nosniff",
            "cross-origin-resource-policy": "same-origin",
            "content-type": file.kind,
        }
        if file.packed and accepts_gzip(request.scope):
            return Response(file.packed, headers=headers | {"content-encoding": "gzip"})
        return Response(file.body, headers=headers)


def html(request: Request, page: str) -> Response:
    """A page under the strictest policy; `{nonce}` in it becomes that of this answer alone."""
    nonce = secrets.token_urlsafe(16)
    body = page.replace(NONCE, nonce).encode()
    headers = {
        "content-type": TYPES[".html"],
        "content-security-policy": POLICY.replace(NONCE, nonce),
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cross-origin-opener-policy": "same-origin",
        "cache-control": "no-cache",
        "vary": "accept, accept-encoding",
    }
    if accepts_gzip(request.scope):
        return Response(gzip.compress(body, 6), headers=headers | {"content-encoding": "gzip"})
    return Response(body, headers=headers)


class Screens:
    """Serves the dashboard's shell to browsers, at screens' addresses and instead of a 404.

    Other clients get JSON from the same paths (`GET /tasks/t-1`): they do not accept HTML.
    """

    def __init__(self, app: ASGIApp, shell: ASGIApp) -> None:
        self._app, self._shell = app, shell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _wants_page(scope):
            await self._app(scope, receive, send)
        elif _is_screen(scope["path"]):
            await self._shell(scope, receive, send)
        else:
            await self._page_or_missing(scope, receive, send)

    async def _page_or_missing(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on; answer a 404 with the dashboard's page, which has links."""
        missing = False

        async def pass_on(message: Message) -> None:
            nonlocal missing
            missing = missing or message.get("status") == HTTPStatus.NOT_FOUND
            if not missing:
                await send(message)

        async def as_missing(message: Message) -> None:
            start = message["type"] == "http.response.start"
            await send({**message, "status": HTTPStatus.NOT_FOUND} if start else message)

        await self._app(scope, receive, pass_on)
        if missing:
            await self._shell(scope, receive, as_missing)


def _is_screen(path: str) -> bool:
    return path[1:].partition("/")[0] in screens().keys() - {""}


def _wants_page(scope: Scope) -> bool:
    """Whether a browser navigates: it accepts HTML, and sends no token."""
    if scope["method"] not in {"GET", "HEAD"}:
        return False
    headers = dict(scope["headers"])
    return b"text/html" in headers.get(b"accept", b"") and b"authorization" not in headers
