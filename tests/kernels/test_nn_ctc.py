"""CTC: the loss against a sum over every path, its gradient against differences, decoders against all paths."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from support.kernel_net.loops import StandIns
from tenfold_core import errors
from tenfold_kernels.cpu._compiled import compiling

RNG = np.random.default_rng(37)
STEPS, CLASSES = 4, 3
BLANK = CLASSES - 1


def collapsed(path: tuple[int, ...], merges: bool = True) -> tuple[int, ...]:
    kept = [c for at, c in enumerate(path) if not (merges and at and path[at - 1] == c)]
    return tuple(c for c in kept if c != BLANK)


def chances(logits: np.ndarray[Any, Any], merges: bool = True) -> dict[tuple[int, ...], float]:
    """What can be said → how likely it is, over all paths."""
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(CLASSES), repeat=len(logits)):
        said = collapsed(path, merges)
        found[said] = found.get(said, 0.0) + float(np.prod([p[t, c] for t, c in enumerate(path)]))
    return found


def sparse(labels: list[list[int]]) -> list[np.ndarray[Any, Any]]:
    indices = [(b, at) for b, row in enumerate(labels) for at in range(len(row))]
    return [np.array(indices, np.int64), np.array([v for row in labels for v in row], np.int32)]


def lengths(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


@pytest.mark.parametrize("merges", [True, False])
def test_the_loss_is_that_of_all_paths(ops: Any, merges: bool) -> None:
    x = RNG.standard_normal((STEPS, 3, CLASSES))
    labels = [[0, 0], [1], [0, 1]]
    loss, _ = ops.run("CTCLoss", [x, *sparse(labels), lengths(4, 2, 3)], ctc_merge_repeated=merges)

    for b, (row, count) in enumerate(zip(labels, (4, 2, 3), strict=True)):
        assert loss[b] == pytest.approx(-np.log(chances(x[:count, b], merges)[tuple(row)]))


def test_the_gradient_is_that_of_the_loss(ops: Any) -> None:
    x, way = RNG.standard_normal((STEPS, 2, CLASSES)), RNG.standard_normal((STEPS, 2, CLASSES))
    rest = [*sparse([[0, 1], [1]]), lengths(4, 3)]
    _, gradient = ops.run("CTCLoss", [x, *rest])
    high, low = (ops.run("CTCLoss", [x + step * way, *rest])[0].sum() for step in (1e-5, -1e-5))

    assert (gradient * way).sum() == pytest.approx((high - low) / 2e-5, rel=1e-5)
    assert not gradient[3, 1].any(), "behind the end nothing counts"


def test_labels_that_cannot_be_said(ops: Any) -> None:
    x = RNG.standard_normal((2, 1, CLASSES))
    with pytest.raises(errors.InvalidArgumentError, match="Not enough time for target transition sequence"):
        ops.run("CTCLoss", [x, *sparse([[0, 1, 0]]), lengths(2)])
    with pytest.raises(errors.InvalidArgumentError, match="Labels length is zero in batch 0"):
        ops.run("CTCLoss", [x, np.zeros((0, 2), np.int64), np.zeros(0, np.int32), lengths(2)])
    with pytest.raises(errors.InvalidArgumentError, match="Saw a non-null label"):
        ops.run("CTCLoss", [x, *sparse([[2, 0]]), lengths(2)])
    loss, gradient = ops.run("CTCLoss", [x, *sparse([[0, 1, 0]]), lengths(2)], ignore_longer_outputs_than_inputs=True)
    assert (loss.tolist(), gradient.any()) == ([0.0], False)


def test_greedy_decoding(ops: Any) -> None:
    path = [0, 0, BLANK, 0, 1]
    x = np.full((5, 1, CLASSES), -1.0)
    x[np.arange(5), 0, path] = 2.0
    for merges, said in ((True, [0, 0, 1]), (False, [0, 0, 0, 1])):
        indices, values, shape, score = ops.run("CTCGreedyDecoder", [x, lengths(5)], merge_repeated=merges)
        assert (values.tolist(), shape.tolist(), score.tolist()) == (said, [1, len(said)], [[-10.0]])
        assert indices.tolist() == [[0, at] for at in range(len(said))]


def test_beams_that_hold_everything_find_the_likeliest(ops: Any) -> None:
    x = RNG.standard_normal((STEPS, 1, CLASSES))
    best = sorted(chances(x[:, 0]).items(), key=lambda item: -item[1])[:3]
    outs = ops.run("CTCBeamSearchDecoder", [x, lengths(STEPS)], beam_width=100, top_paths=3, merge_repeated=False)

    assert [tuple(values.tolist()) for values in outs[3:6]] == [said for said, _ in best]
    np.testing.assert_allclose(outs[9][0], np.log([chance for _, chance in best]))
    with pytest.raises(errors.InvalidArgumentError, match="requested more paths than the beam width"):
        ops.run("CTCBeamSearchDecoder", [x, lengths(STEPS)], beam_width=1, top_paths=2)


def refused(text: str, run: Any, *inputs: Any, kind: Any = errors.InvalidArgumentError, **attrs: Any) -> None:
    with pytest.raises(kind) as error:
        run(*inputs, **attrs)
    assert error.value.message == text


def loss_of(ops: Any, x: Any, labels: Any, counts: Any, **attrs: Any) -> tuple[Any, Any]:
    return ops.run("CTCLoss", [x, *sparse(labels), lengths(*counts)], **attrs)  # type: ignore[no-any-return]


@pytest.mark.parametrize("loop", ["compiled", "stand-in"])
@pytest.mark.parametrize("merges", [True, False])
def test_each_way_of_summing_is_over_all_paths(
    ops: Any, loop: str, merges: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loop == "stand-in":
        monkeypatch.setattr(compiling, "loops", StandIns())
    labels = [[0, 0], [1], [0, 1, 0], [1, 1, 1], [0, 1], [BLANK], [1, 0, BLANK], [0], [1, 1]]
    counts = [4, 1, 3, 4, 2, 3, 4, 4, 3]
    x = RNG.standard_normal((STEPS, len(labels), CLASSES))
    for b, count in enumerate(counts):
        x[count:, b] = np.nan  # behind the end nothing counts
    loss, gradient = loss_of(ops, x, labels, counts, ctc_merge_repeated=merges)

    for b, (row, count) in enumerate(zip(labels, counts, strict=True)):
        said = tuple(each for each in row if each != BLANK)
        of_paths = chances(x[:count, b], merges).get(said, 0.0)
        assert loss[b] == pytest.approx(-np.log(of_paths) if of_paths else np.inf), b
        assert not gradient[count:, b].any()
        if of_paths:
            way = RNG.standard_normal((count, CLASSES))
            high, low = (-np.log(chances(x[:count, b] + step * way, merges)[said]) for step in (1e-5, -1e-5))
            assert (gradient[:count, b] * way).sum() == pytest.approx((high - low) / 2e-5, abs=1e-5), b
    assert np.isinf(loss[3]) == merges, "three times the same takes five steps"


def test_labels_repeated_may_be_one(ops: Any) -> None:
    x = RNG.standard_normal((STEPS, 4, CLASSES))
    labels, plain = [[0, 0, 1], [0, 1, 0], [1, 1], [0, 0, BLANK]], [[0, 1], [0, 1, 0], [1], [0]]
    found = loss_of(ops, x, labels, [4] * 4, preprocess_collapse_repeated=True)
    for ours, wanted in zip(found, loss_of(ops, x, plain, [4] * 4), strict=True):
        np.testing.assert_array_equal(ours, wanted)
    assert loss_of(ops, x, labels, [4] * 4)[0][0] != found[0][0]


def test_rows_that_are_too_long_are_left_out_if_so_wanted(ops: Any) -> None:
    x = RNG.standard_normal((STEPS, 4, CLASSES))
    labels, counts = [[0, 1], [0, 1], [0], [1, 0, 1]], [2, 1, 0, 4]
    loss, gradient = loss_of(ops, x, labels, counts, ignore_longer_outputs_than_inputs=True)
    kept = loss_of(ops, x[:, [0, 3]], [labels[0], labels[3]], [2, 4])
    assert loss.tolist() == [kept[0][0], 0, 0, kept[0][1]]
    np.testing.assert_array_equal(gradient[:, [0, 3]], kept[1])
    assert not gradient[:, 1:3].any()
    loss, gradient = loss_of(ops, x[:0], labels, [0] * 4, ignore_longer_outputs_than_inputs=True)
    assert (loss.tolist(), gradient.shape) == ([0] * 4, (0, 4, CLASSES))
    for counts, needed, row in (([2, 1, 1, 4], 2, 1), ([2, 2, 0, 4], 1, 2), ([2, 2, 1, 2], 3, 3)):
        text = (
            f"Not enough time for target transition sequence (required: {needed}, available: {counts[row]}){row}"
            "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs"
        )
        refused(text, loss_of, ops, x, labels, counts)


def test_losses_have_the_type_of_their_inputs(ops: Any) -> None:
    x = RNG.standard_normal((STEPS, 1, CLASSES)).astype(np.float32)
    loss, gradient = loss_of(ops, x, [[0, 1]], [4])
    assert loss.dtype == gradient.dtype == np.float32
    assert loss[0] == pytest.approx(-np.log(chances(x[:, 0].astype(np.float64))[0, 1]), rel=1e-6)


def test_what_no_loss_can_be_made_of(ops: Any) -> None:
    x, one = np.zeros((4, 2, 3)), sparse([[0], [1]])
    seen = "label SparseTensor is not valid: indices"
    for given, text in (
        ([x[0], *one, lengths(4, 4)], "inputs is not a 3-Tensor"),
        ([x, *one, np.int32(4)], "sequence_length is not a vector"),
        ([x, one[0][0], one[1], lengths(4, 4)], "labels_indices is not a matrix"),
        ([x, one[0][:, :1], one[1], lengths(4, 4)], "labels_indices is not a matrix"),
        ([x, np.zeros((2, 3), np.int64), one[1], lengths(4, 4)], "labels_indices is not a matrix"),
        ([x, one[0], one[1][:, None], lengths(4, 4)], "labels_values is not a vector"),
        ([x, *one, lengths(4)], "len(sequence_length) != batch_size.  len(sequence_length):  1 batch_size: 2"),
        ([x, one[0], one[1][:1], lengths(4, 4)],
         "labels_indices and labels_values must contain the same number of rows, but saw shapes: [2,2] vs. [1]"),
        ([x[:, :0], np.zeros((0, 2), np.int64), np.zeros(0, np.int32), lengths()], "batch_size must not be 0"),
        ([x[..., :0], *one, lengths(4, 4)], "num_classes is 0"),
        ([x, *one, lengths(4, -1)], "seq_len(1) < 0"),
        ([x, *one, lengths(5, 4)], "sequence_length(0) <= 4"),
        ([x, np.int64([[0, 0], [2, 0]]), one[1], lengths(4, 4)],
         "labels batch index must be between 0 and 2 but saw: 2"),
        ([x, np.int64([[-1, 0], [1, 0]]), one[1], lengths(4, 4)],
         "labels batch index must be between 0 and 2 but saw: -1"),
        ([x, np.int64([[0, -1], [1, 0]]), one[1], lengths(4, 4)], f"{seen}[0, -1] is out of order, or repeated"),
        ([x, np.int64([[0, 0], [0, 0]]), one[1], lengths(4, 4)], f"{seen}[0, 0] is out of order, or repeated"),
        ([x, np.int64([[1, 0], [0, 0]]), one[1], lengths(4, 4)], f"{seen}[0, 0] is out of order, or repeated"),
        ([x, np.int64([[0, 1], [0, 0]]), one[1], lengths(4, 4)], f"{seen}[0, 0] is out of order, or repeated"),
        ([x, *sparse([[0, -1], [1]]), lengths(4, 4)],
         "All labels must be nonnegative integers, batch: 0 labels: 0,-1"),
        ([x, *sparse([[0, 1]]), lengths(4, 4)], "Labels length is zero in batch 1"),
        ([x, *sparse([[0], [1, 3, 0]]), lengths(4, 4)],
         "Saw a non-null label (index >= num_classes - 1) following a null label, batch: 1 num_classes: 3 labels: "
         "1,3,0 labels seen so far: 1"),
    ):  # fmt: skip
        refused(text, ops.run, "CTCLoss", given)


def test_what_no_decoder_reads(ops: Any) -> None:
    x = np.zeros((4, 2, 3))
    for op in ("CTCGreedyDecoder", "CTCBeamSearchDecoder"):
        attrs = {"beam_width": 2, "top_paths": 1} if "Beam" in op else {}
        for given, text in (
            ([x[0], lengths(4, 4)], "inputs is not a 3-Tensor"),
            ([x[:0], lengths(0, 0)], "max_time is 0"),
            ([x[..., :0], lengths(4, 4)], "inputs has no classes"),
            ([x, np.int32(4)], "sequence_length is not a vector"),
        ):
            refused(text, ops.run, op, given, **attrs)
        text = "len(sequence_length) != batch_size.  len(sequence_length):  1 batch_size: 2"
        refused(text, ops.run, op, [x, lengths(4)], kind=errors.FailedPreconditionError, **attrs)
        text = "sequence_length(1) <= 4"
        refused(text, ops.run, op, [x, lengths(4, 5)], kind=errors.FailedPreconditionError, **attrs)
        indices, values, shape, *_ = ops.run(op, [x[:, :0], lengths()], **attrs)
        assert (indices.shape, values.shape, shape.tolist()) == ((0, 2), (0,), [0, 0])


def test_greedy_decoding_of_a_batch(ops: Any) -> None:
    paths = [[0, 0, 1, 2, 1], [2, 2, 2, 0, 0], [1, 0, 0, 1, 1], [0, 0, 0, 0, 0]]
    counts = [5, 4, 0, -3]
    x = np.full((5, 4, CLASSES), -1.0, np.float32)
    for b, path in enumerate(paths):
        x[np.arange(5), b, path] = [1, 2, 4, 8, 16]
    for blank, merges in itertools.product((-1, 2, 0, -3, 1), (True, False)):
        wanted = [
            [c for at, c in enumerate(path) if c != blank % 3 and not (merges and at and path[at - 1] == c)]
            for path in (path[: max(count, 0)] for path, count in zip(paths, counts, strict=True))
        ]
        indices, values, shape, score = ops.run(
            "CTCGreedyDecoder", [x, lengths(*counts)], merge_repeated=merges, blank_index=blank
        )
        assert values.tolist() == [c for row in wanted for c in row]
        assert indices.tolist() == [[b, at] for b, row in enumerate(wanted) for at in range(len(row))]
        assert shape.tolist() == [4, max(map(len, wanted))]
        assert (score.tolist(), score.dtype) == ([[-31], [-15], [0], [0]], np.float32)
    for blank in (3, -4):
        text = f"blank_index expected to be between -3 and 2 but was {blank}"
        refused(text, ops.run, "CTCGreedyDecoder", [x, lengths(*counts)], blank_index=blank)


def searched(log_y: Any, width: int) -> list[tuple[tuple[int, ...], float]]:
    """The likeliest prefixes by the beam search of the textbooks: each with its chance to end in a blank and not."""
    beams = {(): (0.0, -np.inf)}
    for row in log_y:
        grown: dict[tuple[int, ...], list[float]] = {}
        for said, (blank, label) in beams.items():
            whole = np.logaddexp(blank, label)
            stay = grown.setdefault(said, [-np.inf, -np.inf])
            stay[0] = np.logaddexp(stay[0], whole + row[-1])
            if said:
                stay[1] = np.logaddexp(stay[1], label + row[said[-1]])
            for c, chance in enumerate(row[:-1]):
                before = blank if said and said[-1] == c else whole
                more = grown.setdefault((*said, c), [-np.inf, -np.inf])
                more[1] = np.logaddexp(more[1], before + chance)
        best = sorted(grown.items(), key=lambda item: -np.logaddexp(*item[1]))[:width]
        beams = {said: (blank, label) for said, (blank, label) in best}
    return sorted(((said, float(np.logaddexp(*each))) for said, each in beams.items()), key=lambda item: -item[1])


def test_a_narrow_search_is_that_of_the_textbooks(ops: Any) -> None:
    steps, batch, classes, paths = 8, 4, 4, 2
    x = RNG.standard_normal((steps, batch, classes)) * 1.5
    counts = [8, 5, 2, 1]
    log_y = x - np.log(np.exp(x).sum(-1, keepdims=True))
    for width in (2, 3, 4, 5, 9):
        outs = ops.run(
            "CTCBeamSearchDecoder", [x, lengths(*counts)], beam_width=width, top_paths=paths, merge_repeated=False
        )
        found = [searched(log_y[:count, b], width)[:paths] for b, count in enumerate(counts)]
        for path in range(paths):
            rows = [each[path][0] for each in found]
            assert outs[paths + path].tolist() == [c for row in rows for c in row]
            assert outs[path].tolist() == [[b, at] for b, row in enumerate(rows) for at in range(len(row))]
            assert outs[2 * paths + path].tolist() == [batch, max(map(len, rows))]
        np.testing.assert_allclose(outs[-1], [[score for _, score in row] for row in found], rtol=1e-9)


def test_what_a_search_finds_twice_in_a_row_may_be_one(ops: Any) -> None:
    path = [0, BLANK, 0, 1, BLANK, 1, 0]
    x = np.full((7, 1, CLASSES), -9.0)
    x[np.arange(7), 0, path] = 9.0
    for merges, said in ((False, [0, 0, 1, 1, 0]), (True, [0, 1, 0])):
        outs = ops.run("CTCBeamSearchDecoder", [x, lengths(7)], beam_width=4, top_paths=1, merge_repeated=merges)
        assert outs[1].tolist() == said


def test_a_search_that_has_fewer_paths_than_wanted(ops: Any) -> None:
    x = np.zeros((2, 1, 2))
    refused("Less leaves in the beam search than requested.", ops.run, "CTCBeamSearchDecoder", [x, lengths(0)],
            beam_width=2, top_paths=2)  # fmt: skip
    for count, paths in ((0, 1), (-1, 1), (1, 2)):
        outs = ops.run("CTCBeamSearchDecoder", [x, lengths(count)], beam_width=2, top_paths=paths)
        assert outs[-1].shape == (1, paths)
    text = "requested more paths than the beam width."
    refused(text, ops.run, "CTCBeamSearchDecoder", [x, lengths(2)], beam_width=1, top_paths=2)
    never = np.array([[[0.0, -np.inf, -np.inf]]])
    outs = ops.run("CTCBeamSearchDecoder", [never, lengths(1)], beam_width=9, top_paths=1)
    assert (outs[1].tolist(), outs[-1].tolist()) == ([0], [[0.0]])
    text = "Less leaves in the beam search than requested."
    refused(text, ops.run, "CTCBeamSearchDecoder", [never, lengths(1)], beam_width=9, top_paths=2)
