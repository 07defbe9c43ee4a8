"""AddN and ZerosLike of lists of tensors and of optionals: element by element, and what does not go together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.optionals import Optional
from tenfold_kernels.resources.tensor_lists import TensorList

F = np.float32


def floats(*elements: Any, shape: Any = None, dtype: Any = dtypes.float32, most: int = -1) -> TensorList:
    """A list; None is an element that was never set."""
    kind = dtype.as_numpy_dtype
    made = [None if each is None else each if dtype is dtypes.variant else np.array(each, kind) for each in elements]
    return TensorList(dtype, TensorShape(shape), made, most)


def edge(*values: Any) -> Any:
    """What a variant edge carries: one, or a vector."""
    out = np.empty(len(values), object)
    out[:] = values
    return out if len(values) != 1 else out.reshape(())


def contents(value: Any) -> Any:
    """Of a list, an optional or an array: what is in it, as Python has it."""
    if isinstance(value, TensorList):
        return [None if each is None else contents(each) for each in value.elements]
    if isinstance(value, Optional):
        return None if value.components is None else tuple(contents(each) for each in value.components)
    if isinstance(value, np.ndarray) and value.dtype == object:
        return contents(value.item()) if value.ndim == 0 else [contents(each) for each in value]
    return value.tolist()


def add(*values: Any) -> Any:
    return Steps()("AddN", *values, N=len(values), T=dtypes.variant)


def zeros(value: Any) -> Any:
    return Steps()("ZerosLike", value, T=dtypes.variant)


def refused(text: str, function: Any, *inputs: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        function(*inputs)
    assert error.value.message == text


# -- sums


def test_lists_are_added_element_by_element() -> None:
    a, b = floats([1, 2], 3, None, None, most=7), floats([10, 20], None, 5, None)

    total = add(edge(a), edge(b))

    assert total.shape == ()
    assert contents(total) == [[11, 22], 3, 5, None]
    assert (total.item().dtype, total.item().max_num_elements) == (dtypes.float32, 7)
    assert contents(a) == [[1, 2], 3, None, None]
    assert contents(add(edge(a), edge(b), edge(a))) == [[12, 24], 6, 5, None]
    assert contents(add(edge(a))) == contents(a)
    assert all(type(each) is np.ndarray for each in total.item().elements[:3])


def test_shapes_of_elements_are_merged() -> None:
    total = add(edge(floats([1, 2], shape=[None])), edge(floats([3, 4], shape=[2])))
    assert total.item().shape.as_list() == [2]
    assert add(edge(floats([1])), edge(floats([2], shape=[None]))).item().shape.as_list() == [None]


def test_vectors_of_lists_and_lists_of_lists() -> None:
    total = add(edge(floats(1), floats(2, 3)), edge(floats(10), floats(20, 30)))
    assert (total.shape, contents(total)) == ((2,), [[11], [22, 33]])
    nested = floats(edge(floats(1, None)), dtype=dtypes.variant), floats(edge(floats(5, 6)), dtype=dtypes.variant)
    assert contents(add(*map(edge, nested))) == [[6, 6]]


def test_optionals_are_added_component_by_component() -> None:
    a, b = Optional((F([1, 2]), np.int64(3).reshape(()))), Optional((F([10, 20]), np.int64(4).reshape(())))

    assert contents(add(edge(a), edge(b))) == ([11, 22], 7)
    assert contents(add(edge(Optional()), edge(Optional()))) is None
    of_lists = Optional((edge(floats(1)),)), Optional((edge(floats(2)),))
    assert contents(add(*map(edge, of_lists))) == ([3],)
    total = add(edge(a, floats(1)), edge(b, floats(2)))
    assert contents(total) == [([11, 22], 7), [3]]
    assert all(type(each) is np.ndarray for each in add(edge(a), edge(b)).item().components)


def test_what_is_not_added() -> None:
    a, some = floats([1, 2]), Optional((F([1]),))
    text = "Inputs to operation AddN of type AddN must have the same size and shape.  Input 0: [] != input 1: [2]"
    refused(text, add, edge(a), edge(a, a))
    text = "Inputs to operation AddN of type AddN must have the same size and shape.  Input 0: [] != input 2: [2]"
    refused(text, add, edge(a), edge(a), edge(a, a))
    text = "Cannot add optionals because one has a value and the other doesn't."
    refused(text, add, edge(some), edge(Optional()))
    refused(text, add, edge(Optional()), edge(some))
    text = "Cannot add optionals because they have different numbers of components."
    refused(text, add, edge(some), edge(Optional((F([1]), F([2])))))
    refused("No AddN of variants of type TensorList and Optional", add, edge(a), edge(some))
    refused("No AddN of variants of type Optional and TensorList", add, edge(some), edge(a))
    refused("No AddN of variants of type str and str", add, edge("x"), edge("y"))
    text = "Trying to add two lists of tensors of different dtypes. One is float and the other is int32"
    refused(text, add, edge(a), edge(floats([1, 2], dtype=dtypes.int32)))
    text = "Trying to add two lists of tensors with incompatible element shapes. One is [2] and the other is [3,?]"
    refused(text, add, edge(floats(shape=[2])), edge(floats(shape=[3, None])))
    text = "Trying to add two lists of tensors with different lengths. One is 1 and the other is 2"
    refused(text, add, edge(a), edge(floats(1, 2)))
    text = "PartialTensorShape: Incompatible shapes during merge: [2] vs. [3]"
    refused(text, add, edge(a), edge(floats([1, 2, 3])))


# -- zeros


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.int64, dtypes.bool_])
def test_zeros_of_a_list(dtype: Any) -> None:
    whole = floats([1, 1], 1, None, dtype=dtype, most=9)

    found = zeros(edge(whole)).item()

    assert contents(found) == [[0, 0], 0, None]
    assert [each.dtype for each in found.elements[:2]] == [dtype.as_numpy_dtype] * 2
    assert (found.dtype, found.max_num_elements) == (dtype, 9)
    assert contents(whole) == [[1, 1], 1, None]


def test_zeros_of_what_holds_others() -> None:
    nested = floats(edge(floats(1, 2)), None, dtype=dtypes.variant)
    assert contents(zeros(edge(nested))) == [[0, 0], None]
    some = Optional((F([1, 2]), edge(floats(7)), np.int64(3).reshape(())))
    assert contents(zeros(edge(some))) == ([0, 0], [0], 0)
    assert [each.dtype for each in zeros(edge(some)).item().components] == [F, object, np.int64]
    assert contents(zeros(edge(Optional()))) is None
    both = zeros(edge(floats(1), Optional((F([2]),))))
    assert (both.shape, contents(both)) == ((2,), [[0], ([0],)])
    refused("No ZerosLike of a variant of type str", zeros, edge("x"))


def test_zeros_of_lists_of_all_that_a_variant_holds() -> None:
    held = floats(edge(Optional((F([1, 2]),))), np.empty((0, 2), object), edge(floats(1), floats(2)),
                  dtype=dtypes.variant)  # fmt: skip

    found = zeros(edge(held)).item()

    assert contents(found.elements[0]) == ([0, 0],)
    assert found.elements[1].shape == (0, 2)
    assert contents(found.elements[2]) == [[0], [0]]
    texts = np.empty(1, object)
    texts[0] = b"x"
    refused("No ZerosLike of a variant of type bytes", zeros, edge(floats(texts, dtype=dtypes.variant)))
