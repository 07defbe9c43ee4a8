"""How global steps tell the generations of a chief apart in synchronous training: numbers that both ends agree on.

A chief that comes back begins a new generation. tenfold/train/chief_generation.py adds an offset to the steps that
gradients and tokens carry, a multiple of STRIDE for each generation after the first.
tenfold_kernels/resources/accumulators.py knows it by the step that closes an accumulator before a generation begins.
Tokens of earlier generations are taken out of their queue by a node that does not wait, tenfold_kernels/cpu/
kernels/cpu/data_flow_queue.py.
"""

from __future__ import annotations

#: What a generation adds: more steps than a training has, and room for more generations than a chief has.
STRIDE = 1 << 40
#: An accumulator at such a step, and a multiple of STRIDE, accepts nothing until a generation begins with the next step
#: set.
CLOSED = STRIDE - 1
#: Added to a generation's offset: the step that closes an accumulator until that generation sets its own. It is beyond
#: every step of the generation.
CLOSED_BEFORE = STRIDE + CLOSED
#: An attribute of QueueDequeueUpTo nodes: true where the node takes what is there, at most as many elements as it asks
#: for, and never waits. TensorFlow ignores it: there the node waits until so many elements have come.
AT_ONCE = "_at_once"


def offset_of(step: int) -> int:
    """The part of a step that the generation added; 0 in the first."""
    return step - step % STRIDE


def closes(step: int) -> bool:
    """Whether this step is set to let nothing in."""
    return step % STRIDE == CLOSED
