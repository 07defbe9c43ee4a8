"""Gradient rows of the string ops; the op definitions are in tenfold_core/opdefs/string.py.

Strings have no gradient.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "AsString",
    "DecodeBase64",
    "DecodeCompressed",
    "DecodeJSONExample",
    "EncodeBase64",
    "ReduceJoin",
    "RegexFullMatch",
    "RegexReplace",
    "StaticRegexFullMatch",
    "StaticRegexReplace",
    "StringFormat",
    "StringJoin",
    "StringLength",
    "StringLower",
    "StringNGrams",
    "StringSplit",
    "StringSplitV2",
    "StringStrip",
    "StringToHashBucket",
    "StringToHashBucketFast",
    "StringToHashBucketStrong",
    "StringToNumber",
    "StringUpper",
    "Substr",
    "UnicodeScript",
    why="strings",
)
not_differentiable(
    "UnicodeDecode",
    "UnicodeDecodeWithOffsets",
    "UnicodeEncode",
    "UnicodeTranscode",
    "UnsortedSegmentJoin",
)
