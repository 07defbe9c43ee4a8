"""What an options dictionary shows of a profile: which nodes, in which order, and as which text.

Used by scope_view.py and op_view.py. Follows TensorFlow 1.15's core/profiler/internal/tfprof_show.cc and
tfprof_utils.cc.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

T = TypeVar("T")

#: The node above all others.
ROOT = "_TFProfRoot"

#: `order_by` → the figure.
ORDERS = {
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "params": "parameters",
    "float_ops": "float_ops",
}
#: Limits on the sums of a node and those below it.
_TOTAL_LIMITS = {
    f"min_{key}": f"total_{figure}" for key, figure in ORDERS.items() if key not in ("params", "float_ops")
}

#: What can be selected, in the order in which both views show it, and what a reader is told of it.
MEMORY = {
    "bytes": ("requested_bytes", "requested bytes"),
    "peak_bytes": ("peak_bytes", "peak bytes"),
    "residual_bytes": ("residual_bytes", "residual bytes"),
    "output_bytes": ("output_bytes", "output bytes"),
}
TIMES = {
    "micros": ("exec_micros", "total execution time"),
    "accelerator_micros": ("accelerator_exec_micros", "accelerator execution time"),
    "cpu_micros": ("cpu_exec_micros", "cpu execution time"),
}
COUNTS = {"params": ("parameters", "# parameters"), "float_ops": ("float_ops", "# float_ops")}


def times_of(select: Iterable[str]) -> list[str]:
    """The keys of TIMES that are shown: "micros" stands for all three."""
    chosen = set(select)
    return list(TIMES) if "micros" in chosen else [key for key in TIMES if key in chosen]


def number(value: int) -> str:
    """1234567 → 1.23m."""
    return _scaled(value, 1000, ("", "k", "m", "b"))


def micros(value: int) -> str:
    return _scaled(value, 1000, ("us", "ms", "sec"))


def memory(value: int) -> str:
    return _scaled(value, 1000, ("B", "KB", "MB"))


def _scaled(value: int, base: int, units: Sequence[str]) -> str:
    if value < base:
        return f"{value}{units[0]}"
    scaled = float(value)
    for unit in units[1:]:
        scaled /= base
        if scaled < base or unit == units[-1]:
            return f"{scaled:.2f}{unit}"
    raise AssertionError("the last unit takes every value")


def any_matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the expressions matches the whole name."""
    return any(pattern == ".*" or re.fullmatch(pattern, name) is not None for pattern in patterns)


def is_shown(proto: Any, options: dict[str, Any], depth: int, own_limits: dict[str, str]) -> bool:
    """Whether a node reaches every limit and its name is asked for. `own_limits` are options → fields of the proto."""
    if proto.name == ROOT:
        return True
    limits = {**_TOTAL_LIMITS, **own_limits}
    if any(getattr(proto, figure) < options.get(key, 0) for key, figure in limits.items()):
        return False
    return (
        depth <= options.get("max_depth", 10)
        and any_matches(proto.name, options.get("show_name_regexes", ()))
        and not any_matches(proto.name, options.get("hide_name_regexes", ()))
    )


def in_order(nodes: Iterable[T], proto_of: Callable[[T], Any], order_by: str) -> list[T]:
    """By name, or by a figure's sum with the largest first; equal ones by name."""
    by_name = sorted(nodes, key=lambda node: proto_of(node).name)
    if order_by not in ORDERS:
        return by_name
    return sorted(by_name, key=lambda node: -getattr(proto_of(node), f"total_{ORDERS[order_by]}"))
