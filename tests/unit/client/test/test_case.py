"""tf.test: TestCase with its sessions and assertions, gradients by differences, benchmarks."""

from __future__ import annotations

import json
import os
import unittest
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.test.benchmark import run_benchmarks
from tenfold_protos import summary_pb2

if TYPE_CHECKING:
    from pathlib import Path


def outcome(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


class Good(tf.test.TestCase):
    __test__ = False

    def test_sessions(self) -> None:
        x = tf.constant([1.0, 2.0])
        with self.session() as own:
            self.assertAllEqual(own.run(x), [1.0, 2.0])
        with self.cached_session() as one:
            self.assertAllClose(x, [1.0, 2.0 + 1e-7])
        with self.test_session() as other:
            self.assertIs(one, other)
            self.assertAllClose({"a": x.eval()}, {"a": np.array([1.0, 2.0])})
        self.assertEqual(self.evaluate([x, x])[1].tolist(), [1.0, 2.0])

    def test_graphs_are_fresh(self) -> None:
        self.assertEqual(tf.constant(1.0).name, "Const:0")
        self.assertTrue(os.path.isdir(self.get_temp_dir()))

    def test_errors(self) -> None:
        with self.cached_session(), self.assertRaisesOpError("must feed a value"):
            tf.placeholder(tf.float32).eval()

    def test_protos(self) -> None:
        value = summary_pb2.Summary.Value(tag="a", simple_value=0.1)
        self.assertProtoEquals("tag: 'a' simple_value: 0.1", value)

    def test_threads(self) -> None:
        thread = self.checkedThread(lambda: self.assertEqual(1, 1))
        thread.start()
        thread.join()


class Bad(tf.test.TestCase):
    __test__ = False

    def test_values(self) -> None:
        self.assertAllClose(np.array([1.0]), np.array([1.1]))

    def test_shapes(self) -> None:
        self.assertAllEqual([1.0, 1.0], 1.0)

    def test_no_error(self) -> None:
        with self.assertRaisesOpError("anything"):
            tf.constant(1.0)

    def test_proto(self) -> None:
        self.assertProtoEquals("tag: 'a'", summary_pb2.Summary.Value(tag="b"))

    def test_range(self) -> None:
        self.assertAllInRange([0.0, 1.0], 0.0, 1.0, open_upper_bound=True)

    def test_thread(self) -> None:
        thread = self.checkedThread(lambda: self.fail("inside"))
        thread.start()
        thread.join()

    def test_unjoined_thread(self) -> None:
        thread = self.checkedThread(lambda: None)
        thread.start()
        thread._thread.join()


def test_a_test_case_passes_what_holds() -> None:
    result = outcome(Good)
    assert (result.testsRun - len(result.skipped), result.failures, result.errors) == (5, [], [])


def test_a_test_case_fails_what_does_not_hold() -> None:
    result = outcome(Bad)
    assert result.testsRun - len(result.skipped) == 7
    assert sorted(case._testMethodName for case, _ in result.failures) == sorted(
        name for name in dir(Bad) if name.startswith("test_") and name != "test_session"
    )


def test_gradients_agree_with_differences() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, [2, 3])
        y = tf.tanh(x) * 2.0
        analytic, numeric = tf.test.compute_gradient(x, [2, 3], y, [2, 3], delta=1e-5)
        assert analytic.shape == (6, 6)
        assert np.abs(analytic - numeric).max() < 1e-8
        assert tf.test.compute_gradient_error(x, [2, 3], y, [2, 3], delta=1e-5) < 1e-8


def test_a_point_of_columns_first_is_the_same_point() -> None:
    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float32, [2, 2])
        point = np.array([[0.1, 0.2], [0.3, 0.4]], np.float32, order="F")
        assert tf.test.compute_gradient_error(x, [2, 2], tf.nn.softsign(x), [2, 2], x_init_value=point) < 1e-3


def test_a_wrong_gradient_is_seen() -> None:
    @tf.custom_gradient
    def wrong(x: Any) -> Any:
        return tf.square(x), lambda upstream: upstream

    with tf.Graph().as_default(), tf.Session():
        x = tf.placeholder(tf.float64, [2])
        assert tf.test.compute_gradient_error(x, [2], wrong(x), [2], x_init_value=np.array([1.0, 2.0])) > 0.9


def test_gradients_need_a_session_and_a_path() -> None:
    with tf.Graph().as_default():
        x, y = tf.placeholder(tf.float32, [1]), tf.constant([1.0])
        with pytest.raises(ValueError, match="no default session"):
            tf.test.compute_gradient(x, [1], y, [1])
        with tf.Session(), pytest.raises(ValueError, match="does not depend on"):
            tf.test.compute_gradient(x, [1], y, [1])


def test_benchmarks_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.test.Benchmark, "classes", [])
    monkeypatch.setattr(tf.test.Benchmark, "reports", [])
    monkeypatch.setenv("TEST_REPORT_FILE_PREFIX", str(tmp_path / "out."))

    class Sums(tf.test.Benchmark):
        def benchmark_add(self) -> None:
            with tf.Graph().as_default(), tf.Session() as session:
                values = self.run_op_benchmark(session, tf.constant(1.0) + 1.0, min_iters=3, store_trace=True)
            assert "traceEvents" in values["extras"]["full_trace_chrome_format"]

        def benchmark_other(self) -> None:
            raise AssertionError("not asked for")

    run_benchmarks("Sums.benchmark_add")
    (report,) = Sums.reports
    assert (report["name"], report["iters"]) == ("Sums.benchmark_add", 3)
    assert json.loads((tmp_path / "out.Sums.benchmark_add.json").read_text())["wall_time"] > 0


def test_graph_defs_are_compared_by_node() -> None:
    with tf.Graph().as_default() as one:
        tf.constant(1.0, name="a")
    with tf.Graph().as_default() as other:
        tf.constant(2.0, name="a")
    tf.test.assert_equal_graph_def(one.as_graph_def(), one.as_graph_def())
    with pytest.raises(AssertionError, match=r"\['a'\]"):
        tf.test.assert_equal_graph_def(one.as_graph_def(), other.as_graph_def())


def test_what_is_written_is_captured(tmp_path: Path) -> None:
    with (tmp_path / "stream").open("w") as stream:
        with Good().captureWritesToStream(stream) as captured:
            stream.write("python's, ")
            assert captured.contents() == "python's, "
            stream.flush()
            os.write(stream.fileno(), b"native")

        assert captured.contents() == "python's, native"
        stream.write("after")
    assert (tmp_path / "stream").read_text() == "after"
