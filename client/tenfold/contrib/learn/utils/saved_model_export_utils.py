"""How an Experiment exports: `make_export_strategy` and its siblings.

The exports themselves are those of `tf.estimator`. Follows TensorFlow 1.15's
`contrib/learn/python/learn/utils/saved_model_export_utils.py`.
"""

from __future__ import annotations

import os
from typing import Any

from tenfold import gfile, logging
from tenfold.contrib.learn.export_strategy import ExportStrategy
from tenfold.contrib.learn.keys import MetricKey, PredictionKey, ProblemType
from tenfold.contrib.learn.utils import gc
from tenfold.contrib.learn.utils.input_fn_utils import InputFnOps, build_parsing_serving_input_fn
from tenfold.estimator.estimator import Estimator as CoreEstimator
from tenfold.estimator.export import signatures
from tenfold.train import checkpoint_management
from tenfold_core import errors

DEFAULT_INPUT_ALTERNATIVE_KEY = "default_input_alternative"
FEATURES_INPUT_ALTERNATIVE_KEY = "features_input_alternative"
#: The head of a model that names none.
_FALLBACK_OUTPUT_ALTERNATIVE_KEY = "default_output_alternative"


def get_input_alternatives(input_ops: Any) -> tuple[dict[str, Any], Any]:
    """The inputs by the name of each way to feed the model, and the features. Raises ValueError without features."""
    found = {DEFAULT_INPUT_ALTERNATIVE_KEY: input_ops.default_inputs} if isinstance(input_ops, InputFnOps) else {}
    features = input_ops[0]
    if not features:
        raise ValueError("Features must be defined.")
    return found, features


def get_output_alternatives(
    model_fn_ops: Any, default_output_alternative_key: str | None = None
) -> tuple[dict[str, tuple[Any, Any]], str]:
    """Head → (problem type, outputs), and the head that is meant: `default_output_alternative_key`, or the only one.

    A model that names no head has one of an unspecified type. Raises ValueError for an unknown head, and for several
    without a choice.
    """
    heads, key = model_fn_ops.output_alternatives, default_output_alternative_key
    if not heads:
        if key:
            raise ValueError(f"Requested default_output_alternative: {key}, but available output_alternatives are: []")
        outputs = model_fn_ops.predictions
        outputs = outputs if isinstance(outputs, dict) else {PredictionKey.GENERIC: outputs}
        key = _FALLBACK_OUTPUT_ALTERNATIVE_KEY
        return {key: (ProblemType.UNSPECIFIED, outputs)}, key
    if not key and len(heads) > 1:
        raise ValueError(
            f"Please specify a default_output_alternative.  Available output_alternatives are: {sorted(heads)}"
        )
    if key and key not in heads:
        raise ValueError(
            f"Requested default_output_alternative: {key}, but available output_alternatives are: {sorted(heads)}"
        )
    return heads, key or next(iter(heads))


def _version(path: gc.Path) -> gc.Path | None:
    """Exports are named after the second in which they were made."""
    name = os.path.basename(path.path)
    return path._replace(export_version=int(name)) if len(name) == 10 and name.isdigit() else None


def get_timestamped_export_dir(export_dir_base: Any) -> str:
    """A folder's path with the time as its name, that does not exist yet. Raises RuntimeError after ten tries."""
    return os.fsdecode(signatures.get_timestamped_export_dir(export_dir_base))


def get_temp_export_dir(timestamped_export_dir: Any) -> str:
    """The folder in which an export is made, before it gets its name."""
    return os.fsdecode(signatures.get_temp_export_dir(timestamped_export_dir))


def get_most_recent_export(export_dir_base: Any) -> gc.Path | None:
    """The newest export, None if there is none."""
    return next(iter(gc.largest_export_versions(1)(gc.get_paths(export_dir_base, parser=_version))), None)


def garbage_collect_exports(export_dir_base: Any, exports_to_keep: int | None) -> None:
    """Deletes all exports but the newest ones; none for None."""
    if exports_to_keep is None:
        return
    stale = gc.negation(gc.largest_export_versions(exports_to_keep))
    for path in stale(gc.get_paths(export_dir_base, parser=_version)):
        try:
            gfile.DeleteRecursively(path.path)
        except errors.NotFoundError as error:
            logging.warning("Can not delete %s recursively: %s", path.path, error)


