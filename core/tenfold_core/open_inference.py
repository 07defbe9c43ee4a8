"""Tensors as the Open Inference Protocol v2 writes them: JSON objects, and its binary form for bulk.

Shared by the REST client (tenfold.control) and the control service, the two ends of one wire. Numpy only.
JSON has no NaN or Infinity: the strings "NaN", "Infinity" and "-Infinity" stand for them in floating tensors. Two
additions of ours: COMPLEX64/COMPLEX128 (data is re, im, re, im, …), and `"parameters": {"encoding": "base64"}` on a
BYTES tensor whose elements are not all UTF-8.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tenfold_core import errors

#: datatype → numpy dtype. BYTES is an object array of bytes.
DATATYPES: Mapping[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "UINT8": np.dtype(np.uint8),
    "UINT16": np.dtype(np.uint16),
    "UINT32": np.dtype(np.uint32),
    "UINT64": np.dtype(np.uint64),
    "INT8": np.dtype(np.int8),
    "INT16": np.dtype(np.int16),
    "INT32": np.dtype(np.int32),
    "INT64": np.dtype(np.int64),
    "FP16": np.dtype(np.float16),
    "FP32": np.dtype(np.float32),
    "FP64": np.dtype(np.float64),
    "COMPLEX64": np.dtype(np.complex64),
    "COMPLEX128": np.dtype(np.complex128),
    "BYTES": np.dtype(object),
}
_NAMES = {dtype: name for name, dtype in DATATYPES.items()}
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
#: Nothing sensible has more dimensions, and numpy takes 64 at most.
MAX_RANK = 32
#: What a shape may multiply up to, before any data was looked at.
MAX_ELEMENTS = 1 << 34


class MalformedError(errors.InvalidArgumentError):
    """A body, or a tensor in it, that is not the protocol's. `at` leads to what is wrong: names and indices from what
    was to be read inwards, () for all of it."""

    def __init__(self, text: str, at: tuple[str | int, ...]) -> None:
        super().__init__(None, None, text)
        self.at = at


def _bad(text: str, *at: str | int) -> MalformedError:
    return MalformedError(text, at)


def datatype_of(array: np.ndarray[Any, Any]) -> str:
    """The protocol's name of an array's type. Raises UnimplementedError for a type that it has no name for."""
    if array.dtype.kind in "SU":
        return "BYTES"
    name = _NAMES.get(array.dtype.newbyteorder("="))
    if name is None:
        raise errors.UnimplementedError(
            None,
            None,
            f"the Open Inference Protocol has no datatype for {array.dtype}; it has {', '.join(DATATYPES)}. "
            "Send and ask for such tensors by a protobuf body.",
        )
    return name


# -- arrays → JSON


def to_json(name: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """One tensor as a JSON object, data flat in row-major order."""
    datatype = datatype_of(array)
    tensor: dict[str, Any] = {"name": name, "datatype": datatype, "shape": list(array.shape)}
    if datatype == "BYTES":
        elements = _as_bytes(array)
        try:
            tensor["data"] = [element.decode("utf-8") for element in elements]
        except UnicodeDecodeError:
            tensor["parameters"] = {"encoding": "base64"}
            tensor["data"] = [base64.b64encode(element).decode("ascii") for element in elements]
        return tensor
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind == "c":
        flat = flat.view(np.float32 if array.dtype == np.complex64 else np.float64)
    data = flat.tolist()
    if array.dtype.kind in "fc" and not np.isfinite(flat).all():
        data = list(map(json_number, data))
    tensor["data"] = data
    return tensor


def json_number(value: float) -> float | str:
    """A number as JSON may hold it: NaN and the infinities are words."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _as_bytes(array: np.ndarray[Any, Any]) -> list[bytes]:
    return [
        element.encode("utf-8") if isinstance(element, str) else bytes(element)
        for element in array.reshape(-1).tolist()
    ]


# -- JSON → arrays


