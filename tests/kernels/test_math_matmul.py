"""Products of matrices: small and large, several added up, onto a total; batches, Einsum, Cross; what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.reference_counts import reference_counts_are_exact
from tenfold_kernels.cpu import _products
from tenfold_kernels.cpu._compiled import intrinsics
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

F = np.float32
#: Rows, inner size and columns of products that go to NumPy, and of those that do not.
SMALL, LARGE = (3, 2, 4), (80, 60, 70)


def whole(seed: int, *shape: int, dtype: Any = F) -> Any:
    """Whole numbers, of which every order of adding up gives the same."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def product(inputs: int, dtype: Any = dtypes.float32, **attrs: Any) -> Any:
    """The compute of a MatMul of so many inputs; its other attrs are left to their defaults."""
    node = KernelNode("n", "MatMul", {"T": dtype, **attrs}, (dtype,) * inputs, (dtype,), "/device:CPU:0",
                      ResourceManager())  # fmt: skip
    return lookup(node, "CPU")(node)


def turned(turn: bool, matrix: Any) -> Any:
    return np.ascontiguousarray(matrix.T) if turn else matrix


def refused(text: str, function: Any, *inputs: Any, kind: Any = errors.InvalidArgumentError) -> None:
    with pytest.raises(kind) as error:
        function(*inputs)
    assert error.value.message == text


# -- MatMul


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.complex64])
@pytest.mark.parametrize("sizes", [SMALL, LARGE, (400, 1, 500), (400, 2, 300), (1, 500, 400), (500, 400, 1)])
def test_products_of_all_sizes(dtype: Any, sizes: tuple[int, int, int]) -> None:
    m, k, n = sizes
    a, b = whole(1, m, k, dtype=dtype.as_numpy_dtype), whole(2, k, n, dtype=dtype.as_numpy_dtype)
    expected = np.matmul(a.astype(np.complex128), b.astype(np.complex128))

    for turn_a, turn_b in itertools.product((False, True), repeat=2):
        found = product(2, dtype, transpose_a=turn_a, transpose_b=turn_b)(turned(turn_a, a), turned(turn_b, b))
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == dtype.as_numpy_dtype
    np.testing.assert_array_equal(product(2, dtype)(a, b), expected)


def test_halves_are_added_up_in_float() -> None:
    compute = product(2, dtypes.float16)

    assert compute(np.ones((1, 5000), np.float16), np.ones((5000, 1), np.float16)).tolist() == [[5000]]
    assert compute(np.ones((8, 5000), np.float16), np.ones((5000, 8), np.float16)).tolist() == [[5000] * 8] * 8


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        ((3,), (3, 2), "In[0] is not a matrix. Instead it has shape [3]"),
        ((2, 3), (3,), "In[1] is not a matrix. Instead it has shape [3]"),
        ((2,), (2, 3, 4), "In[0] is not a matrix. Instead it has shape [2]"),
        ((1, 2, 3), (3, 4), "In[0] is not a matrix. Instead it has shape [1,2,3]"),
        ((2, 3), (4, 5), "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]"),
        ((300, 700), (1, 700), "Matrix size-incompatible: In[0]: [300,700], In[1]: [1,700]"),
        ((700, 1), (700, 300), "Matrix size-incompatible: In[0]: [700,1], In[1]: [700,300]"),
        ((200_000, 1), (200_000, 1), "Matrix size-incompatible: In[0]: [200000,1], In[1]: [200000,1]"),
        ((300, 400), (300, 400), "Matrix size-incompatible: In[0]: [300,400], In[1]: [300,400]"),
    ],
)
def test_what_is_no_product(a: Any, b: Any, text: str) -> None:
    for dtype in (dtypes.float32, dtypes.float64):
        refused(text, product(2, dtype), np.zeros(a, dtype.as_numpy_dtype), np.zeros(b, dtype.as_numpy_dtype))


# -- sums of products, which an optimizer makes


def pairs(count: int, sizes: tuple[int, int, int], turn_a: bool, turn_b: bool) -> tuple[list[Any], Any]:
    m, k, n = sizes
    made, total = [], np.zeros((m, n), F)
    for i in range(count):
        a, b = whole(2 * i, m, k), whole(2 * i + 1, k, n)
        made += [turned(turn_a, a), turned(turn_b, b)]
        total += a @ b
    return made, total


