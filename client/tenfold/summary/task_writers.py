"""Writers of event files on a task, and whether ops made now write through one: `tf.contrib.summary`.

A writer is a resource on the task where its ops run, so that no summary travels to the client. It is the default of a
`with writer.as_default():` block; ops made there (writer_ops.py) write through it, where recording is on. Follows TF
1.15's ops/summary_ops_v2.py in graph mode; file_writer.py writes in the client's own process.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph import add_to_collection, control_dependencies, convert_to_tensor, device, get_collection
from tenfold.graph.op_builder import apply_op
from tenfold.ops import math as m
from tenfold.ops.control_flow import no_op
from tenfold.session import observing
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold.graph.tensor import Tensor

#: Collection of the operations that open the writers of a graph.
_INITS_KEY = "_SUMMARY_WRITER_V2"


class _Defaults(threading.local):
    """A thread's default writer, and whether to record (None: no)."""

    writer: SummaryWriter | None = None
    recording: Any = None


defaults = _Defaults()


class SummaryWriter:
    """A writer of an event file. `init`, `flush` and `close` give operations to run."""

    def __init__(self, shared_name: str, make_init: Callable[[Any], Any]) -> None:
        self._resource = apply_op("SummaryWriter", shared_name=shared_name)
        self._make_init = make_init
        add_to_collection(_INITS_KEY, make_init(self._resource))

    def set_as_default(self) -> None:
        """Makes this the writer of the ops that this thread makes from now on."""
        defaults.writer = self

    @contextmanager
    def as_default(self) -> Iterator[SummaryWriter]:
        """Makes this the writer of the ops made inside the block."""
        before, defaults.writer = defaults.writer, self
        try:
            yield self
        finally:
            defaults.writer = before

    def init(self) -> Any:
        """Opens the file; does nothing where it is open."""
        return self._make_init(self._resource)

    def flush(self) -> Any:
        """Writes the events that wait."""
        return flush(self)

    def close(self) -> Any:
        """Flushes and closes. Another `init` opens a new file."""
        with control_dependencies([self.flush()]), device("cpu:0"):
            return apply_op("CloseSummaryWriter", writer=self._resource)


class NoopSummaryWriter:
    """A writer that writes nothing."""

    def set_as_default(self) -> None:
        """Nothing changes."""

    @contextmanager
    def as_default(self) -> Iterator[None]:
        yield

    init = flush = close = set_as_default


def create_file_writer(
    logdir: str | None,
    max_queue: Any = None,
    flush_millis: Any = None,
    filename_suffix: Any = None,
    name: str | None = None,
) -> Any:
    """A writer of an event file in the folder `logdir` of the task that runs its ops.

    Writers of one `name` (default: the folder's) in a session share one file, whose other arguments are those of the
    first. More than `max_queue` (10) waiting events, or `flush_millis` (two minutes) since the last write, make it
    write. Without a folder the writer does nothing.
    """
    if logdir is None:
        return NoopSummaryWriter()
    folder = str(logdir)
    if observing.observer is not None:
        observing.observer.note_logdir(folder)
    with device("cpu:0"):
        arguments: dict[str, Any] = {
            "logdir": convert_to_tensor(folder, dtypes.string),
            "max_queue": convert_to_tensor(10 if max_queue is None else max_queue, dtypes.int32),
            "flush_millis": convert_to_tensor(120_000 if flush_millis is None else flush_millis, dtypes.int32),
            "filename_suffix": convert_to_tensor(".v2" if filename_suffix is None else filename_suffix, dtypes.string),
        }
        return SummaryWriter(
            name or f"logdir:{folder}", lambda writer: apply_op("CreateSummaryFileWriter", writer=writer, **arguments)
        )


create_summary_file_writer = create_file_writer


def summary_writer_initializer_op() -> list[Any]:
    """The operations that open the writers of this graph."""
    return get_collection(_INITS_KEY)


def flush(writer: Any = None, name: str | None = None) -> Any:
    """The operation that writes the events waiting in `writer` or the default one; does nothing without a writer."""
    writer = defaults.writer if writer is None else writer
    if writer is None:
        return no_op()
    with device("cpu:0"):
        return apply_op("FlushSummaryWriter", name, writer=getattr(writer, "_resource", writer))


def should_record_summaries() -> Tensor:
    """A boolean scalar: whether summary ops write. Outside of a `record_if` block they do not."""
    wanted = defaults.recording
    return convert_to_tensor(wanted() if callable(wanted) else bool(wanted) if wanted is None else wanted)


@contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Whether summary ops made inside the block write: a bool, a boolean scalar, or a function that gives one."""
    before, defaults.recording = defaults.recording, condition
    try:
        yield
    finally:
        defaults.recording = before


def always_record_summaries() -> Any:
    """A block in which summary ops write in every step."""
    return record_if(True)


def never_record_summaries() -> Any:
    """A block in which summary ops write nothing."""
    return record_if(False)


def record_summaries_every_n_global_steps(n: int, global_step: Any = None) -> Any:
    """A block in which summary ops write in every n-th global step."""
    if global_step is None:
        from tenfold.train.training_util import get_or_create_global_step

        global_step = get_or_create_global_step()
    with device("cpu:0"):
        return record_if(m.equal(m.floormod(global_step, n), 0))
