"""How global steps tell a chief's generations apart in synchronous training: two numbers that both ends agree on.

tenfold/train/chief_generation.py adds an offset to the steps that gradients and tokens carry, a multiple of STRIDE for
each life after the first. tenfold_kernels/resources/accumulators.py knows it by the step that closes an accumulator
before a life begins.
"""

from __future__ import annotations

#: What a generation adds: more steps than a training has, and room for more restarts than a chief has.
STRIDE = 1 << 40
#: An accumulator at such a step, and a multiple of STRIDE, accepts nothing until a life begins with the next step set.
CLOSED = STRIDE - 1


def offset_of(step: int) -> int:
    """The part of a step that the life added; 0 in the first."""
    return step - step % STRIDE


def closes(step: int) -> bool:
    """Whether this step is set to let nothing in."""
    return step % STRIDE == CLOSED
