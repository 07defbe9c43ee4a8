"""`/docs`: the description of the REST interface for people, by Swagger UI. Served by this service alone.

Swagger UI's files are those that the package fastapi-offline ships (Apache License 2.0); the page around them is ours.
It loads nothing from elsewhere, which POLICY makes the browser refuse: a script on this origin could run steps.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from fastapi import APIRouter, Response

from tenfold_control_api.dashboard_files import HEADERS
from tenfold_control_api.problems import ApiError

router = APIRouter(include_in_schema=False)

#: Swagger UI writes style attributes, and icons as data.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tenfold control service: REST</title>
<link rel="icon" href="/ui/icon.svg">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="/docs/swagger-ui.css">
<link rel="stylesheet" href="/docs/dark.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
"""
#: Without the validator, which is a service elsewhere.
_START = """SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  validatorUrl: null,
  queryConfigEnabled: false,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIBundle.SwaggerUIStandalonePreset],
});
"""
#: Where the system is dark: Swagger UI is only ever light, so its colours are inverted, and their hues turned back.
_DARK = """@media (prefers-color-scheme: dark) {
  html { background: #0e1116; }
  #swagger-ui { filter: invert(0.92) hue-rotate(180deg); }
  #swagger-ui .highlight-code, #swagger-ui .microlight, #swagger-ui img { filter: invert(1) hue-rotate(180deg); }
}
"""
_TYPES = {
    "dark.css": "text/css; charset=utf-8",
    "start.js": "text/javascript; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "swagger-ui.css": "text/css; charset=utf-8",
}


@router.get("/docs")
async def reference() -> Response:
    return _answer(_PAGE.encode(), "text/html; charset=utf-8")


@router.get("/docs/{name}")
async def reference_file(name: str) -> Response:
    if name not in _TYPES:
        raise ApiError("no-such-route", f"there is no file {name!r}; the page itself is at /docs.")
    written = {"start.js": _START, "dark.css": _DARK}.get(name)
    return _answer(_packaged(name) if written is None else written.encode(), _TYPES[name])


def _answer(content: bytes, media_type: str) -> Response:
    return Response(content, media_type=media_type, headers={**HEADERS, "Content-Security-Policy": POLICY})


@cache
def _packaged(name: str) -> bytes:
    """A file of Swagger UI; read once."""
    found = find_spec("fastapi_offline")
    assert found is not None, "a dependency of the extra `control`"
    assert found.origin is not None
    return (Path(found.origin).parent / "static" / name).read_bytes()