def make_export_strategy(
    serving_input_fn: Any,
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """Exports SavedModels and keeps the newest ones."""

    def export_fn(
        estimator: Any, export_dir_base: Any, checkpoint_path: str | None = None, strip_default_attrs: Any = False
    ) -> Any:
        more = {"default_output_alternative_key": default_output_alternative_key}
        if isinstance(estimator, CoreEstimator):
            if default_output_alternative_key is not None:
                raise ValueError(
                    "default_output_alternative_key is not supported in core Estimator. "
                    f"Given: {default_output_alternative_key}"
                )
            more = {}
        found = estimator.export_savedmodel(
            export_dir_base,
            serving_input_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path,
            strip_default_attrs=bool(strip_default_attrs),
            **more,
        )
        garbage_collect_exports(export_dir_base, exports_to_keep)
        return found

    return ExportStrategy("Servo", export_fn, strip_default_attrs)


def make_parsing_export_strategy(
    feature_columns: Any,
    default_output_alternative_key: str | None = None,
    assets_extra: Any = None,
    as_text: bool = False,
    exports_to_keep: int | None = 5,
    target_core: bool = False,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """The same for models that are served Example protos."""
    from tenfold.contrib.feature_columns import create_feature_spec_for_parsing
    from tenfold.estimator.export import build_parsing_serving_input_receiver_fn

    spec = create_feature_spec_for_parsing(feature_columns)
    build = build_parsing_serving_input_receiver_fn if target_core else build_parsing_serving_input_fn
    return make_export_strategy(
        build(spec), default_output_alternative_key, assets_extra, as_text, exports_to_keep, strip_default_attrs
    )


def _smaller_loss(best: Any, candidate: Any) -> bool:
    for what, result in (("curr_best_eval_result", best), ("cand_eval_result", candidate)):
        if not result or MetricKey.LOSS not in result:
            raise ValueError(f"{what} cannot be empty or no loss is found in it.")
    return bool(best[MetricKey.LOSS] > candidate[MetricKey.LOSS])


class BestModelSelector:
    """Remembers the best evaluation, by default that of the smallest loss; event files say what there was before."""

    def __init__(self, event_file_pattern: str | None = None, compare_fn: Any = None) -> None:
        self._compare_fn = compare_fn or _smaller_loss
        self._best = self._of_events(event_file_pattern)

    def update(self, checkpoint_path: str | None, eval_result: Any) -> tuple[str, Any]:
        """(checkpoint, result) if it is the best one, else ("", None). Raises ValueError without either."""
        if not checkpoint_path:
            raise ValueError("Checkpoint path is empty.")
        if eval_result is None:
            raise ValueError(f"{checkpoint_path} has empty evaluation results.")
        if self._best is not None and not self._compare_fn(self._best, eval_result):
            return "", None
        self._best = eval_result
        return checkpoint_path, eval_result

    def _of_events(self, pattern: str | None) -> Any:
        from tenfold.summary.summary_iterator import summary_iterator

        best = None
        for path in gfile.Glob(pattern) if pattern else ():
            for event in summary_iterator(path):
                if event.HasField("summary"):
                    values = event.summary.value
                    found = {each.tag: each.simple_value for each in values if each.HasField("simple_value")}
                    if best is None or self._compare_fn(best, found):
                        best = found
        return best


def make_best_model_export_strategy(
    serving_input_fn: Any,
    exports_to_keep: int | None = 1,
    model_dir: str | None = None,
    event_file_pattern: str | None = None,
    compare_fn: Any = None,
    default_output_alternative_key: str | None = None,
    strip_default_attrs: bool | None = None,
) -> ExportStrategy:
    """Exports only what evaluates better than anything before."""
    inner = make_export_strategy(
        serving_input_fn,
        exports_to_keep=exports_to_keep,
        default_output_alternative_key=default_output_alternative_key,
        strip_default_attrs=strip_default_attrs,
    )
    events = os.path.join(model_dir, event_file_pattern) if model_dir and event_file_pattern else None
    selector = BestModelSelector(events, compare_fn)

    def export_fn(estimator: Any, export_dir_base: Any, checkpoint_path: Any, eval_result: Any = None) -> Any:
        path, result = selector.update(
            checkpoint_path or checkpoint_management.latest_checkpoint(estimator.model_dir), eval_result
        )
        if not path or result is None:
            return ""
        folder = os.path.join(os.fsdecode(export_dir_base), os.path.basename(path))
        return inner.export(estimator, folder, path, result)

    return ExportStrategy("best_model", export_fn)
