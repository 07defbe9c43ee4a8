"""Strings, parsing and summaries give what TensorFlow's kernels give, errors included: one process, many cases."""

# ruff: noqa: E501 (a case stays on one line)

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from support.oracle import Case, ask, difference, run_here, strings
from tenfold_core import errors
from tenfold_protos import example_pb2, summary_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = strings(
    [bytes(range(65, 65 + n % 26)) * (n // 26 + 1) for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20)]
)
LONG = strings([(b"tensorflow " * 60)[:n] for n in (24, 31, 32, 33, 48, 63, 64, 65, 80, 127, 128, 129, 200, 400, 600)])
TEXTS = strings([b"a,b,,c", b"", b"one two  three ", b"x", "größe\u4e16\U0001f600".encode()])

HASHES = [
    Case(op, {name: values}, f"num_buckets={n}{more}")
    for op, name, more in (
        ("StringToHashBucket", "string_tensor", ""),
        ("StringToHashBucketFast", "input", ""),
        ("StringToHashBucketStrong", "input", ", key=[123, -456]"),
    )
    for values in (WORDS, LONG, TEXTS)
    for n in (1, 10, (1 << 62) + 5)
]

STRINGS = [
    Case("StringSplit", {"input": TEXTS, "delimiter": b","}, "skip_empty=False"),
    Case("StringSplit", {"input": TEXTS, "delimiter": b", "}),
    Case("StringSplit", {"input": TEXTS, "delimiter": b""}),
    *(
        Case("StringSplitV2", {"input": TEXTS, "sep": sep}, f"maxsplit={n}")
        for sep in (b"", b",", b" ")
        for n in (-1, 0, 1, 2)
    ),
    *(
        Case("Substr", {"input": strings([b"hello", b"wor\xc3\xa9d"]), "pos": pos, "len": length}, f"unit='{unit}'")
        for unit in ("BYTE", "UTF8_CHAR")
        for pos, length in ((0, 2), (-3, 2), (4, 9), (5, 1), (6, 1), ([1, 2], [3, 1]))
    ),
    Case("Substr", {"input": strings([[b"abc"], [b"def"]]), "pos": [0, 1], "len": [1, 2]}),
    Case("Substr", {"input": b"abc", "pos": 0, "len": [1]}),
    Case("RegexFullMatch", {"input": TEXTS, "pattern": rb"[a-z]"}),
    Case("StaticRegexFullMatch", {"input": TEXTS}, "pattern='.*e.*'"),
    Case("RegexFullMatch", {"input": strings([b"a\n", b"a", b"a\nb"]), "pattern": b"a.*$"}),
    *(
        Case("RegexReplace", {"input": value, "pattern": p, "rewrite": r}, f"replace_global={g}")
        for value in (TEXTS, strings([b"abb", b"baaac", b"\\d"]))
        for p, r in ((b"b*", b"-"), (rb"(\w)(\w)", rb"\2\1"), (b".", rb"<\0>"), (b"a", rb"\\"), (b"a", rb"\9"), (b"", b"."))
        for g in (True, False)
    ),
    Case("RegexReplace", {"input": TEXTS, "pattern": b"a(", "rewrite": b""}),
    Case("StaticRegexReplace", {"input": TEXTS}, r"pattern='(?i)O', rewrite='0'"),
    Case("StringJoin", {"inputs": [TEXTS, strings(b"!"), TEXTS]}, "separator='-'"),
    Case("StringJoin", {"inputs": [strings([b"a"]), strings([b"a", b"b"])]}),
    *(
        Case("ReduceJoin", {"inputs": strings([[b"a", b"b"], [b"c", b"d"]]), "reduction_indices": axes}, more)
        for axes in (0, 1, -1, [0, 1], [1, 0], 2, [0, 0])
        for more in ("separator='.'", "keep_dims=True")
    ),
    Case("ReduceJoin", {"inputs": strings([[b"a"]]), "reduction_indices": np.empty(0, np.int32)}),
    *(Case("StringLength", {"input": TEXTS}, f"unit='{unit}'") for unit in ("BYTE", "UTF8_CHAR")),
    *(
        Case(op, {"input": strings([b"MiXed 1", "ÄÖß é".encode()])}, f"encoding='{encoding}'")
        for op in ("StringLower", "StringUpper")
        for encoding in ("", "utf-8")
    ),
    Case("StringStrip", {"input": strings([b" a b\t\n", b"", b"\v\fx"])}),
    *(Case("EncodeBase64", {"input": WORDS}, f"pad={pad}") for pad in (True, False)),
    Case("DecodeBase64", {"input": strings([b"", b"AA", b"AAA=", b"AA==", b"AB==", b"AAAAAA==", b"-_-_", b"AAAA"])}),
    *(Case("DecodeBase64", {"input": strings([bad])}) for bad in (b"A", b"A+B/", b"AA=A", b"AA=", b"AAAA=", b"AAAAA=", b"====", b"=")),
    *(
        Case("AsString", {"input": np.array([0, 1, -2.5, 1e4, 1 / 3, np.inf, np.nan], dtype)}, more)
        for dtype in (np.float32, np.float64, np.float16)
        for more in ("", "precision=2", "scientific=True", "shortest=True", "width=12, fill='0'", "fill='+'", "width=9, fill='-'")
    ),
    *(
        Case("AsString", {"input": np.array([0, 1, 100], dtype)}, more)
        for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8)
        for more in ("", "width=5", "width=5, fill='0'", "width=5, fill='-'", "precision=2", "scientific=True")
    ),
    Case("AsString", {"input": np.array([True, False])}),
    Case("AsString", {"input": np.array([1 + 2j, -0.5j], np.complex64)}, "precision=1"),
    Case("AsString", {"input": strings([b"ab", b"abcdef"])}, "width=4"),
    Case("AsString", {"input": strings([b"ab", b"abcdef"])}, "width=4, fill='-'"),
    *(
        Case("StringToNumber", {"string_tensor": strings([text])}, f"out_type=tf.{kind}")
        for kind in ("float32", "float64", "int32", "int64")
        for text in (b"1", b" -7 ", b"+3", b"1.5e3", b"inf", b"-INF", b"nan", b"1_0", b"0x1A", b"", b"abc", b"99999999999")
    ),
    Case("StringToNumber", {"string_tensor": strings([b"1e50"])}, "out_type=tf.float32"),
    *(
        Case("StringFormat", {"inputs": [value]}, f"template='<{{}}>', placeholder='{{}}', summarize={n}")
        for value in (
            np.arange(12, dtype=np.float32).reshape(3, 4) / 3,
            np.arange(24).reshape(2, 3, 4),
            np.array([True, False]),
            np.array(1.5, np.float32),
            strings([b'a"b', b"\xff\n"]),
            np.empty((2, 0), np.int32),
        )
        for n in (1, 3, -1)
    ),
    *(
        Case(
            "UnsortedSegmentJoin",
            {"inputs": strings([[b"a", b"b"], [b"", b"d"], [b"e", b"f"]]), "segment_ids": ids, "num_segments": n},
            "separator=':'",
        )
        for ids, n in (([0, 2, 0], 3), ([0, 3, 0], 3), ([[0, 1], [1, 1], [0, 0]], 2), ([0, 1], 2))
    ),
    *(
        Case(
            "StringNGrams",
            {"data": strings([b"a", b"b", b"c", b"d"]), "data_splits": np.array([0, 3, 3, 4], np.int64)},
            f"separator='|', ngram_widths={widths}, left_pad='LP', right_pad='RP', pad_width={pad}, "
            f"preserve_short_sequences={keep}",
        )
        for widths in ([1], [2, 3], [5])
        for pad in (-1, 0, 1)
        for keep in (True, False)
        if not (keep and pad == -1)
    ),
    *(
        Case(op, {"input": strings([b"a\xc3\xa9\xff\x01z", "\u4e16\U0001f600".encode(), b""])}, f"input_encoding='UTF-8'{more}")
        for op in ("UnicodeDecode", "UnicodeDecodeWithOffsets")
        for more in ("", ", errors='ignore'", ", errors='strict'", ", replacement_char=63, replace_control_characters=True")
        if not (op == "UnicodeDecode" and "ignore" in more)  # where TensorFlow forgets to leave them out
    ),
    *(
        Case(
            "UnicodeEncode",
            {"input_values": np.array([97, 233, 0x1F600, -1, 0xD800], np.int32), "input_splits": np.array([0, 3, 5], np.int64)},
            f"output_encoding='{encoding}', errors='{policy}'",
        )
        for encoding in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for policy in ("replace", "ignore", "strict")
    ),
    *(
        Case("UnicodeTranscode", {"input": strings([b"a\xc3\xa9\xff", b"\xe4\xb8\x96"])}, f"input_encoding='UTF-8', output_encoding='{e}'{more}")
        for e in ("UTF-8", "UTF-16-BE", "UTF-32-BE")
        for more in ("", ", errors='ignore'", ", errors='strict'")
    ),
]  # fmt: skip

CSV = strings([b'1,2.5,"a ""b"" c",4', b"7,,x,", b"\n3,4,5,6\n"])
DEFAULTS = [np.array([0], np.int32), np.array([1.5], np.float32), strings([b"z"]), np.array([9], np.int64)]
_csv = "field_delim=','"
PARSING = [
    Case("DecodeCSV", {"records": CSV[:2], "record_defaults": DEFAULTS}),
    Case("DecodeCSV", {"records": CSV, "record_defaults": DEFAULTS}),
    Case("DecodeCSV", {"records": CSV[:1], "record_defaults": [strings([b""]), strings([b""])]}, "select_cols=[1, 2]"),
    Case("DecodeCSV", {"records": strings([b"1,NA", b"x,2"]), "record_defaults": DEFAULTS[:1] * 2}, "na_value='NA'"),
    *(
        Case("DecodeCSV", {"records": strings([bad]), "record_defaults": [strings(np.empty(0, object)), DEFAULTS[0]]})
        for bad in (b"a", b'a"b,1', b'"a"b,1', b'"a,1', b",1", b"a,1.5", b"a,1,2", b"a,", b"")
    ),
    Case("DecodeCSV", {"records": strings([b"'a';1"]), "record_defaults": [strings([b""]), DEFAULTS[0]]}, "field_delim=';', use_quote_delim=False"),
    *(
        Case("DecodePaddedRaw", {"input_bytes": strings([b"abcde", b"", b"abcdefghijkl"]), "fixed_length": n}, f"out_type=tf.{t}, little_endian={e}")
        for n in (8, 6, 0)
        for t in ("uint8", "int16", "float32")
        for e in (True, False)
    ),
    *(
        Case("DecodeRaw", {"bytes": strings([b"abcd", b"efgh"])}, f"out_type=tf.{t}, little_endian={e}")
        for t in ("uint8", "int16", "float32", "int64")
        for e in (True, False)
    ),
    Case("ParseTensor", {"serialized": b"\xff"}, "out_type=tf.float32"),
    Case("DecodeCompressed", {"bytes": strings([zlib.compress(b"abc" * 99)])}, "compression_type='ZLIB'"),
]  # fmt: skip


def example(**features: Any) -> bytes:
    proto = example_pb2.Example()
    for name, values in features.items():
        _fill(proto.features.feature[name], values)
    return proto.SerializeToString(deterministic=True)


def _fill(feature: example_pb2.Feature, values: list[Any]) -> None:
    if values and isinstance(values[0], bytes):
        feature.bytes_list.value.extend(values)
    elif values and isinstance(values[0], float):
        feature.float_list.value.extend(values)
    elif values:
        feature.int64_list.value.extend(values)


def sequence(context: dict[str, Any], **lists: list[list[Any]]) -> bytes:
    proto = example_pb2.SequenceExample()
    for name, values in context.items():
        _fill(proto.context.feature[name], values)
    for name, steps in lists.items():
        proto.feature_lists.feature_list[name].SetInParent()
        for values in steps:
            _fill(proto.feature_lists.feature_list[name].feature.add(), values)
    return proto.SerializeToString(deterministic=True)


FULL = example(i=[1, 2], f=[0.5], s=[b"x", b"yz"], v=[1, 2, 3, 4], w=[7], r=[5, 6])
EXAMPLES = {
    "two": strings([FULL, example(i=[3, 4], f=[1.5], s=[], v=[])]),
    "missing": strings([FULL, example(i=[3, 4])]),
    "wrong type": strings([example(i=[0.5, 1.0], f=[1.5])]),
    "wrong number": strings([example(i=[1], f=[1.5])]),
    "odd": strings([example(i=[1, 2], f=[1.5], v=[1])]),
    "none": np.empty(0, object),
}
NAMES = np.empty(0, object)
DENSE = [np.empty(0, np.int64), np.array(7.5, np.float32), np.array([-1], np.int64)]
_DENSE_SHAPES = "dense_shapes=[[2], [], [None, 2]]"
PARSE_EXAMPLES = [
    *(
        Case(
            "ParseExample",
            {"serialized": rows, "names": names, "sparse_keys": [strings(b"s"), strings(b"w")],
             "dense_keys": [strings(b"i"), strings(b"f"), strings(b"v")], "dense_defaults": DENSE},
            f"sparse_types=[tf.string, tf.int64], {_DENSE_SHAPES}",
        )
        for rows in EXAMPLES.values()
        for names in ((NAMES, strings([b"n1", b"n2"])) if rows.size == 2 else (NAMES,))
    ),
    *(
        Case(
            "ParseExampleV2",
            {"serialized": rows, "names": NAMES, "sparse_keys": strings([b"s"]), "dense_keys": strings([b"i", b"f", b"v"]),
             "ragged_keys": strings([b"r", b"none"]), "dense_defaults": DENSE},
            "num_sparse=1, sparse_types=[tf.string], ragged_value_types=[tf.int64, tf.string], "
            f"ragged_split_types=[tf.int32, tf.int64], {_DENSE_SHAPES}",
        )
        for rows in (*EXAMPLES.values(), strings(FULL), strings(example(i=[1, 2])))
    ),
    *(
        Case(
            "ParseSingleExample",
            {"serialized": row, "dense_defaults": DENSE},
            f"num_sparse=1, sparse_keys=['s'], dense_keys=['i', 'f', 'v'], sparse_types=[tf.string], {_DENSE_SHAPES}",
        )
        for row in (FULL, example(i=[1, 2]), example(f=[1.0]))
    ),
]  # fmt: skip

SEQUENCES = [
    sequence(
        {"c": [1], "q": [3, 4]}, d=[[1.0, 2.0], [3.0, 4.0]], e=[[0.5], [], [1.5, 2.5]], s=[[b"a"], [], [b"b", b"c"]]
    ),
    sequence({"c": [2], "k": [b"t"]}, d=[[5.0, 6.0]], s=[]),
    sequence({"k": [b"t", b"u"]}, s=[[b"a"]]),
    sequence({"c": [1]}, d=[[1.0]]),
    sequence({"c": [1]}, d=[[1.0, 2.0]], s=[[1]]),
]
_SEQUENCE = (
    "{n} context_sparse_types=[tf.string], context_dense_shapes=[[]], feature_list_sparse_types=[tf.string], "
    "feature_list_dense_types=[tf.float32], feature_list_dense_shapes=[[2]]"
)
PARSE_SEQUENCES = [
    *(
        Case(
            "ParseSequenceExample",
            {"serialized": strings(rows), "debug_name": NAMES, "context_dense_defaults": [np.array(-1, np.int64)]},
            "feature_list_dense_missing_assumed_empty=['d'], context_sparse_keys=['k'], context_dense_keys=['c'], "
            "feature_list_sparse_keys=['s'], feature_list_dense_keys=['d'], Nfeature_list_dense=1, Ncontext_dense=1, "
            + _SEQUENCE.format(n="Ncontext_sparse=1, Nfeature_list_sparse=1,"),
        )
        for rows in (SEQUENCES[:3], SEQUENCES[:2], SEQUENCES[3:4], SEQUENCES[4:], SEQUENCES[0])
    ),
    *(
        Case(
            "ParseSequenceExampleV2",
            {"serialized": strings(rows), "debug_name": NAMES, "context_sparse_keys": strings([b"k"]),
             "context_dense_keys": strings([b"c"]), "context_ragged_keys": strings([b"q"]),
             "feature_list_sparse_keys": strings([b"s"]), "feature_list_dense_keys": strings([b"d"]),
             "feature_list_ragged_keys": strings([b"e"]),
             "feature_list_dense_missing_assumed_empty": np.array([missing]),
             "context_dense_defaults": [np.array(-1, np.int64)]},
            "context_ragged_value_types=[tf.int64], context_ragged_split_types=[tf.int64], Nfeature_list_dense=1, "
            "feature_list_ragged_value_types=[tf.float32], feature_list_ragged_split_types=[tf.int32], "
            + _SEQUENCE.format(n="Ncontext_sparse=1, Nfeature_list_sparse=1,"),
        )
        for rows in (SEQUENCES[:3], SEQUENCES[:2])  # of a scalar, TensorFlow leaves the splits as they come
        for missing in (True, False)
    ),
    *(
        Case(
            "ParseSingleSequenceExample",
            {"serialized": row, "feature_list_dense_missing_assumed_empty": strings([b"d"]),
             "context_sparse_keys": [strings(b"k")], "context_dense_keys": [strings(b"c")],
             "feature_list_sparse_keys": [strings(b"s")], "feature_list_dense_keys": [strings(b"d")],
             "context_dense_defaults": [np.array(-1, np.int64)], "debug_name": b"name"},
            _SEQUENCE.format(n=""),
        )
        for row in SEQUENCES[:4]
    ),
]  # fmt: skip

SUMMARIES = [
    Case("ScalarSummary", {"tags": strings([b"a", b"b"]), "values": np.array([1.5, -2], np.float32)}),
    Case("ScalarSummary", {"tags": b"a", "values": np.array(3, np.int64)}),
    Case("ScalarSummary", {"tags": b"a", "values": np.array([1.0, 2.0], np.float32)}),
    *(
        Case("HistogramSummary", {"tag": b"h", "values": values})
        for values in (
            np.array([0, 1, 1, -3.5, 1e-13, 1e25, 0.1], np.float32),
            np.empty(0, np.float32),
            np.arange(-5, 5, dtype=np.int64),
            np.array([np.nan], np.float32),
            np.array([np.inf], np.float64),
            np.array([5.0], np.float64),
        )
    ),
    Case("TensorSummary", {"tensor": np.arange(3)}),
    Case("TensorSummaryV2", {"tag": b"t", "tensor": strings([b"x"]), "serialized_summary_metadata": b""}),
    Case("TensorSummaryV2", {"tag": b"t", "tensor": np.array([1.5], np.float16), "serialized_summary_metadata": b"\x12\x01a"}),
    *(
        Case("ImageSummary", {"tag": b"i", "tensor": tensor}, f"max_images={n}")
        for tensor in (
            np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 2, 2, 3),
            np.linspace(-1, 3, 8, dtype=np.float32).reshape(1, 2, 4, 1),
            np.array([[[[np.nan], [1.0]], [[2.0], [np.inf]]]], np.float32),
            np.zeros((1, 2, 2, 4), np.float64),
            np.arange(48, dtype=np.uint8).reshape(1, 4, 4, 3),
            np.linspace(0, 9, 12).astype(np.float16).reshape(1, 2, 2, 3),
            np.zeros((1, 2, 2, 2), np.float32),
            np.zeros((1, 0, 2, 1), np.float32),
        )
        for n in (1, 3)
    ),
    *(
        Case("AudioSummaryV2", {"tag": b"s", "tensor": tensor, "sample_rate": np.array(rate, np.float32)}, f"max_outputs={n}")
        for tensor in (np.linspace(-1.2, 1.2, 20, dtype=np.float32).reshape(2, 10), np.zeros((1, 4, 2), np.float32))
        for n in (1, 3)
        for rate in (44100, 0.4, 0)
    ),
    Case("MergeSummary", {"inputs": [strings(summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag=t, simple_value=1)]).SerializeToString()) for t in "ab"]}),
    Case("MergeSummary", {"inputs": [strings(summary_pb2.Summary(value=[summary_pb2.Summary.Value(tag="a", simple_value=1)]).SerializeToString())] * 2}),
    Case("MergeSummary", {"inputs": [strings(b"\xff")]}),
]  # fmt: skip

