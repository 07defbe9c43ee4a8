"""GatherTree: whole beams from the steps of a beam search. The output is fresh.

# T time steps, B batch, K beams
Follows contrib/seq2seq/kernels/beam_search_ops.cc of TensorFlow 1.15.
"""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel


@kernel("GatherTree")
def build_gather_tree(node: KernelNode) -> Compute:
    """Ids (T, B, K) followed from the last step of each row back to the first.

    Beyond a row's length, and after its first `end_token`, there is only `end_token`.
    """

    def compute(step_ids_TBK: Array, parent_ids_TBK: Array, lengths_B: Array, end_token: Array) -> Array:
        _check(step_ids_TBK, parent_ids_TBK, lengths_B, end_token)
        steps, rows, beams = step_ids_TBK.shape
        out_TBK = np.full_like(step_ids_TBK, end_token)
        row = np.arange(rows)[:, None]
        # Which beam each of the last beams was in at the step being copied.
        at_BK = np.broadcast_to(np.arange(beams), (rows, beams))
        for time in range(steps - 1, -1, -1):
            inside_B1 = (time < lengths_B)[:, None]
            np.copyto(out_TBK[time], step_ids_TBK[time, row, at_BK], where=inside_B1)
            if time == 0:
                break
            parents_BK = np.where(inside_B1, parent_ids_TBK[time, row, at_BK], at_BK)
            wrong = (parents_BK < 0) | (parents_BK >= beams)
            if wrong.any():
                batch, beam = np.argwhere(wrong)[0]
                raise invalid(
                    f"Saw invalid parent id {parents_BK[batch, beam]} at (batch, time, beam) == "
                    f"({batch}, {time - 1}, {beam}); parents are 0 to {beams - 1}"
                )
            at_BK = parents_BK
        ended = np.logical_or.accumulate(out_TBK == end_token, axis=0)
        out_TBK[ended] = end_token
        return out_TBK

    return compute


def _check(step_ids: Array, parent_ids: Array, lengths: Array, end_token: Array) -> None:
    if step_ids.ndim != 3:
        raise invalid(f"step_ids must be a 3-tensor, saw shape: {shape_text(step_ids.shape)}")
    if parent_ids.shape != step_ids.shape:
        raise invalid(
            f"step_ids.shape must match parent_ids.shape.  but shapes are: {shape_text(step_ids.shape)} and "
            f"{shape_text(parent_ids.shape)}"
        )
    if lengths.ndim != 1:
        raise invalid(f"max_sequence_lengths must be a vector, saw shape: {shape_text(lengths.shape)}")
    if lengths.shape[0] != step_ids.shape[1]:
        raise invalid(
            f"batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must match.  but shapes are: "
            f"{shape_text(step_ids.shape)} and {shape_text(lengths.shape)}"
        )
    if end_token.ndim:
        raise invalid(f"end_token must be a scalar, saw shape: {shape_text(end_token.shape)}")
