"""Exports an estimator as a SavedModel: a graph for each mode, one set of variables. Used by estimator.py.

Follows TF 1.15's estimator/estimator.py, with its folders and error messages.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol

from tenfold import gfile
from tenfold.estimator.export import signatures
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.graph import Graph, get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops.random_seed import set_random_seed
from tenfold.saved_model.builder import SavedModelBuilder
from tenfold.session.session import Session
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.saver import Saver
from tenfold.train.scaffold import Scaffold
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Exported(Protocol):
    """An estimator, as its export sees it (estimator.py)."""

    _warm_start_settings: Any
    _session_config: Any

    @property
    def model_dir(self) -> Any: ...
    @property
    def config(self) -> Any: ...
    def _add_meta_graph_for_mode(self, *arguments: Any, **options: Any) -> Any: ...
    def _call_model_fn(self, *arguments: Any, **options: Any) -> Any: ...
    def _create_and_assert_global_step(self, graph: Any) -> Any: ...


def export_all_saved_models(
    estimator: Exported,
    export_dir_base: Any,
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    assets_extra: Mapping[str, str] | None = None,
    as_text: bool = False,
    checkpoint_path: str | None = None,
    strip_default_attrs: bool = True,
) -> bytes:
    """Writes a SavedModel with the graphs of these modes below `export_dir_base`; the path of its folder.

    The variables are those of the first mode in the order training, evaluation, prediction. Blocks. Raises ValueError
    without a checkpoint, without a mode, or if the model has variables that the checkpoint lacks.
    """
    checkpoint = checkpoint_path or latest_checkpoint(estimator.model_dir) or _warm_start_checkpoint(estimator)
    export_dir = signatures.get_timestamped_export_dir(export_dir_base)
    temporary = os.fsdecode(signatures.get_temp_export_dir(export_dir))
    builder = SavedModelBuilder(temporary)
    modes = [mode for mode in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT) if input_receiver_fn_map.get(mode)]
    if not modes:
        raise ValueError(f"No valid modes for exporting found. Got {input_receiver_fn_map.keys()}.")
    for mode in modes:
        estimator._add_meta_graph_for_mode(
            builder,
            input_receiver_fn_map,
            checkpoint,
            save_variables=mode == modes[0],
            mode=mode,
            strip_default_attrs=strip_default_attrs,
        )
    builder.save(as_text)
    for name, source in (assets_extra or {}).items():
        target = os.path.join(temporary, "assets.extra", os.fsdecode(name))
        gfile.MakeDirs(os.path.dirname(target))
        gfile.Copy(os.fsdecode(source), target)
    gfile.Rename(temporary, os.fsdecode(export_dir))
    return export_dir


def _warm_start_checkpoint(estimator: Exported) -> str:
    """The checkpoint that the estimator would start from. Raises ValueError without one."""
    settings = estimator._warm_start_settings
    path: str | None = None if settings is None else settings.ckpt_to_initialize_from
    if path is not None and gfile.IsDirectory(path):
        path = latest_checkpoint(path)
    if not path:
        raise ValueError(f"Couldn't find trained model at {estimator.model_dir}.")
    return path


def add_meta_graph_for_mode(
    estimator: Exported,
    builder: Any,
    input_receiver_fn_map: Mapping[str, Callable[[], Any]],
    checkpoint_path: str,
    save_variables: bool = True,
    mode: str = ModeKeys.PREDICT,
    export_tags: list[str] | None = None,
    check_variables: bool = True,
    strip_default_attrs: bool = True,
) -> None:
    """Builds the graph of a mode, restores the checkpoint in it, and adds it to the builder.

    Raises ValueError for `save_variables` without `check_variables`, and for variables that the checkpoint lacks.
    """
    if save_variables and not check_variables:
        raise ValueError("If `save_variables` is `True, `check_variables`must not be `False`.")
    with Graph().as_default() as graph:
        estimator._create_and_assert_global_step(graph)
        set_random_seed(estimator.config.tf_random_seed)
        receiver = input_receiver_fn_map[mode]()
        spec = estimator._call_model_fn(
            features=receiver.features, labels=getattr(receiver, "labels", None), mode=mode, config=estimator.config
        )
        outputs = signatures.export_outputs_for_mode(
            mode=spec.mode,
            serving_export_outputs=spec.export_outputs,
            predictions=spec.predictions,
            loss=spec.loss,
            metrics=spec.eval_metric_ops,
        )
        signature_def_map = signatures.build_all_signature_defs(
            receiver.receiver_tensors,
            outputs,
            getattr(receiver, "receiver_tensors_alternatives", None),
            serving_only=mode == ModeKeys.PREDICT,
        )
        with Session(config=estimator._session_config) as session:
            main_op = spec.scaffold.local_init_op
            if main_op is None:
                main_op = Scaffold.default_local_init_op()
            # of the scaffold, so that a saver of one's own also restores what is exported
            saver = spec.scaffold.saver or Saver(sharded=True)
            if check_variables:
                _restore(saver, session, checkpoint_path, mode)
            # not an argument of the builder's methods; None for prediction
            builder._add_train_op(spec.train_op)
            arguments: dict[str, Any] = {
                "tags": signatures.EXPORT_TAG_MAP[mode] if export_tags is None else export_tags,
                "signature_def_map": signature_def_map,
                "assets_collection": get_collection(GraphKeys.ASSET_FILEPATHS),
                "main_op": main_op,
                "saver": saver,
                "strip_default_attrs": strip_default_attrs,
            }
            if save_variables:
                builder.add_meta_graph_and_variables(session, **arguments)
            else:
                builder.add_meta_graph(**arguments)


def _restore(saver: Saver, session: Session, checkpoint_path: str, mode: str) -> None:
    try:
        saver.restore(session, checkpoint_path)
    except errors.NotFoundError as error:
        raise ValueError(
            "Could not load all requested variables from checkpoint. Please make sure your model_fn does not expect "
            f"variables that were not saved in the checkpoint.\n\nEncountered error with mode `{mode}` while restoring "
            f"checkpoint from: `{checkpoint_path}`. Full Traceback:\n\n{error}"
        ) from error