def from_json(tensor: Any) -> tuple[str, np.ndarray[Any, Any]]:
    """Name and array of a JSON tensor. Raises InvalidArgumentError naming the tensor and what is wrong with it."""
    name, datatype, shape = _head(tensor)
    if "data" not in tensor:
        raise _bad(f"tensor {name!r} has no 'data' (nor 'parameters.binary_data_size').")
    flat = _flatten(name, tensor["data"], shape)
    if datatype == "BYTES":
        return name, _bytes_from_json(name, flat, shape, tensor)
    dtype = DATATYPES[datatype]
    if dtype.kind == "c":
        count = 2 * math.prod(shape)
        real = _numbers(name, datatype, np.dtype(np.float64), flat, count).astype(f"f{dtype.itemsize // 2}")
        return name, real.view(dtype).reshape(shape)
    return name, _numbers(name, datatype, dtype, flat, math.prod(shape)).reshape(shape)


def _head(tensor: Any) -> tuple[str, str, tuple[int, ...]]:
    if not isinstance(tensor, Mapping):
        raise _bad(f"a tensor is an object with name, datatype, shape and data, not {type(tensor).__name__}.")
    name, datatype, shape = tensor.get("name"), tensor.get("datatype"), tensor.get("shape")
    if not isinstance(name, str) or not name:
        raise _bad("a tensor has no 'name' (a text that is not empty).", "name")
    if not isinstance(datatype, str) or datatype not in DATATYPES:
        raise _bad(f"tensor {name!r} has datatype {datatype!r}; it must be one of {', '.join(DATATYPES)}.", "datatype")
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) > MAX_RANK:
        raise _bad(f"tensor {name!r} needs a 'shape': a list of at most {MAX_RANK} sizes.", "shape")
    if any(type(size) is not int or size < 0 for size in shape):
        raise _bad(f"tensor {name!r} has shape {list(shape)!r}; sizes are whole numbers of at least 0.", "shape")
    if math.prod(shape) > MAX_ELEMENTS or any(size > MAX_ELEMENTS for size in shape):
        raise _bad(f"tensor {name!r} has shape {list(shape)!r}, which is too large.", "shape")
    return name, datatype, tuple(shape)


def _flatten(name: str, data: Any, shape: tuple[int, ...]) -> list[Any]:
    """Flat data; nested lists are accepted where they nest exactly as the shape does."""
    level: list[Any] = data if isinstance(data, list) else [data]  # a bare scalar is what some clients write
    if not any(isinstance(element, list) for element in level):
        return level
    for depth, size in enumerate(shape):
        if len(level) != math.prod(shape[: depth + 1]):
            raise _bad(f"tensor {name!r}: its data does not nest as its shape {list(shape)} does.", "data")
        if depth == len(shape) - 1:
            break
        inner: list[Any] = []
        for element in level:
            if not isinstance(element, list) or len(element) != shape[depth + 1]:
                text = f"tensor {name!r}: its data does not nest as its shape {list(shape)} does (size {size})."
                raise _bad(text, "data")
            inner.extend(element)
        level = inner
    return level


def _numbers(
    name: str, datatype: str, dtype: np.dtype[Any], flat: list[Any], count: int
) -> np.ndarray[Any, np.dtype[Any]]:
    if len(flat) != count:
        text = f"tensor {name!r} has {len(flat)} values; its shape and datatype {datatype} ask for {count}."
        raise _bad(text, "data")
    allowed: set[type] = {bool} if dtype.kind == "b" else {int} if dtype.kind in "iu" else {int, float, str}
    found = set(map(type, flat)) - allowed
    if found:
        what = {"b": "true and false", "f": 'numbers, "NaN", "Infinity" and "-Infinity"'}.get(
            dtype.kind, "whole numbers"
        )
        kinds = ", ".join(sorted(kind.__name__ for kind in found))
        raise _bad(f"tensor {name!r} of datatype {datatype} takes {what}; its data holds {kinds}.", "data")
    if dtype.kind != "f":
        try:
            return np.array(flat, dtype=dtype)
        except OverflowError:
            low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
            worst = next(value for value in flat if not low <= value <= high)
            raise _bad(f"tensor {name!r}: {worst} does not fit {datatype} ({low} to {high}).", "data") from None
    special = {i: value for i, value in enumerate(flat) if type(value) is str} if str in set(map(type, flat)) else {}
    if unknown := set(special.values()) - _SPECIAL.keys():
        raise _bad(
            f'tensor {name!r}: {min(unknown)!r} is not a number. Only "NaN", "Infinity" and "-Infinity" are written '
            f"as text.",
            "data",
        )
    try:
        wide = np.array([0.0 if type(value) is str else value for value in flat] if special else flat, dtype=np.float64)
    except OverflowError:
        raise _bad(f"tensor {name!r} holds a whole number that is too large for {datatype}.", "data") from None
    with np.errstate(over="ignore"):
        array = wide.astype(dtype)
    finite = np.isfinite(array)
    if not finite.all():
        raise _bad(f"tensor {name!r}: {wide[~finite][0]:g} does not fit {datatype}.", "data")
    for i, text in special.items():
        array[i] = _SPECIAL[text]
    return array


