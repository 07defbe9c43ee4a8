"""Readers: file names from a queue, records from files; which read is next, and what a cancelled step leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.records import RecordWriter
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import UNBOUNDED, Queue
from tenfold_kernels.resources.readers import Reader
from tenfold_kernels.resources.waiting import Waiting

if TYPE_CHECKING:
    from pathlib import Path


def scalar(value: bytes) -> Any:
    out = np.empty((), object)
    out[()] = value
    return out


def queue_of(*names: bytes, closed: bool = False) -> Queue:
    queue = Queue("FIFOQueue", "q", [dtypes.string], [TensorShape([])], UNBOUNDED, FifoStore())
    for name in names:
        queue.enqueue((scalar(name),))
    if closed:
        queue.close()
    return queue


def reader_of(ops: Any, op: str, **attrs: Any) -> Reader:
    handle = ops.run(op, [], **attrs)
    found = handle[()].resource
    assert isinstance(found, Reader)
    return found


def records_of(reader: Reader, queue: Queue) -> list[tuple[bytes, bytes]]:
    """Everything until the queue is closed and empty."""
    found = []
    while True:
        try:
            key, value = reader.read(queue)
        except errors.OutOfRangeError:
            return found
        found.append((key[()], value[()]))


class Answer:
    """Listens to a Waiting."""

    def __init__(self, waiting: Any) -> None:
        assert isinstance(waiting, Waiting)
        self.value: Any = None
        self.error: errors.OpError | None = None
        waiting.listen(self._done)
        self.waiting = waiting

    def _done(self, outputs: Any, error: errors.OpError | None) -> None:
        self.error = error
        if outputs is not None:
            self.value = tuple(o.tolist() for o in outputs)


def test_lines(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"header\none\r\ntwo")
    (tmp_path / "b").write_bytes(b"header\n")
    (tmp_path / "c").write_bytes(b"")
    (tmp_path / "d").write_bytes(b"h\n\n")
    names = [str(tmp_path / n).encode() for n in "abcd"]
    reader = reader_of(ops, "TextLineReaderV2", skip_header_lines=1)

    found = records_of(reader, queue_of(*names, closed=True))

    assert found == [(names[0] + b":2", b"one"), (names[0] + b":3", b"two"), (names[3] + b":2", b"")]
    assert (reader.num_records_produced, reader.num_work_units_completed) == (3, 4)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_records(ops: Any, tmp_path: Path, compression: str) -> None:
    with RecordWriter(str(tmp_path / "r"), compression) as out:
        out.write(b"abc")
        out.write(b"")
    name = str(tmp_path / "r").encode()

    found = records_of(reader_of(ops, "TFRecordReaderV2", compression_type=compression), queue_of(name, closed=True))

    assert found == [(name + b":0", b"abc"), (name + b":19", b"")]


@pytest.mark.parametrize(
    ("sizes", "records"),
    [
        ({"record_bytes": 3}, [b"012", b"345", b"678"]),
        ({"record_bytes": 2, "header_bytes": 1, "footer_bytes": 3}, [b"12", b"34", b"56"]),
        ({"record_bytes": 4, "hop_bytes": 2}, [b"0123", b"2345", b"4567", b"6789"]),
        ({"record_bytes": 2, "hop_bytes": 5}, [b"01", b"56"]),
        ({"record_bytes": 20}, []),
        ({"record_bytes": 3, "header_bytes": 11}, []),
    ],
)
@pytest.mark.parametrize("encoding", ["", "ZLIB"])
def test_records_of_one_length(ops: Any, tmp_path: Path, sizes: Any, records: list[bytes], encoding: str) -> None:
    import zlib

    (tmp_path / "f").write_bytes(zlib.compress(b"0123456789") if encoding else b"0123456789")
    name = str(tmp_path / "f").encode()

    found = records_of(
        reader_of(ops, "FixedLengthRecordReaderV2", encoding=encoding, **sizes), queue_of(name, closed=True)
    )

    assert [value for _, value in found] == records
    assert [key for key, _ in found] == [name + b":%d" % i for i in range(len(records))]


def test_whole_files_and_the_names_themselves(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"all\nof it")
    name = str(tmp_path / "f").encode()

    assert records_of(reader_of(ops, "WholeFileReaderV2"), queue_of(name, closed=True)) == [(name, b"all\nof it")]
    assert records_of(reader_of(ops, "IdentityReaderV2"), queue_of(b"x", b"y", closed=True)) == [
        (b"x", b"x"),
        (b"y", b"y"),
    ]


def test_reading_up_to_does_not_cross_files(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n3\n")
    (tmp_path / "b").write_bytes(b"4\n")
    queue = queue_of(*(str(tmp_path / n).encode() for n in "ab"), closed=True)
    reader = reader_of(ops, "TextLineReaderV2")

    batches = [reader.read(queue, n)[1].tolist() for n in (2, 0, 5, 5)]

    assert batches == [[b"1", b"2"], [], [b"3"], [b"4"]]
    with pytest.raises(errors.OutOfRangeError):
        reader.read(queue, 1)


def test_readers_wait_in_line_for_names(ops: Any) -> None:
    queue, reader = queue_of(), reader_of(ops, "IdentityReaderV2")

    first, second, third = (Answer(reader.read(queue)) for _ in range(3))
    queue.enqueue((scalar(b"a"),))
    assert (first.value, second.value) == ((b"a", b"a"), None)
    second.waiting.cancel()
    queue.enqueue((scalar(b"b"),))

    assert second.value is None
    assert third.value == (b"b", b"b")
    assert queue.size() == 0


def test_a_cancelled_read_takes_no_name(ops: Any) -> None:
    queue, reader = queue_of(), reader_of(ops, "IdentityReaderV2")

    waiting = Answer(reader.read(queue))
    waiting.waiting.cancel()
    queue.enqueue((scalar(b"a"),))

    assert queue.size() == 1
    key, _ = reader.read(queue)
    assert key[()] == b"a"


def test_a_cancelled_read_keeps_its_records_for_the_next(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1\n2\n")
    queue, reader = queue_of(), reader_of(ops, "TextLineReaderV2")
    first = Answer(reader.read(queue))
    second = Answer(reader.read(queue))

    first.waiting.cancel()
    queue.enqueue((scalar(str(tmp_path / "a").encode()),))
    _, third = reader.read(queue)

    assert second.value[1] == b"1"
    assert third[()] == b"2"


def test_a_closed_queue_ends_those_who_wait(ops: Any) -> None:
    queue, reader = queue_of(), reader_of(ops, "IdentityReaderV2")
    waiting = [Answer(reader.read(queue)) for _ in range(2)]

    queue.close()

    assert [type(w.error) for w in waiting] == [errors.OutOfRangeError] * 2


def test_a_missing_file_is_an_error_of_one_read(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"ok\n")
    queue = queue_of(*(str(tmp_path / n).encode() for n in "ab"))
    reader = reader_of(ops, "TextLineReaderV2")

    with pytest.raises(errors.NotFoundError, match="a; No such file or directory"):
        reader.read(queue)
    _, value = reader.read(queue)
    assert value[()] == b"ok"


def test_a_damaged_file_is_an_error_of_one_read(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"no record at all")
    with RecordWriter(str(tmp_path / "b")) as out:
        out.write(b"ok")
    queue = queue_of(*(str(tmp_path / n).encode() for n in "ab"))
    reader = reader_of(ops, "TFRecordReaderV2")

    with pytest.raises(errors.DataLossError, match="corrupted record at 0"):
        reader.read(queue)
    _, value = reader.read(queue)
    assert value[()] == b"ok"


def test_state_and_reset(ops: Any) -> None:
    reader, other = reader_of(ops, "IdentityReaderV2"), reader_of(ops, "IdentityReaderV2")
    records_of(reader, queue_of(b"a", b"b", closed=True))

    other.restore_state(reader.serialize_state())
    assert (other.num_records_produced, other.num_work_units_completed) == (2, 2)
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse state for IdentityReader"):
        other.restore_state(b"\xff")
    assert other.num_records_produced == 0
    with pytest.raises(errors.InvalidArgumentError, match=r"Inconsistent work started vs. finished"):
        other.restore_state(b"\x08\x02\x10\x01")
    reader.reset()
    assert reader.num_records_produced == 0
    with pytest.raises(errors.UnimplementedError, match="Reader SerializeState"):
        reader_of(ops, "TextLineReaderV2").serialize_state()


def test_queues_of_other_things_are_refused(ops: Any) -> None:
    numbers = Queue("FIFOQueue", "q", [dtypes.int32], [TensorShape([])], UNBOUNDED, FifoStore())
    numbers.enqueue((np.array(1, np.int32),))
    pairs = Queue("FIFOQueue", "q", [dtypes.string] * 2, [TensorShape([])] * 2, UNBOUNDED, FifoStore())
    pairs.enqueue((scalar(b"a"), scalar(b"b")))

    with pytest.raises(errors.InvalidArgumentError, match="single string component"):
        reader_of(ops, "IdentityReaderV2").read(numbers)
    with pytest.raises(errors.InvalidArgumentError, match="single component queue"):
        reader_of(ops, "IdentityReaderV2").read(pairs)


@pytest.mark.parametrize(
    ("op", "attrs", "message"),
    [
        ("TextLineReaderV2", {"skip_header_lines": -1}, "skip_header_lines must be >= 0 not -1"),
        ("FixedLengthRecordReaderV2", {"record_bytes": -3}, "record_bytes must be >= 0 not -3"),
        ("FixedLengthRecordReaderV2", {"record_bytes": 0}, "would never reach the end"),
    ],
)
def test_wrong_attrs(ops: Any, op: str, attrs: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run(op, [], **attrs)


def test_the_verbs_of_a_reader() -> None:
    steps = Steps()
    reader = steps("IdentityReaderV2", shared_name=b"r")
    queue = steps("FIFOQueueV2", component_types=[dtypes.string], shapes=[TensorShape([])])
    for name in (b"a", b"b", b"c", b"d"):
        queue[()].resource.enqueue((scalar(name),))

    assert [part[()] for part in steps("ReaderReadV2", reader, queue)] == [b"a", b"a"]
    keys, values = steps("ReaderReadUpToV2", reader, queue, np.array(0))
    assert keys.tolist() == values.tolist() == []
    keys, values = steps("ReaderReadUpToV2", reader, queue, np.array(1))
    assert keys.tolist() == values.tolist() == [b"b"]
    for wrong in (np.array(-1), np.array([1])):
        with pytest.raises(errors.InvalidArgumentError, match=r"^num_records must be a scalar >= 0, got "):
            steps("ReaderReadUpToV2", reader, queue, wrong)
    counts = [steps(op, reader) for op in ("ReaderNumRecordsProducedV2", "ReaderNumWorkUnitsCompletedV2")]
    assert [(count.tolist(), count.dtype) for count in counts] == [(2, np.int64)] * 2

    state = steps("ReaderSerializeStateV2", reader)
    assert state.shape == ()
    assert steps("ReaderResetV2", reader) is None
    assert steps("ReaderNumRecordsProducedV2", reader) == 0
    assert steps("ReaderRestoreStateV2", reader, state) is None
    assert steps("ReaderNumRecordsProducedV2", reader) == 2
    with pytest.raises(errors.InvalidArgumentError, match=r"^Reader state must be scalar, but had shape: \[1\]$"):
        steps("ReaderRestoreStateV2", reader, state.reshape(1))


def test_a_record_may_overlap_or_skip_its_neighbours_with_a_footer(ops: Any, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"0123456789")
    name = str(tmp_path / "f").encode()
    for sizes, records in (
        ({"record_bytes": 2, "hop_bytes": 3, "footer_bytes": 1}, [b"01", b"34", b"67"]),
        ({"record_bytes": 2, "hop_bytes": 1, "footer_bytes": 7}, [b"01", b"12"]),
        ({"record_bytes": 1, "hop_bytes": 10}, [b"0"]),
        ({"record_bytes": 10}, [b"0123456789"]),
        ({"record_bytes": 0, "hop_bytes": 5}, [b"", b"", b""]),
    ):
        reader = reader_of(ops, "FixedLengthRecordReaderV2", **sizes)
        assert [value for _, value in records_of(reader, queue_of(name, closed=True))] == records


def test_nothing_is_no_wrong_size(ops: Any) -> None:
    for name in ("header_bytes", "footer_bytes", "hop_bytes"):
        with pytest.raises(errors.InvalidArgumentError, match=f"^{name} must be >= 0 not -1$"):
            ops.run("FixedLengthRecordReaderV2", [], **{"record_bytes": 1, name: -1})
    ops.run("TextLineReaderV2", [], skip_header_lines=0)
