"""Op definitions: operations on byte strings.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs import shape_fns_math as g
from tenfold_core.opdefs import shape_fns_text as t
from tenfold_core.opdefs.table import family

op = family("string")

op(
    "AsString",
    "input: T",
    "output: string",
    "T: {float, double, int32, uint8, int16, int8, int64, bfloat16, uint16, half, uint32, uint64, complex64, complex128, bool, variant, string}",
    "precision: int = -1",
    "scientific: bool = false",
    "shortest: bool = false",
    "width: int = -1",
    "fill: string = ''",
    shape=s.unchanged,
)
op("DecodeBase64", "input: string", "output: string", shape=t.unchanged)
op(
    "DecodeCompressed",
    "bytes: string",
    "output: string",
    "compression_type: string = ''",
    shape=t.unchanged,
    sized_by="bytes",
)
op("DecodeJSONExample", "json_examples: string", "binary_examples: string", shape=t.unchanged)
op("EncodeBase64", "input: string", "output: string", "pad: bool = false", shape=t.unchanged)
op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32",
    "output: string",
    "keep_dims: bool = false",
    "separator: string = ''",
    shape=t.reduction,
    sized_by="",
)
op("RegexFullMatch", "input: string, pattern: string", "output: bool", shape=s.unchanged)
op(
    "RegexReplace",
    "input: string, pattern: string, rewrite: string",
    "output: string",
    "replace_global: bool = true",
    shape=s.unchanged,
)
op("StaticRegexFullMatch", "input: string", "output: bool", "pattern: string", shape=s.unchanged)
op(
    "StaticRegexReplace",
    "input: string",
    "output: string",
    "pattern: string",
    "rewrite: string",
    "replace_global: bool = true",
    shape=s.unchanged,
)
op(
    "StringFormat",
    "inputs: T",
    "output: string",
    "T: list(type) >= 0",
    "template: string = '%s'",
    "placeholder: string = '%s'",
    "summarize: int = 3",
    shape=t.scalar,
)
op("StringJoin", "inputs: N * string", "output: string", "N: int >= 0", "separator: string = ''", shape=t.string_join)
op("StringLength", "input: string", "output: int32", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'", shape=s.unchanged)
op("StringLower", "input: string", "output: string", "encoding: string = ''", shape=s.unchanged)
op(
    "StringNGrams",
    "data: string, data_splits: Tsplits",
    "ngrams: string, ngrams_splits: Tsplits",
    "separator: string",
    "ngram_widths: list(int) >= 0",
    "left_pad: string",
    "right_pad: string",
    "pad_width: int",
    "preserve_short_sequences: bool",
    "Tsplits: {index} = int64",
    shape=t.ngrams,
)
op(
    "StringSplit",
    "input: string, delimiter: string",
    "indices: int64, values: string, shape: int64",
    "skip_empty: bool = true",
    shape=t.pieces,
)
op(
    "StringSplitV2",
    "input: string, sep: string",
    "indices: int64, values: string, shape: int64",
    "maxsplit: int = -1",
    shape=t.pieces,
)
op("StringStrip", "input: string", "output: string", shape=s.unchanged)
op("StringToHashBucket", "string_tensor: string", "output: int64", "num_buckets: int >= 1", shape=s.unchanged)
op("StringToHashBucketFast", "input: string", "output: int64", "num_buckets: int >= 1", shape=s.unchanged)
op(
    "StringToHashBucketStrong",
    "input: string",
    "output: int64",
    "num_buckets: int >= 1",
    "key: list(int)",
    shape=t.unchanged,
)
op(
    "StringToNumber",
    "string_tensor: string",
    "output: out_type",
    "out_type: {float, double, int32, int64, uint32, uint64} = float",
    shape=s.unchanged,
)
op("StringUpper", "input: string", "output: string", "encoding: string = ''", shape=s.unchanged)
op(
    "Substr",
    "input: string, pos: T, len: T",
    "output: string",
    "T: {index}",
    "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'",
    shape=t.broadcast,
)
op("UnicodeScript", "input: int32", "output: int32", shape=t.unchanged)
op(
    "UnsortedSegmentJoin",
    "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
    "output: string",
    "separator: string = ''",
    "Tindices: {index}",
    "Tnumsegments: {index} = int32",
    shape=g.unsorted_segment,
    sized_by="num_segments",
)
op(
    "UnicodeEncode",
    "input_values: int32, input_splits: Tsplits",
    "output: string",
    "errors: {'ignore', 'replace', 'strict'} = 'replace'",
    "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
    "replacement_char: int = 65533",
    "Tsplits: {index} = int64",
    shape=t.unicode_encode,
)
op(
    "UnicodeDecode",
    "input: string",
    "row_splits: Tsplits, char_values: int32",
    "input_encoding: string",
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
    "Tsplits: {index} = int64",
    shape=t.unicode_decode,
)
op(
    "UnicodeDecodeWithOffsets",
    "input: string",
    "row_splits: Tsplits, char_values: int32, char_to_byte_starts: int64",
    "input_encoding: string",
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
    "Tsplits: {index} = int64",
    shape=t.unicode_decode,
)
op(
    "UnicodeTranscode",
    "input: string",
    "output: string",
    "input_encoding: string",
    "output_encoding: {'UTF-8', 'UTF-16-BE', 'UTF-32-BE'}",
    "errors: {'strict', 'replace', 'ignore'} = 'replace'",
    "replacement_char: int = 65533",
    "replace_control_characters: bool = false",
    shape=t.unchanged,
)
