"""Strings unpacked: what each kind gives, how much it may be, and what is no packed string."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors, memory_limits
from tenfold_kernels.cpu import string_decode
from tenfold_protos import example_pb2


def words(*values: bytes) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def gzipped(text: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()


PACKED = {b"ZLIB": zlib.compress, b"GZIP": gzipped, b"": bytes}


@pytest.mark.parametrize("kind", PACKED)
def test_each_kind_unpacks_its_own(ops: Any, kind: bytes) -> None:
    texts = [b"", b"abc", b"x" * 5000]
    found = ops.run("DecodeCompressed", [words(*map(PACKED[kind], texts))], compression_type=kind)
    assert found.tolist() == texts
    if kind:
        other = PACKED[b"GZIP" if kind == b"ZLIB" else b"ZLIB"](b"abc")
        for wrong in (other, b"odd"):
            with pytest.raises(errors.DataLossError, match=r"^inflate\(\) failed: "):
                ops.run("DecodeCompressed", [words(PACKED[kind](b"fine"), wrong)], compression_type=kind)


def test_kinds_that_there_are_not(ops: Any) -> None:
    with pytest.raises(errors.UnimplementedError, match=r"^ZSTD strings are not unpacked here; ZLIB and GZIP are$"):
        ops.run("DecodeCompressed", [words(b"")], compression_type=b"ZSTD")
    for kind in (b"zlib", b"odd"):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Only ZLIB, ZSTD, GZIP or NONE are supported compres"):
            ops.run("DecodeCompressed", [words(b"")], compression_type=kind)


def test_a_small_string_cannot_unpack_to_the_world(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = words(zlib.compress(b"x" * 100_000))
    monkeypatch.setattr(memory_limits, "_limit", 50_000)
    with pytest.raises(
        errors.ResourceExhaustedError, match=r"^a packed string holds more than the 50000 bytes that a "
    ):
        ops.run("DecodeCompressed", [bomb], compression_type=b"ZLIB")
    monkeypatch.setattr(memory_limits, "_limit", 100_001)
    assert len(ops.run("DecodeCompressed", [bomb], compression_type=b"ZLIB").item()) == 100_000


def test_all_strings_share_the_room(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    both = words(zlib.compress(b"x" * 600), zlib.compress(b"y" * 500))
    monkeypatch.setattr(memory_limits, "_limit", 1100)
    assert ops.run("DecodeCompressed", [both], compression_type=b"ZLIB").tolist() == [b"x" * 600, b"y" * 500]
    monkeypatch.setattr(memory_limits, "_limit", 1099)
    with pytest.raises(errors.ResourceExhaustedError, match=r"^OOM: DecodeCompressed would give strings of 1100 bytes"):
        ops.run("DecodeCompressed", [both], compression_type=b"ZLIB")


@pytest.mark.parametrize(("limit", "most"), [(1 << 40, (1 << 31) - 1), (1 << 20, 1 << 20)])
def test_no_string_unpacks_to_more_than_tensorflow_takes(
    ops: Any, monkeypatch: pytest.MonkeyPatch, limit: int, most: int
) -> None:
    asked: list[int] = []

    class Unpacker:
        unconsumed_tail = b""

        def __init__(self, window: int) -> None:
            assert window == 15

        def decompress(self, value: bytes, most: int) -> bytes:
            asked.append(most)
            return value

    class Library:
        error = zlib.error
        decompressobj = Unpacker

    monkeypatch.setattr(string_decode, "zlib", Library)
    monkeypatch.setattr(memory_limits, "_limit", limit)
    assert ops.run("DecodeCompressed", [words(b"as it is")], compression_type=b"ZLIB").tolist() == [b"as it is"]
    assert asked == [most]


def test_examples_in_json(ops: Any) -> None:
    text = json.dumps({"features": {"feature": {"a": {"floatList": {"value": [1.5, 2]}}}}}).encode()
    found = ops.run("DecodeJSONExample", [words(text, b"{}")])
    example = example_pb2.Example.FromString(found[0])
    assert list(example.features.feature["a"].float_list.value) == [1.5, 2]
    assert found[1] == b""
    for wrong in (b"{", b'{"odd": 1}', b"\xff"):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Error while parsing JSON: "):
            ops.run("DecodeJSONExample", [words(text, wrong)])
