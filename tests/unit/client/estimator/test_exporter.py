"""Exporters: which checkpoints they export, and which exports they keep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def closed_writers() -> Iterator[None]:
    yield
    tf.summary.FileWriterCache.clear()


def exported(exporter: Any, folder: Path, losses: list[float], *, final: bool = False) -> list[Any]:
    """What the exporter returns for evaluations with these losses, one after the other."""
    estimator = mock.Mock(spec=tf.estimator.Estimator, model_dir=str(folder))
    estimator.export_saved_model.side_effect = [f"export {number}" for number in range(len(losses))]
    (folder / "export").mkdir(exist_ok=True)
    return [exporter.export(estimator, str(folder / "export"), "checkpoint", {"loss": loss}, final) for loss in losses]


def test_the_final_one_alone(tmp_path: Path) -> None:
    exporter = tf.estimator.FinalExporter("final", None)

    assert exported(exporter, tmp_path, [1.0, 2.0]) == [None, None]
    assert exported(exporter, tmp_path, [1.0], final=True) == ["export 0"]


def test_the_newest_are_kept(tmp_path: Path) -> None:
    names = ["1234567890", "1234567891", "1234567892", "temp-1234567893", "other"]
    for name in names:
        (tmp_path / "export" / name).mkdir(parents=True)

    done = exported(tf.estimator.LatestExporter("latest", None, exports_to_keep=2), tmp_path, [1.0])

    assert done == ["export 0"]
    assert sorted(path.name for path in (tmp_path / "export").iterdir()) == sorted(names[1:])


def test_the_best_ones(tmp_path: Path) -> None:
    exporter = tf.estimator.BestExporter("best", None)

    assert exported(exporter, tmp_path, [3.0, 4.0, 2.0]) == ["export 0", None, "export 1"]


def test_the_best_before_a_restart_is_read_from_event_files(tmp_path: Path) -> None:
    writer = tf.summary.FileWriterCache.get(str(tmp_path / "eval"))
    for step, loss in enumerate((5.0, 2.0, 4.0)):
        value = tf.Summary.Value(tag="loss", simple_value=loss)
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.flush()

    assert exported(tf.estimator.BestExporter("best", None), tmp_path, [3.0, 1.0]) == [None, "export 0"]


def test_another_measure(tmp_path: Path) -> None:
    def larger(best_eval_result: Any, current_eval_result: Any) -> bool:
        return bool(current_eval_result["loss"] > best_eval_result["loss"])

    exporter = tf.estimator.BestExporter("best", None, compare_fn=larger)

    assert exported(exporter, tmp_path, [3.0, 4.0, 2.0]) == ["export 0", "export 1", None]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tf.estimator.LatestExporter("n", None, exports_to_keep=0), "must be positive number"),
        (lambda: tf.estimator.BestExporter("n", None, exports_to_keep=0), "must be a positive number. Got 0"),
        (lambda: tf.estimator.BestExporter("n", None, compare_fn=None), "`compare_fn` must not be None"),
        (
            lambda: tf.estimator.BestExporter("n", None, compare_fn=lambda best_eval_result: True),
            "must include current_eval_result argument",
        ),
        (
            lambda: tf.estimator.BestExporter(
                "n", None, compare_fn=lambda best_eval_result, current_eval_result, more: True
            ),
            r"has following not expected args: \['more'\]",
        ),
    ],
)
def test_what_is_refused(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()


def test_metrics_without_a_loss(tmp_path: Path) -> None:
    estimator = mock.Mock(spec=tf.estimator.Estimator, model_dir=str(tmp_path))
    exporter = tf.estimator.BestExporter("best", None, exports_to_keep=None)
    exporter.export(estimator, "export", "checkpoint", {"other": 1.0}, False)

    with pytest.raises(ValueError, match="best_eval_result cannot be empty or no loss is found in it"):
        exporter.export(estimator, "export", "checkpoint", {"other": 1.0}, False)
