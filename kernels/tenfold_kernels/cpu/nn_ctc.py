"""Connectionist temporal classification: the loss with its gradient, and two decoders.

The blank is the last class. Outputs are fresh. Sums over alignments are made in float64.
Follows ctc_loss_op.cc, ctc_decoder_ops.cc and the Graves thesis, sections 7.3 to 7.5.
"""

# T steps, B batch, L classes, U labels with blanks between them

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_NOTHING = -np.inf


@kernel("CTCLoss", T=FLOATING)
def build_ctc_loss(node: KernelNode) -> Compute:
    """inputs [T, B, L], labels as a sparse tensor, lengths [B] → loss [B] and its gradient [T, B, L]."""
    attrs = node.attrs
    collapses = bool(attrs["preprocess_collapse_repeated"])
    merges = bool(attrs["ctc_merge_repeated"])
    ignores = bool(attrs["ignore_longer_outputs_than_inputs"])
    from tenfold_kernels.cpu._compiled.alignments import alignments

    summed = alignments(_alignments_in_numpy)

    def compute(inputs: Array, indices: Array, values: Array, lengths: Array) -> tuple[Array, Array]:
        lengths = lengths.copy()  # a loop runs as far as they say
        labels = _checked_labels(inputs, indices, values, lengths)
        batch, classes = inputs.shape[1:]
        if not classes:
            raise invalid("num_classes is 0")
        rows = [_label_row(b, labels[b], collapses, classes) for b in range(batch)]
        is_left_out = np.zeros(batch, bool)
        for b, row in enumerate(labels):
            if not ignores and len(row) > lengths[b]:
                raise invalid(
                    f"Not enough time for target transition sequence (required: {len(row)}, available: {lengths[b]}){b}"
                    "You can turn this error into a warning by using the flag ignore_longer_outputs_than_inputs"
                )
            is_left_out[b] = not lengths[b] or len(row) > lengths[b]
        loss, gradient = np.zeros(batch, inputs.dtype), np.zeros(inputs.shape, inputs.dtype)
        kept = np.flatnonzero(~is_left_out)
        if not kept.size:
            return loss, gradient
        made = _losses(summed, inputs[:, kept], [rows[b] for b in kept], lengths[kept].astype(np.int64), merges)
        loss[kept], gradient[:, kept] = made
        return loss, gradient

    return compute


def _checked_labels(inputs: Array, indices: Array, values: Array, lengths: Array) -> list[list[int]]:
    """The labels of each of the batch. Raises InvalidArgumentError where inputs do not fit each other."""
    if inputs.ndim != 3:
        raise invalid("inputs is not a 3-Tensor")
    if lengths.ndim != 1:
        raise invalid("sequence_length is not a vector")
    if indices.ndim != 2 or indices.shape[1] != 2:
        raise invalid("labels_indices is not a matrix")
    if values.ndim != 1:
        raise invalid("labels_values is not a vector")
    steps, batch, _ = inputs.shape
    if len(lengths) != batch:
        raise invalid(f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} batch_size: {batch}")
    if len(indices) != len(values):
        raise invalid(
            "labels_indices and labels_values must contain the same number of rows, but saw shapes: "
            f"{shape_text(indices.shape)} vs. {shape_text(values.shape)}"
        )
    if not batch:
        raise invalid("batch_size must not be 0")
    for b, length in enumerate(lengths.tolist()):
        if length < 0:
            raise invalid(f"seq_len({b}) < 0")
        if length > steps:
            raise invalid(f"sequence_length({b}) <= {steps}")
    labels: list[list[int]] = [[] for _ in range(batch)]
    before = (-1, -1)
    for (b, place), value in zip(indices.tolist(), values.tolist(), strict=True):
        if not 0 <= b < batch:
            raise invalid(f"labels batch index must be between 0 and {batch} but saw: {b}")
        if (b, place) <= before or place < 0:
            raise invalid(f"label SparseTensor is not valid: indices[{b}, {place}] is out of order, or repeated")
        before = b, place
        labels[b].append(value)
    return labels


