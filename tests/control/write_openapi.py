"""Writes docs/openapi.json: `make openapi`."""

from __future__ import annotations

import json
from pathlib import Path

from tenfold_control_api.app import create_app
from tenfold_control_api.settings import Settings

if __name__ == "__main__":
    document = create_app(Settings(database="unused.db")).openapi()
    path = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
