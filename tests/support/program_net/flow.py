"""Programs of tensor arrays, tensor lists and stacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from support.program_net.program import Program

F, INT, LONG, S = dtypes.float32, dtypes.int32, dtypes.int64, dtypes.string


def value_of(p: Program, dtype: Any, shape: Any) -> np.ndarray:
    return p.d.array(dtype, shape)


def part_of(p: Program, shape: tuple[int, ...]) -> TensorShape:
    """The shape, a part of it, or nothing."""
    d = p.d
    if d.maybe(0.3):
        return TensorShape(None)
    return TensorShape([None if d.maybe(0.3) else size for size in shape])


def tensor_arrays(p: Program) -> None:
    d = p.d
    dtype = d.choice((F, F, INT, S))
    shape = tuple(max(1, size) for size in d.shape(0, 2))
    size, clears = d.randint(0, 3), d.maybe(0.3)
    array, flow = p.step(
        "TensorArrayV3",
        np.int32(size),
        dtype=dtype,
        element_shape=part_of(p, shape),
        dynamic_size=d.maybe(),
        clear_after_read=clears,
        identical_element_shapes=d.maybe(),
        tensor_array_name=b"ta",
    )
    way = d.choice(("write", "scatter", "split", "write"))
    there = set(range(size))
    if way == "write":
        for at in d.sample(range(size), size):
            sizes = shape if d.maybe(0.95) else (*shape, 1)
            flow = p.step("TensorArrayWriteV3", array, np.int32(at - d.maybe(0.03)), value_of(p, dtype, sizes), flow)
        if d.maybe(0.2):  # one more than it has
            flow = p.step("TensorArrayWriteV3", array, np.int32(size), value_of(p, dtype, shape), flow)
            there.add(size)
    elif way == "scatter":
        at = d.sample(range(size), size)
        flow = p.step(
            "TensorArrayScatterV3", array, np.array(at, np.int32), value_of(p, dtype, (len(at), *shape)), flow
        )
    else:
        shape = shape or (1,)
        lengths = [shape[0]] * size if d.maybe(0.7) else d.ints(size, 0, 2)
        value = value_of(p, dtype, (sum(lengths) + d.maybe(0.04), *shape[1:]))
        flow = p.step("TensorArraySplitV3", array, value, np.array(lengths, np.int64), flow)
    p.step("TensorArraySizeV3", array, flow)
    for _ in range(d.randint(1, 3)):
        then = d.choice(("read", "gather", "concat", "write", "grad", "read"))
        good = sorted(there) or [0]
        if then == "read":
            at = d.choice(good) if d.maybe(0.95) else d.choice((-1, size + 1))
            p.step("TensorArrayReadV3", array, np.int32(at), flow, dtype=dtype)
            there -= {at} if clears else set()
        elif then == "gather":
            at = d.sample(good, d.randint(0, len(good)))
            p.step(
                "TensorArrayGatherV3", array, np.array(at, np.int32), flow, dtype=dtype, element_shape=part_of(p, shape)
            )
            there -= set(at) if clears else set()
        elif then == "concat" and (shape or d.maybe(0.1)):
            p.step("TensorArrayConcatV3", array, flow, dtype=dtype, element_shape_except0=part_of(p, shape[1:]))
            there -= there if clears else set()
        elif then == "write" and size and d.maybe(0.2):
            flow = p.step("TensorArrayWriteV3", array, np.int32(d.randrange(size)), value_of(p, dtype, shape), flow)
        elif then == "grad" and dtype is F and size:
            grad, grad_flow = p.step("TensorArrayGradV3", array, flow, source=b"g", fetched=False)
            for _ in range(2):
                grad_flow = p.step("TensorArrayWriteV3", grad, np.int32(0), value_of(p, dtype, shape), grad_flow)
            p.step("TensorArrayReadV3", grad, np.int32(0), grad_flow, dtype=dtype)
            p.step("TensorArraySizeV3", grad, grad_flow)
    if d.maybe(0.3):
        p.step("TensorArrayCloseV3", array)
        if d.maybe(0.3):
            p.step("TensorArraySizeV3", array, flow)


def lists(p: Program) -> None:
    d = p.d
    dtype = d.choice((F, F, INT, S))
    shape = tuple(max(1, size) for size in d.shape(0, 2))

    def sizes() -> np.ndarray:
        if d.maybe(0.2):
            return np.array(-1, np.int32)
        return np.array([-1 if d.maybe(0.2) else size for size in shape], np.int32)

    def element() -> np.ndarray:
        return value_of(p, dtype, shape if d.maybe(0.94) else (*shape, 2))

    way = d.choice(("empty", "reserve", "tensor", "scatter", "split", "reserve"))
    count = d.randint(0, 3)
    if way == "empty":
        made = p.step("EmptyTensorList", sizes(), np.int32(d.choice((-1, -1, 2))), element_dtype=dtype)
    elif way == "reserve":
        made = p.step("TensorListReserve", sizes(), np.int32(count), element_dtype=dtype)
    elif way == "tensor":
        made = p.step("TensorListFromTensor", value_of(p, dtype, (count, *shape)), sizes(), element_dtype=dtype)
    elif way == "scatter":
        at = np.array(d.sample(range(count + 1), count), np.int32)
        more = [np.int32(d.choice((-1, count + 1, 1)))] if d.maybe() else []
        made = p.step(
            "TensorListScatterV2" if more else "TensorListScatter",
            value_of(p, dtype, (count, *shape)),
            at,
            sizes(),
            *more,
            element_dtype=dtype,
        )
    else:
        lengths = np.array(d.ints(count, 0, 2), np.int64)
        made = p.step(
            "TensorListSplit",
            value_of(p, dtype, (int(lengths.sum()) + d.maybe(0.1), *shape[1:])),
            np.array([-1, *shape[1:]], np.int32),
            lengths,
            element_dtype=dtype,
        )
    for _ in range(d.randint(1, 5)):
        then = d.choice(
            ("push", "pop", "set", "get", "stack", "gather", "resize", "concat", "lists", "batch", "into", "shape")
        )
        if then == "push":
            made = p.step("TensorListPushBack", made, element(), element_dtype=dtype)
        elif then == "pop":
            made, _ = p.step("TensorListPopBack", made, sizes(), element_dtype=dtype)
        elif then == "set":
            made = p.step(
                "TensorListSetItem",
                made,
                np.int32(d.randint(-1 if d.maybe(0.1) else 0, 3)),
                element(),
                element_dtype=dtype,
                resize_if_index_out_of_bounds=d.maybe(),
            )
        elif then == "get":
            p.step("TensorListGetItem", made, np.int32(d.randint(0, 2)), sizes(), element_dtype=dtype)
        elif then == "stack":
            p.step("TensorListStack", made, sizes(), element_dtype=dtype, num_elements=d.choice((-1, -1, count)))
        elif then == "gather":
            at = np.array(d.ints(d.randint(0, 3), 0, max(0, count - 1)), np.int32)
            p.step("TensorListGather", made, at, sizes(), element_dtype=dtype)
        elif then == "resize":
            made = p.step("TensorListResize", made, np.int32(d.randint(0, 4)))
        elif then == "concat":
            if d.maybe():
                p.step("TensorListConcat", made, element_dtype=dtype, element_shape=part_of(p, shape))
            else:
                leading = np.array(d.ints(count, 0, 2), np.int64)
                p.step("TensorListConcatV2", made, np.array([-1, *shape[1:]], np.int32), leading, element_dtype=dtype)
        elif then == "lists":
            other = p.step(
                "TensorListFromTensor", value_of(p, dtype, (2, *shape)), np.array(shape, np.int32), element_dtype=dtype
            )
            if d.maybe() and shape:
                made = p.step("TensorListConcatLists", *_stacked(p, made, other), element_dtype=dtype)
                return
        elif then == "into":
            at = np.array(d.sample(range(3), 2), np.int32)
            made = p.step(
                "TensorListScatterIntoExistingList", made, value_of(p, dtype, (2, *shape)), at, element_dtype=dtype
            )
        elif then == "shape":
            p.step("TensorListElementShape", made, shape_type=d.choice((INT, LONG)))
        p.step("TensorListLength", made)


def _stacked(p: Program, one: Any, other: Any) -> tuple[Any, Any]:
    return p.step("Pack", one, N=1, T=dtypes.variant), p.step("Pack", other, N=1, T=dtypes.variant)


def stacks(p: Program) -> None:
    d = p.d
    dtype = d.choice((F, INT, S))
    stack, depth = p.step("StackV2", np.int32(d.choice((-1, -1, 3, 2))), elem_type=dtype, stack_name=b"st"), 0
    for _ in range(d.randint(1, 6)):
        if (depth == 0 and d.maybe(0.95)) or d.maybe(0.5):
            p.step("StackPushV2", stack, value_of(p, dtype if d.maybe(0.97) else dtypes.bool_, d.shape(0, 2)))
            depth += 1
        else:
            p.step("StackPopV2", stack, elem_type=dtype)
            depth -= 1
    p.step("StackCloseV2", stack)
    if d.maybe(0.2):
        p.step("StackPopV2", stack, elem_type=dtype)


FAMILIES = {each.__name__: each for each in (tensor_arrays, lists, stacks)}