def _label_row(b: int, label: Sequence[int], collapses: bool, classes: int) -> list[int]:
    """What is to be said. A class of blanks or beyond ends it."""
    if not label:
        raise invalid(f"Labels length is zero in batch {b}")
    found: list[int] = []
    is_over = False
    for at, value in enumerate(label):
        if collapses and at and value == label[at - 1]:
            continue
        if value >= classes - 1:
            is_over = True
        elif is_over:
            raise invalid(
                "Saw a non-null label (index >= num_classes - 1) following a null label, batch: "
                f"{b} num_classes: {classes} labels: {','.join(map(str, label))} labels seen so far: "
                f"{','.join(map(str, found))}"
            )
        else:
            found.append(value)
    if any(value < 0 for value in found):
        shown = ",".join(map(str, found))
        raise invalid(f"All labels must be nonnegative integers, batch: {b} labels: {shown}")
    return found


def _log_softmax(inputs: Array) -> Array:
    x = inputs.astype(np.float64, order="C")
    x -= x.max(axis=-1, keepdims=True)
    x -= np.log(np.exp(x).sum(axis=-1, keepdims=True))
    return x


def _shifted(x_BU: Array, by: int) -> Array:
    """Columns moved right, or left where `by` is negative; nothing comes in."""
    out = np.full_like(x_BU, _NOTHING)
    if by > 0:
        out[:, by:] = x_BU[:, :-by]
    else:
        out[:, :by] = x_BU[:, -by:]
    return out


def _losses(
    alignments: Callable[..., Any], inputs: Array, rows: Sequence[Sequence[int]], lengths: Array, merges: bool
) -> tuple[Array, Array]:
    """Loss and gradient of rows that have steps, by sums over alignments forwards and backwards."""
    steps, batch, classes = inputs.shape
    ends = np.array([2 * len(row) + 1 for row in rows])
    widest = max(int(ends.max()), 3)
    said = np.full((batch, widest), classes - 1)
    for b, row in enumerate(rows):
        said[b, 1 : 2 * len(row) : 2] = row
    log_y = _log_softmax(inputs)
    gradient, log_p = np.exp(log_y), np.empty(batch)
    forward, backward = np.empty((steps, widest)), np.empty((steps, widest))
    alignments(log_y, said, ends, lengths, merges, forward, backward, log_p, gradient)
    return -log_p, gradient


def _alignments_in_numpy(
    log_y: Array, said: Array, ends: Array, lengths: Array, merges: bool, _: Array, __: Array, log_p: Array, y: Array
) -> None:
    steps, batch, classes = log_y.shape
    of_said = np.take_along_axis(log_y, np.broadcast_to(said, (steps, *said.shape)), axis=2)
    is_label = said != classes - 1
    stays = np.full(said.shape, merges) | ~is_label
    skips = is_label.copy()
    if merges:
        skips[:, 2:] &= said[:, 2:] != said[:, :-2]
    leaps = is_label.copy()
    if merges:
        leaps[:, :-2] &= said[:, 2:] != said[:, :-2]

    forward = np.full((steps, *said.shape), _NOTHING)
    forward[0, :, :2] = of_said[0, :, :2]
    for t in range(1, steps):
        last = forward[t - 1]
        total = np.where(stays, last, _NOTHING)
        total = np.logaddexp(total, _shifted(last, 1))
        total = np.logaddexp(total, np.where(skips, _shifted(last, 2), _NOTHING))
        forward[t] = total + of_said[t]

    at_end = np.full(said.shape, _NOTHING)
    for b, end in enumerate(ends):
        at_end[b, max(end - 2, 0) : end] = 0
    backward = np.full((steps, *said.shape), _NOTHING)
    for t in reversed(range(steps)):
        if t + 1 < steps:
            following = backward[t + 1] + of_said[t + 1]
            total = np.where(stays, following, _NOTHING)
            total = np.logaddexp(total, _shifted(following, -1))
            total = np.logaddexp(total, np.where(leaps, _shifted(following, -2), _NOTHING))
            backward[t] = total
        begins = lengths == t + 1
        backward[t, begins] = at_end[begins]

    log_p[:] = np.logaddexp.reduce(forward[0] + backward[0], axis=1)
    finite = np.isfinite(log_p)
    offsets = (np.arange(batch)[:, None] * classes + said).reshape(-1)
    for t in range(steps):
        share = np.exp(np.where(finite[:, None], forward[t] + backward[t] - log_p[:, None], _NOTHING))
        of_classes = np.bincount(offsets, share.reshape(-1), batch * classes).reshape(batch, classes)
        y[t] = np.where((lengths > t)[:, None], y[t] - of_classes, 0)


