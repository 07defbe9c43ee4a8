"""Bodies of the control service's steps: byte 0 says how long the JSON part claims to be; tensors are read and written.

The rest of REST is schemathesis' (tests/control/test_api_fuzz.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from fuzz.harness import Fault, refusals
from fuzz.messages import changed_bytes
from tenfold_core import open_inference

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 3, 2**31, 2**63, 2**70, 1e308, 1.5, "", "NaN", "Infinity", "a", "\ud800", "AA==", [], [[]],
    [1, 2], [[1], [2]], {}, {"encoding": "base64"}, {"binary_data_size": 4}, "BYTES", "FP16", "UINT64", "BOOL",
    "COMPLEX64", [0, 2**62], [2] * 33, ["a", "b"],
)  # fmt: skip


def one_input(data: bytes) -> None:
    if not data:
        return
    how, body = data[0], data[1:]
    claimed = (None, str(how >> 2), str(body.rfind(b"}") + 1), "\u0663")[how & 3]
    with refusals():
        parsed, binary = open_inference.split_body(body, claimed)
        tensors = parsed.get("inputs") if isinstance(parsed, dict) else parsed
        arrays = open_inference.read_tensors(tensors, binary, "inputs")
        for is_binary in (False, True):
            written = [(name, array, is_binary) for name, array in arrays.items()]
            heads, parts = open_inference.write_tensors(written)
            text = json.dumps(heads, allow_nan=False).encode()
            again = open_inference.read_tensors(open_inference.parse_json(text), memoryview(b"".join(parts)), "again")
            for name, array in arrays.items():
                if not _same(array, again[name]):
                    raise Fault(f"tensor {name!r} is not what was read: {array!r}, {again[name]!r}")


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype == object:
        return bool(one.tolist() == other.tolist())
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Another JSON, if it is JSON; bytes in it, else."""
    how, body = data[:1] or b"\0", data[1:]
    end = body.rfind(b"}") + 1 if how[0] & 3 == 2 else len(body)
    try:
        value = json.loads(body[:end])
    except (ValueError, RecursionError):
        return how + changed_bytes(body, chance)
    if chance.random() < 0.2:
        return how + changed_bytes(body, chance)
    changed = _changed(value, chance)
    return how + json.dumps(changed).encode() + body[end:]


def _changed(value: Any, chance: random.Random) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        if chance.random() < 0.1:
            return {name: item for name, item in value.items() if name != key}
        return {**value, key: _changed(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        if chance.random() < 0.2:
            return [*value, value[at]]
        return [*value[:at], _changed(value[at], chance), *value[at + 1 :]]
    return chance.choice(_VALUES)


def seeds() -> Iterator[bytes]:
    arrays = [
        np.arange(4, dtype=np.float32).reshape(2, 2), np.array([b"a", b"\xff"], object), np.array([True, False]),
        np.array([1.5, np.nan, np.inf], np.float16), np.array(2**63, np.uint64), np.array([1j], np.complex64),
    ]  # fmt: skip
    for binary in (False, True):
        heads, parts = open_inference.write_tensors((f"t{i}", array, binary) for i, array in enumerate(arrays))
        yield b"\2" + json.dumps({"inputs": heads}).encode() + b"".join(parts)
        for head, array in zip(heads, arrays, strict=True):
            part = open_inference.to_binary("t", array)[1] if binary else b""
            yield b"\2" + json.dumps({"inputs": [head]}).encode() + part
    yield b"\0" + b"[" * 3000
    yield b'\0{"inputs": [{"name": "a", "datatype": "INT64", "shape": [2, 2], "data": [[1, 2], [3, 4]]}]}'
