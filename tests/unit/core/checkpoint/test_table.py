"""The table of a checkpoint's index, byte by byte: blocks of the right size, packed ones, and each damage."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tenfold_core import crc32c, errors
from tenfold_core.checkpoint import table
from tenfold_core.checkpoint.coding import get_varint, put_varint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Of a block: its type and its checksum.
TRAILER = 5


def written(path: Path, rows: dict[bytes, bytes]) -> bytes:
    with path.open("wb") as out:
        writer = table.TableWriter(out)
        for key, value in rows.items():
            writer.add(key, value)
        writer.finish()
    return path.read_bytes()


def blocks_of(raw: bytes) -> list[bytes]:
    """Blocks as they lie in a file, the meta index and the index last, found by their checksums' places."""
    meta, at = get_varint(raw[-48:], 0)
    size, at = get_varint(raw[-48:], at)
    index, at = get_varint(raw[-48:], at)
    index_size, _ = get_varint(raw[-48:], at)
    found, start = [], 0
    for _, value in table._parse_block(raw[index : index + index_size]):
        offset, length = table._handle(value)
        assert offset == start
        found.append(raw[offset : offset + length])
        start = offset + length + TRAILER
    return [*found, raw[meta : meta + size], raw[index : index + index_size]]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BLOCK_SIZE", 2048)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("length", "count"), [(0, 1000), (100, 60), (2048, 3)])
def test_a_block_ends_with_the_entry_that_fills_it(tmp_path: Path, length: int, count: int) -> None:
    rows = {f"{number:08d}".encode(): b"v" * length for number in range(count)}

    *blocks, meta, index = blocks_of(written(tmp_path / "t", rows))

    assert len(blocks) > 1
    for block in blocks[:-1]:
        entries = table._parse_block(block)
        without = table._BlockBuilder(table.RESTART_INTERVAL)
        for entry in entries[:-1]:
            without.add(*entry)
        assert len(without.finish()) < table.BLOCK_SIZE <= len(block)
    assert table._parse_block(meta) == []
    assert [key for key, _ in table._parse_block(index)] == [table._parse_block(block)[-1][0] for block in blocks]


def test_a_key_is_whole_again_after_so_many_entries(tmp_path: Path) -> None:
    rows = {f"same{number:03d}".encode(): b"" for number in range(2 * table.RESTART_INTERVAL + 1)}

    block, _, index = blocks_of(written(tmp_path / "t", rows))

    (count,) = struct.unpack("<I", block[-4:])
    places = struct.unpack(f"<{count}I", block[-4 - 4 * count : -4])
    assert count == 3
    # shares nothing with the key before, seven bytes of key, no value
    assert [block[at : at + 3] for at in places] == [bytes((0, 7, 0))] * 3
    assert table._parse_block(index)[0][0] == b"same032"


@pytest.mark.parametrize(
    ("a", "b", "count"), [(b"", b"x", 0), (b"abc", b"abd", 2), (b"ab", b"abc", 2), (b"abc", b"abc", 3), (b"x", b"y", 0)]
)
def test_what_two_keys_share(a: bytes, b: bytes, count: int) -> None:
    assert table._shared(a, b) == count
    assert table._shared(b, a) == count


def with_kind(raw: bytes, kind: int, packed: bytes) -> bytes:
    """A table whose only block is `packed`, of that type."""
    crc = crc32c.mask(crc32c.extend(crc32c.value(packed), bytes((kind,))))
    out = packed + bytes((kind,)) + struct.pack("<I", crc)
    handles = b""
    index = table._BlockBuilder(1)
    index.add(b"zz", put_varint(0) + put_varint(len(packed)))
    for block in (table._BlockBuilder(16).finish(), index.finish()):
        handles += put_varint(len(out)) + put_varint(len(block))
        out += block + b"\0" + struct.pack("<I", crc32c.mask(crc32c.extend(crc32c.value(block), b"\0")))
    return out + handles.ljust(40, b"\0") + raw[-8:]


def literal(data: bytes) -> bytes:
    """`data` as snappy packs what it finds nothing in."""
    return put_varint(len(data)) + bytes((61 << 2,)) + struct.pack("<H", len(data) - 1) + data


def test_a_packed_block_is_unpacked(tmp_path: Path) -> None:
    raw = written(tmp_path / "t", {b"a": b"one", b"zz": b"two"})
    block = blocks_of(raw)[0]
    (tmp_path / "t").write_bytes(with_kind(raw, 1, literal(block)))

    with table.SSTable(str(tmp_path / "t")) as found:
        assert dict(found.items()) == {b"a": b"one", b"zz": b"two"}