# ---- decoders --------------------------------------------------------------------------------------------------------


def _check_decoded(inputs: Array, lengths: Array) -> None:
    if inputs.ndim != 3:
        raise invalid("inputs is not a 3-Tensor")
    steps, batch, classes = inputs.shape
    if not steps:
        raise invalid("max_time is 0")
    if not classes:
        raise invalid("inputs has no classes")
    if lengths.ndim != 1:
        raise invalid("sequence_length is not a vector")
    if len(lengths) != batch:
        raise errors.failed_precondition(
            f"len(sequence_length) != batch_size.  len(sequence_length):  {len(lengths)} batch_size: {batch}"
        )
    for b, length in enumerate(lengths.tolist()):
        if length > steps:
            raise errors.failed_precondition(f"sequence_length({b}) <= {steps}")


def _sparse(rows: Sequence[Sequence[int]]) -> tuple[Array, Array, Array]:
    """Rows of classes as indices, values and shape."""
    indices = [(b, place) for b, row in enumerate(rows) for place in range(len(row))]
    values = [value for row in rows for value in row]
    shape = (len(rows), max(map(len, rows), default=0))
    return np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64), np.array(shape, np.int64)


@kernel("CTCGreedyDecoder", T=FLOATING)
def build_greedy_decoder(node: KernelNode) -> Compute:
    """inputs [T, B, L] → the best class of each step, without blanks; and the negated sum of its inputs [B, 1]."""
    merges, blank_index = bool(node.attrs["merge_repeated"]), int(node.attrs["blank_index"])

    def compute(inputs: Array, lengths: Array) -> Any:
        _check_decoded(inputs, lengths)
        classes = inputs.shape[2]
        blank = blank_index + classes if blank_index < 0 else blank_index
        if not 0 <= blank < classes:
            raise invalid(f"blank_index expected to be between {-classes} and {classes - 1} but was {blank_index}")
        best, largest = inputs.argmax(axis=2), inputs.max(axis=2)
        score = np.zeros((inputs.shape[1], 1), inputs.dtype)
        rows = []
        for b, length in enumerate(lengths.tolist()):
            path = best[: max(length, 0), b]
            score[b, 0] = -largest[: max(length, 0), b].sum()
            wanted = path != blank
            if merges and len(path):
                wanted[1:] &= path[1:] != path[:-1]
            rows.append(path[wanted].tolist())
        return *_sparse(rows), score

    return compute


