"""The gradient of one max-pooling window in vector registers: as many channels as a vector has lanes.

A compiler intrinsic, because Numba's own loop over the channels of each pixel asks there whether its four arrays
overlap, which takes as long as the work. Used by pooling.py: after an edit here, touch that file too, for the disk
cache of its loops watches nothing else.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from tenfold_kernels.cpu._compiled.intrinsics import VECTOR_BYTES


@intrinsic
def spread_to_largest(  # type: ignore[no-untyped-def]
    typing_context, image, at, row, column, high, wide, gradient, given_at, image_gradient
):
    """Adds gradient[given_at …] to the first place of a window of `image` that holds the largest of its channel.

    The window begins at `at`, has high × wide pixels (at least one), `row` and `column` elements apart. A NaN is the
    largest where it comes first, as for `x > largest`. Flat arrays of one float type; no index is checked.
    """
    numbers = types.int64
    signature = types.void(image, *(numbers,) * 5, gradient, numbers, image_gradient)

    def generate(context, builder, _, args):  # type: ignore[no-untyped-def]
        image_, at, row, column, high, wide, gradient_, given_at, image_gradient_ = args
        align = image.dtype.bitwidth // 8
        lanes = VECTOR_BYTES // align
        vector = ir.VectorType(context.get_data_type(image.dtype), lanes)
        zero = ir.Constant(vector, [0.0] * lanes)

        def start(kind: Any, value: Any, offset: Any) -> Any:
            return builder.gep(context.make_array(kind)(context, builder, value).data, [offset])

        def place(base: Any, i: Any, j: Any) -> Any:
            offset = builder.add(builder.mul(i, row), builder.mul(j, column))
            return builder.bitcast(builder.gep(base, [offset]), vector.as_pointer())

        def add(to: Any, value: Any) -> None:
            builder.store(builder.fadd(builder.load(to, align=align), value), to, align=align)

        pixels, sums = start(image, image_, at), start(image_gradient, image_gradient_, at)
        none = ir.Constant(ir.IntType(64), 0)
        largest, rest = (cgutils.alloca_once(builder, vector) for _ in range(2))  # type: ignore[no-untyped-call]
        builder.store(builder.load(place(pixels, none, none), align=align), largest)
        with cgutils.for_range(builder, high) as i, cgutils.for_range(builder, wide) as j:
            x, y = builder.load(place(pixels, i.index, j.index), align=align), builder.load(largest)
            builder.store(builder.select(builder.fcmp_ordered(">", x, y), x, y), largest)
        top = builder.load(largest)
        given = builder.load(place(start(gradient, gradient_, given_at), none, none), align=align)
        # No comparison of equals finds a NaN.
        is_nan = builder.fcmp_unordered("uno", top, top)
        add(place(sums, none, none), builder.select(is_nan, given, zero))
        builder.store(builder.select(is_nan, zero, given), rest)
        with cgutils.for_range(builder, high) as i, cgutils.for_range(builder, wide) as j:
            is_it = builder.fcmp_ordered("==", builder.load(place(pixels, i.index, j.index), align=align), top)
            left = builder.load(rest)
            add(place(sums, i.index, j.index), builder.select(is_it, left, zero))
            builder.store(builder.select(is_it, zero, left), rest)
        return context.get_dummy_value()

    return signature, generate
