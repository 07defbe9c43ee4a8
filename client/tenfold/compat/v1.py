"""`import tenfold.compat.v1 as tf`: the same names as `import tenfold as tf`."""

from __future__ import annotations

from typing import Any

import tenfold
from tenfold.lazy_module import make_lazy

make_lazy(__name__)


def __getattr__(name: str) -> Any:
    return getattr(tenfold, name)


def __dir__() -> list[str]:
    return dir(tenfold)