class _Beams:
    """The likeliest prefixes after some steps. Nodes of a tree: a prefix is the way from its node to the root."""

    def __init__(self, width: int, classes: int) -> None:
        self._width, self._classes = width, classes
        #: Parent and last class of each node; the root is 0.
        self._tree: list[tuple[int, int]] = [(-1, -1)]
        self._node_of: dict[tuple[int, int], int] = {}
        #: The live nodes, and the logarithms of what they have: ending in a blank, in their class, in all.
        self._nodes = np.zeros(1, np.int64)
        self._blank, self._label = np.zeros(1), np.full(1, _NOTHING)
        self.total = np.zeros(1)

    def step(self, log_y: Array) -> None:
        """log_y [L], the blank last."""
        parents, last = (np.array(column) for column in zip(*(self._tree[n] for n in self._nodes), strict=True))
        place = {node: at for at, node in enumerate(self._nodes.tolist())}
        above = np.array([place.get(parent, -1) for parent in parents.tolist()])
        of_class = np.where(last >= 0, log_y[last], 0.0)
        has_parent = above >= 0
        same = has_parent & (last == last[above])
        gained = np.where(same, self._blank[above], self.total[above])
        label = np.where(has_parent, np.logaddexp(self._label, gained), self._label) + of_class
        blank = self.total + log_y[-1]
        total = np.logaddexp(blank, label)

        grown = self.total[:, None] + log_y[None, :-1]
        known = last >= 0
        grown[known, last[known]] = self._blank[known] + log_y[last[known]]
        grown[above[has_parent], last[has_parent]] = _NOTHING  # those live already
        everything = np.concatenate([total, grown.reshape(-1)])
        if len(everything) > self._width:
            chosen = np.sort(np.argpartition(-everything, self._width)[: self._width])
        else:
            chosen = np.arange(len(everything))
        chosen = chosen[everything[chosen] > _NOTHING]
        old, new = chosen[chosen < len(total)], chosen[chosen >= len(total)] - len(total)
        made = [self._child(int(self._nodes[at // (self._classes - 1)]), int(at % (self._classes - 1))) for at in new]
        fresh = grown.reshape(-1)[new]
        self._nodes = np.concatenate([self._nodes[old], np.array(made, np.int64)])
        self._blank = np.concatenate([blank[old], np.full(len(new), _NOTHING)])
        self._label = np.concatenate([label[old], fresh])
        self.total = np.concatenate([total[old], fresh])

    def _child(self, parent: int, label: int) -> int:
        found = self._node_of.get((parent, label))
        if found is None:
            found = self._node_of[parent, label] = len(self._tree)
            self._tree.append((parent, label))
        return found

    def best(self, count: int, merges: bool) -> list[tuple[list[int], float]]:
        """The likeliest prefixes and the logarithms of their probabilities. Raises InvalidArgumentError for too few."""
        if count > len(self._nodes):
            raise invalid("Less leaves in the beam search than requested.")
        order = np.argsort(-self.total, kind="stable")[:count]
        return [(self._path(int(self._nodes[at]), merges), float(self.total[at])) for at in order]

    def _path(self, node: int, merges: bool) -> list[int]:
        path: list[int] = []
        before = -1
        while node:
            node, label = self._tree[node]
            if not merges or label != before:
                path.append(label)
            before = label
        return path[::-1]


@kernel("CTCBeamSearchDecoder", T=FLOATING)
def build_beam_decoder(node: KernelNode) -> Compute:
    """inputs [T, B, L] → for each of `top_paths` a sparse tensor of classes; logarithms of probabilities [B, paths]."""
    width, paths, merges = (int(node.attrs[name]) for name in ("beam_width", "top_paths", "merge_repeated"))

    def compute(inputs: Array, lengths: Array) -> Any:
        _check_decoded(inputs, lengths)
        if paths > width:
            raise invalid("requested more paths than the beam width.")
        _, batch, classes = inputs.shape
        log_y = _log_softmax(inputs)
        scores = np.empty((batch, paths), inputs.dtype)
        rows: list[list[list[int]]] = [[] for _ in range(paths)]
        for b, length in enumerate(lengths.tolist()):
            beams = _Beams(width, classes)
            for t in range(length):
                beams.step(log_y[t, b])
            for path, (found, score) in enumerate(beams.best(paths, bool(merges))):
                rows[path].append(found)
                scores[b, path] = score
        indices, values, shapes = zip(*(_sparse(row) for row in rows), strict=True)
        return *indices, *values, *shapes, scores

    return compute
