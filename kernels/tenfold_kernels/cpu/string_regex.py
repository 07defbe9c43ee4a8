"""Regular expressions: RE2 itself, as in TensorFlow, so that no pattern of a peer's takes exponential time.

Outputs are fresh. Follows regex_full_match_op.cc and regex_replace_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.cpu._strings import Room, bytes_attr, elementwise, printable, scalar_bytes
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    Rewrite = Callable[[Any], bytes]


@kernel("RegexFullMatch", "StaticRegexFullMatch")
def build_regex_full_match(node: KernelNode) -> Compute:
    """Whether all of each string matches."""
    fixed = _compile(bytes_attr(node, "pattern")) if node.op == "StaticRegexFullMatch" else None

    def compute(x: Array, pattern: Array | None = None) -> Array:
        regex = fixed or _compile(scalar_bytes(pattern, "Pattern"))
        return elementwise(x, lambda v: regex.fullmatch(v) is not None, np.bool_)

    return compute


@kernel("RegexReplace", "StaticRegexReplace")
def build_regex_replace(node: KernelNode) -> Compute:
    r"""The rewrite names groups as \1, the whole match as \0, a backslash as \\."""
    everywhere = bool(node.attrs["replace_global"])
    fixed = None
    if node.op == "StaticRegexReplace":
        regex = _compile(bytes_attr(node, "pattern"))
        fixed = regex, _rewrite(regex, bytes_attr(node, "rewrite"), everywhere)

    def compute(x: Array, pattern: Array | None = None, rewrite: Array | None = None) -> Array:
        if fixed is None:
            regex = _compile(scalar_bytes(pattern, "Pattern"))
            template = _rewrite(regex, scalar_bytes(rewrite, "Rewrite"), everywhere)
        else:
            regex, template = fixed
        if template is None:
            return x.copy()
        room = Room(node.op)
        return elementwise(x, lambda v: _replace(regex, template, v, everywhere, room))

    return compute


def _compile(pattern: bytes) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise invalid(f"Invalid pattern: {printable(pattern)}, error: {text}") from None


def _rewrite(regex: Any, template: bytes, everywhere: bool) -> Rewrite | None:
    """The function of a match that gives what it is replaced by, or None where RE2 would refuse the template.

    Where all matches are replaced, RE2 writes what is before an escape that it does not know.
    """
    parts: list[bytes | int] = []
    at, is_known = 0, True
    while at < len(template):
        escape = template.find(b"\\", at)
        text, name = (template[at:], b"") if escape < 0 else (template[at:escape], template[escape + 1 : escape + 2])
        if name.isdigit() and int(name) > regex.groups:
            return None
        parts += [text] if is_known else []
        if escape < 0:
            break
        is_known = is_known and (name == b"\\" or name.isdigit())
        if is_known:
            parts.append(int(name) if name.isdigit() else b"\\")
        at = escape + 2
    if not is_known and not everywhere:
        return None
    return lambda match: b"".join(part if isinstance(part, bytes) else match.group(part) or b"" for part in parts)


def _replace(regex: Any, template: Rewrite, value: bytes, everywhere: bool, room: Room) -> bytes:
    out = []
    room.take(len(value))
    at = 0
    last_end = -1
    while at <= len(value):
        match = regex.search(value, at)
        if match is None:
            break
        start, end = match.span()
        out.append(value[at:start])
        if start == end == last_end:
            # An empty match right after another match does not count: move on by a character.
            following = _next_character(value, at)
            out.append(value[start:following])
            at = following
            continue
        out.append(template(match))
        room.take(len(out[-1]))
        at = last_end = end
        if not everywhere:
            break
    out.append(value[at:])
    return b"".join(out)


def _next_character(value: bytes, at: int) -> int:
    at += 1
    while at < len(value) and value[at] & 0xC0 == 0x80:
        at += 1
    return at
