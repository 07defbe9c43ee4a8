"""The service's description of itself: FastAPI's document with this service's differences.

`docs/openapi.json` is the one without a token; `make openapi` writes it, a test compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi

if TYPE_CHECKING:
    from fastapi import FastAPI

    from tenfold_control_api.settings import Settings


def described(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """FastAPI's document with this service's differences: validation errors are 400 problems, POSTs take an
    Idempotency-Key."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    for methods in schema["paths"].values():
        for method, operation in methods.items():
            operation["responses"].pop("422", None)
            default = operation["responses"].get("default", {})
            default.get("content", {}).pop("application/json", None)
            if method == "post":
                operation.setdefault("parameters", []).append(
                    {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "required": False,
                        "description": "The same key with the same request gets the stored answer.",
                        "schema": {"type": "string", "maxLength": 255},
                    }
                )
    components = schema.setdefault("components", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        components.get("schemas", {}).pop(unused, None)
    if settings.token is not None:
        components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
    app.openapi_schema = schema
    return schema