CASES = [*HASHES, *STRINGS, *PARSING, *PARSE_EXAMPLES, *PARSE_SEQUENCES]


def test_kernels_agree(ask_tensorflow: Callable[..., Any], tmp_path: Any) -> None:
    answers = ask(ask_tensorflow, tmp_path, CASES)

    different = {
        f"{i}: {case}": found
        for i, (case, answer) in enumerate(zip(CASES, answers, strict=True))
        if (found := difference(case, answer)) is not None
    }
    assert different == {}


def _plain(value: Any) -> summary_pb2.Summary:
    """The proto, with pictures unpacked: two encoders need not pack alike."""
    return summary_pb2.Summary.FromString(value[()])


def _pixels(png: bytes) -> bytes:
    """The pixels of a PNG of 8-bit channels."""
    at, data, size = 8, b"", (0, 0, 0)
    while at < len(png):
        (length,), kind = struct.unpack(">I", png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            size = (*struct.unpack(">II", body[:8]), {0: 1, 2: 3, 6: 4}[body[9]])
        data += body if kind == b"IDAT" else b""
        at += 12 + length
    width, height, channels = size
    rows = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    return _unfiltered(rows, channels)


def _unfiltered(rows: Any, channels: int) -> bytes:
    """Undoes the filters of PNG's rows (none, left, up, mean, Paeth)."""
    above = np.zeros(rows.shape[1] - 1, np.int64)
    out = []
    for row in rows:
        line = [0] * (len(row) - 1)
        for i, byte in enumerate(row[1:].tolist()):
            left = line[i - channels] if i >= channels else 0
            up, corner = int(above[i]), int(above[i - channels]) if i >= channels else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda v: abs(guess - v))
            line[i] = (byte + (0, left, up, (left + up) // 2, paeth)[row[0]]) & 0xFF
        above = np.array(line)
        out.append(bytes(line))
    return b"".join(out)


def test_summaries_agree(ask_tensorflow: Callable[..., Any], tmp_path: Any) -> None:
    answers = ask(ask_tensorflow, tmp_path, SUMMARIES)

    different = {}
    for i, (case, answer) in enumerate(zip(SUMMARIES, answers, strict=True)):
        try:
            ours = _plain(run_here(case, answer.node)[0][0])
        except errors.OpError as error:
            if answer.error is None or error.message not in answer.error[1] or error.code != answer.error[0]:
                different[f"{i}: {case}"] = f"{error.message!r} here, {answer.error} there"
            continue
        if answer.runs is None:
            different[f"{i}: {case}"] = f"{ours} here, {answer.error} there"
            continue
        theirs = _plain(answer.runs[0][0])
        for value in (*ours.value, *theirs.value):
            if value.HasField("image"):
                value.image.encoded_image_string = _pixels(value.image.encoded_image_string)
        if ours != theirs:
            different[f"{i}: {case}"] = f"{ours} here, {theirs} there"
    assert different == {}