@pytest.mark.parametrize(("turn_a", "turn_b"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("sizes", [(20, 2, 30), (4, 50, 3), LARGE])
@pytest.mark.parametrize("count", [2, 3])
def test_products_are_added_up(sizes: tuple[int, int, int], count: int, turn_a: bool, turn_b: bool) -> None:
    """Stacked where that copies little."""
    inputs, expected = pairs(count, sizes, turn_a, turn_b)
    before = [each.copy() for each in inputs]

    found = product(2 * count, transpose_a=turn_a, transpose_b=turn_b)(*inputs)

    np.testing.assert_array_equal(found, expected)
    for each, old in zip(inputs, before, strict=True):
        np.testing.assert_array_equal(each, old)


@pytest.mark.parametrize(("turn_a", "turn_b"), list(itertools.product([False, True], repeat=2)))
@pytest.mark.parametrize("sizes", [(20, 2, 30), (4, 50, 3), LARGE])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_products_are_added_onto_a_total(sizes: tuple[int, int, int], count: int, turn_a: bool, turn_b: bool) -> None:
    inputs, expected = pairs(count, sizes, turn_a, turn_b)
    total = whole(99, sizes[0], sizes[2])
    others = total, total[:1], total[:, :1], F(3).reshape(())
    compute = product(2 * count + 1, transpose_a=turn_a, transpose_b=turn_b)

    for given in others:
        before = given.copy()
        np.testing.assert_array_equal(compute(given, *inputs), before + expected)
        np.testing.assert_array_equal(given, before)


def test_sums_of_other_numbers_of_rows_are_stacked_or_not() -> None:
    a = [whole(1, 2, 20), whole(2, 3, 20), whole(3, 1, 20)]
    b = [whole(4, 2, 30), whole(5, 3, 30), whole(6, 1, 30)]
    inputs = [each for pair in zip(a, b, strict=True) for each in pair]
    expected = sum(x.T @ y for x, y in zip(a, b, strict=True))

    np.testing.assert_array_equal(product(6, transpose_a=True)(*inputs), expected)
    np.testing.assert_array_equal(product(7, transpose_a=True)(np.ones((20, 30), F), *inputs), expected + 1)


@pytest.mark.parametrize("onto", [False, True])
def test_pairs_that_do_not_go_together(onto: bool) -> None:
    compute, first = product(4 + onto, transpose_a=True), [np.zeros((20, 20), F)] if onto else []
    a, b = np.ones((2, 20), F), np.ones((2, 20), F)

    refused("Matrix size-incompatible: In[0]: [3,20], In[1]: [2,20]", compute, *first, np.ones((3, 20), F), b, a, b)
    text = "Matrix size-incompatible: In[0]: [3,20], In[1]: [2,20]"
    refused(text, compute, *first, np.ones((3, 20), F), b, a, np.ones((3, 20), F))
    text = "Inputs to operation n of type AddN must have the same size and shape.  Input 0: [20,20] != input 1: "
    refused(text + "[19,20]", compute, *first, a, b, np.ones((2, 19), F), b)
    refused(text + "[20,19]", compute, *first, a, b, a, np.ones((2, 19), F))
    refused("In[0] is not a matrix. Instead it has shape [2]", compute, *first, a[:, 0], b, a[:, 0], b)
    refused("In[1] is not a matrix. Instead it has shape [2]", compute, *first, a, b, a, b[:, 0])
    if onto:
        refused("Incompatible shapes: [20,3] vs. [20,20]", compute, np.zeros((20, 3), F), a, b, a, b)
        for shape in ((3, 3), (60, 70)):
            refused(f"Incompatible shapes: [{shape[0]},{shape[1]}] vs. [80,70]", product(3), np.zeros(shape, F),
                    np.ones((80, 60), F), np.ones((60, 70), F))  # fmt: skip
        refused("In[0] is not a matrix. Instead it has shape [3]", product(3), np.zeros((1, 2), F), np.zeros(3, F), b)
        refused("In[1] is not a matrix. Instead it has shape [2]", product(3), np.zeros((1, 2), F), a, b[:, 0])


needs_own = pytest.mark.skipif(not intrinsics.MULTIPLIES, reason="this processor's products are the BLAS's")


@needs_own
@pytest.mark.skipif(not reference_counts_are_exact(), reason="totals are always copied here")
def test_a_total_that_nobody_else_holds_is_added_to_where_it_is() -> None:
    own = _products._own()
    assert own is not None
    assert own.chunk()
    (a, b, c, d), _ = pairs(2, LARGE, True, False)
    once, twice = product(3, transpose_a=True), product(5, transpose_a=True)
    total = np.ones((80, 70), F)
    place = total.__array_interface__["data"]

    # no tuple of arguments, which would hold the total, too
    assert once(total, a, b).__array_interface__["data"] == place
    np.testing.assert_array_equal(total, a.T @ b + 1)
    before, (a, b, c, d) = total.copy(), (each[:20] for each in (a, b, c, d))
    assert twice(total, a, b, c, d).__array_interface__["data"] == place
    np.testing.assert_array_equal(total, before + a.T @ b + c.T @ d)


@needs_own
@pytest.mark.parametrize("way", ["held twice", "a view", "read-only"])
def test_a_total_that_others_may_read_stays_as_it_is(way: str) -> None:
    (a, b), expected = pairs(1, LARGE, False, False)
    compute, both = product(3), np.ones((160, 70), F)
    total = both[:80] if way == "a view" else both[:80].copy()
    held = [total] if way == "held twice" else []
    if way == "read-only":
        total.flags.writeable = False

    found = compute(total, a, b)

    np.testing.assert_array_equal(found, expected + 1)
    assert (total == 1).all()
    assert not np.shares_memory(found, total)
    assert len(held) == (way == "held twice")


# -- batches


@pytest.mark.parametrize("op", ["BatchMatMul", "BatchMatMulV2"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.complex64, np.complex128])
@pytest.mark.parametrize(("adj_x", "adj_y"), list(itertools.product([False, True], repeat=2)))
def test_batches_of_products(ops: Any, op: str, dtype: Any, adj_x: bool, adj_y: bool) -> None:
    x, y = whole(1, 5, 2, 3, 4, dtype=dtype), whole(2, 5, 2, 4, 2, dtype=dtype)
    if np.dtype(dtype).kind == "c":
        x, y = x + 1j * whole(3, *x.shape, dtype=dtype), y - 1j * whole(4, *y.shape, dtype=dtype)
    x, y = x.astype(dtype), y.astype(dtype)
    left = np.ascontiguousarray(np.conj(x.swapaxes(-1, -2))) if adj_x else x
    right = np.ascontiguousarray(np.conj(y.swapaxes(-1, -2))) if adj_y else y

    found = ops.run(op, [left, right], adj_x=adj_x, adj_y=adj_y)

    np.testing.assert_array_equal(found, np.matmul(x, y))
    np.testing.assert_array_equal(ops.run(op, [left[0, 0], right[0, 0]], adj_x=adj_x, adj_y=adj_y), x[0, 0] @ y[0, 0])
    if op == "BatchMatMulV2":
        for few, one in ((left[:1], right), (left, right[0]), (left[:, :1], right[:1])):
            shapes = ops.run(op, [few, one], adj_x=adj_x, adj_y=adj_y)
            a = np.conj(few.swapaxes(-1, -2)) if adj_x else few
            b = np.conj(one.swapaxes(-1, -2)) if adj_y else one
            np.testing.assert_array_equal(shapes, np.matmul(a, b))


BATCHES = "In[0] and In[1] must have compatible batch dimensions: "


@pytest.mark.parametrize(
    ("op", "x", "y", "text"),
    [
        ("BatchMatMul", (3,), (3, 4), "In[0] ndims must be >= 2: 1"),
        ("BatchMatMulV2", (2, 3), (3,), "In[1] ndims must be >= 2: 1"),
        ("BatchMatMulV2", (), (3, 4), "In[0] ndims must be >= 2: 0"),
        ("BatchMatMulV2", (2, 3), (4, 5), "Matrix size-incompatible: In[0]: [2,3], In[1]: [4,5]"),
        ("BatchMatMulV2", (2, 3), (1, 5), "Matrix size-incompatible: In[0]: [2,3], In[1]: [1,5]"),
        ("BatchMatMul", (7, 2, 3), (1, 3, 2), BATCHES + "[7,2,3] vs. [1,3,2]"),
        ("BatchMatMul", (2, 3), (1, 3, 2), BATCHES + "[2,3] vs. [1,3,2]"),
        ("BatchMatMulV2", (7, 2, 3), (6, 3, 2), BATCHES + "[7,2,3] vs. [6,3,2]"),
        ("BatchMatMulV2", (7, 2, 1), (6, 1, 2), BATCHES + "[7,2,1] vs. [6,1,2]"),
    ],
)  # fmt: skip
def test_what_is_no_batch_of_products(ops: Any, op: str, x: Any, y: Any, text: str) -> None:
    refused(text, ops.run, op, [np.zeros(x, F), np.zeros(y, F)])


@pytest.mark.parametrize(
    ("x", "y", "out"),
    [
        ("int8", "uint8", "int32"), ("float32", "float64", "float64"), ("complex64", "float32", "complex64"),
        ("float32", "float32", "float32"), ("int32", "float16", "float32"), ("float16", "complex64", "complex128"),
    ],
)  # fmt: skip
def test_batches_of_two_types(ops: Any, x: str, y: str, out: str) -> None:
    a, b = abs(whole(1, 2, 3, 4, dtype=np.float64)).astype(x), abs(whole(2, 2, 4, 5, dtype=np.float64)).astype(y)

    found = ops.run("BatchMatMulV3", [100 * a if x == "int8" else a, b], Tout=dtypes.as_dtype(out))

    scaled = (100 * a if x == "int8" else a).astype(out)
    np.testing.assert_array_equal(found, np.matmul(scaled, b.astype(out)))
    assert found.dtype == out


def test_complex_numbers_give_complex_ones(ops: Any) -> None:
    one = np.ones((1, 1), np.complex64)
    text = "There is no product of {} in float32: complex numbers give complex ones"
    for x, y, types in (
        (one, one, "complex64 and complex64"),
        (one, one.real, "complex64 and float32"),
        (one.real, one, "float32 and complex64"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as error:
            ops.run("BatchMatMulV3", [x, y], Tout=dtypes.float32)
        assert error.value.message == text.format(types)


# -- Einsum


@pytest.mark.parametrize(
    "equation",
    [
        "ab,bc->ac", "ab, bc -> ac", "ab,bc", "ab->ba", "aa->a", "ab->", "a,b->ab", "...ab,...bc->...ac", "...a->a...",
        "a...b,b->a...", "abc,cd,da->b", "ab,ab,ab,ab->ab", "...,...->...",
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64, np.complex64])
def test_sums_over_labels(ops: Any, equation: str, dtype: Any) -> None:
    sizes = {"a": 3, "b": 2, "c": 4, "d": 5}
    inputs = []
    for i, term in enumerate(equation.replace(" ", "").partition("->")[0].split(",")):
        before, dots, after = term.partition("...")
        shape = *(sizes[x] for x in before), *((2, 1 + i) if dots else ()), *(sizes[x] for x in after)
        inputs.append(whole(i, *shape, dtype=dtype))

    found = ops.run("Einsum", inputs, equation=equation.encode())

    np.testing.assert_array_equal(found, np.einsum(equation, *(x.astype(np.complex128) for x in inputs)))
    assert found.dtype == dtype


def test_a_half_is_summed_in_float(ops: Any) -> None:
    assert ops.run("Einsum", [np.ones((5000,), np.float16)], equation=b"a->").tolist() == 5000


@pytest.mark.parametrize(
    ("equation", "shape"),
    [("a->aa", (3,)), ("ab->aba", (2, 3)), ("ab->aabb", (2, 3)), ("...a->a...a", (4, 2)), ("...a->...aa", (2, 1, 3)),
     ("a...->aa...", (3, 2)), ("a->aaa", (0,))],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int64])
def test_a_label_that_comes_twice_makes_a_diagonal(ops: Any, equation: str, shape: Any, dtype: Any) -> None:
    x = (1 + np.arange(np.prod(shape))).reshape(shape).astype(dtype)
    left, _, right = equation.partition("->")
    letters = [each for each in left if each != "."]
    free = x.ndim - len(letters)
    axes = {"...": list(range(left.index("..."), left.index("...") + free))} if "..." in left else {}
    at = 0
    for part in left.replace("...", "."):
        axes.setdefault("..." if part == "." else part, [at])
        at += free if part == "." else 1
    wanted = [axis for part in right.replace("...", ".") for axis in axes["..." if part == "." else part]]
    expected = np.zeros([x.shape[axis] for axis in wanted], dtype)
    for place in np.ndindex(*x.shape):
        expected[tuple(place[axis] for axis in wanted)] = x[place]

    found = ops.run("Einsum", [x], equation=equation.encode())

    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ab,bc->ac", [(2, 3), (1, 4)], "Expected dimension 3 at axis 0 of the input shaped [1,4] but got dimension 1"),
        ("ab,cb->ac", [(2, 3), (4, 1)], "Expected dimension 3 at axis 1 of the input shaped [4,1] but got dimension 1"),
        ("ab,bc->ac", [(2, 1), (3, 4)], "Expected dimension 1 at axis 0 of the input shaped [3,4] but got dimension 3"),
        ("aa->a", [(3, 1)], "Expected dimension 3 at axis 1 of the input shaped [3,1] but got dimension 1"),
        ("...b,b->...", [(2, 5, 3), (1,)],
         "Expected dimension 3 at axis 0 of the input shaped [1] but got dimension 1"),
        ("b,...b->...", [(3,), (2, 5, 1)],
         "Expected dimension 3 at axis 2 of the input shaped [2,5,1] but got dimension 1"),
        ("ab,a...b->...", [(2, 3), (2, 4, 5, 1)],
         "Expected dimension 3 at axis 3 of the input shaped [2,4,5,1] but got dimension 1"),
    ],
)  # fmt: skip
def test_a_label_has_one_size(ops: Any, equation: str, shapes: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run("Einsum", [np.zeros(shape, F) for shape in shapes], equation=equation.encode())
    assert error.value.message == text


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [("ab,bc->ac", [(2, 3)]), ("ab->a", [(2,)]), ("ab->a", [()]), ("...ab->a", [(2,)]), ("a->a", [(2, 3)]),
     ("a->b", [(2,)]), ("ab", [(2, 3), (3, 4)])],
)  # fmt: skip
def test_what_is_no_equation_for_its_operands(ops: Any, equation: str, shapes: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError) as error:
        ops.run("Einsum", [np.zeros(shape, F) for shape in shapes], equation=equation.encode())
    assert error.value.message.startswith(f"Einsum '{equation}': ")


def test_a_diagonal_that_takes_too_much_memory(ops: Any) -> None:
    with pytest.raises(errors.ResourceExhaustedError):
        ops.run("Einsum", [np.zeros(1 << 15, F)], equation=b"a->aaaa")


# -- Cross and SparseMatMul


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int32, np.int8])
def test_cross_products(ops: Any, dtype: Any) -> None:
    a, b = whole(1, 2, 4, 3, dtype=dtype), whole(2, 2, 4, 3, dtype=dtype)

    found = ops.run("Cross", [a, b])

    np.testing.assert_array_equal(found, np.cross(a, b))
    assert found.dtype == dtype
    assert ops.run("Cross", [np.array([1, 0, 0], dtype), np.array([0, 1, 0], dtype)]).tolist() == [0, 0, 1]
    assert ops.run("Cross", [a[:, :0], b[:, :0]]).shape == (2, 0, 3)


