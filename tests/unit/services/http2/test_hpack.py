"""HPACK: the RFC's own examples, what is remembered between blocks, and what is no block."""

from __future__ import annotations

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_services.http2.hpack import Decoder, HpackError, encode

GET = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
GET_AGAIN = [*GET, (b"cache-control", b"no-cache")]
GET_MORE = [
    (b":method", b"GET"),
    (b":scheme", b"https"),
    (b":path", b"/index.html"),
    (b":authority", b"www.example.com"),
    (b"custom-key", b"custom-value"),
]
DATE = b"Mon, 21 Oct 2013 20:13:21 GMT"
FOUND = [
    (b":status", b"302"),
    (b"cache-control", b"private"),
    (b"date", DATE),
    (b"location", b"https://www.example.com"),
]
OTHER = [(b":status", b"307"), *FOUND[1:]]
COOKIE = b"foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
GZIPPED = [
    (b":status", b"200"),
    (b"cache-control", b"private"),
    (b"date", b"Mon, 21 Oct 2013 20:13:22 GMT"),
    (b"location", b"https://www.example.com"),
    (b"content-encoding", b"gzip"),
    (b"set-cookie", COOKIE),
]

#: Appendix C: blocks that one decoder gets one after the other, and what they mean; the table's size.
EXAMPLES = {
    "C.3 requests": (
        4096,
        [
            ("828684410f7777772e6578616d706c652e636f6d", GET),
            ("828684be58086e6f2d6361636865", GET_AGAIN),
            ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", GET_MORE),
        ],
    ),
    "C.4 requests with Huffman": (
        4096,
        [
            ("828684418cf1e3c2e5f23a6ba0ab90f4ff", GET),
            ("828684be5886a8eb10649cbf", GET_AGAIN),
            ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", GET_MORE),
        ],
    ),
    "C.5 responses": (
        256,
        [
            (
                "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d54"
                "6e1768747470733a2f2f7777772e6578616d706c652e636f6d",
                FOUND,
            ),
            ("4803333037c1c0bf", OTHER),
            (
                "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d"
                "4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
                GZIPPED,
            ),
        ],
    ),
    "C.6 responses with Huffman": (
        256,
        [
            (
                "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
                FOUND,
            ),
            ("4883640effc1c0bf", OTHER),
            (
                "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3"
                "672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
                GZIPPED,
            ),
        ],
    ),
}


def decoded(decoder: Decoder, block: bytes) -> list[tuple[bytes, bytes]]:
    run, rest = decoder.decode(block)
    assert rest is not None
    return [*run.fields, *rest]


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_rfc(name: str) -> None:
    size, blocks = EXAMPLES[name]
    decoder = Decoder(table_size=size)
    for block, fields in blocks:
        assert decoded(decoder, bytes.fromhex(block)) == fields


@pytest.mark.parametrize(
    ("block", "fields"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", [(b"custom-key", b"custom-header")]),
        ("040c2f73616d706c652f70617468", [(b":path", b"/sample/path")]),
        ("100870617373776f726406736563726574", [(b"password", b"secret")]),
        ("82", [(b":method", b"GET")]),
    ],
)
def test_the_four_kinds_of_fields(block: str, fields: list[tuple[bytes, bytes]]) -> None:
    assert decoded(Decoder(), bytes.fromhex(block)) == fields


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (b"\x80", "index 0"),
        (b"\xbe", "index 62"),
        (b"\xff\x80\x80\x80\x80\x01", "table index"),
        (b"\xff\x80", "integer"),
        (b"\xff" + b"\x80" * 30, "integer"),
        (b"\x40\x01a", "integer"),
        (b"\x40\x05abc", "Truncated"),
        (b"\x3f\xe2\x1f", "max allowable table size"),
        (b"\x82\x20", "after a field"),
        (b"\x40\x01a\x01b\x20", "start of the block"),
        (b"\x40\x01a\x84\xff\xff\xff\xff", "[Hh]uffman"),
        (b"\x40\x01a\x81\x1a", "[Hh]uffman"),
    ],
)
def test_what_is_no_block(block: bytes, what: str) -> None:
    with pytest.raises(HpackError, match=what):
        Decoder().decode(block)


