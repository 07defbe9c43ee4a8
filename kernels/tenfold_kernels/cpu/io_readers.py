"""Readers as ops: what each kind does with a file, and the verbs. The machine is readers.py.

Handles are resources (V2) or references to strings (the older ops). ReaderRead waits, without holding a thread, until
its queue has a file name. Follows reader_ops.cc, text_line_reader_op.cc, fixed_length_record_reader_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.records import ByteStream, RecordReader
from tenfold_kernels.arrays import Array, invalid, scalar_object, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.resources.handles import resource_of, shared_resource
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.readers import Reader, Record, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

no_kernel(
    "LMDBReader",
    device="CPU",
    why="LMDB's library trusts pointers in a file: a crafted one ends the server. Write the pairs to TFRecord files",
)


def _key(work: bytes, number: int) -> bytes:
    return work + b":" + str(number).encode()


def _reader(node: KernelNode, source: Source) -> Compute:
    return shared_resource(node, Reader, lambda name: Reader(node.name, source))


@kernel("TextLineReader", "TextLineReaderV2")
def build_text_line_reader(node: KernelNode) -> Compute:
    """A record a line, without its end; keys are FILE:LINE, counted from 1."""
    skip = int(node.attrs.get("skip_header_lines", 0))
    if skip < 0:
        raise invalid(f"skip_header_lines must be >= 0 not {skip}")

    def records(work: bytes) -> Iterator[Record]:
        with ByteStream(file_path(work), files=graph_files()) as stream:
            number = 0
            while (line := stream.read_line()) is not None:
                number += 1
                if number > skip:
                    yield _key(work, number), line.removesuffix(b"\n").replace(b"\r", b"")

    return _reader(node, Source("TextLineReader", _opened(records)))


@kernel("TFRecordReader", "TFRecordReaderV2")
def build_tf_record_reader(node: KernelNode) -> Compute:
    """A record of the file a record; keys are FILE:OFFSET."""
    compression = text_attr(node, "compression_type")

    def records(work: bytes) -> Iterator[Record]:
        with RecordReader(file_path(work), compression, files=graph_files()) as reader:
            offset = reader.offset
            while (record := reader.read()) is not None:
                yield _key(work, offset), record
                offset = reader.offset

    return _reader(node, Source("TFRecordReader", _opened(records)))


@kernel("FixedLengthRecordReader", "FixedLengthRecordReaderV2")
def build_fixed_length_record_reader(node: KernelNode) -> Compute:
    """Records of one length between a header and a footer, every hop_bytes; keys are FILE:NUMBER, counted from 0."""
    sizes = {
        name: int(node.attrs.get(name, 0)) for name in ("header_bytes", "record_bytes", "footer_bytes", "hop_bytes")
    }
    for name, size in sizes.items():
        if size < 0:
            raise invalid(f"{name} must be >= 0 not {size}")
    header, record, footer = sizes["header_bytes"], sizes["record_bytes"], sizes["footer_bytes"]
    hop = sizes["hop_bytes"] or record
    if not hop:
        raise invalid("record_bytes and hop_bytes cannot both be 0: the reader would never reach the end")
    encoding = text_attr(node, "encoding")

    def records(work: bytes) -> Iterator[Record]:
        compression = encoding if encoding in ("ZLIB", "GZIP") else ""
        with ByteStream(file_path(work), compression, files=graph_files()) as stream:
            if not stream.skip(header):
                return
            held = b""
            number = 0
            while True:
                held += stream.read(record + footer - len(held))
                if len(held) < record + footer:
                    return
                yield _key(work, number), held[:record]
                number += 1
                rest, held = hop - len(held), held[hop:]
                if rest > 0 and not stream.skip(rest):
                    return

    return _reader(node, Source("FixedLengthRecordReader", _opened(records)))


@kernel("WholeFileReader", "WholeFileReaderV2")
def build_whole_file_reader(node: KernelNode) -> Compute:
    """The file's name and its contents."""

    def records(work: bytes) -> Iterator[Record]:
        name = file_path(work)
        with os_errors(name):
            contents = graph_files().read_whole(name)
        yield work, contents

    return _reader(node, Source("WholeFileReader", records, is_single=True))


@kernel("IdentityReader", "IdentityReaderV2")
def build_identity_reader(node: KernelNode) -> Compute:
    """What the queue gives, twice."""

    def records(work: bytes) -> Iterator[Record]:
        yield work, work

    return _reader(node, Source("IdentityReader", records, is_single=True))


def _opened(records: Any) -> Any:
    """`records`, begun: a file that cannot be opened is an error of the work unit, not of its first record."""

    def begin(work: bytes) -> Iterator[Record]:
        iterator = records(work)
        first = next(iterator, None)

        def all_records() -> Iterator[Record]:
            if first is not None:
                yield first
                yield from iterator

        return all_records()

    return begin


@kernel("ReaderRead", "ReaderReadV2", blocking=True, files=True)
def build_reader_read(node: KernelNode) -> Compute:
    def compute(reader: Any, queue: Any) -> Any:
        return resource_of(node, reader, Reader).read(resource_of(node, queue, Queue))

    return compute


@kernel("ReaderReadUpTo", "ReaderReadUpToV2", blocking=True, files=True)
def build_reader_read_up_to(node: KernelNode) -> Compute:
    """At most num_records records, all of one work unit."""

    def compute(reader: Any, queue: Any, num_records: Array) -> Any:
        if num_records.ndim or num_records < 0:
            raise invalid(f"num_records must be a scalar >= 0, got {num_records}")
        return resource_of(node, reader, Reader).read(resource_of(node, queue, Queue), int(num_records))

    return compute


@kernel("ReaderNumRecordsProduced", "ReaderNumRecordsProducedV2")
def build_num_records_produced(node: KernelNode) -> Compute:
    return lambda reader: np.array(resource_of(node, reader, Reader).num_records_produced, np.int64)


@kernel("ReaderNumWorkUnitsCompleted", "ReaderNumWorkUnitsCompletedV2")
def build_num_work_units_completed(node: KernelNode) -> Compute:
    return lambda reader: np.array(resource_of(node, reader, Reader).num_work_units_completed, np.int64)


@kernel("ReaderSerializeState", "ReaderSerializeStateV2")
def build_serialize_state(node: KernelNode) -> Compute:
    return lambda reader: scalar_object(resource_of(node, reader, Reader).serialize_state())


@kernel("ReaderRestoreState", "ReaderRestoreStateV2")
def build_restore_state(node: KernelNode) -> Compute:
    def compute(reader: Any, state: Array) -> None:
        if state.ndim:
            raise invalid(f"Reader state must be scalar, but had shape: {shape_text(state.shape)}")
        resource_of(node, reader, Reader).restore_state(bytes(state[()]))

    return compute


@kernel("ReaderReset", "ReaderResetV2")
def build_reset(node: KernelNode) -> Compute:
    return lambda reader: resource_of(node, reader, Reader).reset()
