"""`tf.estimator.Estimator`: trains, evaluates, asks and exports the model that a model function makes.

Every call builds the graph anew and works from the newest checkpoint of `model_dir`. The training session is
train_loop.py's, exporting saved_models.py's; train_and_evaluate is training.py's. Follows TF 1.15's
estimator/estimator.py, with its graphs, files and error messages.
"""

from __future__ import annotations

import copy
import os
import tempfile
from typing import TYPE_CHECKING, Any

from tenfold import logging, metrics
from tenfold.estimator import checks, eval_summaries, run_config, train_loop, util
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.model_fn import LOSS_METRIC_KEY, EstimatorSpec, verify_model_fn_args
from tenfold.estimator.run_config import RunConfig, TaskType
from tenfold.estimator.warm_start_settings import WarmStartSettings, warm_start_settings
from tenfold.graph import Graph, device, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.ops import control_flow
from tenfold.ops.random_seed import set_random_seed
from tenfold.train import evaluation, training_util
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.checkpoint_utils import NewCheckpointReader, list_variables, load_variable
from tenfold.train.device_setter import STANDARD_PS_OPS, replica_device_setter
from tenfold.train.hooks import StopAtStepHook
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.scaffold import Scaffold
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold.train.warm_starting import warm_start
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from tenfold.train.hooks import CheckpointSaverListener
    from tenfold.train.session_run_hook import SessionRunHook

__all__ = ["Estimator"]


