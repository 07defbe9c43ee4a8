"""What holds for every test: compiled programs are kept beside the test runner's own cache, not in the user's."""

from __future__ import annotations

import os
from pathlib import Path

os.environ.setdefault("TENFOLD_CACHE_DIR", str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "tenfold"))
