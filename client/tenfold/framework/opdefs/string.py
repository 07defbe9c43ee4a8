"""Op definitions: operations on byte strings.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `framework/op_def.py` for the notation.
"""

from __future__ import annotations

from tenfold.framework.opdefs import shape_fns as s
from tenfold.framework.opdefs.table import family

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
op("DecodeBase64", "input: string", "output: string")
op("DecodeCompressed", "bytes: string", "output: string", "compression_type: string = ''")
op("DecodeJSONExample", "json_examples: string", "binary_examples: string")
op("EncodeBase64", "input: string", "output: string", "pad: bool = false")
op(
    "ReduceJoin",
    "inputs: string, reduction_indices: int32",
    "output: string",
    "keep_dims: bool = false",
    "separator: string = ''",
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
)
op("StringJoin", "inputs: N * string", "output: string", "N: int >= 0", "separator: string = ''", shape=s.string_join)
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
)
op(
    "StringSplit",
    "input: string, delimiter: string",
    "indices: int64, values: string, shape: int64",
    "skip_empty: bool = true",
)
op("StringSplitV2", "input: string, sep: string", "indices: int64, values: string, shape: int64", "maxsplit: int = -1")
op("StringStrip", "input: string", "output: string", shape=s.unchanged)
op("StringToHashBucket", "string_tensor: string", "output: int64", "num_buckets: int >= 1", shape=s.unchanged)
op("StringToHashBucketFast", "input: string", "output: int64", "num_buckets: int >= 1", shape=s.unchanged)
op("StringToHashBucketStrong", "input: string", "output: int64", "num_buckets: int >= 1", "key: list(int)")
op(
    "StringToNumber",
    "string_tensor: string",
    "output: out_type",
    "out_type: {float, double, int32, int64, uint32, uint64} = float",
    shape=s.unchanged,
)
op("StringUpper", "input: string", "output: string", "encoding: string = ''", shape=s.unchanged)
op("Substr", "input: string, pos: T, len: T", "output: string", "T: {index}", "unit: {'BYTE', 'UTF8_CHAR'} = 'BYTE'")
op("UnicodeScript", "input: int32", "output: int32")
