"""Kinds of programs, and words of TensorFlow's refusals of what Tenfold accepts there."""

from __future__ import annotations

#: Types that TensorFlow has no kernel for.
NO_KERNEL = ("No OpKernel",)

#: An element that was never set has as many rows as its list's shape says; TensorFlow gives it none.
LEFT_OUT = {("lists", 46)}

KNOWN: dict[str, tuple[str, ...]] = {
    # slices of texts are read here, too
    "checkpoints": ("Dtype string not supported",),
}
