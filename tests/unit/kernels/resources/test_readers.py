"""Readers as machines: one read at a time, in line; records that no step could have go to the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.readers import Reader, Record, Source
from tenfold_kernels.resources.waiting import Waiting
from tenfold_protos.reader_base_pb2 import ReaderBaseState

if TYPE_CHECKING:
    from collections.abc import Iterator


def queue_of(*names: bytes) -> Queue:
    queue = Queue("FIFOQueue", "q", [dtypes.string], [TensorShape([])], -1, FifoStore())
    for name in names:
        put(queue, name)
    return queue


def put(queue: Queue, name: bytes) -> None:
    value = np.empty((), object)
    value[()] = name
    queue.enqueue((value,))


def letters(work: bytes) -> Iterator[Record]:
    """The letters of a name; a question mark is a damaged record, a bang a file that is not there."""
    if work == b"!":
        raise errors.NotFoundError(None, None, "no such file")
    return _letters(work)


def _letters(work: bytes) -> Iterator[Record]:
    for number, letter in enumerate(work.decode()):
        if letter == "?":
            raise errors.DataLossError(None, None, f"damaged at {number}")
        yield b"%d" % number, letter.encode()


def file_reader() -> Reader:
    return Reader("r", Source("LetterReader", letters))


def name_reader() -> Reader:
    return Reader("r", Source("NameReader", lambda work: iter([(work, work)]), is_single=True))


class Heard:
    """Listens to a Waiting."""

    def __init__(self, waiting: Any) -> None:
        assert isinstance(waiting, Waiting)
        self.waiting = waiting
        self.results: list[Any] = []
        waiting.listen(self._hear)

    def _hear(self, outputs: Any, error: errors.OpError | None) -> None:
        self.results.append(error if error is not None else [each.tolist() for each in outputs])


def counters(reader: Reader) -> tuple[int, int]:
    return reader.num_records_produced, reader.num_work_units_completed


def read(reader: Reader, queue: Queue, wanted: int | None = None) -> Any:
    return [each.tolist() for each in reader.read(queue, wanted)]


def test_one_record_is_two_scalars_and_several_are_vectors() -> None:
    reader, queue = file_reader(), queue_of(b"ab")
    key, value = reader.read(queue)
    assert (key.shape, value.shape) == ((), ())
    assert (key[()], value[()]) == (b"0", b"a")
    assert read(reader, queue, 1) == [[b"1"], [b"b"]]
    assert read(reader, queue, 0) == [[], []]
    assert counters(reader) == (2, 0), "the end of the file has not been seen"


def test_several_records_are_of_one_work_unit() -> None:
    reader, queue = file_reader(), queue_of(b"", b"abc", b"", b"d", b"e")
    assert read(reader, queue, 2) == [[b"0", b"1"], [b"a", b"b"]]
    assert read(reader, queue, 9) == [[b"2"], [b"c"]]
    assert counters(reader) == (3, 2)
    assert read(reader, queue, 9) == [[b"0"], [b"d"]]
    assert counters(reader) == (4, 4)


def test_a_work_unit_of_one_record_is_finished_with_it() -> None:
    reader, queue = name_reader(), queue_of(b"x", b"y")
    assert read(reader, queue) == [b"x", b"x"]
    assert counters(reader) == (1, 1)
    assert read(reader, queue, 5) == [[b"y"], [b"y"]]
    assert counters(reader) == (2, 2)


def test_a_name_that_comes_goes_to_the_first_in_line() -> None:
    reader, queue = file_reader(), queue_of()
    heard = [Heard(reader.read(queue)) for _ in range(3)]
    put(queue, b"ab")
    assert [each.results for each in heard] == [[[b"0", b"a"]], [[b"1", b"b"]], []]
    assert len(queue._dequeues) == 1, "one dequeue for the whole line"
    put(queue, b"c")
    assert heard[2].results == [[b"0", b"c"]]
    assert counters(reader) == (3, 1)


def test_a_first_one_that_leaves_leaves_the_queue_too() -> None:
    reader, queue = file_reader(), queue_of()
    gone = Heard(reader.read(queue))
    gone.waiting.cancel()
    assert not queue._dequeues
    put(queue, b"a")
    assert queue.size() == 1
    assert gone.results == []


def test_one_that_leaves_the_middle_takes_nothing_from_the_first() -> None:
    reader, queue = file_reader(), queue_of()
    first, gone, last = (Heard(reader.read(queue)) for _ in range(3))
    gone.waiting.cancel()
    gone.waiting.cancel()
    assert len(queue._dequeues) == 1
    put(queue, b"ab")
    assert (first.results, gone.results, last.results) == ([[b"0", b"a"]], [], [[b"1", b"b"]])


def test_the_dequeue_of_a_line_keeps_its_place_when_another_leaves_the_line() -> None:
    reader, queue = file_reader(), queue_of()
    first, gone = (Heard(reader.read(queue)) for _ in range(2))
    behind = queue.dequeue()
    gone.waiting.cancel()
    put(queue, b"a")
    assert first.results == [[b"0", b"a"]]
    assert behind.is_open


def test_a_read_that_comes_while_another_one_is_served_stands_in_line() -> None:
    heard: list[Heard] = []

    def records(work: bytes) -> Iterator[Record]:
        if not heard:
            heard.append(Heard(reader.read(queue)))
        yield b"k", work

    reader, queue = Reader("r", Source("LetterReader", records)), queue_of(b"a", b"b")
    assert read(reader, queue) == [b"k", b"a"]
    assert heard[0].results == [[b"k", b"b"]]


def test_what_a_read_had_when_it_left_is_the_next_one_s() -> None:
    partly, other = file_reader(), queue_of()
    waits = Heard(partly.read(other, 2))
    (of_line,) = partly._line
    of_line.records.append((b"k", b"v"))
    waits.waiting.cancel()
    assert read(partly, other) == [b"k", b"v"]
    assert counters(partly) == (1, 0)


def test_a_step_that_ends_at_the_last_moment_leaves_its_record() -> None:
    reader, queue = file_reader(), queue_of()
    heard = Heard(reader.read(queue))
    (of_line,) = reader._line

    class GivesUpLate:
        is_open = True

        def claim(self) -> bool:
            return False

    of_line.waiting = GivesUpLate()  # type: ignore[assignment]
    put(queue, b"a")
    assert heard.results == []
    assert counters(reader) == (0, 0)
    reader._leave(of_line)
    assert read(reader, queue) == [b"0", b"a"]
    assert counters(reader) == (1, 0)


def test_a_step_that_ends_while_its_file_is_read_leaves_the_record() -> None:
    line: list[Heard] = []

    def records(work: bytes) -> Iterator[Record]:
        line[0].waiting.cancel()
        yield b"k", work

    reader, queue = Reader("r", Source("LetterReader", records)), queue_of()
    line.append(Heard(reader.read(queue)))
    put(queue, b"a")
    assert line[0].results == []
    assert counters(reader) == (0, 0)
    assert read(reader, queue) == [b"k", b"a"]
    assert queue.size() == 0


def test_a_damaged_record_ends_its_work_unit() -> None:
    reader, queue = file_reader(), queue_of(b"a?b", b"c")
    assert read(reader, queue) == [b"0", b"a"]
    with pytest.raises(errors.DataLossError, match="damaged at 1"):
        reader.read(queue)
    assert counters(reader) == (1, 1)
    assert read(reader, queue) == [b"0", b"c"]


def test_what_was_read_before_a_damaged_record_is_gone_with_its_read() -> None:
    reader, queue = file_reader(), queue_of(b"a?", b"b")
    with pytest.raises(errors.DataLossError, match="damaged at 1"):
        reader.read(queue, 5)
    assert read(reader, queue) == [b"0", b"b"]
    assert reader.num_records_produced == 1


def test_who_waits_hears_of_a_file_that_is_not_there_and_the_next_goes_on() -> None:
    reader, queue = file_reader(), queue_of()
    first, second = Heard(reader.read(queue)), Heard(reader.read(queue))
    put(queue, b"!")
    assert [type(each) for each in first.results] == [errors.NotFoundError]
    assert second.results == []
    put(queue, b"a")
    assert second.results == [[b"0", b"a"]]
    assert counters(reader) == (1, 0), "a file that was not opened has not been begun"


def test_a_closed_queue_is_told_to_each_in_line() -> None:
    reader, queue = file_reader(), queue_of()
    heard = [Heard(reader.read(queue)) for _ in range(2)]
    queue.close()
    assert [[type(each) for each in one.results] for one in heard] == [[errors.OutOfRangeError]] * 2
    with pytest.raises(errors.OutOfRangeError, match="is closed and has insufficient elements"):
        reader.read(queue)


def test_a_reset_gives_up_the_work_unit_and_what_was_left_over() -> None:
    reader, queue = file_reader(), queue_of(b"abc", b"d", b"e")
    read(reader, queue)
    reader._unread.append((b"k", b"left over"))
    reader.reset()
    assert counters(reader) == (0, 0)
    assert read(reader, queue) == [b"0", b"d"]
    assert counters(reader) == (1, 0)
    read(reader, queue)
    assert counters(reader) == (2, 1)


def test_a_state_is_the_counters_and_the_work_unit() -> None:
    reader = name_reader()
    queue = queue_of(b"x", b"y")
    for _ in range(2):
        read(reader, queue)
    state = reader.serialize_state()
    wanted = ReaderBaseState(work_started=2, work_finished=2, num_records_produced=2, current_work=b"y")
    assert ReaderBaseState.FromString(state) == wanted

    other = name_reader()
    other._unread.append((b"k", b"left over"))
    other.restore_state(state)
    assert other.serialize_state() == state
    assert counters(other) == (2, 2)
    assert read(other, queue_of(b"z")) == [b"z", b"z"], "what was left over belongs to the former state"
    assert counters(other) == (3, 3)
    other.reset()
    assert ReaderBaseState.FromString(other.serialize_state()) == ReaderBaseState()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (ReaderBaseState(work_started=-1), r"Unexpected negative value when restoring in NameReader 'r'"),
        (ReaderBaseState(work_finished=-1), r"Unexpected negative value"),
        (ReaderBaseState(num_records_produced=-1), r"Unexpected negative value"),
        (ReaderBaseState(work_started=2, work_finished=1), r"Inconsistent work .* in NameReader 'r'"),
        (b"\xff", r"Could not parse state for NameReader 'r': b'\\xff'"),
    ],
)
def test_a_state_that_cannot_be_resets_the_reader(state: Any, message: str) -> None:
    reader = name_reader()
    read(reader, queue_of(b"x"))
    with pytest.raises(errors.InvalidArgumentError, match=message):
        reader.restore_state(state if isinstance(state, bytes) else state.SerializeToString())
    assert counters(reader) == (0, 0)


def test_a_state_of_zeros_is_one() -> None:
    reader = name_reader()
    read(reader, queue_of(b"x"))
    reader.restore_state(b"")
    assert counters(reader) == (0, 0)


def test_a_reader_that_stands_within_a_file_has_no_state() -> None:
    reader, queue = file_reader(), queue_of(b"ab", b"c")
    read(reader, queue)
    with pytest.raises(errors.UnimplementedError, match="Reader SerializeState"):
        reader.serialize_state()
    with pytest.raises(errors.UnimplementedError, match="Reader RestoreState"):
        reader.restore_state(b"")
    assert counters(reader) == (0, 0)
    assert read(reader, queue) == [b"0", b"c"], "it was reset"


def queue_with(dtype: dtypes.DType, *components: Any) -> Queue:
    queue = Queue("FIFOQueue", "q", [dtype] * len(components), None, -1, FifoStore())
    queue.enqueue(tuple(components))
    return queue


@pytest.mark.parametrize(
    ("queue", "message"),
    [
        (queue_with(dtypes.int32, np.array(1, np.int32)), "single string component"),
        (queue_with(dtypes.string, *[np.array([b"a"], object)] * 2), "single component queue"),
        (queue_with(dtypes.string, np.array([b"a", b"b"], object)), "one-element string tensor"),
        (queue_with(dtypes.string, np.array([], object)), "one-element string tensor"),
    ],
)
def test_names_come_one_by_one(queue: Queue, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        file_reader().read(queue)


def test_a_name_may_be_a_vector_of_one() -> None:
    assert read(name_reader(), queue_with(dtypes.string, np.array([b"a"], object))) == [b"a", b"a"]
