"""Checkpoint files: what is written is read, damage is told and never crashes, nothing half-written is seen."""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold_core import checkpoint, crc32c, dtypes, errors
from tenfold_core.checkpoint import coding, snappy, table
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.checkpoint.slices import MAX_RANK, TensorSlice
from tenfold_protos import tensor_bundle_pb2, tensor_shape_pb2

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]

NUMBERS = [t for t in dtypes.ALL_TYPES if t.is_numpy_compatible and t is not dtypes.string]


def text(*items: bytes) -> Array:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def write(prefix: str, **tensors: Array) -> None:
    with checkpoint.BundleWriter(prefix) as writer:
        for name, value in tensors.items():
            writer.add(name, value)


# -- numbers and names -------------------------------------------------------------------------------------------------


@given(st.integers(0, (1 << 64) - 1))
def test_varints_come_back(value: int) -> None:
    assert coding.get_varint(b"\xff" + coding.put_varint(value), 1) == (value, 1 + len(coding.put_varint(value)))


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-(1 << 63), (1 << 63) - 1))
def test_signed_numbers_come_back_and_sort(a: int, b: int) -> None:
    x, y = coding.put_signed(a), coding.put_signed(b)

    assert coding.get_signed(x, 0) == (a, len(x))
    assert (x < y) == (a < b)


@pytest.mark.parametrize(
    ("value", "code"),
    [(0, "80"), (-1, "7f"), (63, "bf"), (64, "c040"), (-64, "40"), (-65, "3fbf"), (0x424242, "f0424242"), (-0x800, "3800")],  # noqa: E501
)  # fmt: skip
def test_signed_numbers_are_tensorflows(value: int, code: str) -> None:
    assert coding.put_signed(value).hex() == code


@given(
    st.binary(max_size=20),
    st.lists(st.none() | st.tuples(st.integers(0, 99), st.integers(1, 99)), min_size=1, max_size=5),
)
def test_slice_keys_come_back(name: bytes, extents: list[tuple[int, int] | None]) -> None:
    part = checkpoint.TensorSlice(tuple(extents))

    assert checkpoint.TensorSlice.from_key(part.key(name)) == (name, part)


@given(st.binary(max_size=40))
def test_any_bytes_as_a_slice_key(data: bytes) -> None:
    try:
        name, part = checkpoint.TensorSlice.from_key(data)
    except ValueError:
        return
    assert isinstance(name, bytes)
    assert part.extents


def test_masks_are_undone() -> None:
    assert crc32c.value(b"123456789") == 0xE3069283
    assert crc32c.unmask(crc32c.mask(0xE3069283)) == 0xE3069283
    assert crc32c.extend(crc32c.value(b"1234"), np.frombuffer(b"56789", np.uint8)) == 0xE3069283


@pytest.mark.parametrize(
    "spec", ["", "10", "10 a:b", "x 0,1", "10 0,0", "10 -1,5", "10 8,5", "10 4 0,5", "-1 -", "10 1,9223372036854775807"]
)
def test_wrong_slice_specs(spec: str) -> None:
    with pytest.raises((errors.InvalidArgumentError, errors.InternalError)):
        checkpoint.parse_shape_and_slice(spec)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_a_table_of_many_blocks(tmp_path: Path) -> None:
    rows = {f"key{i:06d}".encode(): bytes([i % 251]) * 900 for i in range(2000)}
    path = tmp_path / "t"
    with path.open("wb") as out:
        writer = table.TableWriter(out)
        for key, value in rows.items():
            writer.add(key, value)
        writer.finish()

    with table.SSTable(str(path)) as found:
        assert dict(found.items()) == rows
        assert found.get(b"key001234") == rows[b"key001234"]
        assert found.get(b"key") is None
        assert found.get(b"zzz") is None


def test_keys_must_rise(tmp_path: Path) -> None:
    with (tmp_path / "t").open("wb") as out:
        writer = table.TableWriter(out)
        writer.add(b"b", b"")
        with pytest.raises(ValueError, match="table keys must rise"):
            writer.add(b"b", b"")


def test_snappy() -> None:
    # "abcd" as a literal, then 8 bytes from 4 before, then 3 from 1 before: copies of one and two bytes of offset.
    packed = bytes((15, 3 << 2)) + b"abcd" + bytes(((8 - 4) << 2 | 1, 4)) + bytes(((3 - 1) << 2 | 2, 1, 0))

    assert snappy.decompress(packed, 100) == b"abcdabcdabcd" + b"ddd"
    with pytest.raises(ValueError, match="claims to hold"):
        snappy.decompress(coding.put_varint(1 << 40), 1 << 30)


