"""Runs cases here, writes values as text, and compares: answers.txt holds what TensorFlow gives for each case.

A line of the table is a list of JSON: the op, the case's number, a check of its inputs, whether the kernel refuses to
make more than a tensor may hold, and the outputs' texts (None for one that is not compared), or the class of the
error: "refused" where TensorFlow's is another class than ours, for which fault comes first is no promise, and "only
here: …" where TensorFlow accepts what known.py says that it should not. After "here:" stands what no TensorFlow has a
kernel for, as Tenfold gave it when the table was made. An output of many elements is there in a part, with the sum of
all. Made by make.py; used by tests/kernels/test_kernel_net.py, which needs no TensorFlow.
"""

from __future__ import annotations

import contextlib
import json
import math
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net.known import KNOWN
from tenfold_core import dtypes, errors, memory_limits, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.resources.state import ResourceManager

if TYPE_CHECKING:
    from support.kernel_net.cases import Case

TABLE = Path(__file__).with_name("answers.txt")
#: Elements of an output that the table has.
MOST = 16
#: Relative differences of types that are computed in another order, for outputs as large as the largest of them.
_TOLERANCE = {"float64": 1e-7, "complex128": 1e-7, "float16": 4e-3, "bfloat16": 2e-2}
_USUAL = 2e-5


def table() -> dict[str, list[tuple[int, int, bool, Any]]]:
    """Op → (the case's number, its check, whether it is limited, the answer)."""
    found: dict[str, list[tuple[int, int, bool, Any]]] = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            op, number, check, limited, answer = json.loads(line)
            if isinstance(answer, list) and answer[:1] == ["here:"]:
                answer = answer[1:]
            found.setdefault(op, []).append((number, check, limited, answer))
    return found


def compute(case: Case, earlier: tuple[np.ndarray, ...] | None = None) -> Any:
    """The outputs here, as a list, or the error; after a call with `earlier` inputs, which the kernel must forget."""
    attrs = case.attrs
    types = signature(opdefs.get(case.op), attrs)
    node = registry.KernelNode(
        "n", case.op, attrs, types.input_types, types.output_types, "/device:CPU:0", ResourceManager()
    )
    try:
        with registry.quiet():
            run = registry.lookup(node, "CPU")(node)
            if earlier is not None:
                with contextlib.suppress(errors.OpError):
                    run(*earlier)
            result = run(*case.inputs)
    except errors.OpError as error:
        return error
    outputs = list(result) if isinstance(result, tuple) else [result] if types.output_types else []
    for output, dtype in zip(outputs, types.output_types, strict=True):
        assert output.dtype == np.dtype(dtype.as_numpy_dtype), f"{case.op} gives {output.dtype}, not {dtype.name}"
    known = KNOWN.get(case.op)
    with registry.quiet():
        return outputs if known is None or known.reading is None else [known.reading(value) for value in outputs]


def is_limited(case: Case) -> bool:
    """Whether the kernel refuses to make an output that is larger than a tensor may be."""
    before = memory_limits.tensor_limit()
    outputs = compute(case)
    largest = 0 if isinstance(outputs, errors.OpError) else max((value.nbytes for value in outputs), default=0)
    if largest <= 16:
        return False
    small, memory_limits._SMALL = memory_limits._SMALL, 0
    memory_limits.limit_tensor(largest - 1)
    try:
        return isinstance(compute(case), errors.ResourceExhaustedError)
    finally:
        memory_limits.limit_tensor(before)
        memory_limits._SMALL = small


def text_of(value: np.ndarray) -> str:
    """Type, shape and elements: `float32[2,2] 1 0.5 nan 3`; strings as JSON, long ones as a checksum."""
    head = f"{'string' if value.dtype == object else value.dtype.name}[{','.join(map(str, value.shape))}]"
    flat = value.ravel()
    if value.dtype == object:
        texts = [each if len(each) < 60 else b"#%d" % zlib.crc32(each) for each in flat.tolist()]
        return f"{head} {json.dumps([text.decode('latin-1') for text in texts[:MOST]])}"
    if flat.size <= MOST:
        return " ".join([head, *map(_number, flat.tolist())])
    return " ".join([head, *map(_number, flat[:: _step(flat.size)].tolist()), _number(_sum(flat))])


def _step(size: int) -> int:
    return size // MOST + 1


def _sum(flat: np.ndarray) -> Any:
    """All elements, each with a weight of its own."""
    wide = flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)
    return np.where(np.isfinite(wide), wide, 0) @ (1 + np.arange(flat.size) % 7)


def _number(value: Any) -> str:
    if isinstance(value, complex):
        return f"{value.real:.8g}{value.imag:+.8g}j"
    return f"{value:.9g}" if isinstance(value, float) else str(int(value))


def difference(ours: Any, answer: Any, slack: float = 1.0) -> str | None:
    """What is otherwise than in the table, or None."""
    if isinstance(ours, errors.OpError):
        name = type(ours).__name__.removesuffix("Error")
        return None if answer in (name, "refused", f"only here: {name}") else f"{name}: {ours.message}"
    if isinstance(answer, str):
        return f"no error, but {[text_of(value) for value in ours]}"
    if len(ours) != len(answer):
        return f"{len(ours)} outputs"
    for place, (value, text) in enumerate(zip(ours, answer, strict=True)):
        if text is not None and not _same(value, text, slack):
            return f"output {place}: {text_of(value)}"
    return None


def agree(one: Any, other: Any) -> bool:
    """Whether two entries of the table are the same but for rounding."""
    one = one[1:] if isinstance(one, list) and one[:1] == ["here:"] else one
    if isinstance(one, str) or isinstance(other, str):
        return bool(one == other)
    return len(one) == len(other) and all(map(_alike, one, other))


def _alike(one: str | None, other: str | None) -> bool:
    if one == other or one is None or other is None:
        return one == other
    (head, _, left), (other_head, _, right) = one.partition("] "), other.partition("] ")
    if head != other_head or not head.startswith(("float", "bfloat", "complex")):
        return False
    a, b = (np.array([complex(each) for each in part.split()]) for part in (left, right))
    return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * float(np.nanmax(np.abs(b), initial=0)), equal_nan=True))


def _same(value: np.ndarray, text: str, slack: float) -> bool:
    mine = text_of(value)
    if mine == text:
        return True
    (head, _, left), (other, _, right) = mine.partition("] "), text.partition("] ")
    if head != other or (not dtypes.as_dtype(value.dtype).is_floating and value.dtype.kind != "c"):
        return False
    a, b = (
        np.array([complex(each) if "j" in each else float(each) for each in part.split()]) for part in (left, right)
    )
    scale = float(np.abs(value[np.isfinite(value)]).astype(np.float64).max(initial=0))
    bound = np.full(a.shape, slack * _TOLERANCE.get(value.dtype.name, _USUAL) * scale)
    if value.size > MOST:
        bound[-1] *= 4 * math.sqrt(value.size)
    return all(map(_near, a.tolist(), b.tolist(), bound.tolist()))


def _near(a: Any, b: Any, bound: float) -> bool:
    """Parts that are not finite must be the same."""
    if isinstance(a, complex):
        return _near(a.real, b.real, bound) and _near(a.imag, b.imag, bound)
    if math.isfinite(a) and math.isfinite(b):
        return abs(a - b) <= bound + 1e-37
    return a == b or (math.isnan(a) and math.isnan(b))
