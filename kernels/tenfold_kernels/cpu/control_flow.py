"""Ops with no data, Print and Assert; and which control flow the executor runs itself (dead tensors, frames).

Assert is a plain check here: the executor has ordered it already. Follows logging_ops.cc and no_op.cc.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.opdefs.runtime_ops import FLOW_OPS
from tenfold_kernels.arrays import Array, invalid, text_attr
from tenfold_kernels.registry import Compute, KernelNode, executor_op, kernel, no_kernel

if TYPE_CHECKING:
    from tenfold_kernels.resources.state import Variable

executor_op(*sorted(FLOW_OPS), device="CPU", why="dead tensors and frames belong to the executor")
no_kernel(
    "SymbolicGradient",
    device="CPU",
    why="it is replaced by the nodes of the gradient when the graph comes, but in a function that calls itself",
)
no_kernel("Abort", device="CPU", why="a client must not be able to end a server's process")


@kernel("RefSelect")
def build_ref_select(node: KernelNode) -> Compute:
    """One of its references, by number."""

    def compute(index: Array, *references: Variable) -> Variable:
        if index.ndim:
            raise invalid(f"index must be scalar, but got shape: {list(index.shape)}")
        if not 0 <= index < len(references):
            raise invalid(f"index is {index} but should be between 0 and {len(references) - 1}")
        return references[int(index)]

    return compute


@kernel("NoOp", "ControlTrigger")
def build_no_op(node: KernelNode) -> Compute:
    return lambda: None


@kernel("Timestamp")
def build_timestamp(node: KernelNode) -> Compute:
    """Seconds since 1970, by this task's clock."""
    return lambda: np.array(time.time())


#: Byte of a string → what is printed of it, where that is not its character: C's escapes.
_ESCAPED = {byte: f"\\{byte:03o}" for byte in bytes(range(256)) if not 32 <= byte < 127}
_ESCAPED |= {ord("\n"): r"\n", ord("\r"): r"\r", ord("\t"): r"\t", ord('"'): r"\"", ord("'"): r"\'", ord("\\"): r"\\"}


def summarize(value: Array, limit: int) -> str:
    """`[1 2 3...]` and `[[0 0][0...]...]`: at most `limit` elements, as Tensor::SummarizeValue prints them."""
    flat = [_element_text(v) for v in value.reshape(-1).tolist()]
    limit = len(flat) if limit < 0 else limit
    if value.ndim == 0:
        return flat[0] if limit else "..."
    position = 0

    def part(shape: tuple[int, ...], outermost: bool) -> str:
        nonlocal position
        text = ""
        for i in range(shape[0]):
            if position >= limit:
                return text + "..." if len(shape) == 1 and not outermost else text
            if len(shape) == 1:
                text += (" " if i else "") + flat[position]
                position += 1
            else:
                text += f"[{part(shape[1:], False)}]"
        return text

    return part(value.shape, True) + ("..." if len(flat) > limit else "")


def _element_text(value: object) -> str:
    if isinstance(value, bytes):
        return "".join(_ESCAPED.get(byte) or chr(byte) for byte in value)
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def bracketed(value: Array, limit: int) -> str:
    return f"[{summarize(value, limit)}]"


#: What PrintV2 may write to.
_STREAMS = ("stdout", "stderr", "log(info)", "log(warning)", "log(error)")


@kernel("Print")
def build_print(node: KernelNode) -> Compute:
    """Passes its first input on; prints the rest on stderr, the first `first_n` times (always, if negative)."""
    message, limit = text_attr(node, "message"), int(node.attrs.get("summarize", 3))
    first_n = int(node.attrs.get("first_n", -1))
    lock = threading.Lock()
    calls = 0

    def compute(x: Array, *data: Array) -> Array:
        nonlocal calls
        with lock:
            calls += 1
            if first_n >= 0 and calls > first_n:
                return x
        sys.stderr.write(message + "".join(bracketed(d, limit) for d in data) + "\n")
        return x

    return compute


@kernel("PrintV2")
def build_print_v2(node: KernelNode) -> Compute:
    """Writes its text to one of the process's streams, logs to stderr; never to a file that a client names."""
    stream, end = text_attr(node, "output_stream"), text_attr(node, "end")
    if stream not in _STREAMS:
        raise invalid(f"Unknown output stream: {stream}, Valid streams are: {' '.join(_STREAMS)}")

    def compute(message: Array) -> None:
        if message.ndim:
            raise invalid(f"Input is expected to be scalar, but got [{','.join(map(str, message.shape))}]")
        out = sys.stdout if stream == "stdout" else sys.stderr
        out.write(message.item().decode("utf-8", "backslashreplace") + end)
        out.flush()

    return compute


@kernel("Assert")
def build_assert(node: KernelNode) -> Compute:
    limit = int(node.attrs.get("summarize", 3))

    def compute(condition: Array, *data: Array) -> None:
        if condition.ndim:
            raise invalid(f"In[0] should be a scalar: {list(condition.shape)}")
        if not condition:
            raise invalid("assertion failed: " + " ".join(bracketed(d, limit) for d in data))

    return compute
