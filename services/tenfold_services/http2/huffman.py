"""HPACK's Huffman code: one table, from which both directions are made. Used by hpack.py. Source: RFC 7541, appendix B.

The code is canonical: codes of equal length follow each other in the order of the symbols, so lengths are all there is
to know. Decoding goes four bits at a time through a table of states, made when the first such string comes.
"""

from __future__ import annotations

from functools import cache

#: Bits of each symbol's code, 0 to 255 and the end of string, written as runs.
_LENGTHS = (
    "13 23 28*7 24 30 28*2 30 28*8 30 28*9 6 10*2 12 13 6 8 11 10*2 8 11 8 6*3 5*3 6*7 7 8 15 6 12 10 13 6 7*22 8 7 "
    "8 13 19 13 14 6 15 5 6 5 6 5 6*3 5 7*2 6*3 5 6 7 6 5*2 6 7*5 15 11 14 13 28 20 22 20*2 22*3 23 22 23*5 24 23 "
    "24*2 22 23 24 23*4 21 22 23 22 23*2 24 22 21 20 22*2 23*2 21 23 22*2 24 21 22 23*2 21*2 22 21 23 22 23*2 20 "
    "22*3 23 22*2 23 26*2 20 19 22 23 22 25 26*3 27*2 26 24 25 19 21 26 27*2 26 27 24 21*2 26*2 28 27*3 20 24 20 21 "
    "22 21*2 23 22*2 25*2 24*2 26 23 26 27 26*2 27*5 28 27*5 26 30"
)
_END = 256


class HuffmanError(ValueError):
    """The bytes are no Huffman-coded string."""


@cache
def codes() -> tuple[tuple[int, int], ...]:
    """(code, bits) of each symbol."""
    lengths: list[int] = []
    for run in _LENGTHS.split():
        size, _, times = run.partition("*")
        lengths += [int(size)] * int(times or 1)
    result = [(0, 0)] * len(lengths)
    code = previous = 0
    for bits, symbol in sorted((bits, symbol) for symbol, bits in enumerate(lengths)):
        code <<= bits - previous
        previous = bits
        result[symbol] = code, bits
        code += 1
    return tuple(result)


def encode(text: bytes) -> bytes:
    """The code of `text`, filled up with ones."""
    table = codes()
    value = size = 0
    for byte in text:
        code, bits = table[byte]
        value = value << bits | code
        size += bits
    fill = -size % 8
    return (value << fill | (1 << fill) - 1).to_bytes((size + fill) // 8, "big")


#: State → for each of 16 values: (next state, what is decoded); next state -1: an error.
_States = tuple[tuple[tuple[int, bytes], ...], ...]


@cache
def _states() -> tuple[_States, frozenset[int]]:
    """The states, and those in which a string may end: less than eight ones since the last symbol."""
    # a node is [child of 0, child of 1]; leaves are ~symbol
    nodes: list[list[int]] = [[0, 0]]
    for symbol, (code, bits) in enumerate(codes()):
        node = 0
        for shift in range(bits - 1, 0, -1):
            bit = code >> shift & 1
            if not nodes[node][bit]:
                nodes.append([0, 0])
                nodes[node][bit] = len(nodes) - 1
            node = nodes[node][bit]
        nodes[node][code & 1] = ~symbol

    def after(node: int, four: int) -> tuple[int, bytes]:
        out = b""
        for shift in (3, 2, 1, 0):
            node = nodes[node][four >> shift & 1]
            if node == ~_END:
                return -1, b""
            if node < 0:
                out += bytes((~node,))
                node = 0
        return node, out

    states = tuple(tuple(after(node, four) for four in range(16)) for node in range(len(nodes)))
    ends, node = {0}, 0
    for _ in range(7):
        node = nodes[node][1]
        ends.add(node)
    return states, frozenset(ends)


def decode(data: bytes) -> bytes:
    """The text of a code. Raises HuffmanError."""
    states, ends = _states()
    state, out = 0, []
    for byte in data:
        state, some = states[state][byte >> 4]
        if some:
            out.append(some)
        if state >= 0:
            state, some = states[state][byte & 15]
            if some:
                out.append(some)
        if state < 0:
            raise HuffmanError("the end of string inside a string")
    if state not in ends:
        raise HuffmanError("a string that ends inside a symbol")
    return b"".join(out)
