"""`tf.contrib.tpu` for programs that also run without a TPU: their estimator, and what they tell it.

With `use_tpu=False` a TPUEstimator is an Estimator whose functions find the batch size among `params`. TPUs themselves
are not served. Follows TF 1.15's tpu/tpu_estimator.py and tpu/tpu_config.py.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import logging
from tenfold.estimator import checks, run_config, util
from tenfold.estimator.estimator import Estimator
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.model_fn import EstimatorSpec
from tenfold.graph import device
from tenfold.losses import Reduction
from tenfold.train.optimizer import Optimizer
from tenfold.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NO_TPU = "TPUs are not served: pass use_tpu=False"


class InputPipelineConfig:
    """How a TPU's hosts would be fed."""

    PER_SHARD_V1 = 1
    PER_HOST_V1 = 2
    PER_HOST_V2 = 3
    BROADCAST = 4
    SLICED = 5


class TPUConfig(NamedTuple):
    """Settings of a TPU, kept for programs that read them."""

    iterations_per_loop: int = 2
    num_shards: int | None = None
    num_cores_per_replica: int | None = None
    per_host_input_for_training: Any = True
    tpu_job_name: str | None = None
    initial_infeed_sleep_secs: int | None = None
    input_partition_dims: Any = None
    eval_training_input_configuration: int = InputPipelineConfig.PER_HOST_V1
    experimental_host_call_every_n_steps: int = 1


class RunConfig(run_config.RunConfig):
    """tf.estimator's RunConfig, with a TPUConfig. Raises ValueError for a `cluster`, which names a TPU."""

    def __init__(
        self,
        tpu_config: TPUConfig | None = None,
        evaluation_master: str | None = None,
        master: str | None = None,
        cluster: Any = None,
        **kwargs: Any,
    ) -> None:
        if cluster is not None:
            raise ValueError(_NO_TPU + ", and no cluster")
        super().__init__(**kwargs)
        self._tpu_config, self._cluster = tpu_config or TPUConfig(), cluster
        if master is not None:
            self._master = master
        self._evaluation_master = evaluation_master if evaluation_master is not None else self._evaluation_master

    @property
    def tpu_config(self) -> TPUConfig:
        return self._tpu_config

    @property
    def cluster(self) -> Any:
        return self._cluster


class TPUEstimatorSpec(NamedTuple):
    """An EstimatorSpec that leaves to the host what a TPU cannot do: `eval_metrics` and `host_call` are pairs of a
    function and its tensors (a list or a dictionary), `scaffold_fn` makes the scaffold."""

    mode: str
    predictions: Any = None
    loss: Any = None
    train_op: Any = None
    eval_metrics: tuple[Callable[..., Any], Any] | None = None
    export_outputs: Any = None
    scaffold_fn: Callable[[], Any] | None = None
    host_call: tuple[Callable[..., Any], Any] | None = None
    training_hooks: Any = None
    evaluation_hooks: Any = None
    prediction_hooks: Any = None

    def as_estimator_spec(self) -> EstimatorSpec:
        """The same for a host alone."""
        hooks = [] if self.host_call is None else [_HostCallHook(_called(self.host_call))]
        return EstimatorSpec(
            mode=self.mode,
            predictions=self.predictions,
            loss=self.loss,
            train_op=self.train_op,
            eval_metric_ops=None if self.eval_metrics is None else _called(self.eval_metrics),
            export_outputs=self.export_outputs,
            scaffold=None if self.scaffold_fn is None else self.scaffold_fn(),
            training_hooks=[*(self.training_hooks or ()), *hooks],
            evaluation_hooks=[*(self.evaluation_hooks or ()), *hooks],
            prediction_hooks=[*(self.prediction_hooks or ()), *hooks],
        )


def _called(pair: tuple[Callable[..., Any], Any]) -> Any:
    function, tensors = pair
    return function(**tensors) if isinstance(tensors, dict) else function(*tensors)


class _HostCallHook(SessionRunHook):
    """Runs what the host was to do with each step."""

    def __init__(self, fetches: Any) -> None:
        self._fetches = fetches

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._fetches)


class TPUEstimator(Estimator):
    """An Estimator for programs that pass `use_tpu=False`. Input and model functions find the batch size of the mode
    as `params["batch_size"]`; a model function may return a TPUEstimatorSpec.

    Raises ValueError for `use_tpu=True`, for params that have a batch size, and for TPU settings that need one.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Mapping[str, Any] | None = None,
        use_tpu: bool = True,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
        batch_axis: Any = None,
        eval_on_tpu: bool = True,
        export_to_tpu: bool = True,
        export_to_cpu: bool = True,
        warm_start_from: Any = None,
        experimental_export_device_assignment: bool = False,
        embedding_config_spec: Any = None,
    ) -> None:
        if use_tpu:
            raise ValueError(_NO_TPU)
        if embedding_config_spec is not None:
            raise ValueError("embedding_config_spec needs a TPU")
        for reserved in ("batch_size", "use_tpu"):
            if params is not None and reserved in params:
                raise ValueError(f"{reserved} are reserved keys but existed in params {params}.")
        self._batch_sizes = {
            ModeKeys.TRAIN: train_batch_size,
            ModeKeys.EVAL: eval_batch_size,
            ModeKeys.PREDICT: predict_batch_size,
        }
        self._user_model_fn = model_fn
        super().__init__(self._host_model_fn, model_dir, config, dict(params or {}), warm_start_from)

    def _assert_members_are_not_overridden(self) -> None:
        checks.check_members_are_not_overridden(TPUEstimator, self)

    def _with_batch_size(self, mode: str) -> dict[str, Any]:
        params: dict[str, Any] = self.params
        if self._batch_sizes[mode] is not None:
            params["batch_size"] = self._batch_sizes[mode]
        return params

    def _call_input_fn(self, input_fn: Callable[..., Any], mode: str, input_context: Any = None) -> Any:
        offered = {"mode": mode, "params": self._with_batch_size(mode), "config": self.config}
        with device("/cpu:0"):
            return util.call_with_known(input_fn, offered)

    def _host_model_fn(self, features: Any, labels: Any, mode: str, params: Any, config: Any) -> EstimatorSpec:
        told = {**self._with_batch_size(mode), "use_tpu": False}
        offered = {"labels": labels, "mode": mode, "params": copy.deepcopy(told), "config": config}
        spec = util.call_with_known(self._user_model_fn, offered, features=features)
        return spec.as_estimator_spec() if isinstance(spec, TPUEstimatorSpec) else spec


class CrossShardOptimizer(Optimizer):
    """An optimizer whose gradients are averaged over the shards of a TPU: here there is one, and it is `opt`."""

    def __init__(
        self,
        opt: Optimizer,
        reduction: str = Reduction.MEAN,
        name: str = "CrossShardOptimizer",
        group_assignment: Any = None,
    ) -> None:
        if reduction not in (Reduction.SUM, Reduction.MEAN):
            raise ValueError(f"Unsupported reduction: {reduction}.")
        super().__init__(False, name)
        self._opt = opt
        logging.warning("CrossShardOptimizer outside of a TPU has one shard.")

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        return self._opt.apply_gradients(grads_and_vars, global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        return self._opt.get_slot_names()

    def variables(self) -> list[Any]:
        return self._opt.variables()


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: TPUs are not served")
