"""Functions over the rows of tensors: `tf.map_fn`, `tf.foldl`, `tf.foldr`, `tf.scan`.

Each unstacks its inputs into TensorArrays and runs a `tf.while_loop` over them. Follows TensorFlow 1.15's
functional_ops.py and map_fn.py.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array
from tenfold.ops.control_flow_while import while_loop
from tenfold.ops.tensor_array import StepArray, TensorArray
from tenfold.ops.variable_scope import get_variable_scope
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor

__all__ = ["foldl", "foldr", "map_fn", "scan"]


def device_of(op: Operation) -> str:
    """The device of an operation. As a caching device it caches each variable on the variable's own device."""
    return op.device


@contextmanager
def _caching() -> Iterator[None]:
    """Variables that the function uses are read outside of the loop, unless the scope has a caching device."""
    scope = get_variable_scope()
    if scope.caching_device is not None:
        yield
        return
    scope.set_caching_device(device_of)
    try:
        yield
    finally:
        scope.set_caching_device(None)


def _leading(tensor: Tensor) -> Any:
    """The number of rows: a number if known, else a tensor."""
    known = tensor.shape.with_rank_at_least(1)[0].value
    return array.shape(tensor)[0] if known is None else known


def _array_of(elem: Tensor, size: Any, element_shape: Any = None) -> TensorArray:
    made = StepArray(elem.dtype, size=size, dynamic_size=False, infer_shape=True, element_shape=element_shape)
    return made.unstack(elem)


def _stacked(arrays: Sequence[TensorArray], elems: Sequence[Tensor]) -> list[Tensor]:
    """The arrays as tensors, with as many rows as the inputs have."""
    results = [each.stack() for each in arrays]
    rows = elems[0].shape.with_rank_at_least(1)[0]
    for elem in elems[1:]:
        rows = rows.merge_with(elem.shape.with_rank_at_least(1)[0])
    for result in results:
        result.set_shape(TensorShape([rows]).concatenate(result.shape[1:]))
    return results


def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """`fn` of each row of `elems`, stacked.

    `elems` may be a structure; `fn` gets the same structure of rows. `dtype` is the structure of types that `fn`
    returns if it is not that of `elems`. Raises TypeError for arguments that do not fit.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    if nest.is_composite(elems):
        raise TypeError(
            "To perform a map on the values of a sparse tensor use either "
            " SparseTensor(input.indices, fn(input.values), input.dense_shape) or "
            " SparseTensor(input.indices, map_fn(fn, input.values), input.dense_shape)"
        )
    result_structure = elems if dtype is None else dtype
    flat = nest.flatten(elems)
    with name_scope(name, "map", [each for each in flat if hasattr(each, "graph")]), _caching():
        tensors = [convert_to_tensor(each, name="elem") for each in flat]
        types = [each.dtype for each in tensors] if dtype is None else nest.flatten(dtype)
        count = _leading(tensors[0])
        inputs = [_array_of(each, count) for each in tensors]
        start = array.constant(0)
        outputs = [StepArray(each, size=count, dynamic_size=False, infer_shape=infer_shape) for each in types]

        def step(i: Tensor, written: Any) -> Any:
            returned = fn(nest.pack_sequence_as(elems, [each.read(i) for each in inputs]))
            nest.assert_same_structure(result_structure, returned)
            values = nest.flatten(returned)
            return i + 1, [each.write(i, value) for each, value in zip(written, values, strict=True)]

        _, filled = while_loop(
            lambda i, _: i < count,
            step,
            (start, outputs),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(result_structure, _stacked(filled, tensors))


def foldl(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """`fn(…fn(fn(initializer, row 0), row 1)…, last row)`; without `initializer`, row 0 starts."""
    return _fold("foldl", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def foldr(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """`foldl` from the last row to the first."""
    return _fold("foldr", fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name)


def _fold(
    kind: str,
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any,
    parallel_iterations: int,
    back_prop: bool,
    swap_memory: bool,
    name: str | None,
) -> Any:
    if not callable(fn):
        raise TypeError("fn must be callable.")
    backwards = kind == "foldr"
    flat = nest.flatten(elems)
    with name_scope(name, kind, [each for each in flat if hasattr(each, "graph")]), _caching():
        tensors = [convert_to_tensor(each, name="elem") for each in flat]
        count = _leading(tensors[0])
        inputs = [_array_of(each, count) for each in tensors]

        def row(i: Any) -> Any:
            return nest.pack_sequence_as(elems, [each.read(i) for each in inputs])

        start: Any
        if backwards:
            start = count if initializer is not None else count - 1
            first = initializer if initializer is not None else row(start)
        else:
            start = array.constant(0 if initializer is not None else 1)
            first = initializer if initializer is not None else row(0)

        def step(i: Any, value: Any) -> Any:
            if backwards:
                i -= 1
                return [i, fn(value, row(i))]
            return [i + 1, fn(value, row(i))]

        _, result = while_loop(
            (lambda i, _: i > 0) if backwards else (lambda i, _: i < count),
            step,
            [start, first],
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return result


def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """All intermediate results of `foldl` (of `foldr` if `reverse`), stacked.

    `fn` returns the structure of `initializer`, or that of `elems` if there is none.
    """
    if not callable(fn):
        raise TypeError("fn must be callable.")
    structure = elems if initializer is None else initializer
    flat = nest.flatten(elems)
    with name_scope(name, "scan", [each for each in flat if hasattr(each, "graph")]), _caching():
        tensors = [convert_to_tensor(each, name="elem") for each in flat]
        count = _leading(tensors[0])
        inputs = [_array_of(each, count, each.shape[1:]) for each in tensors]
        if initializer is None:
            values = [each.read(count - 1 if reverse else 0) for each in inputs]
        else:
            values = [convert_to_tensor(each) for each in nest.flatten(initializer)]
        outputs: list[TensorArray] = [
            StepArray(
                each.dtype,
                size=count,
                element_shape=each.shape if infer_shape else None,
                dynamic_size=False,
                infer_shape=infer_shape,
            )
            for each in values
        ]
        done = 1 if initializer is None else 0
        if done:
            where = count - 1 if reverse else 0
            outputs = [each.write(where, value) for each, value in zip(outputs, values, strict=True)]

        def step(i: Any, before: Any, written: Any) -> Any:
            rows = nest.pack_sequence_as(elems, [each.read(i) for each in inputs])
            returned = fn(nest.pack_sequence_as(structure, before), rows)
            nest.assert_same_structure(structure, returned)
            after = nest.flatten(returned)
            written = [each.write(i, value) for each, value in zip(written, after, strict=True)]
            return (i - 1 if reverse else i + 1), after, written

        _, _, filled = while_loop(
            (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < count),
            step,
            (count - 1 - done if reverse else done, values, outputs),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=count,
        )
        return nest.pack_sequence_as(structure, _stacked(filled, tensors))
