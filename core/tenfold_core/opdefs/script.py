"""Op definitions: functions of the client's process.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default) and flags. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs.table import family

op = family("script")

op(
    "EagerPyFunc",
    "input: Tin",
    "output: Tout",
    "token: string",
    "is_async: bool = false",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    stateful=True,
    sized_by="*",
)
op(
    "PyFunc",
    "input: Tin",
    "output: Tout",
    "token: string",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    stateful=True,
    sized_by="*",
)
op(
    "PyFuncStateless",
    "input: Tin",
    "output: Tout",
    "token: string",
    "Tin: list(type) >= 0",
    "Tout: list(type) >= 0",
    sized_by="*",
)