def test_what_has_no_cross_product(ops: Any) -> None:
    refused("Both inputs must be of same shape: [3] vs. [1,3]", ops.run, "Cross", [np.zeros(3, F), np.zeros((1, 3), F)])
    text = "Cross-products are only defined for 3-element vectors, got shape "
    for shape, said in (((2,), "[2]"), ((), "[]"), ((3, 4), "[3,4]")):
        inputs = [np.zeros(shape, F), np.zeros(shape, F)]
        refused(text + said, ops.run, "Cross", inputs, kind=errors.FailedPreconditionError)


@pytest.mark.parametrize(("turn_a", "turn_b"), list(itertools.product([False, True], repeat=2)))
def test_products_of_matrices_that_may_be_sparse(ops: Any, turn_a: bool, turn_b: bool) -> None:
    a, b = whole(1, *SMALL[:2]), whole(2, *SMALL[1:])
    attrs = {"transpose_a": turn_a, "transpose_b": turn_b}

    np.testing.assert_array_equal(ops.run("SparseMatMul", [turned(turn_a, a), turned(turn_b, b)], **attrs), a @ b)
    for shapes in (((2,), (2, 3)), ((2, 3), (2,)), ((2, 3), (2, 3, 1))):
        given = " and ".join("[" + ",".join(map(str, shape)) + "]" for shape in shapes)
        text = f"a and b must be matrices, got shapes {given}"
        refused(text, lambda s=shapes: ops.run("SparseMatMul", [np.zeros(each, F) for each in s], **attrs))
    shape = (3, 2) if turn_a else (2, 3)
    other = (3, 4) if turn_b else (4, 3)
    text = f"Matrix size incompatible: a: [{shape[0]},{shape[1]}], b: [{other[0]},{other[1]}]"
    refused(text, lambda: ops.run("SparseMatMul", [np.zeros(shape, F), np.zeros(other, F)], **attrs))
