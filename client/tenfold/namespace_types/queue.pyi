# Written by `make stubs` from the table of tf.queue in namespaces.py.

from tenfold.ops.queues import FIFOQueue
from tenfold.ops.queues import PaddingFIFOQueue
from tenfold.ops.queues import PriorityQueue
from tenfold.ops.queues import QueueBase
from tenfold.ops.queues import RandomShuffleQueue

__all__ = [
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
]
