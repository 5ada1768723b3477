"""The page's own files: nothing is made on the way, and a browser asks again only for what has changed."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from fastapi import Request
from fastapi.responses import Response

from farthing.errors import RequestRefused
from farthing.server.auth.permissions import guarded
from farthing.server.http.error_envelope import refusals
from farthing.web import static_folder

router = guarded("page", prefix="")

# Named here: what a machine's own registry of types says differs from machine to machine.
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
def index(request: Request) -> Response:
    """The page itself, which loads everything else."""
    return _served(request, "index.html")


@router.api_route(
    "/static/{path:path}",
    methods=["GET", "HEAD"],
    include_in_schema=False,
    responses=refusals("not_found"),
)
def static(request: Request, path: str) -> Response:
    """One of the files that the page loads."""
    return _served(request, path)


def _served(request: Request, path: str) -> Response:
    file = page_file(static_folder(), path)
    if file is None:
        raise RequestRefused("not_found", "the page has no such file.")
    facts = file.stat()
    content, tag = _content(file, facts.st_mtime_ns, facts.st_size)
    # Always asked for again, and then mostly answered in a few bytes: a new version is seen at once.
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=TYPES[file.suffix], headers=headers)


def page_file(folder: Path, path: str) -> Path | None:
    """The file of that path inside the folder; None for everything else, hidden files and links out included.

    >>> folder = static_folder()
    >>> [page_file(folder, path) for path in ("../__init__.py", "/etc/passwd", "js", "index.html/..", "a\\0b")]
    [None, None, None, None, None]
    """
    parts = path.split("/")
    if any(not part or part.startswith(".") or "\\" in part or "\0" in part for part in parts):
        return None
    inside = folder.resolve()
    try:
        file = inside.joinpath(*parts).resolve()
        fits = file.is_relative_to(inside) and file.suffix in TYPES and file.is_file()
    except OSError:  # a name that is too long
        return None
    return file if fits else None


@lru_cache(maxsize=256)
def _content(file: Path, _changed: int, _size: int) -> tuple[bytes, str]:
    content = file.read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'
