"""Every stand-in of a compiled loop gives what the loop gives: the same numbers in place, and the same answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.kernel_net.loops import _PLAIN as plain_intrinsics
from support.kernel_net.loops import without_compiler
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.cpu import nn_ctc, random
from tenfold_kernels.cpu._compiled import (
    activations,
    alignments,
    candidates,
    compiling,
    distinct,
    drawing,
    dual_ascent,
    losses,
    machine_code,
    merging,
    philox,
    picking,
    plain_updates,
    rows,
    sparse_places,
    sparse_products,
    sparse_updates,
    sums,
    updates,
    word_vectors,
)
from tenfold_kernels.philox import to_double
from tenfold_kernels.resources.accumulators import SparseAccumulator

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec

NAN, INF = float("nan"), float("inf")


@pytest.fixture
def stand_in_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], tuple[Any, Any]]:
    """(the stand-in, the machine code) of the loop that a function asks for."""

    def find(ask: Callable[[], Any]) -> tuple[Any, Any]:
        found = []

        class Recording(compiling.Loops):
            def get(self, spec: LoopSpec, stand_in: Any, *, heavy: bool = False) -> Any:
                found.append((stand_in, machine_code.compile_spec(spec)))
                return stand_in

        monkeypatch.setattr(compiling, "loops", Recording())
        ask()
        return found[0]

    return find


def compared(pair: tuple[Any, Any], arguments: tuple[Any, ...], rtol: float = 1e-6) -> Any:
    """What both answer; both have left the same in every array, unless they found a bad index."""
    ours, theirs = (tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments) for _ in range(2))
    with np.errstate(all="ignore"):
        answer = pair[0](*ours)
    assert answer == pair[1](*theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if answer in (None, -1) and isinstance(mine, np.ndarray):
            np.testing.assert_allclose(mine, other, rtol=rtol, atol=1e-7)
    return answer


@pytest.mark.parametrize("merges", [False, True])
def test_alignments(merges: bool, stand_in_of: Any) -> None:
    log_y: Any = np.log(np.random.default_rng(0).dirichlet(np.ones(4), (5, 4)))
    log_y[2, 1] = -np.inf  # a row that no alignment fits
    said = np.array([[3, 0, 3, 0, 3], [3, 1, 3, 2, 3], [3, 3, 3, 3, 3], [3, 2, 3, 3, 3]])
    ends, lengths = np.array([5, 5, 1, 3]), np.array([5, 4, 3, 1])
    found, compiled = stand_in_of(lambda: alignments.alignments(nn_ctc._alignments_in_numpy))
    results = []
    for each in (found, compiled):
        log_p, gradient = np.empty(4), np.exp(log_y)
        with np.errstate(all="ignore"):
            each(log_y, said, ends, lengths, merges, np.empty((5, 5)), np.empty((5, 5)), log_p, gradient)
        results.append((log_p, gradient))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-12)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_activations(element: Any, stand_in_of: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=30).astype(element) for _ in range(2))
    x[:4] = NAN, INF, -INF, 0
    zero, one, out = element(0), element(1), np.zeros(30, element)

    compared(stand_in_of(lambda: activations.relu(element)), (x, out, zero))
    compared(stand_in_of(lambda: activations.relu_grad(element)), (y, x, out, zero))
    x[4:8], six = (3, 6, 7, -1), element(6)
    compared(stand_in_of(lambda: activations.relu6(element)), (x, out, zero, six))
    compared(stand_in_of(lambda: activations.relu6_grad(element)), (y, x, out, zero, six))
    compared(stand_in_of(lambda: activations.sigmoid_grad(element)), (x, y, out, one))
    wide, bias = y.reshape(10, 3), rng.normal(size=3).astype(element)
    compared(stand_in_of(lambda: activations.bias_add(element)), (wide, bias, np.zeros_like(wide)))
    compared(stand_in_of(lambda: activations.bias_add_grad(element)), (wide, np.zeros(3, element)))


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_losses(element: Any, stand_in_of: Any) -> None:
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(6, 7)).astype(element)
    shifted = logits - logits.max(axis=1, keepdims=True)
    powers, loss = np.exp(shifted), np.zeros(6, element)
    dense = np.eye(7, dtype=element)[rng.integers(0, 7, 6)]

    compared(stand_in_of(lambda: losses.shift(element)), (logits, np.zeros_like(logits)))
    compared(stand_in_of(lambda: losses.dense_xent(element)), (shifted, dense, loss, powers))
    compared(stand_in_of(lambda: losses.normalize(element)), (powers,))
    compared(stand_in_of(lambda: losses.log_normalize(element)), (shifted, powers))
    labels = np.array([0, 6, 3, 3, 1, 2], np.int32)
    sparse = stand_in_of(lambda: losses.sparse_xent(element, np.int32))
    assert compared(sparse, (shifted, labels, loss, powers)) == -1
    labels[3] = 7
    assert compared(sparse, (shifted, labels, loss, powers)) == 3


@pytest.mark.parametrize("element", [np.float32, np.float64])
def test_sums(element: Any, stand_in_of: Any) -> None:
    x = np.random.default_rng(3).random((3, 10, 21)).astype(element)

    compared(stand_in_of(lambda: sums.along(element)), (x[0], element(0), np.zeros(10, element)), rtol=1e-5)
    compared(stand_in_of(lambda: sums.down(element)), (x, np.zeros((3, 21), element)), rtol=1e-5)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows(index: Any, stand_in_of: Any) -> None:
    rng = np.random.default_rng(2)
    table, given = rng.normal(size=(9, 4)), rng.normal(size=(5, 4))
    good, bad = np.array([8, 0, 3, 3, 3], index), np.array([0, 1, -1, 9, 2], index)

    gather = stand_in_of(lambda: rows.gather_rows(np.float64, index))
    add = stand_in_of(lambda: rows.scatter_add(np.float64, index))
    update = stand_in_of(lambda: rows.scatter_update(np.float64, index))
    for indices, answer in ((good, -1), (bad, 2)):
        assert compared(gather, (table, indices, np.zeros((5, 4)))) == answer
        assert compared(add, (table, indices, given, -1.0)) == answer
        assert compared(update, (table, indices, given)) == answer
    order = np.arange(50)
    compared(stand_in_of(rows.shuffle), (rng.integers(0, 2**32, 49).astype(np.uint32), order))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_rows_by_id(index: Any, stand_in_of: Any) -> None:
    rng = np.random.default_rng(5)
    data, out = rng.normal(size=(6, 3)), rng.normal(size=(4, 3))

    add = stand_in_of(lambda: rows.add_rows(np.float64, index))
    assert compared(add, (data, np.array([3, 0, 3, -1, 1, 3], index), out)) == -1
    assert compared(add, (data, np.array([3, 0, 4, -1, 1, 3], index), out)) == 2
    columns = stand_in_of(lambda: rows.add_columns(np.float64, index))
    for last in (3, 4):
        ids = np.array([3, 0, last, -1, 1, 3], index)
        assert compared(columns, (rng.normal(size=(20, 6)), ids, np.zeros((20, 4)))) == (-1 if last < 4 else 2)
    chosen = stand_in_of(lambda: rows.add_chosen_rows(np.float64, index))
    compared(chosen, (data, np.array([5, 5, 0], index), np.array([2, 2, 1], index), out))


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_segments_that_fit(index: Any, stand_in_of: Any) -> None:
    fit = stand_in_of(lambda: rows.fit_segments(index))
    places, ids = np.array([5, 0, 2, 2], index), np.array([0, 0, 2, 1], index)

    assert compared(fit, (places, ids, 6, 3, False)) == -1
    assert compared(fit, (places, ids, 6, 3, True)) == 3
    assert compared(fit, (places, ids, 5, 3, False)) == 0
    assert compared(fit, (places, ids, 6, 2, True)) == 2
    assert compared(fit, (-places, ids, 6, 3, False)) == 0
    assert compared(fit, (places[:0], ids[:0], 0, 0, True)) == -1


PLACES, DIMS = np.array([[0, 0], [0, 3], [2, 1], [2, 2], [4, 0]]), np.array([5, 4])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_numbers_of_places(index: Any, stand_in_of: Any) -> None:
    number, numbers = stand_in_of(lambda: sparse_places.number_places(index)), np.zeros(5, np.int64)
    places = PLACES.astype(index)

    assert compared(number, (places, DIMS, numbers, True)) == -1
    assert compared(number, (places[::-1].copy(), DIMS, numbers, False)) == -1
    assert compared(number, (places[[0, 1, 1]], DIMS, numbers[:3], True)) == 2
    assert compared(number, (places, np.array([5, 3]), numbers, True)) == 1
    assert compared(number, (places[[2, 0, 4]], np.array([4, 4]), numbers[:3], True)) == 1
    assert compared(number, (-places, DIMS, numbers, False)) == 1


def test_places_in_another_shape(stand_in_of: Any) -> None:
    move, out = stand_in_of(sparse_places.reshape_places), np.zeros((5, 3), np.int64)

    assert compared(move, (PLACES, DIMS, np.array([2, 5, 2]), out)) == -1
    assert compared(move, (PLACES, DIMS - 1, np.array([2, 5, 2]), out)) == 1
    assert compared(move, (PLACES[:0], np.array([0, 4]), np.array([2, 0, 3]), out[:0])) == -1


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [3, 0, 4, 2, 1], [2, 3], []], ids=str)
def test_rows_of_places(order: list[int], stand_in_of: Any) -> None:
    places = PLACES[order]
    begin, fill = stand_in_of(sparse_places.begin_rows), stand_in_of(sparse_places.fill_rows)
    found = []
    for first, then in zip(begin, fill, strict=True):
        ends = np.zeros(5, np.int64)
        total = first(places, DIMS, ends)
        begins, out, source, back = (
            ends.copy(),
            *(np.zeros(shape, np.int64) for shape in ((total, 2), total, len(order))),
        )
        then(places, ends, out, source, back)
        found.append([each.tolist() for each in (begins, ends, out, source, back)])
        assert first(places, DIMS - 5, np.zeros(5, np.int64)) == (-1 if order else 5)
    assert found[0] == found[1]
    if len(order) == 5:
        assert found[0][2] == [[0, 0], [0, 3], [1, 0], [2, *found[0][2][3][1:]], found[0][2][4], [3, 0], [4, 0]]

    compared(stand_in_of(sparse_places.end_rows), (places, np.zeros(5, np.int64)))


def test_crossed_features(stand_in_of: Any) -> None:
    features = np.random.default_rng(3).integers(0, 2**64, 9, np.uint64)
    begins, ends = np.array([[0, 2, 2], [3, 5, 6]]), np.array([[2, 2, 3], [5, 6, 9]])
    crossed = np.zeros((7, 2), np.int64), np.zeros(7, np.int64)

    compared(
        stand_in_of(sparse_places.cross), (features, np.uint64(2**64 - 3), np.uint64(1000), begins, ends, *crossed)
    )


@pytest.mark.parametrize("row", [(), (3,), (2, 2), (0,)])
def test_sums_of_sparse_gradients(row: tuple[int, ...], stand_in_of: Any) -> None:
    """Sorted, unsorted and empty ones, one after the other."""
    chosen = np.sort(np.random.default_rng(7).choice(50, 20, replace=False))
    gradients = [chosen, np.array([3, 1, 40, 1]), np.zeros(0, int), np.arange(9, 49)]

    sums = []
    for walk in stand_in_of(lambda: merging.walk(np.float32)):
        accumulator = SparseAccumulator("s", dtypes.float32, TensorShape(None), "MEAN", walk)
        rng = np.random.default_rng(8)
        for indices in gradients:
            accumulator.apply(0, indices, rng.normal(size=(len(indices), *row)).astype(np.float32), None)
        sums.append(accumulator.take(1))
    for plain, compiled in zip(*sums, strict=True):
        np.testing.assert_array_equal(plain, compiled)


def test_rows_split_into_parts(stand_in_of: Any) -> None:
    data = np.random.default_rng(6).normal(size=(6, 3))
    split = stand_in_of(lambda: rows.split_rows(np.float64))
    ends, out = np.zeros(4, np.int32), np.zeros((6, 3))
    assert compared(split, (data, np.array([3, 0, 3, 1, 0, 0], np.int32), ends, out)) == -1
    assert compared(split, (data, np.array([3, 0, 4, 1, 0, 0], np.int32), ends, out)) == 2


@pytest.mark.parametrize("table", [0, 64], ids=["repeated", "unique"])
def test_log_uniform_candidates(table: int, stand_in_of: Any) -> None:
    draw = stand_in_of(candidates.log_uniform)
    true = np.array([3, 0, 4, 3])
    for limit, wanted, known in ((50, 20, True), (50, 20, False), (5, 5, True), (1000, 0, True)):
        missed = candidates.log_of_misses(limit) if known else np.empty(0)
        answers = []
        for loop in draw:
            found, expected, true_expected = np.zeros(wanted, np.int64), np.zeros(wanted), np.zeros(true.size)
            classes = limit, missed, np.full(table, -1, np.int64), true
            # The counter's lower half overflows; key and upper half are words that an int64 shows as negative.
            tries = loop(-7, -2, -1, *classes, found, true_expected, expected)
            answers.append((tries, found.tolist(), np.concatenate((true_expected, expected))))
        assert answers[0][:2] == answers[1][:2]
        np.testing.assert_allclose(answers[0][2], answers[1][2], rtol=1e-9)
        assert answers[0][0] >= wanted
    few = 7, 0, 0, 4, np.empty(0), np.full(table, -1, np.int64), true, np.zeros(2, np.int64), np.zeros(4), np.zeros(2)
    assert draw[0](*few) == draw[1](*few) == -3


def test_picked_classes(stand_in_of: Any) -> None:
    """Also of rows with logits that are not finite, some of them or all; the counter's lower half overflows."""
    logits = np.random.default_rng(4).normal(size=(4, 9))
    logits[1, ::2], logits[1, 1], logits[2, 3:], logits[3] = -INF, INF, NAN, NAN
    picked = np.zeros((4, 21), np.int64)
    loops = stand_in_of(lambda: picking.pick(random._pick_in_numpy))

    compared(loops, (-7, -2, -1, logits, picked))
    with np.errstate(all="ignore"):
        loops[0](-7, -2, -1, logits, picked)

    assert set(picked[1].tolist()) <= {3, 5, 7}
    assert set(picked[2].tolist()) <= {0, 1, 2}
    assert set(picked[3].tolist()) == {9}