@given(st.binary(max_size=60))
def test_any_bytes_as_snappy(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert len(snappy.decompress(data, 10_000)) <= 10_000


# -- bundles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS, ids=lambda t: t.name)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_every_type_and_shape_comes_back(tmp_path: Path, dtype: dtypes.DType, shape: tuple[int, ...]) -> None:
    value = (np.arange(int(np.prod(shape))).reshape(shape) * 3).astype(dtype.as_numpy_dtype)
    write(str(tmp_path / "m"), x=value)

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        found = reader.read("x")
        assert reader.dtype_and_shape("x") == (dtype, shape)
    assert found.dtype == value.dtype
    assert found.shape == shape
    assert found.tobytes() == value.tobytes()  # a nan of a narrow type, too


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.lists(st.binary(max_size=300), max_size=20))
def test_strings_come_back(tmp_path: Path, items: list[bytes]) -> None:
    write(str(tmp_path / "m"), s=text(*items))

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.read("s").tolist() == items


def test_parts_are_joined_and_cut_anew(tmp_path: Path) -> None:
    whole = np.arange(40.0).reshape(10, 4)
    with checkpoint.BundleWriter(str(tmp_path / "m")) as writer:
        for spec, rows in (("10 4 0,3:-", slice(0, 3)), ("10 4 3,7:-", slice(3, 10))):
            shape, part, _ = checkpoint.parse_shape_and_slice(spec)
            writer.add_slice("w", shape, part, whole[rows])
        writer.add_slice("v", (4,), checkpoint.TensorSlice.full(1), whole[0])

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.names() == ["v", "w"]
        assert np.array_equal(reader.read("w"), whole)
        part = checkpoint.TensorSlice.parse("2,4:1,2")
        assert np.array_equal(reader.read_slice("w", part), whole[2:6, 1:3])
        assert np.array_equal(reader.read_slice("v", checkpoint.TensorSlice.parse("1,2")), whole[0, 1:3])
        assert [str(p) for p in reader.slices("w")] == ["0,3:-", "3,7:-"]


def test_a_gap_between_parts_is_an_error(tmp_path: Path) -> None:
    with checkpoint.BundleWriter(str(tmp_path / "m")) as writer:
        writer.add_slice("w", (10,), checkpoint.TensorSlice.parse("0,3"), np.zeros(3))

    with (
        checkpoint.BundleReader(str(tmp_path / "m")) as reader,
        pytest.raises(errors.InvalidArgumentError, match="Does not have sufficient slices for partitioned tensor w"),
    ):
        reader.read("w")


def test_shards_are_merged(tmp_path: Path) -> None:
    for i in range(3):
        os.mkdir(tmp_path / f"temp{i}")
        with checkpoint.BundleWriter(str(tmp_path / f"temp{i}" / "part")) as writer:
            writer.add(f"own{i}", np.full(3, i))
            writer.add_slice("w", (6,), checkpoint.TensorSlice.parse(f"{2 * i},2"), np.full(2, i))
    prefixes = [str(tmp_path / f"temp{i}" / "part") for i in range(3)]

    checkpoint.merge_bundles(prefixes, str(tmp_path / "m"))

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.names() == ["own0", "own1", "own2", "w"]
        assert reader.read("w").tolist() == [0, 0, 1, 1, 2, 2]
        assert reader.read("own2").tolist() == [2, 2, 2]
    assert [list((tmp_path / f"temp{i}").iterdir()) for i in range(3)] == [[], [], []]


