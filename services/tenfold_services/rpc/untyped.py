"""grpc and grpc.aio as mypy cannot see them: releases of types-grpcio differ, and some know no grpc.aio at all.

The files of this folder take both from here; their own functions are typed.
"""

from __future__ import annotations

import importlib
from typing import Any

grpc: Any = importlib.import_module("grpc")
aio: Any = importlib.import_module("grpc.aio")
