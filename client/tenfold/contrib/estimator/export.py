"""Exports of tf.contrib.estimator: methods of an estimator as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.estimator.mode_keys import ModeKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.estimator.estimator import Estimator


def export_saved_model_for_mode(
    estimator: Estimator,
    export_dir_base: Any,
    input_receiver_fn: Callable[[], Any],
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
    mode: str = ModeKeys.PREDICT,
) -> bytes:
    """`estimator.export_saved_model` of that mode."""
    return estimator.export_saved_model(
        export_dir_base, input_receiver_fn, assets_extra, as_text, checkpoint_path, experimental_mode=mode
    )


def export_all_saved_models(
    estimator: Estimator,
    export_dir_base: Any,
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
) -> bytes:
    """`estimator.experimental_export_all_saved_models`."""
    return estimator.experimental_export_all_saved_models(
        export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path
    )