def test_merging_needs_every_bundle_unless_told(tmp_path: Path) -> None:
    write(str(tmp_path / "a"), x=np.zeros(1))

    with pytest.raises(errors.InvalidArgumentError, match="allow_missing_files was set to false"):
        checkpoint.merge_bundles([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"))
    checkpoint.merge_bundles([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"), allow_missing_files=True)

    assert checkpoint.BundleReader(str(tmp_path / "m")).names() == ["x"]


def test_one_name_twice(tmp_path: Path) -> None:
    for name in "ab":
        write(str(tmp_path / name), x=np.zeros(1))

    with pytest.raises(errors.InvalidArgumentError, match="Duplicate tensor keyed by x"):
        checkpoint.merge_bundles([str(tmp_path / "a"), str(tmp_path / "b")], str(tmp_path / "m"))
    writer = checkpoint.BundleWriter(str(tmp_path / "c"))
    writer.add("x", np.zeros(1))
    with pytest.raises(errors.InvalidArgumentError, match="Adding duplicate key: x"):
        writer.add("x", np.zeros(1))
    writer.discard()
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("c")) == []


def test_an_overwritten_checkpoint_is_the_old_or_the_new(tmp_path: Path) -> None:
    write(str(tmp_path / "m"), x=np.zeros(3))

    with pytest.raises(errors.InvalidArgumentError), checkpoint.BundleWriter(str(tmp_path / "m")) as writer:
        writer.add("", np.ones(3))

    assert checkpoint.BundleReader(str(tmp_path / "m")).read("x").tolist() == [0, 0, 0]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.data-00000-of-00001", "m.index"]


@pytest.mark.parametrize("merged", [False, True])
def test_between_new_data_and_their_index_there_is_nothing_but_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    """Where a checkpoint is replaced, a kill there would leave an index that does not fit the data."""
    write(str(tmp_path / "m"), x=np.zeros(3))
    write(str(tmp_path / "part"), x=np.ones(3))
    done: list[str] = []
    replace, fsync = os.replace, os.fsync
    monkeypatch.setattr(os, "replace", lambda old, new, **_: (done.append(os.path.basename(new)), replace(old, new)))
    monkeypatch.setattr(os, "fsync", lambda file: (done.append("fsync"), fsync(file)))

    if merged:
        checkpoint.merge_bundles([str(tmp_path / "part")], str(tmp_path / "m"))
    else:
        write(str(tmp_path / "m"), x=np.ones(3))

    data, index = done.index("m.data-00000-of-00001"), done.index("m.index")
    assert "fsync" in done[:data]
    assert index == data + 1
    assert checkpoint.BundleReader(str(tmp_path / "m")).read("x").tolist() == [1, 1, 1]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="No such file or directory"):
        checkpoint.BundleWriter(str(tmp_path / "no" / "where" / "m"))
    with pytest.raises(errors.NotFoundError, match=r"m\.index; No such file"):
        checkpoint.BundleReader(str(tmp_path / "m"))


def test_atomic_files_leave_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"before")
    with pytest.raises(TypeError), AtomicFile(str(tmp_path / "f")) as out:
        out.writelines([b"half", None])  # type: ignore[list-item]

    assert list(tmp_path.iterdir()) == [tmp_path / "f"]
    assert (tmp_path / "f").read_bytes() == b"before"


@pytest.mark.parametrize("sync", [True, False])
def test_an_atomic_file_is_on_the_disk_before_its_name_and_its_folder_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sync: bool
) -> None:
    """A crash of the machine at any moment leaves the old file or the new one under the name."""
    done: list[tuple[str, str]] = []
    replace, fsync = os.replace, os.fsync

    def note_fsync(file: int) -> None:
        done.append(("sync", os.path.basename(os.readlink(f"/proc/self/fd/{file}"))))
        fsync(file)

    monkeypatch.setattr(os, "replace", lambda old, new, **_: (done.append(("rename", new)), replace(old, new)))
    monkeypatch.setattr(os, "fsync", note_fsync)
    file = AtomicFile(path := str(tmp_path / "f"))
    file.out.write(b"whole")

    file.publish(sync=sync)

    (first, temporary), *rest = done
    assert (first, temporary.partition(".")[0]) == ("sync", "f")
    assert rest == [("rename", path), *([("sync", tmp_path.name)] if sync else [])]
    assert (tmp_path / "f").read_bytes() == b"whole"


# -- damage ------------------------------------------------------------------------------------------------------------


def test_a_flipped_bit_of_a_value_is_told_with_file_tensor_and_offset(tmp_path: Path) -> None:
    write(str(tmp_path / "m"), a=np.zeros(4), b=np.ones(4), s=text(b"abc", b"d"))
    data = tmp_path / "m.data-00000-of-00001"
    raw = bytearray(data.read_bytes())
    raw[40] ^= 1
    raw[-1] ^= 1
    data.write_bytes(raw)

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.read("a").tolist() == [0] * 4
        with pytest.raises(
            errors.DataLossError, match=r"m\.data-00000-of-00001: tensor b at offset 32 .*Checksum does not match"
        ):
            reader.read("b")
        with pytest.raises(errors.DataLossError, match="tensor s at offset 64"):
            reader.read("s")


