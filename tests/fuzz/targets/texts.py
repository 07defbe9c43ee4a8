"""Strings that ops read: byte 0 picks the reader, byte 1 how often the text is repeated, so that what takes long for a
little takes very long for more. What may take no longer than in proportion is seen by the time that it takes.
"""

from __future__ import annotations

import functools
import gzip
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import json_format

from fuzz.harness import refusals
from fuzz.kernels import kernel, text
from tenfold_core import dtypes, tensor_util
from tenfold_core.memory_limits import limit_tensor
from tenfold_protos.example_pb2 import Example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A repeated text is as long as this.
_LONG = 1 << 15

_F, _I, _S = dtypes.float32, dtypes.int64, dtypes.string
_ONE = {_F: np.zeros(1, np.float32), _I: np.zeros(1, np.int64), _S: text(b"d").reshape(1)}


def _csv(*types: Any, **attrs: Any) -> Callable[[bytes], Any]:
    run = kernel("DecodeCSV", OUT_TYPE=list(types), **attrs)
    defaults = [_ONE[kind] for kind in types]
    return lambda value: run(text(value), *defaults)


def _of(op: str, *more: Any, **attrs: Any) -> Callable[[bytes], Any]:
    run = kernel(op, **attrs)
    return lambda value: run(text(value), *more)


def _split(op: str, delimiter: bytes) -> Callable[[bytes], Any]:
    run = kernel(op)
    return lambda value: run(text(value).reshape(1), text(delimiter))


_NUMBERS = {"float32": _F, "float64": dtypes.float64, "int32": dtypes.int32, "int64": _I}
#: Python knows more encodings than TensorFlow, some of which take long.
_ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE", "US-ASCII", "utf-7", "hz", "idna", "punycode", "unicode_escape")


def _unicode() -> dict[str, Callable[[bytes], Any]]:
    found: dict[str, Callable[[bytes], Any]] = {}
    for encoding in _ENCODINGS:
        for errors in ("replace", "ignore", "strict"):
            found[f"unicode {encoding} {errors}"] = _of_encoding(
                "UnicodeDecodeWithOffsets", input_encoding=encoding, errors=errors, replace_control_characters=True
            )
    for source, target in (("UTF-8", "UTF-16-BE"), ("UTF-16", "UTF-8"), ("shift_jis", "UTF-32-BE"), ("idna", "UTF-8")):
        found[f"transcode {source}"] = _of_encoding("UnicodeTranscode", input_encoding=source, output_encoding=target)
    return found


def _of_encoding(op: str, **attrs: Any) -> Callable[[bytes], Any]:
    """An encoding that is refused is refused when the kernel is built, for each input then."""

    @functools.cache
    def built() -> Callable[[bytes], Any]:
        return _of(op, **attrs)

    return lambda value: built()(value)


_READERS: dict[str, Callable[[bytes], Any]] = {
    "csv": _csv(_F, _I, _S),
    "csv of columns": _csv(_S, _S, field_delim=";", na_value="NA", select_cols=[0, 3]),
    "csv without quotes": _csv(_S, use_quote_delim=False),
    "json": _of("DecodeJSONExample"),
    **{name: _of("StringToNumber", out_type=kind) for name, kind in _NUMBERS.items()},
    **_unicode(),
    "base64": _of("DecodeBase64"),
    "to base64": _of("EncodeBase64", pad=True),
    "raw": _of("DecodeRaw", out_type=_F),
    "raw, big end": _of("DecodeRaw", out_type=dtypes.int16, little_endian=False),
    "padded": _of("DecodePaddedRaw", np.array(1 << 16, np.int32), out_type=dtypes.uint16),
    "zlib": _of("DecodeCompressed", compression_type="ZLIB"),
    "gzip": _of("DecodeCompressed", compression_type="GZIP"),
    "tensor": _of("ParseTensor", out_type=_F),
    "tensor of strings": _of("ParseTensor", out_type=_S),
    "length": _of("StringLength", unit="UTF8_CHAR"),
    "strip": _of("StringStrip"),
    "lower": _of("StringLower", encoding="utf-8"),
    "part": _of("Substr", np.array(1, np.int32), np.array(3, np.int32), unit="UTF8_CHAR", T=dtypes.int32),
    "hash": _of("StringToHashBucketFast", num_buckets=7),
    "strong hash": _of("StringToHashBucketStrong", num_buckets=7, key=[1, 2]),
    "split": _split("StringSplitV2", b""),
    "split at": _split("StringSplitV2", b"ab"),
    "split any": _split("StringSplit", b" ,"),
}
_NAMES = list(_READERS)


def one_input(data: bytes) -> None:
    if len(data) < 2:
        return
    limit_tensor(16 << 20)
    value = data[2:]
    if data[1] & 1 and value:
        # the first bytes once more at the end: what is nearly right until then takes longest
        value = value * (_LONG // len(value)) + value[: data[1] >> 1]
    with refusals():
        _READERS[_NAMES[data[0] % len(_NAMES)]](value)


def seeds() -> Iterator[bytes]:
    example = Example()
    example.features.feature["a"].int64_list.value.append(1)
    tensor = tensor_util.tensor_to_proto(np.arange(3.0, dtype=np.float32)).SerializeToString()
    contents = {
        "csv": b'1.5,7,"a ""b"""',
        "csv of columns": b"a;b;NA;d",
        "csv without quotes": b'"a',
        "json": json_format.MessageToJson(example).encode(),
        "float32": b" -1.5e-3 ",
        "float64": b"0x1f",
        "int64": b"+123",
        "unicode UTF-8 replace": "aé€\U0001f600\ufffd".encode() + b"\xff\xc3",
        "unicode UTF-16-BE ignore": "aé".encode("utf-16-be") + b"\xd8\x00",
        "unicode UTF-32-BE replace": "aé".encode("utf-32-be") + b"\xff",
        "unicode utf-7 replace": b"+AGEAYg-",
        "transcode UTF-16": "aé".encode("utf-16"),
        "base64": b"aGVsbG8_",
        "tensor": tensor,
        "zlib": zlib.compress(b"abc"),
        "gzip": gzip.compress(bytes(1 << 20)),
    }
    for number, name in enumerate(_NAMES):
        content = contents.get(name, b"ab,c d\xc3\xa9 ab")
        for how in (0, 5):
            yield bytes((number, how)) + content
        yield bytes((number, 1)) + b"1"
        yield bytes((number, 5)) + b"\xff"
