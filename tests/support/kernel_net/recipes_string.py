"""What fits the ops of strings. See cases.py."""

from __future__ import annotations

import base64
import math
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from support.kernel_net.draw import objects
from tenfold_core import dtypes

if TYPE_CHECKING:
    from support.kernel_net.draw import Draw


Attrs = dict[str, Any]
F, INT, S = dtypes.float32, dtypes.int64, dtypes.string
WORDS = (
    b"",
    b"a",
    b"ab",
    b"abc",
    b" A b ",
    b"x,y,,z",
    b"\xc3\xa9t\xc3\xa9",
    b"aXbXc",
    b"\xff\xfe",
    b"12",
    b"a  b c",
    b"\xe2\x82\xac1",
)


def _gzipped(text: bytes) -> bytes:
    """With the same header under every Python."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return packer.compress(text) + packer.flush()


def words(d: Draw, *shape: int, of: tuple[bytes, ...] = WORDS) -> np.ndarray:
    return objects([d.choice(of) for _ in range(math.prod(shape))]).reshape(shape)


def _words(d: Draw, a: Attrs) -> list[Any]:
    if "encoding" in a:
        a["encoding"] = d.choice((b"", b"utf-8", b"odd" if d.maybe(0.2) else b""))
    return [words(d, *d.shape(0, 2))]


def _join(d: Draw, a: Attrs) -> list[Any]:
    a["N"], shape, a["separator"] = d.choice((1, 2, 3)), d.shape(0, 2), d.choice((b"", b", "))
    return [words(d, *d.choice((shape, shape, ()))) for _ in range(a["N"])]


def _substr(d: Draw, a: Attrs) -> list[Any]:
    shape = d.shape(0, 2)
    of = (b"abc", b"hello", b"\xc3\xa9t\xc3\xa9", b"12345", b"\xe2\x82\xac1a")
    if d.maybe():
        return [words(d, *shape, of=of), d.randint(-3, 3), d.randint(0, 3)]
    count = math.prod(shape)
    return [
        words(d, *shape, of=of),
        np.array(d.ints(count, -2, 2)).reshape(shape),
        np.array(d.ints(count, 0, 3)).reshape(shape),
    ]


def _from_base64(d: Draw, a: Attrs) -> list[Any]:
    of = [base64.urlsafe_b64encode(each).rstrip(b"=" if d.maybe() else b"") for each in WORDS]
    return [words(d, *d.shape(0, 1), of=(*of, *((b"!", b"a", b"ab=", b"ab/+") if d.maybe(0.2) else ())))]


def _format(d: Draw, a: Attrs) -> list[Any]:
    a["T"] = [d.choice((F, dtypes.int32, S, dtypes.bool_, dtypes.float64)) for _ in range(d.randint(0, 2))]
    a["placeholder"] = d.choice((b"%s", b"{}"))
    a["template"], a["summarize"] = b" and ".join([a["placeholder"]] * len(a["T"])) + b"!", d.choice((3, 2, -1, 1))
    return [d.choice((d.shape(0, 2), (7,), (4, 4, 4))) for _ in a["T"]]


def _to_number(d: Draw, a: Attrs) -> list[Any]:
    of = (
        b"1",
        b"-2",
        b" 3 ",
        b"007",
        b"+4",
        *((b"1.5", b"1e3", b".5", b"inf", b"-nan", b"0x10") if a["out_type"].is_floating else ()),
    )
    if d.maybe(0.2):
        of = (*of, b"", b"x", b"1 2", b"99999999999999999999", b"1.5", b"--1", b"2147483648")
    return [words(d, *d.shape(0, 1), of=of)]


def _as_string(d: Draw, a: Attrs) -> list[Any]:
    real = a["T"].is_floating or a["T"].is_complex
    a["scientific"], a["shortest"] = d.choice(((False, False), (real, False), (False, real)))
    a["precision"] = d.choice((-1, 0, 3, 8)) if real else -1
    a["width"], a["fill"] = d.choice(((-1, b""), (8, b""), (8, b"0"), (6, b" "), (6, b"-"), (5, b"+")))
    if a["T"] is dtypes.bool_ or a["T"] is S:
        a["fill"] = d.choice((b"", b"", b" "))
    return [d.choice(((3,), (), (2, 2)))]


def _match(d: Draw, a: Attrs) -> list[Any]:
    pattern = d.choice(_PATTERNS)
    if "pattern" in a:
        a["pattern"] = pattern
        return [words(d, *d.shape(0, 1))]
    return [words(d, *d.shape(0, 1)), pattern]


def _replace(d: Draw, a: Attrs) -> list[Any]:
    pattern, rewrite = (
        d.choice(_PATTERNS),
        d.choice((b"", b"-", b"[\\0]", b"\\1\\1", b"\\\\", b"\\9", b"\\x", b"<\\2>")),
    )
    if "pattern" in a:
        a["pattern"], a["rewrite"] = pattern, rewrite
        return [words(d, *d.shape(0, 1))]
    return [words(d, *d.shape(0, 1)), pattern, rewrite]


def _hash(d: Draw, a: Attrs) -> list[Any]:
    a["num_buckets"] = d.choice((1, 10, 1000))
    if "key" in a:
        a["key"] = d.ints(2, 0, 1 << 40)
    return [
        words(
            d,
            *d.shape(0, 1),
            of=(*WORDS, b"a longer text of more than thirty-two bytes, and one more", b"seventeen letters"),
        )
    ]


def _split(d: Draw, a: Attrs) -> list[Any]:
    return [words(d, d.randint(0, 3)), d.choice((b" ", b",", b"", b"X,", b"X"))]


def _split_v2(d: Draw, a: Attrs) -> list[Any]:
    a["maxsplit"] = d.choice((-1, -1, 0, 1, 2))
    return [words(d, d.randint(0, 3)), d.choice((b" ", b",", b"", b"X", b",,", b"b"))]


def _reduce_join(d: Draw, a: Attrs) -> list[Any]:
    a["separator"] = d.choice((b"", b"-"))
    shape = d.shape(0, 3)
    axes = d.sample(range(len(shape)), d.randint(0, len(shape)))
    return [words(d, *shape, of=(b"a", b"b", b"cd")), [axis - len(shape) if d.maybe(0.3) else axis for axis in axes]]


def _segment_join(d: Draw, a: Attrs) -> list[Any]:
    a["separator"], shape, count = d.choice((b"", b":")), d.shape(1, 2), d.randint(1, 3)
    ids = shape if d.maybe(0.5) else shape[:1]
    return [words(d, *shape), np.array(d.ints(math.prod(ids), -1, count - 1 + d.maybe(0.1))).reshape(ids), count]


def _ngrams(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 6)
    splits = [0, *sorted(d.ints(d.randint(0, 2), 0, count)), count]
    a["separator"], a["left_pad"], a["right_pad"] = b"|", d.choice((b"", b"<")), d.choice((b"", b">"))
    a["ngram_widths"], a["pad_width"] = d.choice(([1], [2], [3], [1, 2], [2, 3], [5])), d.choice((0, -1, 1, 2))
    return [words(d, count, of=(b"a", b"b", b"cd")), splits]


def _unicode(d: Draw, a: Attrs) -> list[Any]:
    a["input_encoding"] = d.choice((b"UTF-8", b"UTF-8", b"UTF-16-BE", b"UTF-32-BE", b"US-ASCII", b"latin1", b"odd"))
    a["replacement_char"] = d.choice((65533, 63, 0x20AC))
    if "output_encoding" in a:
        a["output_encoding"] = d.choice((b"UTF-8", b"UTF-16-BE", b"UTF-32-BE"))
    texts = _UNICODE
    if b"16" in a["input_encoding"] or b"32" in a["input_encoding"]:
        name = a["input_encoding"].decode()
        texts = ("a".encode(name), "été€".encode(name), b"\xd8\x00", b"\x00", "\U0001f600".encode(name))
    return [words(d, *d.shape(0, 1), of=texts)]


def _encode(d: Draw, a: Attrs) -> list[Any]:
    count = d.randint(0, 5)
    a["replacement_char"] = d.choice((65533, 63))
    values = [d.choice((97, 233, 0x20AC, 0x1F600, 97, 98)) for _ in range(count)]
    if values and d.maybe(0.3):
        values[0] = d.choice((0xD800, -1, 0x110000, 0xFFFF))
    return [values, [0, *sorted(d.ints(d.randint(0, 2), 0, count)), count]]


def _raw(d: Draw, a: Attrs) -> list[Any]:
    kinds = (
        dtypes.uint8,
        dtypes.int16,
        dtypes.int32,
        F,
        INT,
        dtypes.float64,
        dtypes.float16,
        dtypes.complex64,
        dtypes.bool_,
    )
    a["out_type"] = d.choice(kinds)
    size = a["out_type"].size * d.randint(0, 2) + d.maybe(0.1)
    return [words(d, *d.shape(0, 1), of=(bytes(d.ints(size, 0, 1)), bytes(d.ints(size, 0, 1))))]


def _padded_raw(d: Draw, a: Attrs) -> list[Any]:
    a["out_type"] = d.choice((dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.uint16))
    size = a["out_type"].size
    texts = tuple(bytes(d.ints(d.randint(0, 2 * size), 0, 255)) for _ in range(3))
    return [words(d, *d.shape(0, 1), of=texts), size * d.choice((1, 2)) + d.maybe(0.1)]


def _compressed(d: Draw, a: Attrs) -> list[Any]:
    a["compression_type"] = d.choice((b"", b"ZLIB", b"GZIP", b"odd" if d.maybe(0.2) else b"ZLIB"))
    pack = {b"ZLIB": zlib.compress, b"GZIP": _gzipped}.get(a["compression_type"], bytes)
    return [
        words(d, *d.shape(0, 1), of=(pack(b"abc"), pack(b""), pack(b"x" * 90), *((b"odd",) if d.maybe(0.1) else ())))
    ]


_PATTERNS = (
    b"a",
    b"a*",
    b"(a)(b)?",
    b"[ab]+",
    b"^a.*c$",
    b"",
    b"x|y",
    b"(?i)A",
    b".",
    b"\\s+",
    b"(",
    b"a{2}",
    b"(?P<n>a)b",
)

_UNICODE = (
    b"a",
    b"",
    b"\xc3\xa9t\xc3\xa9",
    b"\xe2\x82\xac",
    b"\xf0\x9f\x98\x80x",
    b"\xff",
    b"a\xe2\x82",
    b"tab\t\x01",
    b"\xed\xa0\x80",
)

RECIPES = {
    **dict.fromkeys(("StringLength", "StringLower", "StringUpper", "StringStrip", "EncodeBase64"), _words),
    "StringJoin": _join,
    "Substr": _substr,
    "DecodeBase64": _from_base64,
    "StringFormat": _format,
    "StringToNumber": _to_number,
    "AsString": _as_string,
    "RegexFullMatch": _match,
    "StaticRegexFullMatch": _match,
    "RegexReplace": _replace,
    "StaticRegexReplace": _replace,
    **dict.fromkeys(("StringToHashBucket", "StringToHashBucketFast", "StringToHashBucketStrong"), _hash),
    "StringSplit": _split,
    "StringSplitV2": _split_v2,
    "ReduceJoin": _reduce_join,
    "UnsortedSegmentJoin": _segment_join,
    "StringNGrams": _ngrams,
    "UnicodeTranscode": _unicode,
    "UnicodeDecode": _unicode,
    "UnicodeDecodeWithOffsets": _unicode,
    "UnicodeEncode": _encode,
    "DecodeRaw": _raw,
    "DecodePaddedRaw": _padded_raw,
    "DecodeCompressed": _compressed,
}