def test_a_short_data_file_is_told_before_memory_is_taken(tmp_path: Path) -> None:
    write(str(tmp_path / "m"), a=np.zeros(1000))
    os.truncate(tmp_path / "m.data-00000-of-00001", 100)

    with (
        checkpoint.BundleReader(str(tmp_path / "m")) as reader,
        pytest.raises(errors.DataLossError, match="the file ends before the tensor does, at 100"),
    ):
        reader.read("a")


def _index(path: Path, entries: dict[bytes, bytes]) -> None:
    with path.open("wb") as out:
        writer = table.TableWriter(out)
        for key in sorted(entries):
            writer.add(key, entries[key])
        writer.finish()


def _dims(*sizes: int) -> tensor_shape_pb2.TensorShapeProto:
    dim = tensor_shape_pb2.TensorShapeProto.Dim
    return tensor_shape_pb2.TensorShapeProto(dim=[dim(size=size) for size in sizes])


def test_an_index_that_lies(tmp_path: Path) -> None:
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    entry = tensor_bundle_pb2.BundleEntryProto(dtype=1, size=1 << 50, offset=1 << 40)
    entry.shape.dim.add(size=1 << 48)
    far = tensor_bundle_pb2.BundleEntryProto(dtype=1, shard_id=77, size=4)
    far.shape.dim.add(size=1)
    negative = tensor_bundle_pb2.BundleEntryProto(dtype=1, size=-4)
    negative.shape.dim.add(size=-1)
    unknown = tensor_bundle_pb2.BundleEntryProto(dtype=99)  # type: ignore[arg-type]
    strings = tensor_bundle_pb2.BundleEntryProto(dtype=7, size=10)
    strings.shape.dim.add(size=1 << 50)
    empty = tensor_bundle_pb2.BundleEntryProto(dtype=1)
    for size in (0, 1 << 62, 1 << 62):
        empty.shape.dim.add(size=size)
    rows = {b"": header, b"huge": entry, b"far": far, b"negative": negative, b"unknown": unknown, b"strings": strings}
    rows[b"empty"] = empty
    _index(tmp_path / "m.index", {k: v.SerializeToString() for k, v in rows.items()} | {b"noise": b"\xff"})
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"1234")

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        for name in ("huge", "far", "negative", "unknown", "strings", "empty", "noise"):
            with pytest.raises(errors.DataLossError):
                reader.read(name)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (tensor_shape_pb2.TensorShapeProto(unknown_rank=True), r"Invalid tensor shape: \[\]"),
        (_dims(-1), r"Invalid tensor shape: \[-1\]"),
        (_dims(*[1] * (MAX_RANK + 1)), r"Invalid tensor shape: \[1, 1"),
        (_dims(0, 1 << 62, 1 << 62), "No array has the shape"),
        (_dims(*[1] * MAX_RANK), "No array has the shape"),
    ],
)
def test_an_entry_has_a_shape_that_an_array_can_have(tmp_path: Path, shape: Any, text: str) -> None:
    entry = tensor_bundle_pb2.BundleEntryProto(dtype=1, size=4, shape=shape, crc32c=crc32c.masked(b"1234"))
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    _index(tmp_path / "m.index", {b"": header.SerializeToString(), b"a": entry.SerializeToString()})
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"1234")

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader, pytest.raises(errors.DataLossError, match=text):
        reader.read("a")


def test_a_file_that_is_cut_while_it_is_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(str(tmp_path / "m"), a=np.zeros(4))
    read, pieces = os.preadv, [5]

    def cut(file: int, buffers: list[Any], offset: int) -> int:
        size = pieces.pop() if pieces else 0
        return read(file, [memoryview(buffers[0])[:size]], offset)

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        monkeypatch.setattr(os, "preadv", cut)
        with pytest.raises(errors.DataLossError, match="the file ended after 5 bytes of the tensor"):
            reader.read("a")


def test_parts_that_are_not_there_take_no_memory(tmp_path: Path) -> None:
    part = TensorSlice(((0, 1 << 40),))
    whole = tensor_bundle_pb2.BundleEntryProto(dtype=1)
    whole.shape.dim.add(size=1 << 40)
    whole.slices.extend([part.to_proto()] * 3)
    stored = tensor_bundle_pb2.BundleEntryProto(dtype=1, size=4 << 40)
    stored.shape.dim.add(size=1 << 40)
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    rows = {b"": header, b"a": whole, part.key(b"a"): stored}
    _index(tmp_path / "m.index", {key: value.SerializeToString() for key, value in rows.items()})
    (tmp_path / "m.data-00000-of-00001").write_bytes(b"1234")

    where = str(tmp_path / "m")
    with checkpoint.BundleReader(where) as reader, pytest.raises(errors.DataLossError, match="ends before"):
        reader.read("a")


