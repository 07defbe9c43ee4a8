"""Ops with no data, Print and Assert; and which control flow the executor runs itself (dead tensors, frames).

Assert is a plain check here: the executor has ordered it already. Follows logging_ops.cc and no_op.cc.
"""

from __future__ import annotations

import sys
import threading

from tenfold_kernels.cpu._common import Array, invalid, text_attr
from tenfold_kernels.registry import Compute, KernelNode, executor_op, kernel, no_kernel

executor_op(
    "Switch",
    "RefSwitch",
    "Merge",
    "RefMerge",
    "Enter",
    "RefEnter",
    "Exit",
    "RefExit",
    "NextIteration",
    "RefNextIteration",
    "LoopCond",
    device="CPU",
    why="dead tensors and frames belong to the executor",
)
no_kernel(
    "If",
    "StatelessIf",
    "While",
    "StatelessWhile",
    "Case",
    "StatelessCase",
    "For",
    "PartitionedCall",
    "StatefulPartitionedCall",
    "RemoteCall",
    "SymbolicGradient",
    device="CPU",
    why="calls of graph functions are not run yet",
)
no_kernel("PyFunc", device="CPU", why="the function lives in the client's process, which a server cannot call")
no_kernel("Abort", device="CPU", why="a client must not be able to end a server's process")
no_kernel("RefSelect", device="CPU", why="no program of the op census uses it")


@kernel("NoOp", "ControlTrigger")
def build_no_op(node: KernelNode) -> Compute:
    return lambda: None


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
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)


def bracketed(value: Array, limit: int) -> str:
    return f"[{summarize(value, limit)}]"


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


@kernel("Assert")
def build_assert(node: KernelNode) -> Compute:
    limit = int(node.attrs.get("summarize", 3))

    def compute(condition: Array, *data: Array) -> None:
        if condition.ndim:
            raise invalid(f"In[0] should be a scalar: {list(condition.shape)}")
        if not condition:
            raise invalid("assertion failed: " + " ".join(bracketed(d, limit) for d in data))

    return compute
