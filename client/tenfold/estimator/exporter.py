"""Exporters, which train_and_evaluate calls after each evaluation: all models, the best ones, the newest, the last.

Follows TF 1.15's estimator/exporter.py and gc.py, with its folders and error messages.
"""

from __future__ import annotations

import abc
import os
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging
from tenfold.estimator.model_fn import LOSS_METRIC_KEY
from tenfold.estimator.util import check_names, fn_args
from tenfold.summary.summary_iterator import summary_iterator
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.estimator.estimator import Estimator

    Metrics = Mapping[str, Any]

#: Digits of an export's folder, which is named by the time.
_DIGITS = 10


class Exporter(abc.ABC):
    """Base class of exporters. As TensorFlow 1.15's `tf.estimator.Exporter`."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The folder, below the folder of all exports, that this one writes into."""

    @abc.abstractmethod
    def export(
        self, estimator: Estimator, export_path: str, checkpoint_path: str, eval_result: Metrics,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        """Exports a checkpoint below `export_path`; the folder, or None if it was passed over.

        `eval_result` are its metrics; `is_the_final_export` is true at the end of a training with `max_steps`.
        """


class _SavedModelExporter(Exporter):
    """Exports every time."""

    def __init__(
        self, name: str, serving_input_receiver_fn: Any, assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
    ) -> None:  # fmt: skip
        self._name, self._serving_input_receiver_fn = name, serving_input_receiver_fn
        self._assets_extra, self._as_text = assets_extra, as_text

    @property
    def name(self) -> str:
        return self._name

    def export(
        self, estimator: Estimator, export_path: str, checkpoint_path: str, eval_result: Metrics,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        return estimator.export_saved_model(
            export_path,
            self._serving_input_receiver_fn,
            assets_extra=self._assets_extra,
            as_text=self._as_text,
            checkpoint_path=checkpoint_path,
        )


class FinalExporter(_SavedModelExporter):
    """Exports once, at the end of the training. As TensorFlow 1.15's `tf.estimator.FinalExporter`."""

    def export(
        self, estimator: Estimator, export_path: str, checkpoint_path: str, eval_result: Metrics,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        if not is_the_final_export:
            return None
        logging.info("Performing the final export in the end of training.")
        return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)


class LatestExporter(_SavedModelExporter):
    """Exports every time, and keeps the newest `exports_to_keep` (None: all).

    Raises ValueError for a number below 1. As TensorFlow 1.15's `tf.estimator.LatestExporter`.
    """

    def __init__(
        self, name: str, serving_input_receiver_fn: Any, assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False, exports_to_keep: int | None = 5,
    ) -> None:  # fmt: skip
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number")
        self._exports_to_keep = exports_to_keep

    def export(
        self, estimator: Estimator, export_path: str, checkpoint_path: str, eval_result: Metrics,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        done = super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)
        self._garbage_collect_exports(export_path)
        return done

    def _garbage_collect_exports(self, export_dir_base: str) -> None:
        keep_newest(export_dir_base, self._exports_to_keep)


def _loss_smaller(best_eval_result: Metrics, current_eval_result: Metrics) -> bool:
    """Whether the second has the smaller loss. Raises ValueError if one has none."""
    for name, result in (("best_eval_result", best_eval_result), ("current_eval_result", current_eval_result)):
        if not result or LOSS_METRIC_KEY not in result:
            raise ValueError(f"{name} cannot be empty or no loss is found in it.")
    return bool(best_eval_result[LOSS_METRIC_KEY] > current_eval_result[LOSS_METRIC_KEY])


class BestExporter(_SavedModelExporter):
    """Exports a model that is better than all before, and keeps the newest `exports_to_keep` (None: all).

    `compare_fn(best_eval_result, current_eval_result)` says whether the second is better. What was best before a
    restart is read from the event files `event_file_pattern` below the model's folder (None: not read). Raises
    ValueError for another function, or a number below 1. As TensorFlow 1.15's `tf.estimator.BestExporter`.
    """

    def __init__(
        self,
        name: str = "best_exporter",
        serving_input_receiver_fn: Any = None,
        event_file_pattern: str | None = "eval/*.tfevents.*",
        compare_fn: Callable[..., bool] | None = _loss_smaller,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        exports_to_keep: int | None = 5,
    ) -> None:
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if compare_fn is None:
            raise ValueError("`compare_fn` must not be None.")
        _verify_compare_fn_args(compare_fn)
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError(f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}")
        self._compare_fn, self._event_file_pattern = compare_fn, event_file_pattern
        self._exports_to_keep = exports_to_keep
        #: The folder whose event files were read.
        self._model_dir: str | None = None
        self._best_eval_result: Metrics | None = None

    def export(
        self, estimator: Estimator, export_path: str, checkpoint_path: str, eval_result: Metrics,
        is_the_final_export: bool,
    ) -> Any:  # fmt: skip
        if self._model_dir != estimator.model_dir and self._event_file_pattern:
            logging.info("Loading best metric from event files.")
            self._model_dir = estimator.model_dir
            self._best_eval_result = self._get_best_eval_result(os.path.join(self._model_dir, self._event_file_pattern))
        best = self._best_eval_result
        if best is not None and not self._compare_fn(best_eval_result=best, current_eval_result=eval_result):
            return None
        logging.info("Performing best model export.")
        self._best_eval_result = eval_result
        done = super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)
        self._garbage_collect_exports(export_path)
        return done

    def _garbage_collect_exports(self, export_dir_base: str) -> None:
        keep_newest(export_dir_base, self._exports_to_keep)

    def _get_best_eval_result(self, event_files: str) -> Metrics | None:
        """The best metrics of all evaluations in the files; None without any."""
        best: Metrics | None = None
        for path in gfile.Glob(event_files) if event_files else ():
            for event in summary_iterator(path):
                values = event.summary.value if event.HasField("summary") else ()
                found = {value.tag: value.simple_value for value in values if value.HasField("simple_value")}
                if found and (best is None or self._compare_fn(best, found)):
                    best = found
        return best


def _verify_compare_fn_args(compare_fn: Callable[..., bool]) -> None:
    needed = ("best_eval_result", "current_eval_result")
    for name in needed:
        if name not in fn_args(compare_fn):
            raise ValueError(f"compare_fn ({compare_fn}) must include {name} argument.")
    check_names(compare_fn, needed, "compare_fn")


def keep_newest(export_dir_base: str, number: int | None) -> None:
    """Removes all exports of the folder but the newest `number`; None keeps all. Another process may remove some, too.

    Only folders whose names are times count.
    """
    if number is None:
        return
    names = [os.path.basename(os.fsdecode(name).rstrip("/")) for name in gfile.ListDirectory(export_dir_base)]
    exports = sorted(name for name in names if len(name) == _DIGITS and name.isdigit())
    for name in exports[:-number]:
        path = os.path.join(export_dir_base, name)
        try:
            gfile.DeleteRecursively(path)
        except errors.NotFoundError as error:
            logging.warning("Can not delete %s recursively: %s", path, error)