def test_other_machines_and_later_formats_are_refused(tmp_path: Path) -> None:
    header = tensor_bundle_pb2.BundleHeaderProto(num_shards=1, endianness=1)  # type: ignore[arg-type]
    _index(tmp_path / "big.index", {b"": header.SerializeToString()})
    later = tensor_bundle_pb2.BundleHeaderProto(num_shards=1)
    later.version.min_consumer = 9
    _index(tmp_path / "later.index", {b"": later.SerializeToString()})
    _index(tmp_path / "none.index", {b"x": b""})

    with pytest.raises(errors.UnimplementedError, match="big-endian"):
        checkpoint.BundleReader(str(tmp_path / "big"))
    with pytest.raises(errors.UnimplementedError, match="needs a reader of version 9"):
        checkpoint.BundleReader(str(tmp_path / "later"))
    with pytest.raises(errors.DataLossError, match="no header entry"):
        checkpoint.BundleReader(str(tmp_path / "none"))


def _read_all(prefix: str) -> None:
    """Reads everything there is; any DataLoss is fine, anything else is not."""
    try:
        with checkpoint.BundleReader(prefix) as reader:
            for name in reader.names():
                try:
                    reader.read(name)
                except (errors.DataLossError, errors.UnimplementedError, errors.NotFoundError):
                    continue
                except errors.InvalidArgumentError as error:
                    assert "sufficient slices" in error.message  # noqa: PT017
    except (errors.DataLossError, errors.UnimplementedError):
        return


def _sample(prefix: str) -> None:
    with checkpoint.BundleWriter(prefix) as writer:
        writer.add("a", np.arange(5, dtype=np.float32))
        writer.add("s", text(b"x", b"", b"long" * 9))
        writer.add_slice("w", (4, 2), checkpoint.TensorSlice.parse("0,2:-"), np.zeros((2, 2)))
        writer.add_slice("w", (4, 2), checkpoint.TensorSlice.parse("2,2:-"), np.zeros((2, 2)))


def _fixed_checksums(raw: bytearray) -> None:
    """Makes the checksums of a one-block table hold again, so that damage gets past them."""
    footer = raw[-48:]
    at = 0
    handles = []
    for _ in range(2):
        offset, at = coding.get_varint(bytes(footer), at)
        size, at = coding.get_varint(bytes(footer), at)
        handles.append((offset, size))
    for offset, size in [(0, handles[0][0] - 5), *handles]:
        crc = crc32c.masked(bytes(raw[offset : offset + size + 1]))
        raw[offset + size + 1 : offset + size + 5] = struct.pack("<I", crc)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=6), st.booleans())
def test_damaged_indexes_never_crash(tmp_path: Path, changes: list[tuple[int, int]], fix: bool) -> None:
    prefix = str(tmp_path / "m")
    path, pristine = tmp_path / "m.index", tmp_path / "pristine"
    if not pristine.exists():
        _sample(prefix)
        pristine.write_bytes(path.read_bytes())
    raw = bytearray(pristine.read_bytes())
    for at, byte in changes:
        raw[at % (len(raw) - (48 if fix else 0))] = byte
    if fix:
        _fixed_checksums(raw)
    path.write_bytes(raw)

    _read_all(prefix)


def test_truncated_indexes_never_crash(tmp_path: Path) -> None:
    prefix = str(tmp_path / "m")
    _sample(prefix)
    whole = (tmp_path / "m.index").read_bytes()
    for size in range(0, len(whole), 3):
        (tmp_path / "m.index").write_bytes(whole[:size])
        with pytest.raises(errors.DataLossError):
            checkpoint.BundleReader(prefix)


# -- format V1 ---------------------------------------------------------------------------------------------------------


def _v1(name: str, value: Array, full: tuple[int, ...] | None = None, part: str = "") -> checkpoint.SavedTensor:
    dtype = dtypes.as_dtype(value.dtype)
    whole = checkpoint.TensorSlice.full(value.ndim)
    return checkpoint.SavedTensor(
        name, full or value.shape, checkpoint.TensorSlice.parse(part) if part else whole, value, dtype
    )


