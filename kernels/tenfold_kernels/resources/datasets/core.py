"""What every dataset is, and what an iterator's machines share: calls of functions that can be cancelled.

Elements are tuples of arrays that are never written to. A machine can be saved and set to what was saved, by closures
over the same variables that its elements come from. Used by all of this package. Follows dataset.h in meaning.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import invalid, scalar_object
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import Function
    from tenfold_kernels.resources.datasets.threads import Threads

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Element: TypeAlias = tuple[Array, ...]
#: What a machine remembers: None, numbers, strings, bytes and arrays, in lists, tuples and dicts; states.py writes them
#: down.
State: TypeAlias = Any


def _never_saved() -> State:
    raise errors.unimplemented("An iterator over this dataset cannot be saved.")


def _never_restored(state: State) -> None:
    raise errors.unimplemented("An iterator over this dataset cannot be restored.")


@dataclass(slots=True)
class Machine:
    """One pass over a dataset. One thread at a time."""

    #: Gives the next element, or None at the end and ever after. May be asked again after an OpError.
    following: Callable[[], Element | None]
    #: Where it is; what `restore` of a machine of the same dataset goes on from.
    save: Callable[[], State] = _never_saved
    restore: Callable[[Any], None] = _never_restored
    #: The next elements, at most as many as asked for and at least one, stacked along a new first axis, without having
    #: computed what comes after them. None where it must be asked for them one by one now. Belongs to the caller where
    #: the arrays are writeable.
    block: Callable[[int], Element | None] | None = None
    #: Whether `following` would give an element without making one.
    is_ready: Callable[[], bool] | None = None

    def __call__(self) -> Element | None:
        return self.following()


INFINITE, UNKNOWN = -1, -2
#: An element that takes more elements than this is not made on a step's own thread.
HEAVY = 4096
#: A function's body that waits (for a queue, as a rule) is given up after so many seconds.
WAIT_S = 3600.0


class Dataset:
    """Immutable. `types` and `shapes` are what its elements are declared to be."""

    #: Elements may take long: a function is called, a buffer filled. Such iterators do not run on a step's thread.
    is_slow = False
    #: Inputs of its node that are no datasets, as far as they matter for `node_number`.
    scalars = 0
    #: What it calls to make its elements.
    functions: tuple[Function, ...] = ()

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], *inputs: Dataset) -> None:
        self.types, self.shapes, self.inputs = tuple(types), tuple(shapes), inputs
        #: How many elements of the sources one element may take.
        self.weight: int = max(1, sum(dataset.weight for dataset in inputs))
        if any(dataset.is_slow for dataset in inputs):
            self.is_slow = True

    def weigh(self, factor: int) -> None:
        """An element takes that many of the input: many are slow, whatever they are."""
        self.weight = min(self.weight * max(factor, 1), 1 << 62)
        if self.weight > HEAVY:
            self.is_slow = True

    def iterate(self, run: Run) -> Machine:
        """A machine at the first element. Raises OpError where the dataset's arguments are wrong."""
        raise NotImplementedError

    def cardinality(self) -> int:
        """How many elements there are, or INFINITE, or UNKNOWN."""
        return UNKNOWN

    def at(self, index: int, run: Run) -> Element:
        """The element of that number, 0 first, in a dataset whose elements can be had in any order.

        Raises OutOfRangeError beyond the end, FailedPreconditionError where they cannot.
        """
        raise errors.failed_precondition(
            f"The elements of a {type(self).__name__} dataset can only be had one after the other."
        )

    def stateful_op(self) -> str | None:
        """The op of a function, here or in an input, whose state is not an iterator's; None where there is none."""
        of_functions = (function.stateful_op() for function in self.functions)
        of_inputs = (dataset.stateful_op() for dataset in self.inputs)
        return next((found for found in (*of_functions, *of_inputs) if found is not None), None)

    @property
    def node_number(self) -> int:
        """Its number among the nodes of its pipeline, inputs first, as TensorFlow's names of figures have it."""
        return sum(dataset.node_number + 1 for dataset in self.inputs) + self.scalars

    def as_array(self) -> Array:
        """The value of a variant edge."""
        return scalar_object(self)


class Like(Dataset):
    """A dataset whose elements are as those of its first input, unless it is told otherwise."""

    def __init__(self, dataset: Dataset, *others: Dataset) -> None:
        super().__init__(dataset.types, dataset.shapes, dataset, *others)
        self.input = dataset


class Same(Like):
    """A dataset with as many elements as its input."""

    def cardinality(self) -> int:
        return self.input.cardinality()


class SetUp(Same):
    """The input, each run over which is set up first: where its functions run, who collects its figures."""

    def __init__(self, dataset: Dataset, set_up: Callable[[Run], None]) -> None:
        super().__init__(dataset)
        self._set_up = set_up

    def iterate(self, run: Run) -> Machine:
        self._set_up(run)
        return self.input.iterate(run)

    def at(self, index: int, run: Run) -> Element:
        self._set_up(run)
        return self.input.at(index, run)


def dataset_of(value: Array) -> Dataset:
    """What a variant edge carries. Raises InvalidArgumentError for another kind of variant."""
    found = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(found, Dataset):
        raise invalid(f"The given variant is not a dataset. It is a {type(found).__name__}.")
    return found


def element_of(values: Sequence[Any]) -> Element:
    """Arrays for a caller that keeps them: read-only."""
    arrays = []
    for value in values:
        array = value if type(value) is np.ndarray else np.asarray(value)
        if array.flags.writeable:
            array = array if array.base is None else array.copy()
            array.setflags(write=False)
        arrays.append(array)
    return tuple(arrays)


