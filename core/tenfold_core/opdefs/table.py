"""The registry behind the tables of op definitions: rows in, parsed definitions out.

A family file calls `family("math")` and gets the function that adds its rows; a row is parsed at its first look-up. A
name defined twice is an error that names both files.
"""

from __future__ import annotations

import difflib
import importlib
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core import errors
from tenfold_core.op_def import OpDef, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

#: The families, one file each; the files of their kernels, gradients and tests begin with the same stems.
FAMILIES = (
    "array",
    "audio",
    "control_flow",
    "data_flow",
    "dataset",
    "embedding",
    "fused",
    "image",
    "io",
    "linalg",
    "list",
    "lookup",
    "math",
    "nn",
    "parquet",
    "random",
    "script",
    "sdca",
    "sendrecv",
    "sparse",
    "special",
    "spectral",
    "state",
    "string",
    "summary",
    "work_queue",
)


class _OpRow(NamedTuple):
    family: str
    inputs: str
    outputs: str
    attrs: tuple[str, ...]
    flags: dict[str, Any]


_rows: dict[str, _OpRow] = {}
#: Name → the op whose row it has, and the attributes of that which it does not have.
_twins: dict[str, tuple[str, frozenset[str]]] = {}
_parsed: dict[str, OpDef] = {}
_loaded = False


def family(name: str) -> Callable[..., None]:
    """Gives the function that adds a row to the family `name`."""

    def op(
        op_name: str,
        inputs: str,
        outputs: str,
        *attrs: str,
        stateful: bool = False,
        commutative: bool = False,
        aggregate: bool = False,
        allows_uninitialized_input: bool = False,
        distributed_communication: bool = False,
        control_output: tuple[str, ...] = (),
        sized_by: str | None = None,
        shape: Callable[..., Any] | None = None,
    ) -> None:
        if op_name in _rows:
            raise ValueError(f"op {op_name} is defined twice: in family {_rows[op_name].family} and in family {name}")
        flags = {
            "is_stateful": stateful,
            "is_commutative": commutative,
            "is_aggregate": aggregate,
            "allows_uninitialized_input": allows_uninitialized_input,
            "is_distributed_communication": distributed_communication,
            "control_output": control_output,
            "sized_by": None if sized_by is None else tuple(sized_by.split()),
            "shape_fn": shape,
        }
        _rows[op_name] = _OpRow(name, inputs, outputs, attrs, flags)

    return op


def twin(op_name: str, of: str, without: Iterable[str] = ()) -> None:
    """`op_name` is defined as the op `of`, of any file, but for some attributes."""
    if op_name in _rows or op_name in _twins:
        raise ValueError(f"op {op_name} is defined twice")
    _twins[op_name] = of, frozenset(without)


def _load() -> dict[str, _OpRow]:
    global _loaded
    if not _loaded:
        for name in FAMILIES:
            importlib.import_module(f"tenfold_core.opdefs.{name}")
        for name, (of, without) in _twins.items():
            row = _rows[of]
            attrs = tuple(attr for attr in row.attrs if attr.partition(":")[0] not in without)
            _rows[name] = row._replace(attrs=attrs)
        _loaded = True
    return _rows


def has(op_name: str) -> bool:
    """True if an op of this name is defined."""
    return op_name in _load()


def names() -> list[str]:
    """Every defined op, sorted."""
    return sorted(_load())


def family_of(op_name: str) -> str:
    """The family, and so the file stem, of an op. Raises NotFoundError for an unknown op."""
    get(op_name)
    return _rows[op_name].family


def family_of_module(stem: str) -> str | None:
    """The family that a module of kernels or gradients of this stem belongs to: `math` and `math_bits` to "math".

    None for a module of no family. Loads nothing.
    """
    fitting = (name for name in FAMILIES if stem == name or stem.startswith(f"{name}_"))
    return max(fitting, key=len, default=None)


def get(op_name: str) -> OpDef:
    """The definition of an op. Raises NotFoundError, with the nearest names, for an unknown one."""
    found = _parsed.get(op_name)
    if found is not None:
        return found
    row = _load().get(op_name)
    if row is None:
        near = difflib.get_close_matches(op_name, _rows, n=3)
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise errors.NotFoundError(None, None, f"Op type not registered '{op_name}'.{hint}")
    found = parse(op_name, row.inputs, row.outputs, row.attrs, **row.flags)
    return _parsed.setdefault(op_name, found)
