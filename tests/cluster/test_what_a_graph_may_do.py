"""What a session may do on a task: files below the root alone, none of the system's, no FIFO that would wait for ever.

Over the network and in the process. tests/unit/core/test_graph_files.py has the rules of names themselves.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors
from tenfold_core.graph_files import graph_files, use
from tenfold_services.background import BackgroundServer
from tenfold_services.limits import Limits
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _files_as_before() -> Iterator[None]:
    before = graph_files()
    yield
    use(before)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root/data").write_text("inside\n")
    (tmp_path / "secret").write_text("secret\n")
    (tmp_path / "root/link").symlink_to(tmp_path)
    return tmp_path


@pytest.fixture
def target(places: Path) -> Iterator[str]:
    server = BackgroundServer(TaskServer({"ps": [""]}, "ps", 0, files=str(places / "root")))
    server.start()
    yield server.target
    server.stop(0)


class Serving:
    """The target of a server, which stops at the end."""

    def __init__(self, **options: Any) -> None:
        self._server = BackgroundServer(TaskServer({"ps": [""]}, "ps", 0, **options))

    def __enter__(self) -> str:
        self._server.start()
        return self._server.target

    def __exit__(self, *_: object) -> None:
        self._server.stop(0)


def run(target: str, build: Callable[[], Any]) -> Any:
    with tf.Graph().as_default():
        fetch = build()
        with tf.Session(target) as session:
            return session.run(fetch)


def _op(op: str, **inputs: Any) -> Any:
    return apply_op(op, **inputs)


def _reader(kind: Any, name: str) -> Any:
    queue = tf.FIFOQueue(1, [tf.string], shapes=[()])
    with tf.control_dependencies([queue.enqueue([name])]):
        return kind.read(queue)[1]


def _dataset(op: str, name: str, **more: Any) -> Any:
    dataset = _op(op, filenames=name, buffer_size=np.int64(0), **more)
    shapes = {"output_types": [tf.string], "output_shapes": [tf.TensorShape([])]}
    iterator = _op("Iterator", shared_name="", container="", **shapes)
    with tf.control_dependencies([_op("MakeIterator", dataset=dataset, iterator=iterator)]):
        return _op("IteratorGetNext", iterator=iterator, **shapes)


def _summaries(name: str) -> Any:
    writer = _op("SummaryWriter", shared_name="", container="")
    return _op(
        "CreateSummaryFileWriter",
        writer=writer,
        logdir=name,
        max_queue=1,
        flush_millis=1,
        filename_suffix="",
    )


USES: dict[str, Callable[[str], Any]] = {
    "ReadFile": tf.read_file,
    "WriteFile": lambda name: tf.write_file(name, "overwritten"),
    "MatchingFiles": tf.matching_files,
    "RestoreV2": lambda name: _op(
        "RestoreV2", prefix=name, tensor_names=["v"], shape_and_slices=[""], dtypes=[tf.float32]
    ),
    "SaveV2": lambda name: _op(
        "SaveV2", prefix=name, tensor_names=["v"], shape_and_slices=[""], tensors=[tf.constant(1.0)]
    ),
    "Restore": lambda name: _op("Restore", file_pattern=name, tensor_name="v", dt=tf.float32),
    "Save": lambda name: _op("Save", filename=name, tensor_names=["v"], data=[tf.constant(1.0)]),
    "MergeV2Checkpoints": lambda name: _op("MergeV2Checkpoints", checkpoint_prefixes=[name], destination_prefix=name),
    "TextLineReader": lambda name: _reader(tf.TextLineReader(), name),
    "WholeFileReader": lambda name: _reader(tf.WholeFileReader(), name),
    "TFRecordReader": lambda name: _reader(tf.TFRecordReader(), name),
    "FixedLengthRecordReader": lambda name: _reader(tf.FixedLengthRecordReader(1), name),
    "TextLineDataset": lambda name: _dataset("TextLineDataset", name, compression_type=""),
    "TFRecordDataset": lambda name: _dataset("TFRecordDataset", name, compression_type=""),
    "FixedLengthRecordDataset": lambda name: _dataset(
        "FixedLengthRecordDataset",
        name,
        header_bytes=np.int64(0),
        record_bytes=np.int64(1),
        footer_bytes=np.int64(0),
    ),
    "CreateSummaryFileWriter": _summaries,
    "InitializeTableFromTextFile": lambda name: tf.contrib.lookup.index_table_from_file(name).init,
    "GenerateVocabRemapping": lambda name: _op(
        "GenerateVocabRemapping", new_vocab_file=name, old_vocab_file=name, new_vocab_offset=0, num_new_vocab=1
    ),
    "FixedUnigramCandidateSampler": lambda name: _op(
        "FixedUnigramCandidateSampler",
        true_classes=np.array([[0]], np.int64),
        num_true=1,
        num_sampled=1,
        unique=True,
        range_max=1,
        vocab_file=name,
    )[0],
}


@pytest.mark.parametrize("use_of", USES)
@pytest.mark.parametrize("name", ["secret", "root/link/secret"])
def test_no_op_opens_a_file_outside_of_the_root(places: Path, target: str, use_of: str, name: str) -> None:
    with pytest.raises(errors.PermissionDeniedError, match=r"--files \(TENFOLD_FILES\)"):
        run(target, lambda: USES[use_of](str(places / name)))
    assert (places / "secret").read_text() == "secret\n"
    assert not (places / "secret.index").exists()


def test_files_of_the_root_are_read_written_and_found(places: Path, target: str) -> None:
    root = places / "root"
    run(target, lambda: tf.write_file(str(root / "new/out"), "text"))
    assert (root / "new/out").read_text() == "text"
    assert run(target, lambda: tf.read_file(str(root / "new/out"))) == b"text"
    assert run(target, lambda: tf.matching_files(str(root / "d*"))).tolist() == [os.fsencode(root / "data")]


@pytest.mark.parametrize("path", ["/proc/self/environ", "/sys/kernel/notes", "/dev/zero"])
def test_a_task_without_a_root_does_not_show_its_system(path: str) -> None:
    with Serving() as target, pytest.raises(errors.PermissionDeniedError, match="not data"):
        run(target, lambda: tf.read_file(path))


def test_as_many_fifos_as_there_are_places_of_long_kernels_take_none(tmp_path: Path) -> None:
    """Finding 9: 64 of them took all, and every other step that needed the pool was refused."""
    os.mkfifo(tmp_path / "fifo")
    limits = Limits(long_kernels=2, long_kernels_per_session=2, long_kernel_seconds=0.05, pool_threads=2)
    with Serving(limits=limits) as target:
        for _ in range(4):
            with pytest.raises(errors.PermissionDeniedError, match="regular files only"):
                run(target, lambda: tf.read_file(str(tmp_path / "fifo")))


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2000)
    with (
        Serving(limits=Limits(file_bytes=1000)) as target,
        pytest.raises(errors.ResourceExhaustedError, match=r"2000 bytes.*1000.*TENFOLD_FILE_BYTES"),
    ):
        run(target, lambda: tf.read_file(str(tmp_path / "large")))


def test_the_environment_says_the_root_for_servers_of_programs(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_FILES", str(places / "root"))
    server = tf.train.Server.create_local_server()
    with pytest.raises(errors.PermissionDeniedError):
        run(server.target, lambda: tf.read_file(str(places / "secret")))
    assert graph_files().root == os.path.realpath(places / "root")
    server.stop()


def test_a_root_that_is_missing_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_FILES"):
        BackgroundServer(TaskServer({"ps": [""]}, "ps", 0, files=str(tmp_path / "missing"))).start()
