"""Connectionist temporal classification: losses and decoders of sequences without alignment (`tf.nn.ctc_…`).

As TensorFlow 1.15's ops/ctc_ops.py. T steps, B sequences, N classes. Labels without an alignment that are dense take
the operation of sparse ones, too: what it gives is the same, but that a sequence with fewer steps than its labels need
is an error of the step and no infinite loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, slicing
from tenfold.ops.array import _alias
from tenfold.ops.functional import map_fn
from tenfold.ops.sparse import sparse_reshape
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """The loss [B] of logits [T, B, N], or [B, T, N] unless `time_major`; the last class is blank.

    `labels` is a SparseTensor [B, longest] of int32. Raises TypeError for another. A step fails where a sequence has
    more labels than steps, unless `ignore_longer_outputs_than_inputs`.
    """
    if not isinstance(labels, SparseTensor):
        raise TypeError("Expected labels (first argument) to be a SparseTensor")
    inputs = _alias("inputs", inputs, "logits", logits)
    if not time_major:
        inputs = array.transpose(inputs, [1, 0, 2])
    loss: Tensor = apply_op(
        "CTCLoss",
        None,
        inputs=inputs,
        labels_indices=labels.indices,
        labels_values=labels.values,
        sequence_length=sequence_length,
        preprocess_collapse_repeated=preprocess_collapse_repeated,
        ctc_merge_repeated=ctc_merge_repeated,
        ignore_longer_outputs_than_inputs=ignore_longer_outputs_than_inputs,
    )[0]
    return loss


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """`ctc_loss` with dense labels [B, longest] and their lengths, or sparse ones; any class may be blank.

    `blank_index` is 0 by default, of sparse labels it must be given (ValueError). `unique`, what `ctc_unique_labels`
    gives, is not needed here.
    """
    with name_scope(name, "ctc_loss_v2", [logits, label_length, logit_length]):
        logits = convert_to_tensor(logits, name="logits")
        if not isinstance(labels, SparseTensor):
            labels = dense_labels_to_sparse(labels, label_length)
            blank_index = 0 if blank_index is None else blank_index
        elif blank_index is None:
            raise ValueError("blank_index must be given when using SparseTensor labels.")
        if not logits_time_major:
            logits = array.transpose(logits, [1, 0, 2])
        count = _size(logits, 2)
        blank = blank_index + count if blank_index < 0 else blank_index
        if blank_index != -1 and not (isinstance(count, int) and blank == count - 1):
            parts = [logits[:, :, :blank], logits[:, :, blank + 1 :], logits[:, :, blank : blank + 1]]
            logits = array.concat(parts, axis=2)
            lower = math.less(labels.values, blank)
            values = slicing.where(lower, labels.values, labels.values - 1)
            labels = SparseTensor(labels.indices, values, labels.dense_shape)
        return ctc_loss(labels, logits, logit_length)


def ctc_greedy_decoder(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> tuple[list[Any], Tensor]:
    """`([decoded], neg_sum_logits)`: the likeliest class of each step of [T, B, N] but for blanks, a SparseTensor."""
    indices, values, shape, logits = apply_op(
        "CTCGreedyDecoder", None, inputs=inputs, sequence_length=sequence_length, merge_repeated=merge_repeated
    )
    return [SparseTensor(indices, values, shape)], logits


def ctc_beam_search_decoder(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1, merge_repeated: bool = True
) -> tuple[list[Any], Tensor]:
    """`(decoded, log_probability [B, top_paths])`: the likeliest sequences of labels, a SparseTensor for each path."""
    indices, values, shapes, logarithms = apply_op(
        "CTCBeamSearchDecoder",
        None,
        inputs=inputs,
        sequence_length=sequence_length,
        beam_width=beam_width,
        top_paths=top_paths,
        merge_repeated=merge_repeated,
    )
    return [SparseTensor(*path) for path in zip(indices, values, shapes, strict=True)], logarithms


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[Any], Tensor]:
    """`ctc_beam_search_decoder` that leaves repeated labels."""
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, merge_repeated=False)


def dense_labels_to_sparse(dense: Any, length: Any) -> SparseTensor:
    """Labels [B, longest], of each row the first `length`, as int32."""
    dense = convert_to_tensor(dense, name="dense")
    mask = array.reshape(slicing.sequence_mask(length, maxlen=array.shape(dense)[1]), [-1])
    flat = array.reshape(dense, [-1])
    places = math.range(array.shape(flat, out_type=dtypes.int64)[0])
    sparse = SparseTensor(
        array.expand_dims(slicing.boolean_mask(places, mask), 1),
        math.cast(slicing.boolean_mask(flat, mask), dtypes.int32),
        array.shape(flat, out_type=dtypes.int64),
    )
    of_rows = sparse_reshape(sparse, array.shape(dense))
    longest = math.cast(math.reduce_max(length), dtypes.int64)
    return SparseTensor(of_rows.indices, of_rows.values, array.stack([of_rows.dense_shape[0], longest]))


def collapse_repeated(labels: Any, seq_length: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """`(labels, lengths)`: of labels [B, longest] without what repeats its neighbour, zeros after the end."""
    with name_scope(name, "collapse_repeated_labels", [labels, seq_length]):
        labels = convert_to_tensor(labels, name="labels")
        seq_length = convert_to_tensor(seq_length, name="seq_length")
        first = array.ones_like(labels[:, :1], dtypes.bool_)
        is_new = array.concat([first, math.not_equal(labels[:, 1:], labels[:, :-1])], axis=1)
        is_kept = math.logical_and(is_new, slicing.sequence_mask(seq_length, maxlen=_size(labels, 1)))
        lengths = math.reduce_sum(math.cast(is_kept, dtypes.int32), axis=1)
        longest = math.reduce_max(lengths)
        places = slicing.where(slicing.sequence_mask(lengths, maxlen=longest))
        kept = slicing.boolean_mask(labels, is_kept)
        shape = array.stack([array.shape(labels, out_type=dtypes.int64)[0], math.cast(longest, dtypes.int64)])
        collapsed: Tensor = apply_op("ScatterNd", None, indices=places, updates=kept, shape=shape)
        return collapsed, math.cast(lengths, seq_length.dtype)


def ctc_unique_labels(labels: Any, name: str | None = None) -> Any:
    """Of labels [B, longest] each row's different ones, zeros after them, and where each label is among these."""
    with name_scope(name, "ctc_unique_labels", [labels]):
        labels = convert_to_tensor(labels, name="labels")

        def of_row(row: Tensor) -> list[Tensor]:
            values, places = slicing.unique(row)
            padded = array.pad(values, [[0, _size(places, 0) - array.shape(values)[0]]])
            return [math.cast(padded, dtypes.int64), places]

        return map_fn(of_row, labels, dtype=[dtypes.int64, dtypes.int32])


def _size(x: Tensor, axis: int) -> Any:
    """A dimension as a number where it is known, else as a tensor."""
    known = None if x.shape.ndims is None else x.shape.as_list()[axis]
    return array.shape(x)[axis] if known is None else known