def test_a_repeated_run_of_references_is_looked_up_once() -> None:
    decoder = Decoder()
    block = bytes.fromhex("828684") + b"\x00\x01a\x01"
    first, one = decoder.decode(block + b"1")
    second, two = decoder.decode(block + b"2")
    assert first is second
    assert (one, two) == ([(b"a", b"1")], [(b"a", b"2")])


def test_a_repeated_block_is_one_run() -> None:
    decoder = Decoder()
    block = bytes.fromhex("828684") + b"\x00\x01a\x01b"
    fields = decoded(decoder, block)
    assert decoded(decoder, block) == fields  # its rest was known
    run, rest = decoder.decode(block)
    assert (list(run.fields), rest) == (fields, [])
    assert decoder.decode(block)[0] is run
    decoder.decode(b"\x40\x01c\x01d")
    assert decoder.decode(block)[0] is not run


def test_a_run_means_something_else_after_the_table_changed() -> None:
    decoder = Decoder()
    decoder.decode(b"\x40\x01a\x01b")
    assert decoded(decoder, b"\xbe") == [(b"a", b"b")]
    decoder.decode(b"\x40\x01c\x01d")
    assert decoded(decoder, b"\xbe") == [(b"c", b"d")]
    assert decoded(decoder, b"\x20\x82") == [(b":method", b"GET")]
    with pytest.raises(HpackError, match="index 62"):
        decoder.decode(b"\xbe")


def test_a_table_size_is_taken_each_time_it_is_said() -> None:
    decoder = Decoder()
    for _ in range(2):
        assert decoded(decoder, b"\x20\x82") == [(b":method", b"GET")]
        decoder.decode(b"\x40\x01a\x01b")
        with pytest.raises(HpackError, match="index 62"):
            Decoder().decode(b"\xbe")
        assert decoded(decoder, b"\x3f\xe1\x1f\x82") == [(b":method", b"GET")]
        decoder.decode(b"\x40\x01a\x01b")
        assert decoded(decoder, b"\xbe") == [(b"a", b"b")]


def test_a_list_that_is_too_large_is_not_kept_but_the_table_goes_on() -> None:
    decoder = Decoder(list_size=100)
    _, fields = decoder.decode(b"\x40\x01a\x7f\x49" + b"b" * 200)
    assert fields is None
    _, fields = decoder.decode(b"\xbe" * 2)
    assert fields is None
    _, fields = decoder.decode(b"\x82")
    assert fields == []


FIELDS = st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.binary(max_size=40)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(st.lists(FIELDS, max_size=6), st.booleans())
def test_what_another_implementation_encodes(lists: list[list[tuple[bytes, bytes]]], coded: bool) -> None:
    encoder, decoder = hpack.Encoder(), Decoder(list_size=1 << 20)
    for fields in lists:
        assert decoded(decoder, encoder.encode(fields, huffman=coded)) == fields


@settings(max_examples=60, deadline=None)
@given(FIELDS)
def test_another_implementation_reads_what_we_encode(fields: list[tuple[bytes, bytes]]) -> None:
    known = [*fields, (b":status", b"200"), (b"content-type", b"application/grpc")]
    found = hpack.Decoder().decode(encode(known), raw=True)
    assert [(bytes(name), bytes(value)) for name, value in found] == known


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5))
def test_any_bytes_are_fields_or_an_error(blocks: list[bytes]) -> None:
    decoder = Decoder()
    for block in blocks:
        try:
            decoder.decode(block)
        except HpackError:
            return


