"""WorkQueue: the files of an input, spread over workers of different speeds: each takes the next when it is ready.

The queue is on a parameter server, is filled when the variables are initialized, and is saved with them: after a
restart the works that nobody had taken are left. Imported as `tensorflow.python.ops.work_queue` by programs that were
written for DeepRec, whose ops/work_queue.py it follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.data.dataset import Dataset
from tenfold.graph import GraphKeys, add_to_collection, control_dependencies, device, name_scope
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, control_flow, math, resources, string
from tenfold.ops import random as random_ops
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.saveable_objects import SaveableObject, SaveSpec
from tenfold.ops.variables import Variable
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor
    from tenfold.train.local_works import LocalWorkMgr


class WorkQueue(SaveableObject):
    """Works, such as names of files, that all workers of a cluster take from one queue.

    Each work comes `num_epochs` times, in a new order every time with `shuffle`; then a take ends with OutOfRangeError.
    `prefix` is put before each. `num_slices` is taken for programs that have it: files are not sliced. The same call
    with the same `name` in every worker's graph means the same queue. A `local_work_mgr` (local_works.py) keeps what
    this worker took. Raises ValueError for works that are no list of texts and for fewer than one epoch.
    """

    def __init__(
        self,
        works: Sequence[Any],
        num_epochs: int = 1,
        shuffle: bool = True,
        seed: int | None = None,
        prefix: str | None = None,
        num_slices: int | None = None,
        num_clients: int = 1,
        name: str | None = None,
        local_work_mgr: LocalWorkMgr | None = None,
    ) -> None:
        if not isinstance(works, list) or not works or not all(isinstance(work, (str, bytes)) for work in works):
            raise ValueError(f"WorkQueue requires works as a list of strings, not {works!r}")
        if num_epochs <= 0:
            raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
        self._works = [(work.encode() if isinstance(work, str) else work).strip() for work in works]
        self._prefix, self._clients, self._kept = prefix, num_clients, local_work_mgr
        with name_scope(name or "work_queue") as scope:
            self._scope, name = scope, scope.rstrip("/")
            # a variable, to be placed as one: on a parameter server
            beside = Variable(0, name="colocator", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
            self._place, self._here = beside.device, control_flow.no_op().device
            with device(self._place):
                self._handle = apply_op("WorkQueueHandleOp", shared_name=name)
                left = apply_op("WorkQueueSave", handle=self._handle)
                digest = convert_to_tensor(self.digest, dtype=dtypes.string)
                self._create = self._filled(num_epochs, shuffle, seed, name)
                made = apply_op("WorkQueueIsInitialized", handle=self._handle)
        add_to_collection(GraphKeys.SAVEABLE_OBJECTS, self)
        resources.register_resource(self._handle, self._create, made)
        super().__init__(self, [SaveSpec(digest, "", f"{name}_digest"), SaveSpec(left, "", f"{name}_works")], name)
        self.handles = {f"{name}_works": self._handle}

    def _filled(self, epochs: int, shuffle: bool, seed: int | None, name: str) -> Any:
        """The operation that makes the queue, with all works of all epochs, and closes it."""
        last = apply_op("WorkQueueCreate", handle=self._handle, shared_name=name)
        works = convert_to_tensor(self._works, dtype=dtypes.string)
        for number in range(epochs):
            with name_scope(f"epochs/{number}"), control_dependencies([last]):
                own = None if seed is None else seed + number
                epoch = random_ops.random_shuffle(works, seed=own) if shuffle else works
                last = apply_op("WorkQueuePut", handle=self._handle, works=epoch)
        with control_dependencies([last]):
            return apply_op("WorkQueueClose", handle=self._handle)

    def __len__(self) -> int:
        return len(self._works)

    @property
    def works(self) -> list[bytes]:
        """The works of one epoch."""
        return self._works

    @property
    def digest(self) -> bytes:
        """What a checkpoint is compared with: other works begin anew."""
        return b",".join(self._works)

    @property
    def initializer(self) -> Any:
        """The operation that fills the queue with all works."""
        return self._create

    def restore(self, restored_tensors: Sequence[Any], restored_shapes: Sequence[Any] | None) -> Any:
        """An op that leaves the works that the checkpoint had; all of them, if it was of other works."""
        digest, works = restored_tensors
        with name_scope(f"{self.name}/restore/"), device(self._place):
            same = math.equal(digest, convert_to_tensor(self.digest, dtype=dtypes.string))

            def left() -> Any:
                return apply_op("WorkQueueRestore", handle=self._handle, works=works)

            return cond(same, left, lambda: control_flow.group(self._create))

    def take(self) -> Tensor:
        """The next work, a string scalar; waits for one while the queue is open."""
        with name_scope(self._scope), device(self._here):
            work = self._from_all() if self._kept is None else self._kept.taken(self._from_all)
        return work if self._prefix is None else string.string_join([self._prefix, work])

    def _from_all(self) -> Tensor:
        with device(self._place):
            taken = apply_op("WorkQueueTake", handle=self._handle, num_clients=self._clients)
        work: Tensor = array.identity(taken)
        return work

    def input_producer(self) -> FIFOQueue:
        """A queue of this process, of strings [1], that a QueueRunner fills with one work after the other."""
        work = self.take()
        with name_scope(self._scope), device(self._here):
            proxy = FIFOQueue(capacity=1, dtypes=[dtypes.string], shapes=[[1]], name="proxy")
            enqueue = proxy.enqueue(array.reshape(work, [1]))
            cancel = proxy.close(cancel_pending_enqueues=True)
            add_queue_runner(QueueRunner(proxy, [enqueue], cancel_op=cancel))
        return proxy

    def input_dataset(self) -> Any:
        """A dataset of works, string scalars, of this process."""
        proxy = self.input_producer()
        with name_scope(self._scope), device(self._here):
            return Dataset.from_tensors(0).repeat().map(lambda _: array.reshape(proxy.dequeue(), []))

    def add_summary(self) -> Tensor:
        """How many works are left, an int64 scalar; adds a summary of their share."""
        with name_scope(self._scope), device(self._place):
            size: Tensor = apply_op("WorkQueueSize", handle=self._handle)
        share = math.cast(size, dtypes.float32) * (1.0 / len(self._works))
        summary.scalar(f"{self.name}/fraction_of_{len(self._works)}_full", share)
        return size
