"""The stand-in for FileWriter of TensorFlow's contrib.testing: it keeps what is written, for tests to look at.

Found by api_shim.py through the table of api_extras.py.
"""

from __future__ import annotations

from typing import Any

import tenfold as tf


class FakeSummaryWriter:
    """Keeps what a hook or a Supervisor writes; `install` puts it in place of FileWriter."""

    _replaced: Any = None

    def __init__(self, logdir: str, graph: Any = None) -> None:
        self._logdir, self._graph = logdir, graph
        self.summaries: dict[int, list[Any]] = {}
        self._graphs: list[Any] = []
        self._meta_graphs: list[Any] = []
        self._session_logs: list[Any] = []
        self._added_run_metadata: dict[str, Any] = {}

    @classmethod
    def install(cls) -> None:
        from tenfold.summary import file_writer

        cls._replaced = file_writer.FileWriter
        file_writer.FileWriter = cls  # type: ignore[misc,assignment]

    @classmethod
    def uninstall(cls) -> None:
        from tenfold.summary import file_writer

        file_writer.FileWriter = cls._replaced  # type: ignore[misc]

    def add_summary(self, summ: Any, current_global_step: int) -> None:
        proto = tf.Summary.FromString(summ) if isinstance(summ, bytes) else summ
        self.summaries.setdefault(current_global_step, []).append(proto)

    def add_graph(self, graph: Any, global_step: int | None = None, graph_def: Any = None) -> None:
        self._graphs.append(graph)

    def add_meta_graph(self, meta_graph_def: Any, global_step: int | None = None) -> None:
        self._meta_graphs.append(meta_graph_def)

    def add_session_log(self, session_log: Any, global_step: int | None = None) -> None:
        self._session_logs.append(session_log)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: int | None = None) -> None:
        self._added_run_metadata[tag] = run_metadata

    def flush(self) -> None:
        """Nothing is written."""

    reopen = close = flush

    def assert_summaries(
        self,
        test_case: Any,
        expected_logdir: str | None = None,
        expected_graph: Any = None,
        expected_summaries: Any = None,
        expected_added_graphs: Any = None,
        expected_added_meta_graphs: Any = None,
        expected_session_logs: Any = None,
    ) -> None:
        if expected_logdir is not None:
            test_case.assertEqual(expected_logdir, self._logdir)
        if expected_graph is not None:
            test_case.assertIs(expected_graph, self._graph)
        for step, values in (expected_summaries or {}).items():
            test_case.assertIn(step, self.summaries)
            found = [value for summary in self.summaries[step] for value in summary.value]
            simple = {value.tag: value.simple_value for value in found if value.tag != "global_step/sec"}
            test_case.assertEqual(values, simple)
        if expected_added_graphs is not None:
            test_case.assertEqual(expected_added_graphs, self._graphs)
        if expected_added_meta_graphs is not None:
            from api_test_util import assert_meta_graph_protos_equal

            test_case.assertEqual(len(expected_added_meta_graphs), len(self._meta_graphs))
            for expected, actual in zip(expected_added_meta_graphs, self._meta_graphs, strict=True):
                assert_meta_graph_protos_equal(test_case, expected, actual)
        if expected_session_logs is not None:
            test_case.assertEqual(expected_session_logs, self._session_logs)
