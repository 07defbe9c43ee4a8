"""Unicode: strings to code points, code points to strings, one encoding to another. Outputs are fresh.

Python's codecs stand in for ICU's; what is malformed is replaced, left out or refused as the attrs say. Follows
unicode_ops.cc and unicode_script_op.cc (whose ScriptExtensions need tables that Python lacks: no kernel).
"""

from __future__ import annotations

import codecs
import itertools
import threading
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tenfold_kernels.arrays import Array, invalid, objects, output_type, text_attr
from tenfold_kernels.cpu._strings import elementwise
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

no_kernel("UnicodeScript", device="CPU", why="Python has no table of the scripts of characters")

_LAST = 0x10FFFF
#: Codecs of Python's that are no encodings of text elsewhere; some take time that grows with the square of the text.
_PYTHONS_OWN = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs", "oem"})
#: Stands for a malformed piece while a text is decoded: half a surrogate pair, which no well-formed text gives.
_MARK = "\udfff"


#: Encodings in which a mark says the order of bytes → the marks.
_MARKED = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


class _Character(NamedTuple):
    code: int
    #: Bytes of the source that it takes.
    size: int
    malformed: bool


class _Policy:
    """What the attrs say about malformed input."""

    def __init__(self, node: KernelNode) -> None:
        self.errors = text_attr(node, "errors", "replace")
        if self.errors not in ("replace", "ignore", "strict"):
            raise invalid("errors policy must be one of 'strict', 'replace', or 'ignore'")
        self.substitute = int(node.attrs["replacement_char"])
        if not 0 <= self.substitute <= _LAST:
            raise invalid("replacement_char out of unicode codepoint range")
        self._controls = bool(node.attrs.get("replace_control_characters"))

    def is_bad(self, character: _Character) -> bool:
        return character.malformed or (self._controls and character.code <= 0x1F)


def _codec(name: str) -> str:
    """The name of Python's codec. Raises InvalidArgumentError for an encoding that there is not."""
    try:
        codec = codecs.lookup(name)
    except LookupError:
        raise invalid(f"Could not create converter for input encoding: {name}") from None
    if not getattr(codec, "_is_text_encoding", True) or codec.name.replace("_", "-") in _PYTHONS_OWN:
        raise invalid(f"Could not create converter for input encoding: {name}")
    return codec.name


class _Malformed(threading.local):
    """Where the text that this thread decodes is malformed: the number of bytes of each piece."""

    def __init__(self) -> None:
        self.sizes: list[int] = []


_malformed = _Malformed()


def _note_malformed(error: UnicodeError) -> tuple[str, int]:
    """For `codecs`: puts a mark in the place of a piece, so that a text is read once, however much is wrong with it."""
    assert isinstance(error, UnicodeDecodeError)
    _malformed.sizes.append(error.end - error.start)
    return _MARK, error.end


_NOTED = "tenfold.malformed"
codecs.register_error(_NOTED, _note_malformed)


def _characters(value: bytes, codec: str) -> Iterator[_Character]:
    """The characters of `value`, each malformed piece as one replacement character."""
    _malformed.sizes = []
    if codec in _MARKED and not value.startswith(_MARKED[codec]):
        codec = f"{codec}-be"  # Python would take the machine's order
    text = value.decode(codec, _NOTED)
    sizes = iter(_malformed.sizes)
    width = _widths(codec)
    for character in text:
        if character == _MARK:
            yield _Character(0xFFFD, next(sizes, 1), True)
        else:
            yield _Character(ord(character), width(character), False)


def _widths(codec: str):  # type: ignore[no-untyped-def]
    if codec == "utf-8":
        return lambda c: 1 if c < "\x80" else 2 if c < "\u0800" else 3 if c < "\U00010000" else 4
    return lambda c: len(c.encode(codec))


_OUTPUT = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}


def _encode(codes: list[int], codec: str) -> bytes:
    return "".join(map(chr, codes)).encode(codec, "surrogatepass" if codec != "utf-8" else "replace")


@kernel("UnicodeTranscode")
def build_unicode_transcode(node: KernelNode) -> Compute:
    policy, source = _Policy(node), _codec(text_attr(node, "input_encoding"))
    target = _OUTPUT[text_attr(node, "output_encoding", "UTF-8")]

    def one(value: bytes) -> bytes:
        codes = []
        for character in _characters(value, source):
            if not policy.is_bad(character):
                codes.append(character.code)
            elif policy.errors == "strict":
                raise invalid("Invalid formatting on input string")
            elif policy.errors == "replace":
                codes.append(policy.substitute)
        return _encode(codes, target)

    return lambda x: elementwise(x, one)


@kernel("UnicodeDecode", "UnicodeDecodeWithOffsets")
def build_unicode_decode(node: KernelNode) -> Compute:
    """Strings → row_splits, code points, and where in its string each begins."""
    policy, source = _Policy(node), _codec(text_attr(node, "input_encoding"))
    splits_type = output_type(node)
    with_offsets = node.op == "UnicodeDecodeWithOffsets"

    def compute(x: Array) -> tuple[Array, ...]:
        codes: list[int] = []
        offsets: list[int] = []
        splits = [0]
        for value in x.reshape(-1).tolist():
            at = 0
            for character in _characters(value, source):
                bad = policy.is_bad(character)
                if bad and policy.errors == "strict":
                    raise invalid("Invalid formatting on input string")
                if not (bad and policy.errors == "ignore"):
                    codes.append(policy.substitute if bad else character.code)
                    offsets.append(at)
                at += character.size
            splits.append(len(codes))
        found = np.array(splits, splits_type), np.array(codes, np.int32)
        return (*found, np.array(offsets, np.int64)) if with_offsets else found

    return compute


@kernel("UnicodeEncode")
def build_unicode_encode(node: KernelNode) -> Compute:
    """Code points and row_splits → a string a row."""
    policy, target = _Policy(node), _OUTPUT[text_attr(node, "output_encoding")]

    def row(codes: list[int]) -> bytes:
        kept = []
        for code in codes:
            if 0 <= code <= _LAST and not 0xD800 <= code <= 0xDFFF:
                kept.append(code)
            elif policy.errors == "strict":
                raise invalid("Code point is out of range for Unicode, or is a surrogate.")
            elif policy.errors == "replace":
                kept.append(policy.substitute)
        return _encode(kept, target)

    def compute(values: Array, splits: Array) -> Array:
        if values.ndim != 1 or splits.ndim != 1:
            raise invalid("Both the input_tensor and input_splits should be of rank 1. ")
        ends = splits.tolist()
        if not ends:
            raise invalid("Input_splits should contain elements, but given input_values has 0 elements")
        if ends[0] != 0:
            raise invalid("First value in input_splits must be zero.")
        if ends[-1] != values.size:
            raise invalid("Last value in input_splits must be equal to length of input_tensor.")
        codes = values.tolist()
        rows = []
        for start, end in itertools.pairwise(ends):
            if start > end:
                raise invalid("Values in input_splits must be equal or in ascending order.")
            if end > len(codes):
                raise invalid("Values in input_splits must be less than or equal to input_tensor length.")
            rows.append(row(codes[start:end]))
        return objects(rows)

    return compute