def test_v1_files_come_back(tmp_path: Path) -> None:
    values = {
        t.name: np.arange(6).reshape(2, 3).astype(t.as_numpy_dtype)
        for t in NUMBERS
        if t.proto_field not in ("uint32_val", "uint64_val", "float8_val")
    } | {"s": text(b"a", b"\xff"), "empty": np.zeros((0, 2))}
    rows = [_v1(name, value) for name, value in values.items()]
    rows += [_v1("w", np.zeros(2), (4,), "0,2"), _v1("w", np.ones(2), (4,), "2,2")]

    checkpoint.write_slice_table(str(tmp_path / "v1"), rows)

    with checkpoint.SliceTableReader(str(tmp_path / "v1")) as reader:
        assert reader.names() == sorted([*values, "w"])
        for name, value in values.items():
            found = reader.read_slice(name, checkpoint.TensorSlice.full(value.ndim))
            assert found.dtype == value.dtype
            assert np.array_equal(found, value)
        assert reader.read_slice("w", checkpoint.TensorSlice.parse("1,2")).tolist() == [0, 1]


def test_v1_shards_and_gaps(tmp_path: Path) -> None:
    for i in range(2):
        checkpoint.write_slice_table(
            str(tmp_path / f"m-{i:05d}-of-00002"), [_v1("w", np.full(2, i), (6,), f"{2 * i},2")]
        )

    with checkpoint.SliceTableReader(str(tmp_path / "m-?????-of-00002")) as reader:
        assert reader.read_slice("w", checkpoint.TensorSlice.parse("0,4")).tolist() == [0, 0, 1, 1]
        with pytest.raises(errors.InvalidArgumentError, match="do not cover"):
            reader.read_slice("w", checkpoint.TensorSlice.full(1))
    with pytest.raises(errors.NotFoundError, match="Unsuccessful TensorSliceReader constructor: Failed to find any"):
        checkpoint.SliceTableReader(str(tmp_path / "none"))
    (tmp_path / "text").write_bytes(b"hello" * 30)
    with pytest.raises(errors.DataLossError, match="perhaps your file is in a different file format"):
        checkpoint.SliceTableReader(str(tmp_path / "text"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=4))
def test_damaged_v1_files_never_crash(tmp_path: Path, changes: list[tuple[int, int]]) -> None:
    path, pristine = tmp_path / "v1", tmp_path / "pristine"
    if not pristine.exists():
        rows = [_v1("a", np.arange(3.0)), _v1("s", text(b"x")), _v1("w", np.ones(2), (4,), "2,2")]
        checkpoint.write_slice_table(str(pristine), rows)
    raw = bytearray(pristine.read_bytes())
    for at, byte in changes:
        raw[at % (len(raw) - 48)] = byte
    _fixed_checksums(raw)
    path.write_bytes(raw)

    try:
        with checkpoint.SliceTableReader(str(path)) as reader:
            for name in reader.names():
                found = reader.dtype_and_shape(name)
                assert found is not None
                try:
                    reader.read_slice(name, checkpoint.TensorSlice.full(len(found[1])))
                except (errors.DataLossError, errors.UnimplementedError):
                    continue
                except errors.InvalidArgumentError as error:
                    assert "do not cover" in error.message  # noqa: PT017
    except (errors.DataLossError, errors.UnimplementedError):
        return


def test_reading_takes_the_tensors_memory_and_little_more(tmp_path: Path) -> None:
    import tracemalloc

    size = 32 << 20
    write(str(tmp_path / "m"), x=np.zeros(size, np.uint8))

    tracemalloc.start()
    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.read("x").size == size
    peak = tracemalloc.get_traced_memory()[1]
    with checkpoint.BundleWriter(str(tmp_path / "n")) as writer:
        value = np.zeros(size, np.uint8)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        writer.add("x", value)
        written = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()

    assert peak < size * 1.2
    assert written < size * 0.2


def test_many_names_keep_their_order(tmp_path: Path) -> None:
    names = ["".join(p) for p in itertools.product("ab/_", repeat=5)]
    write(str(tmp_path / "m"), **{name: np.array(i) for i, name in enumerate(names)})

    with checkpoint.BundleReader(str(tmp_path / "m")) as reader:
        assert reader.names() == sorted(names, key=str.encode)
        assert [int(reader.read(name)) for name in names] == list(range(len(names)))


def test_zeros_and_ff_of_a_name_come_back() -> None:
    name = b"\x00a\xff\x00\x01\xff\xff"

    assert coding.get_ordered_string(b"." + coding.put_ordered_string(name) + b"rest", 1)[0] == name
