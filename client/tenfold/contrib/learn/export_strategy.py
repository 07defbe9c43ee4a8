"""`tf.contrib.learn.ExportStrategy`: how an Experiment exports what it has trained.

utils/saved_model_export_utils.py makes them. Follows TensorFlow 1.15's `contrib/learn/python/learn/export_strategy.py`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold.estimator.util import fn_args


class ExportStrategy(NamedTuple):
    """A name, and a function of an estimator and a folder; it may take checkpoint_path, eval_result, too."""

    name: str
    export_fn: Any
    strip_default_attrs: bool | None = None

    def export(
        self, estimator: Any, export_path: Any, checkpoint_path: str | None = None, eval_result: Any = None
    ) -> Any:
        """Exports. Raises ValueError for a function that takes eval_result but no checkpoint_path."""
        names = fn_args(self.export_fn)
        if "eval_result" in names and "checkpoint_path" not in names:
            raise ValueError("An export_fn accepting eval_result must also accept checkpoint_path.")
        offered = {
            "checkpoint_path": checkpoint_path,
            "eval_result": eval_result,
            "strip_default_attrs": self.strip_default_attrs,
        }
        return self.export_fn(estimator, export_path, **{key: offered[key] for key in offered if key in names})