class Estimator:
    """A model, its settings, and the folder of its checkpoints and events.

    `model_fn(features, labels, mode, params, config)` returns an EstimatorSpec; it takes any part of these, but
    `features` for sure. An input function takes any of `mode`, `params` and `config`, and returns features (a tensor or
    a dictionary), a pair (features, labels), or a tf.data.Dataset of either. Without `model_dir`, here or in `config`,
    a temporary folder is used. `params` is copied. `warm_start_from` is a checkpoint, a SavedModel or
    WarmStartSettings; it counts as long as there is no checkpoint in the folder. Raises ValueError for a function whose
    arguments do not fit, two different folders, and subclasses that override methods. As TensorFlow 1.15's
    `tf.estimator.Estimator`.
    """

    def __init__(
        self,
        model_fn: Callable[..., EstimatorSpec] | None,
        model_dir: str | os.PathLike[str] | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        self._assert_members_are_not_overridden()
        self._config = maybe_overwrite_model_dir_and_session_config(config, model_dir)
        self._train_distribution = self._config.train_distribute
        self._eval_distribution = self._config.eval_distribute
        self._model_dir: str = self._config.model_dir
        self._session_config = self._config.session_config
        logging.info("Using config: %s", vars(self._config))
        self._device_fn = self._config.device_fn or get_replica_device_setter(self._config)
        if model_fn is None:
            raise ValueError("model_fn must be provided to Estimator.")
        verify_model_fn_args(model_fn, params)
        self._model_fn = model_fn
        self._params = copy.deepcopy(params or {})
        self._warm_start_settings: WarmStartSettings | None = warm_start_settings(warm_start_from)

    @property
    def model_dir(self) -> str:
        return self._model_dir

    @property
    def config(self) -> RunConfig:
        """A copy of the settings."""
        return copy.deepcopy(self._config)

    @property
    def params(self) -> Any:
        """A copy of the parameters."""
        return copy.deepcopy(self._params)

    @property
    def model_fn(self) -> Callable[..., EstimatorSpec]:
        """The model function with this estimator's parameters: `(features, labels, mode, config) → EstimatorSpec`."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
            return self._call_model_fn(features, labels, mode, config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value, an array, in the newest checkpoint. Raises ValueError without a checkpoint."""
        checks.check_checkpoint_available(self.model_dir)
        return load_variable(self.model_dir, name)

    def get_variable_names(self) -> list[str]:
        """The names in the newest checkpoint. Raises ValueError without a checkpoint."""
        checks.check_checkpoint_available(self.model_dir)
        return [name for name, _ in list_variables(self.model_dir)]

    def latest_checkpoint(self) -> str | None:
        """The path of the newest checkpoint; None without one."""
        return latest_checkpoint(self.model_dir)

    def eval_dir(self, name: str | None = None) -> str:
        """The folder of the event files of evaluations of that name."""
        return os.path.join(self._model_dir, f"eval_{name}" if name else "eval")

    # --- training ---

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Iterable[SessionRunHook] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Iterable[CheckpointSaverListener] | None = None,
    ) -> Estimator:
        """Trains on from the newest checkpoint: `steps` more steps, or until the global step is `max_steps`, or until
        the input ends. Returns itself. Blocks.

        Raises ValueError for both numbers or ones below 1, and on tasks that do not train; TypeError for other
        objects than hooks and listeners.
        """
        if self._config.task_type in (TaskType.EVALUATOR, TaskType.PS):
            raise ValueError(
                "Train has been called wrong configuration. Please use tf.estimator.train_and_evaluate which calls "
                f"proper API according to given configuration. Current configuration: {self.config}."
            )
        checks.check_steps(steps, max_steps)
        if max_steps is not None and max_steps <= load_global_step_from_checkpoint_dir(self._model_dir):
            logging.info("Skipping training since max_steps has already saved.")
            return self
        all_hooks = checks.check_hooks_type(hooks)
        all_hooks.extend(self._convert_train_steps_to_hooks(steps, max_steps))
        loss = self._train_model(input_fn, all_hooks, checks.check_listeners_type(saving_listeners))
        logging.info("Loss for final step: %s.", loss)
        return self

    def _convert_train_steps_to_hooks(self, steps: int | None, max_steps: int | None) -> list[SessionRunHook]:
        return [] if steps is None and max_steps is None else [StopAtStepHook(steps, max_steps)]

    def _train_model(
        self, input_fn: Callable[..., Any], hooks: list[SessionRunHook], listeners: list[CheckpointSaverListener]
    ) -> Any:
        return self._train_model_default(input_fn, hooks, listeners)

    def _train_model_default(
        self, input_fn: Callable[..., Any], hooks: list[SessionRunHook], listeners: list[CheckpointSaverListener]
    ) -> Any:
        """Builds the graph and trains it; the last loss."""
        with Graph().as_default() as graph, graph.device(self._device_fn):
            set_random_seed(self._config.tf_random_seed)
            if self._create_and_assert_global_step(graph) is not None:
                training_util._get_or_create_global_step_read(graph)
            features, labels, input_hooks = self._get_features_and_labels_from_input_fn(input_fn, ModeKeys.TRAIN)
            spec = self._call_model_fn(features, labels, ModeKeys.TRAIN, self.config)
            step = training_util.get_global_step(graph)
            return self._train_with_estimator_spec(spec, list(input_hooks), hooks, step, listeners)

    def _train_with_estimator_spec(
        self,
        estimator_spec: EstimatorSpec,
        worker_hooks: list[SessionRunHook],
        hooks: list[SessionRunHook],
        global_step_tensor: Any,
        saving_listeners: list[CheckpointSaverListener],
    ) -> Any:
        # the session itself continues from a checkpoint, if there is one: that then has the last word
        self._maybe_warm_start(None)
        return train_loop.train_with_spec(
            self._config, self._session_config, estimator_spec, [*worker_hooks, *hooks], global_step_tensor,
            saving_listeners,
        )  # fmt: skip

    # --- evaluation ---

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """The metrics of a checkpoint (default: the newest; without one, of initial values) over `steps` batches, or
        all; with them `loss` and `global_step`. They are written as events, too, into `eval_dir(name)`. Blocks.
        """
        all_hooks = checks.check_hooks_type(hooks)
        all_hooks.extend(self._convert_eval_steps_to_hooks(steps))
        if not checkpoint_path:
            checkpoint_path = latest_checkpoint(self._model_dir)
            if not checkpoint_path:
                logging.info(
                    "Could not find trained model in model_dir: %s, running initialization to evaluate.",
                    self._model_dir,
                )
        with Graph().as_default():
            scaffold, update_op, eval_dict, run_hooks = self._evaluate_build_graph(input_fn, all_hooks, checkpoint_path)
            return self._evaluate_run(checkpoint_path, scaffold, update_op, eval_dict, run_hooks, self.eval_dir(name))

    def _convert_eval_steps_to_hooks(self, steps: int | None) -> list[SessionRunHook]:
        checks.check_steps(steps)
        return [] if steps is None else [evaluation.StopAfterNEvalsHook(steps)]

    def _evaluate_build_graph(
        self, input_fn: Callable[..., Any], hooks: Sequence[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
    ) -> tuple[Scaffold, Any, dict[str, Any], list[SessionRunHook]]:  # fmt: skip
        """Builds the graph of an evaluation in the default graph: (scaffold, update op, name → value, hooks)."""
        set_random_seed(self._config.tf_random_seed)
        graph = get_default_graph()
        self._create_and_assert_global_step(graph)
        features, labels, input_hooks = self._get_features_and_labels_from_input_fn(input_fn, ModeKeys.EVAL)
        spec = self._call_model_fn(features, labels, ModeKeys.EVAL, self.config)
        update_op, eval_dict = checks.metric_update_ops(_with_loss_metric(spec))
        step = training_util.get_global_step(graph)
        # after the model function, which makes the variables
        self._maybe_warm_start(checkpoint_path)
        if GraphKeys.GLOBAL_STEP in eval_dict:
            raise ValueError(
                "Metric with name `global_step` is not allowed, because Estimator already defines a default metric "
                "with the same name."
            )
        eval_dict[GraphKeys.GLOBAL_STEP] = step
        scaffold = spec.scaffold
        if scaffold and scaffold.local_init_op:
            # local variables of the metrics came after that op was made
            evaluation.get_or_create_eval_step()
            both = control_flow.group(scaffold.local_init_op, Scaffold.default_local_init_op())
            scaffold = Scaffold(local_init_op=both, copy_from_scaffold=scaffold)
        return scaffold, update_op, eval_dict, [*input_hooks, *(hooks or ()), *spec.evaluation_hooks]

    def _evaluate_run(
        self, checkpoint_path: str | None, scaffold: Scaffold, update_op: Any, eval_dict: dict[str, Any],
        all_hooks: list[SessionRunHook], output_dir: str,
    ) -> dict[str, Any]:  # fmt: skip
        results: dict[str, Any] = evaluation.evaluate_once(
            checkpoint_path=checkpoint_path,
            master=self._config.evaluation_master,
            scaffold=scaffold,
            eval_ops=update_op,
            final_ops=eval_dict,
            hooks=all_hooks,
            config=self._session_config,
        )
        step = results[GraphKeys.GLOBAL_STEP]
        eval_summaries.write_dict_to_summary(output_dir, results, step)
        if checkpoint_path:
            eval_summaries.write_checkpoint_path_to_summary(output_dir, checkpoint_path, step)
        return results

    # --- prediction ---

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Iterable[SessionRunHook] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
    ) -> Iterator[Any]:
        """The predictions of a checkpoint (default: the newest; without one, of initial values), for one example after
        the other, or batch by batch; `predict_keys` names those that are wanted.

        The session is open while one iterates; it ends with the input. Raises ValueError for names that there are not,
        and for values of different batch lengths.
        """
        all_hooks = checks.check_hooks_type(hooks)
        checkpoint_path = checkpoint_path or latest_checkpoint(self._model_dir)
        if not checkpoint_path:
            logging.info(
                "Could not find trained model in model_dir: %s, running initialization to predict.", self._model_dir
            )
        with Graph().as_default() as graph:
            set_random_seed(self._config.tf_random_seed)
            self._create_and_assert_global_step(graph)
            features, input_hooks = self._get_features_from_input_fn(input_fn, ModeKeys.PREDICT)
            spec = self._call_model_fn(features, None, ModeKeys.PREDICT, self.config)
            self._maybe_warm_start(checkpoint_path)
            predictions = self._extract_keys(spec.predictions, predict_keys)
            creator = ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint_path,
                master=self._config.master,
                scaffold=spec.scaffold,
                config=self._session_config,
            )
            with MonitoredSession(creator, [*input_hooks, *all_hooks, *spec.prediction_hooks]) as session:
                while not session.should_stop():
                    values = session.run(predictions)
                    if not yield_single_examples:
                        yield values
                    elif not isinstance(predictions, dict):
                        yield from values
                    else:
                        for number in range(self._extract_batch_length(values)):
                            yield {key: value[number] for key, value in values.items()}

    def _extract_batch_length(self, preds_evaluated: Mapping[str, Any]) -> int:
        return checks.batch_length(preds_evaluated)

    def _extract_keys(self, predictions: Any, predict_keys: Any) -> Any:
        return checks.chosen_predictions(predictions, predict_keys)

    # --- export ---

    def export_saved_model(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        experimental_mode: str = ModeKeys.PREDICT,
    ) -> bytes:
        """Writes a checkpoint (default: the newest) as a SavedModel to a new folder below `export_dir_base`; its path.

        The function makes an input receiver (tf.estimator.export); signatures are the spec's `export_outputs`.
        `assets_extra` is path in the folder `assets.extra` → file to copy. Raises ValueError without a checkpoint.
        """
        return self._export(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, True, experimental_mode
        )

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        strip_default_attrs: bool = False,
    ) -> bytes:
        """`export_saved_model` under its old name; attributes with default values are kept by default."""
        return self._export(
            export_dir_base, serving_input_receiver_fn, assets_extra, as_text, checkpoint_path, strip_default_attrs,
            ModeKeys.PREDICT,
        )  # fmt: skip

    def _export(
        self, export_dir_base: Any, receiver_fn: Callable[[], Any] | None, assets_extra: Mapping[str, str] | None,
        as_text: bool, checkpoint_path: str | None, strip_default_attrs: bool, mode: str,
    ) -> bytes:  # fmt: skip
        if not receiver_fn:
            raise ValueError("An input_receiver_fn must be defined.")
        return self._export_all_saved_models(
            export_dir_base, {mode: receiver_fn}, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    def experimental_export_all_saved_models(
        self,
        export_dir_base: Any,
        input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
    ) -> bytes:
        """As `export_saved_model`, with a graph for each of several modes: mode → function that makes its receiver."""
        return self._export_all_saved_models(
            export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, True
        )

    def _export_all_saved_models(
        self, export_dir_base: Any, input_receiver_fn_map: Mapping[str, Callable[[], Any]],
        assets_extra: Mapping[str, str] | None = None, as_text: bool = False, checkpoint_path: str | None = None,
        strip_default_attrs: bool = True,
    ) -> bytes:  # fmt: skip
        """Subclasses may export otherwise."""
        from tenfold.estimator.saved_models import export_all_saved_models

        return export_all_saved_models(
            self, export_dir_base, input_receiver_fn_map, assets_extra, as_text, checkpoint_path, strip_default_attrs
        )

    def _add_meta_graph_for_mode(self, builder: Any, *args: Any, **kwargs: Any) -> None:
        from tenfold.estimator.saved_models import add_meta_graph_for_mode

        add_meta_graph_for_mode(self, builder, *args, **kwargs)

    # --- calling the user's functions ---

    def _assert_members_are_not_overridden(self) -> None:
        checks.check_members_are_not_overridden(Estimator, self)

    def _get_features_from_input_fn(self, input_fn: Callable[..., Any], mode: str) -> tuple[Any, list[SessionRunHook]]:
        features, _, hooks = util.parse_input_fn_result(self._call_input_fn(input_fn, mode))
        self._validate_features_in_predict_input(features)
        return features, hooks

    def _validate_features_in_predict_input(self, result: Any) -> None:
        if not checks.has_dataset_or_queue_runner(result):
            logging.warning(
                "Input graph does not use tf.data.Dataset or contain a QueueRunner. That means predict yields "
                "forever. This is probably a mistake."
            )

    def _get_features_and_labels_from_input_fn(
        self, input_fn: Callable[..., Any], mode: str
    ) -> tuple[Any, Any, list[SessionRunHook]]:
        return util.parse_input_fn_result(self._call_input_fn(input_fn, mode))

    def _create_global_step(self, graph: Graph) -> Any:
        return training_util.create_global_step(graph)

    def _create_and_assert_global_step(self, graph: Graph) -> Any:
        """Makes the global step. Subclasses may make another one."""
        step = self._create_global_step(graph)
        training_util.assert_global_step(step)
        return step

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str, input_context: Any = None) -> Any:
        """What the input function returns; its operations are on the CPU."""
        offered = {"mode": mode, "params": self.params, "config": self.config}
        if input_context is not None:
            offered["input_context"] = input_context
        with device("/cpu:0"):
            return util.call_with_known(input_fn, offered)

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> EstimatorSpec:
        """Calls the model function. Raises ValueError if it returns no spec, or gets labels that it does not take."""
        if labels is not None and "labels" not in util.fn_args(self._model_fn):
            raise ValueError("model_fn does not take labels, but input_fn returns labels.")
        logging.info("Calling model_fn.")
        offered = {"labels": labels, "mode": mode, "params": self.params, "config": config}
        spec = util.call_with_known(self._model_fn, offered, features=features)
        logging.info("Done calling model_fn.")
        if not isinstance(spec, EstimatorSpec):
            raise ValueError("model_fn should return an EstimatorSpec.")
        return spec

    def _maybe_warm_start(self, checkpoint_path: str | None) -> None:
        if not checkpoint_path and self._warm_start_settings:
            logging.info("Warm-starting with WarmStartSettings: %s", (self._warm_start_settings,))
            warm_start(*self._warm_start_settings)


