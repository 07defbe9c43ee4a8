"""The pools of one task: what runs its long programs, works on its large graphs (step_pool.py), waits for its files.

Kernels that read and write files have threads of their own: a slow disk holds up nobody but who asked for it. Such a
kernel's node waits for its result like a dequeue, so its step holds no thread of the step pool, where it would count as
a kernel that computes for long.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tenfold_kernels.resources.waiting import Waiting

from .step_pool import GraphPool, Job, StepPool

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from tenfold_core.errors import OpError

    from ..limits import Limits


class FilePool(StepPool):
    """A StepPool whose jobs wait for a disk: they never count as long, and no owner is refused.

    Sessions take turns, and none has more than half of the threads: one whose files never come leaves room for others'.
    """

    def __init__(self, task: str, limits: Limits) -> None:
        super().__init__(task, replace(limits, pool_threads=limits.file_threads))
        self._most_of_one = max(1, limits.file_threads // 2)

    def _check(self, owner: Hashable) -> None:
        """No owner is refused."""

    def _may_run(self) -> int:
        return self._limits.pool_threads

    def _next_owner(self) -> Hashable | None:
        running = Counter(job.owner for job in self._running)
        return next((owner for owner in self._waiting if running[owner] < self._most_of_one), None)

    def _over(self, job: Job) -> None:
        super()._over(job)
        if self._waiting:
            # the owner of what has ended may have another thread now
            self._wake.notify()


class Pools(NamedTuple):
    """Those of a task, shared by its worker's guests."""

    steps: StepPool
    graphs: GraphPool
    files: FilePool


#: Makes the pools of a task; a server takes it (`TaskServer(pools=…)`).
MakePools: TypeAlias = "Callable[[str, Limits], Pools]"


def pools_of(task: str, limits: Limits) -> Pools:
    """On threads of this process."""
    return Pools(StepPool(task, limits), GraphPool(task, limits), FilePool(task, limits))


#: `is_callers`: the thread is that of a step's caller, who alone is held up by a slow disk.
_place = threading.local()


@contextlib.contextmanager
def on_callers_thread() -> Iterator[None]:
    """Kernels that use files compute where they are called: a record that was read ahead takes microseconds."""
    _place.is_callers = True
    try:
        yield
    finally:
        _place.is_callers = False


def beside(kernel: Callable[..., Any], pool: FilePool, owner: Hashable) -> Callable[..., Any]:
    """`kernel` on a thread of the pool; its inputs are not copied, as a checkpoint's are large."""

    def compute(*inputs: Any) -> Any:
        if getattr(_place, "is_callers", False):
            return kernel(*inputs)
        waiting = Waiting()
        #: What the kernel itself waits for: a reader, for its queue.
        inner: list[Waiting] = []

        def over(found: Any, error: OpError | None) -> None:
            if error is None:
                waiting.complete(found)
            else:
                waiting.fail(error)

        def run() -> None:
            if not waiting.is_open:
                return
            try:
                outputs = kernel(*inputs)
            except BaseException as error:
                waiting.fail(error)  # type: ignore[arg-type] # the driver makes an OpError of any
                return
            if type(outputs) is not Waiting:
                waiting.complete(outputs)
                return
            inner.append(outputs)
            waiting.lack = outputs.lack
            outputs.listen(over)
            if not waiting.is_open:
                outputs.cancel()

        job = pool.submit(owner, run)

        def cancel() -> None:
            pool.let_go(job)
            for each in inner:
                each.cancel()

        waiting.on_cancel = cancel
        return waiting

    return compute
