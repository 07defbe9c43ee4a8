"""The dashboard's files, read once: index.html for `/`, and by their names what it loads from `/ui/`.

They are in dashboard/: HTML, CSS and ES modules, as they are written, and under vendor/ two libraries. Nothing of them
comes from elsewhere, which POLICY makes the browser refuse. Served by routes/dashboard.py.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "dashboard"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain; charset=utf-8",
}
#: Only this origin, no script or style inside the page, no page around it.
POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    # it is asked each time whether there is a newer one, which costs a 304
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class File:
    """One file; `tag` changes with its content."""

    content: bytes
    media_type: str
    tag: str


@cache
def files() -> dict[str, File]:
    """All files by their paths in the folder. Reads the disk at the first call."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.is_file() and path.suffix in _TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found[path.relative_to(FOLDER).as_posix()] = File(content, _TYPES[path.suffix], tag)
    return found