def _bytes_from_json(
    name: str, flat: list[Any], shape: tuple[int, ...], tensor: Mapping[str, Any]
) -> np.ndarray[Any, Any]:
    if len(flat) != math.prod(shape):
        text = f"tensor {name!r} has {len(flat)} values; its shape {list(shape)} asks for {math.prod(shape)}."
        raise _bad(text, "data")
    if set(map(type, flat)) - {str}:
        raise _bad(f"tensor {name!r} of datatype BYTES takes texts; its data holds something else.", "data")
    encoding = parameters_of(tensor).get("encoding", "utf-8")
    if encoding == "utf-8":
        try:
            elements = [element.encode("utf-8") for element in flat]
        except UnicodeEncodeError:
            raise _bad(f"tensor {name!r} holds half a surrogate pair; send such bytes as base64.", "data") from None
    elif encoding == "base64":
        try:
            elements = [base64.b64decode(element, validate=True) for element in flat]
        except (binascii.Error, ValueError):
            raise _bad(f"tensor {name!r} says that its data is base64, and it is not.", "data") from None
    else:
        text = f"tensor {name!r} has encoding {encoding!r}; it must be 'utf-8' or 'base64'."
        raise _bad(text, "parameters", "encoding")
    return _object_array(elements, shape)


def _object_array(elements: list[bytes], shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)


def parameters_of(thing: Mapping[str, Any]) -> Mapping[str, Any]:
    """The `parameters` member, optional in the protocol. Raises InvalidArgumentError if it is not an object."""
    parameters = thing.get("parameters", {})
    if not isinstance(parameters, Mapping):
        raise _bad("'parameters' must be an object.", "parameters")
    return parameters


# -- the binary form


def to_binary(name: str, array: np.ndarray[Any, Any]) -> tuple[dict[str, Any], bytes]:
    """A tensor's JSON head, with its size in `parameters.binary_data_size`, and its bytes (little-endian)."""
    datatype = datatype_of(array)
    if datatype == "BYTES":
        raw = b"".join(len(e).to_bytes(4, "little") + e for e in _as_bytes(array))
    else:
        raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
    head = {
        "name": name,
        "datatype": datatype,
        "shape": list(array.shape),
        "parameters": {"binary_data_size": len(raw)},
    }
    return head, raw


def from_binary(tensor: Any, raw: memoryview) -> tuple[str, np.ndarray[Any, Any]]:
    """Name and array of a tensor whose bytes are `raw`; a read-only view of it, or a copy for BYTES and BOOL."""
    name, datatype, shape = _head(tensor)
    count = math.prod(shape)
    if datatype == "BYTES":
        elements: list[bytes] = []
        at = 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 4], "little")
            if at + 4 + size > len(raw) or at + 4 > len(raw):
                raise _bad(f"tensor {name!r}: its binary data ends inside element {len(elements)}.")
            elements.append(bytes(raw[at + 4 : at + 4 + size]))
            at += 4 + size
        if len(elements) != count:
            raise _bad(f"tensor {name!r} has {len(elements)} elements; its shape {list(shape)} asks for {count}.")
        return name, _object_array(elements, shape)
    dtype = DATATYPES[datatype]
    if len(raw) != count * dtype.itemsize:
        raise _bad(
            f"tensor {name!r} has {len(raw)} bytes of binary data; its shape and datatype ask for "
            f"{count * dtype.itemsize}."
        )
    if dtype.kind == "b":
        return name, np.frombuffer(raw, dtype=np.uint8).astype(np.bool_).reshape(shape)
    array = np.frombuffer(raw, dtype=dtype.newbyteorder("<")).reshape(shape)
    return name, array