@pytest.mark.parametrize(
    ("kind", "packed", "text"),
    [
        (2, b"abcd", "offset 0: bad block type 2"),
        (1, b"\xff\xff\xff\xff\xff\xff", "offset 0"),
        (0, b"abc", "bad block contents: too short"),
        (0, struct.pack("<I", 1), "1 restart points in 4 bytes"),
        (0, bytes((1, 1, 0)) + b"k" + struct.pack("<II", 0, 1), "bad entry in block"),
        (0, bytes((0, 1, 9)) + b"k" + struct.pack("<II", 0, 1), "bad entry in block"),
        (0, bytes((0, 1, 0)) + b"k" + bytes((1, 0, 0)) + struct.pack("<II", 0, 1), "keys are not in order"),
    ],
)
def test_a_damaged_block_is_told_with_its_offset(tmp_path: Path, kind: int, packed: bytes, text: str) -> None:
    raw = written(tmp_path / "t", {b"a": b"one"})
    (tmp_path / "t").write_bytes(with_kind(raw, kind, packed))

    with table.SSTable(str(tmp_path / "t")) as found, pytest.raises(errors.DataLossError, match=text):
        found.get(b"z")


def test_a_table_needs_its_footer_and_all_that_it_points_to(tmp_path: Path) -> None:
    raw = written(tmp_path / "t", {b"a": b"one"})
    for content, text in (
        (raw[-47:], "too short to be an sstable: 47 bytes"),
        (raw[:-1] + b"\0", "bad magic number"),
        (raw[-48:], "truncated block read"),
        (raw[:9] + bytes((raw[9] ^ 1,)) + raw[10:], None),
    ):
        (tmp_path / "t").write_bytes(content)
        with (
            pytest.raises(errors.DataLossError, match=text or "checksum mismatch"),
            table.SSTable(str(tmp_path / "t")) as found,
        ):
            found.get(b"a")


@pytest.mark.usefixtures("small_blocks")
def test_keys_on_both_sides_of_a_block(tmp_path: Path) -> None:
    big = b"v" * table.BLOCK_SIZE
    rows = {b"b": big, b"d": big, b"f": b"last"}
    written(tmp_path / "t", rows)

    with table.SSTable(str(tmp_path / "t")) as found:
        assert {key: found.get(key) for key in (b"a", b"b", b"c", b"d", b"e", b"f", b"g")} == {
            **rows, b"a": None, b"c": None, b"e": None, b"g": None,
        }  # fmt: skip
        assert list(found.items()) == list(rows.items())


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33, 1000])
def test_a_block_is_searched_and_read_alike(tmp_path: Path, count: int) -> None:
    rows = {b"tower_%04d/weights" % (2 * i): b"value %d" % i for i in range(count)}
    written(tmp_path / "t", rows)
    asked = [b"", b"z", *(b"tower_%04d/weights" % i for i in range(2 * count + 1))]

    for few in (0, len(asked)):
        with table.SSTable(str(tmp_path / "t")) as found, pytest.MonkeyPatch.context() as patch:
            patch.setattr(table, "_FEW_SEARCHES", few)
            assert {key: found.get(key) for key in asked} == {key: rows.get(key) for key in asked}


def test_the_first_searches_read_few_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint of many variables may be opened for each of them."""
    count = 1000
    rows = {b"%04d" % i: b"" for i in range(count)}
    written(tmp_path / "t", rows)
    read, entries_from = [], table._entries_from

    def counted(block: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
        for entry in entries_from(block, at, end):
            read.append(entry)
            yield entry

    monkeypatch.setattr(table, "_entries_from", counted)

    with table.SSTable(str(tmp_path / "t")) as found:
        del read[:]
        for key in (b"0000", b"0500", b"0500x", b"0999"):
            assert found.get(key) == rows.get(key)
            assert 0 < len(read) < 30
            del read[:]
            assert found.get(key) == rows.get(key)
            assert not read
        for key in rows:
            found.get(key)
    assert count <= len(read) < 2 * count


def test_a_restart_point_beyond_the_entries_is_damage(tmp_path: Path) -> None:
    raw = written(tmp_path / "t", {b"a": b"one"})
    entry = bytes((0, 1, 0)) + b"a"
    (tmp_path / "t").write_bytes(with_kind(raw, 0, entry + struct.pack("<IIII", 0, 99, 99, 3)))

    with (
        table.SSTable(str(tmp_path / "t")) as found,
        pytest.raises(errors.DataLossError, match="a restart point is beyond the entries"),
    ):
        found.get(b"a")