@pytest.mark.parametrize("element", [np.int32, np.int64])
def test_distinct_values(element: Any, stand_in_of: Any) -> None:
    values = np.array([7, -2, 7, 0, -2, 9], element)
    found, places, table = np.zeros(6, element), np.zeros(6, np.int32), np.full(16, -1, np.int32)
    plain, compiled = stand_in_of(lambda: distinct.distinct(element, np.int32))

    for loop in (plain, compiled):
        assert loop(values, found, places, table) == 4
        assert found[:4].tolist() == [7, -2, 0, 9]
        assert places.tolist() == [0, 1, 0, 2, 1, 3]
        found[:], places[:] = 0, 0


def test_draws_from_a_buffer(stand_in_of: Any) -> None:
    words, rows_at, new_at = np.array([7, 14, 21], np.uint32), np.arange(4), np.full(4, -1)
    drawn = np.zeros(3, np.int64)
    compared(stand_in_of(drawing.exchange), (words, rows_at, new_at, drawn, drawn.copy(), 0, 4, 4, 3, False))


@pytest.mark.parametrize(("ours", "theirs"), [([1], [2, 3]), ([2, 3], [1])])
def test_a_walk_reads_nothing_behind_an_end(ours: Any, theirs: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    index, out, times = np.zeros(3, np.int64), np.zeros((3, 1)), np.zeros(3, np.int64)
    sums, values, counts = np.ones((len(ours), 1)), np.ones((len(theirs), 1)), np.ones(len(ours), np.int64)
    assert merging._walk(np.array(ours), sums, counts, np.array(theirs), values, index, out, times) == 3
    assert index.tolist() == [1, 2, 3]


def test_two_words_become_a_double_to_the_last_bit() -> None:
    words = np.array([0, 1, 1 << 32, 0xFFFFF << 32, (1 << 64) - 1, 0x123456789ABCDEF0], np.uint64)
    expected = to_double((words & np.uint64(0xFFFFFFFF)).astype(np.uint32), (words >> np.uint64(32)).astype(np.uint32))
    assert [philox.to_double(word) for word in words] == expected.tolist()


def test_random_blocks(stand_in_of: Any) -> None:
    fill = stand_in_of(philox.fill)
    for key, low, high in ((1, 2, 3), (-5, -2, -1)):
        compared(fill, (key, low, high, np.zeros((5, 4), np.uint32)))


def arguments_of(codes: str, element: Any, rng: Any, size: int = 40) -> tuple[Any, ...]:
    """Numbers that every optimizer takes: slots and coefficients between 0.1 and 0.9."""
    made: list[Any] = []
    for code in codes.split():
        match code[0]:
            case "b":
                made.append(True)
            case "s":
                made.append(element(rng.uniform(0.1, 0.9)))
            case "i":
                made.append(rng.integers(0, 5, 12))
            case _ if code == "r2":
                made.append(rng.uniform(0.1, 0.9, (12, 3)).astype(element))
            case _:
                shape = (5, 3) if code == "w2" else size
                made.append(rng.uniform(0.1, 0.9, shape).astype(element))
    return tuple(made)


PLAIN = sorted(plain_updates._OUTPUTS)


@pytest.mark.parametrize("element", [np.float32, np.float64])
@pytest.mark.parametrize("name", PLAIN)
def test_dense_updates(name: str, element: Any, stand_in_of: Any) -> None:
    arguments = arguments_of(updates._LOOPS[name][1], element, np.random.default_rng(3))
    if name == "adam":
        arguments = *arguments[:-2], element(1), True
    compared(stand_in_of(lambda: updates.loop(name, element)), arguments, rtol=1e-5)


@pytest.mark.parametrize("bad", [-1, 10**6])
def test_an_index_that_changes_after_the_first_look_ends_the_loop(bad: int, monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    monkeypatch.setitem(plain_intrinsics, "once", lambda array, i: bad if i == 1 else array[i])
    for function, codes in sparse_updates._LOOPS.values():
        assert function(*arguments_of(codes, np.float32, np.random.default_rng(4))) == 1
    tables, pairs = np.ones((2, 4, 2)), np.array([[0, 1], [1, 0], [2, 3]])
    assert word_vectors._negative_sampling(*tables, *pairs, 0.1, np.zeros(2)) == 1


@pytest.mark.parametrize("name", [name for name in PLAIN if name in sparse_updates._LOOPS])
def test_sparse_updates_of_rows_named_again_and_again(name: str, stand_in_of: Any) -> None:
    pair = stand_in_of(lambda: sparse_updates.loop(name, np.float32, np.int64))
    arguments = arguments_of(sparse_updates._LOOPS[name][1], np.float32, np.random.default_rng(4))
    at = next(number for number, value in enumerate(arguments) if getattr(value, "dtype", None) == np.int64)
    assert compared(pair, arguments, rtol=1e-5) == -1

    none = np.zeros(0, np.int64), np.zeros((0, 3), np.float32)
    compared(pair, (*arguments[: at - 1], none[1], none[0], *arguments[at + 1 :]))
    arguments[at][7] = 5
    assert compared(pair, arguments) == 7


def test_an_update_that_branches_on_an_element_has_none() -> None:
    assert plain_updates.dense("ftrl") is None
    assert plain_updates.sparse("proximal_adagrad") is None


@pytest.mark.parametrize("loss", range(len(dual_ascent.LOSSES)))
def test_dual_ascent(loss: int, stand_in_of: Callable[..., tuple[Any, Any]]) -> None:
    pair = stand_in_of(dual_ascent.ascend)
    rng = np.random.default_rng(5)
    labels = rng.integers(0, 4, 6) if loss == 4 else rng.choice([-1.0, 1.0], 6)
    weights = np.array([1.0, 0.0, 2.0, 0.5, 1.0, 1.0])  # one that counts for nothing
    features, ends = rng.normal(size=(6, 2)), np.array([2, 2, 3, 3, 3, 4])
    compared(
        pair,
        (
            *(loss, 2.0, 1.5, 0.1, rng.permutation(6), labels.astype(float), weights, rng.uniform(0, 3, 6), ends),
            *(np.array([0, 2, 1, 0]), rng.normal(size=4), rng.normal(size=3), np.zeros(3)),
            *(features, rng.normal(size=2), np.zeros(2), rng.uniform(0, 0.5, (6, 4))),
        ),
    )


@pytest.mark.parametrize("bad", [None, (3, 0, 9), (5, 1, -1)])
def test_products_with_a_sparse_matrix(bad: tuple[int, int, int] | None, stand_in_of: Any) -> None:
    draw = np.random.default_rng(2)
    places = np.stack([np.sort(draw.integers(0, 4, 12)), draw.integers(0, 6, 12)], 1)
    if bad is not None:
        places[bad[0], bad[1]] = bad[2]
    values, dense, vector = (draw.standard_normal(shape).astype(np.float32) for shape in (12, (6, 5), 6))
    answer = -1 if bad is None else bad[0]

    matrix = stand_in_of(lambda: sparse_products.multiply(np.float32, np.int64))
    assert compared(matrix, (places, values, dense, 0, 0, 1, 4, np.ones((4, 5), np.float32))) == answer
    column = stand_in_of(lambda: sparse_products.multiply_vector(np.float32, np.int64))
    assert compared(column, (places, values, vector, 0, 0, np.ones(4, np.float32))) == answer
    rows = stand_in_of(lambda: sparse_products.multiply_rows(np.float32, np.int64))
    left, right = places[:, 0].copy(), places[:, 1].copy()
    ends = np.zeros(12, np.float32)
    assert compared(rows, (dense[:4], left, dense, right, np.float32(0), 1, 11, ends), 1e-5) == answer