def maybe_overwrite_model_dir_and_session_config(
    config: RunConfig | None, model_dir: str | os.PathLike[str] | None
) -> RunConfig:
    """The settings with a folder, `model_dir` or a new temporary one, and a session's configuration.

    Raises ValueError for two different folders, and for something that is not a RunConfig.
    """
    if config is None:
        config = RunConfig()
        logging.info("Using default config.")
    if not isinstance(config, RunConfig):
        raise ValueError(f"config must be an instance of `RunConfig`, but provided {config}.")
    if config.session_config is None:
        config = RunConfig.replace(config, session_config=run_config.get_default_session_config())
    folder = None if model_dir is None else os.fspath(model_dir)
    if folder is not None and config.model_dir is not None and config.model_dir != folder:
        raise ValueError(
            "`model_dir` are set both in constructor and `RunConfig`, but with different values. In constructor: "
            f"'{folder}', in `RunConfig`: '{config.model_dir}' "
        )
    if not folder and config.model_dir is None:
        folder = tempfile.mkdtemp()
        logging.warning("Using temporary folder as model directory: %s", folder)
    return RunConfig.replace(config, model_dir=folder) if folder else config


def get_replica_device_setter(config: RunConfig) -> Callable[[Any], Any] | None:
    """Variables in turn on the parameter servers, all else on this task; None without parameter servers."""
    if config.num_ps_replicas <= 0:
        return None
    worker = f"/job:{config.task_type}/task:{config.task_id}" if config.task_type else "/job:worker"
    return replica_device_setter(
        ps_tasks=config.num_ps_replicas,
        worker_device=worker,
        merge_devices=True,
        ps_ops=list(STANDARD_PS_OPS),
        cluster=config.cluster_spec,
    )


def load_global_step_from_checkpoint_dir(checkpoint_dir: str) -> int:
    """The global step of the newest checkpoint; 0 where there is none, or none that can be read."""
    path = latest_checkpoint(checkpoint_dir)
    if not path:
        return 0
    try:
        return int(NewCheckpointReader(path).get_tensor(GraphKeys.GLOBAL_STEP))
    except errors.OpError:
        # another process may just have removed it
        return 0


def _with_loss_metric(spec: EstimatorSpec) -> dict[str, Any]:
    """The spec's metrics and the mean of its loss. Raises ValueError if it has one of that name."""
    if LOSS_METRIC_KEY in spec.eval_metric_ops:
        raise ValueError(
            f'Metric with name "{LOSS_METRIC_KEY}" is not allowed, because Estimator already defines a default metric '
            "with the same name."
        )
    spec.eval_metric_ops[LOSS_METRIC_KEY] = metrics.mean(spec.loss)
    return spec.eval_metric_ops