def test_so_many_runs_are_remembered() -> None:
    decoder = Decoder()
    first = decoder.decode(b"\x82")[0]
    for number in range(63):
        decoder.decode(b"\x82" * (number + 2))
    assert decoder.decode(b"\x82")[0] is first
    last = decoder.decode(b"\x82" * 65)[0]
    assert decoder.decode(b"\x82" * 65)[0] is last
    assert decoder.decode(b"\x82")[0] is not first, "all others were forgotten"


def test_a_long_run_is_not_remembered() -> None:
    decoder = Decoder(list_size=1 << 20)
    longest, longer = b"\x82" * 256, b"\x82" * 257
    assert decoder.decode(longest)[0] is decoder.decode(longest)[0]
    assert decoder.decode(longer)[0] is not decoder.decode(longer)[0]


def test_a_block_that_changes_the_table_does_so_each_time_it_comes() -> None:
    decoder, block = Decoder(), b"\x82\x40\x01a\x01b"
    for count in range(1, 4):
        assert decoded(decoder, block) == [(b":method", b"GET"), (b"a", b"b")]
        assert decoded(decoder, bytes((0xBD + count,))) == [(b"a", b"b")]
    with pytest.raises(HpackError, match="index 65"):
        decoder.decode(b"\xc1")


def test_a_block_that_evicts_as_many_as_it_adds_changes_the_table() -> None:
    decoder = Decoder(table_size=40)
    for name in (b"a", b"b", b"c"):
        decoder.decode(b"\x82\x40\x01" + name + b"\x01x")
        assert decoded(decoder, b"\xbe") == [(name, b"x")]


@pytest.mark.parametrize(("size", "remembered"), [(256, True), (257, False)])
def test_a_long_block_is_not_remembered_as_one(size: int, remembered: bool) -> None:
    decoder = Decoder(list_size=1 << 20)
    block = b"\x82" * (size - 5) + b"\x00\x01a\x01b"
    fields = decoded(decoder, block)
    for _ in range(2):
        assert decoded(decoder, block) == fields
    assert (block in decoder._runs) is remembered


def test_a_block_is_not_remembered_before_it_came_twice_nor_where_there_is_no_room() -> None:
    decoder, block = Decoder(), b"\x82\x00\x01a\x01b"
    decoder.decode(block)
    assert block not in decoder._runs
    for number in range(61):
        decoder.decode(b"\x82" * (number + 2))
    assert len(decoder._runs) == 63
    decoder.decode(block)
    assert (block in decoder._runs, len(decoder._runs)) == (True, 64)

    full = Decoder()
    full.decode(block)
    for number in range(62):
        full.decode(b"\x82" * (number + 2))
    assert len(full._runs) == 64
    full.decode(block)
    assert (block in full._runs, len(full._runs)) == (False, 64)


@pytest.mark.parametrize("less", [0, 1])
def test_a_list_as_large_as_the_bound_is_kept(less: int) -> None:
    """A field takes its name, its value and 32 bytes."""
    get, own = len(b":methodGET") + 32, len(b"ab") + 32
    block = b"\x82\x00\x01a\x01b"
    decoder = Decoder(list_size=get + own - less)
    for _ in range(3):
        run, rest = decoder.decode(block)
        assert (rest is None) is bool(less)
    assert list(run.fields) == [(b":method", b"GET"), (b"a", b"b")]
    assert run.size == get + own
    alone = Decoder(list_size=get - less)
    assert (alone.decode(b"\x82")[1] is None) is bool(less)
    assert (alone.decode(b"\x82")[1] is None) is bool(less)


def test_only_a_change_of_the_tables_size_is_one() -> None:
    assert decoded(Decoder(), b"\x82\x10\x01a\x01b") == [(b":method", b"GET"), (b"a", b"b")]
    for size in (b"\x20", b"\x3f\xe1\x1f"):
        with pytest.raises(HpackError, match=r"^a change of the table's size after a field$"):
            Decoder().decode(b"\x82" + size)
    assert decoded(Decoder(), b"") == []