class Aggregator(Protocol):
    """Takes figures of a pipeline (statistics.py)."""

    def add_to_histogram(self, name: str, value: float, step: int) -> None: ...

    def add_scalar(self, name: str, value: float, step: int) -> None: ...


class Run:
    """One iterator's calls under way. Thread-safe: a call is made on one thread and cancelled from another."""

    def __init__(self) -> None:
        #: A repeated shuffle is drawn as one sequence (see transforms.Repeat).
        self.fuses_shuffles = False
        #: Parallel maps may give what is ready first, whatever they were told themselves.
        self.is_sloppy = False
        #: Where what the pipeline tells of itself goes, and what stands before the names.
        self.aggregator: Aggregator | None = None
        self.statistics_tag = ""
        #: Where functions run; None for the thread that needs what they give.
        self.threads: Threads | None = None
        self._lock = threading.Lock()
        #: Thread → what it waits for, and how it is told that it is not wanted any more.
        self._waits: dict[int, tuple[Waiting, Callable[[], None]]] = {}
        self._is_closed = False
        #: What is left to do when the iterator is gone.
        self._at_close: list[Callable[[], None]] = []
        #: Threads whose step has ended.
        self._stopped: set[int] = set()

    def check(self) -> None:
        """For loops over elements: raises CancelledError when this thread's element is not wanted any more."""
        if self._is_closed or (self._stopped and threading.get_ident() in self._stopped):
            raise errors.cancelled("The step that waited for a dataset's element has ended.")

    def begin(self) -> None:
        """This thread makes an element for another step."""
        self._stopped.discard(threading.get_ident())

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    def call(self, function: Function, values: Sequence[Any]) -> Element:
        """A function's outputs. Blocks while its body waits; raises CancelledError when it is given up."""
        return element_of(self.outputs(function.start, values))

    def outputs(self, start: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Sequence[Any]:
        """What `start` gives, at once or later, called where the pipeline's functions run. Blocks as `call` does."""
        result: Any = start(values) if self.threads is None else _handed_over(self.threads, start, values)
        while type(result) is Waiting:  # for a thread, and then perhaps for what the body waits for
            result = self._awaited(result)
        return result  # type: ignore[no-any-return]

    def _awaited(self, result: Waiting) -> Any:
        over, found, thread = threading.Event(), [], threading.get_ident()

        def done(outputs: Any, error: errors.OpError | None) -> None:
            found.append((outputs, error))
            over.set()

        with self._lock:
            if self._is_closed or thread in self._stopped:
                result.cancel()
                raise errors.cancelled("The iterator was deleted.")
            self._waits[thread] = (result, over.set)
        result.listen(done)
        in_time = over.wait(WAIT_S)
        with self._lock:
            self._waits.pop(thread, None)
        if not in_time:
            result.cancel()
            raise errors.deadline_exceeded(f"A dataset's function did not end in {WAIT_S:g} s.")
        if not found:
            raise errors.cancelled("The step that waited for a dataset's element has ended.")
        outputs, error = found[0]
        if error is not None:
            raise error
        return outputs

    def wait(self, over: threading.Event) -> None:
        """Blocks until another thread has made what this one needs. Raises CancelledError when it is given up."""
        thread, wakes = threading.get_ident(), []
        waiting = Waiting()

        def wake() -> None:
            wakes.append(True)
            over.set()

        with self._lock:
            if self._is_closed or thread in self._stopped:
                raise errors.cancelled("The iterator was deleted.")
            self._waits[thread] = (waiting, wake)
        in_time = over.wait(WAIT_S)
        with self._lock:
            self._waits.pop(thread, None)
        if not in_time:
            raise errors.deadline_exceeded(f"A dataset's element was not made in {WAIT_S:g} s.")
        if wakes:
            raise errors.cancelled("The step that waited for a dataset's element has ended.")

    def cancel(self, thread: int) -> None:
        """Gives up what that thread waits for, or does."""
        with self._lock:
            self._stopped.add(thread)
            wait = self._waits.pop(thread, None)
        if wait is not None:
            wait[0].cancel()
            wait[1]()

    def close(self) -> None:
        """The iterator is gone: gives up everything."""
        with self._lock:
            self._is_closed = True
            waits, self._waits = list(self._waits.values()), {}
            left, self._at_close = self._at_close, []
        for waiting, wake in waits:
            waiting.cancel()
            wake()
        for finish in left:
            finish()

    def when_closed(self, finish: Callable[[], None]) -> None:
        """Calls `finish` once the iterator is gone. It must not hold the machine, and never raises."""
        with self._lock:
            if not self._is_closed:
                self._at_close.append(finish)
                return
        finish()


def _handed_over(threads: Threads, start: Callable[[Sequence[Any]], Any], values: Sequence[Any]) -> Waiting:
    """A Waiting for what `start` returns on one of the threads: a Waiting of its own where the body waits, which holds
    no thread.
    """
    answer = Waiting()

    def begin() -> None:
        if not answer.is_open:
            return
        try:
            result = start(values)
        except errors.OpError as error:
            answer.fail(error)
        except Exception as bug:  # must reach the step that asks
            answer.fail(errors.internal(f"{type(bug).__name__}: {bug}"))
        else:
            if not answer.complete(result) and type(result) is Waiting:
                result.cancel()

    threads.submit(begin)
    return answer


def within(index: int, count: int) -> int:
    """`index`, if a dataset of so many elements has it. Raises OutOfRangeError, as for an end."""
    if not 0 <= index < count and count != INFINITE:
        raise errors.out_of_range(f"Index out of range [0, {count}): {index}")
    return index