def split_body(body: bytes, header_length: str | None) -> tuple[Any, memoryview]:
    """The JSON part of a body, parsed, and the binary part after it. Raises InvalidArgumentError for what is no
    JSON."""
    text, binary = cut_body(body, header_length)
    return parse_json(text), binary


def cut_body(body: bytes, header_length: str | None) -> tuple[bytes, memoryview]:
    """The text of a body's JSON part, and the binary part after it. Raises InvalidArgumentError for a length that the
    body does not have."""
    length = len(body)
    if header_length is not None:
        if not header_length.isascii() or not header_length.isdigit() or int(header_length) > length:
            raise _bad(
                f"Inference-Header-Content-Length is {header_length!r}; it must be the length of the JSON part, "
                f"at most the body's {length} bytes."
            )
        length = int(header_length)
    return body[:length], memoryview(body)[length:]


def parse_json(text: bytes) -> Any:
    """Strict JSON: no NaN, no Infinity, UTF-8. Raises InvalidArgumentError saying where it stops to be JSON."""
    try:
        return json.loads(text.decode("utf-8"), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise _bad(f"the body is not UTF-8 (byte {error.start}).") from None
    except json.JSONDecodeError as error:
        raise _bad(f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}.") from None
    except RecursionError:
        raise _bad("the body's JSON is nested too deeply.") from None
    except ValueError as error:
        raise _bad(f"the body is not JSON: {error}.") from None


def _no_constant(text: str) -> Any:
    raise ValueError(f'{text} is not part of JSON; write "{text}" as a text')


def read_tensors(tensors: Any, binary: memoryview, where: str) -> dict[str, np.ndarray[Any, Any]]:
    """All tensors of a list, binary ones taking their bytes from `binary` in order. All of it must be used.

    Name → array, in the list's order. `where` is the list's member of the body. Raises MalformedError, whose `at`
    begins there.
    """
    if not isinstance(tensors, list):
        raise _bad(f"{where!r} must be a list of tensors.", where)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    used = 0
    for i, tensor in enumerate(tensors):
        try:
            name, array, size = _read_tensor(tensor, binary[used:])
        except MalformedError as error:
            raise _bad(error.message, where, i, *error.at) from None
        if name in arrays:
            raise _bad(f"{where!r} names tensor {name!r} twice.", where, i, "name")
        arrays[name] = array
        used += size
    if used != len(binary):
        raise _bad(f"{len(binary) - used} bytes at the end of the body belong to no tensor.", where)
    return arrays


def _read_tensor(tensor: Any, binary: memoryview) -> tuple[str, np.ndarray[Any, Any], int]:
    """(name, array, how many bytes of `binary` it took)."""
    size = parameters_of(tensor).get("binary_data_size") if isinstance(tensor, Mapping) else None
    if size is None:
        return *from_json(tensor), 0
    if type(size) is not int or not 0 <= size <= len(binary):
        raise _bad(
            f"tensor {tensor.get('name')!r} says that it has {size!r} bytes of binary data; "
            f"{len(binary)} bytes are left in the body.",
            "parameters",
            "binary_data_size",
        )
    return *from_binary(tensor, binary[:size]), size


def write_tensors(
    tensors: Iterable[tuple[str, np.ndarray[Any, Any], bool]],
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The JSON list for (name, array, binary?) and the binary parts, in order."""
    heads: list[dict[str, Any]] = []
    parts: list[bytes] = []
    for name, array, binary in tensors:
        if binary:
            head, raw = to_binary(name, array)
            heads.append(head)
            parts.append(raw)
        else:
            heads.append(to_json(name, array))
    return heads, parts
