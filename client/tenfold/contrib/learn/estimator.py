"""`tf.contrib.learn.Estimator`: `fit`, `evaluate` and `predict` of old programs, over `tf.estimator.Estimator`.

A model function takes `(features, labels)` and any of mode, params, config and model_dir, and returns ModelFnOps or
`(predictions, loss, train_op)`. Arrays are fed by data_feeder.py. Follows TensorFlow 1.15's
`contrib/learn/python/learn/estimators/estimator.py`.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

from tenfold import logging
from tenfold.contrib.learn import monitor_base as monitor_lib
from tenfold.contrib.learn.estimator_parts import (
    NotFittedError,
    check_inputs,
    check_signature,
    each_prediction,
    infer_real_valued_columns_from_input,
    infer_real_valued_columns_from_input_fn,
    input_of,
    joined,
    metric_ops,
    picked,
    placeholder_like,
    signature_of,
    without_arguments,
)
from tenfold.contrib.learn.interfaces import Evaluable, Trainable
from tenfold.contrib.learn.keys import COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS, MetricKey
from tenfold.contrib.learn.model_fn import ModeKeys, ModelFnOps, with_update
from tenfold.contrib.learn.run_config import RunConfig
from tenfold.estimator.estimator import Estimator as CoreEstimator
from tenfold.estimator.export import ServingInputReceiver
from tenfold.estimator.util import fn_args
from tenfold.graph import Graph, add_to_collection
from tenfold.graph.collections import GraphKeys
from tenfold.ops.random_seed import set_random_seed
from tenfold.train import checkpoint_management
from tenfold.train.hooks import FeedFnHook
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold.train.training_util import create_global_step

#: The key of a metric "loss" of the model, which `tf.estimator` has one of its own for.
_OWN_LOSS = "loss/of_model"


__all__ = [
    "BaseEstimator",
    "Estimator",
    "GraphRewriteSpec",
    "NotFittedError",
    "infer_real_valued_columns_from_input",
    "infer_real_valued_columns_from_input_fn",
]


class GraphRewriteSpec(NamedTuple):
    """Tags of an exported graph, and how it is rewritten."""

    tags: Any
    transforms: Any


#: The graph for serving, and no other.
_AS_IT_IS = (GraphRewriteSpec(("serve",), ()),)


class BaseEstimator(Evaluable, Trainable):
    """`fit`, `evaluate` and `predict` over a method that calls the model function.

    Without `model_dir`, here or in `config`, a temporary folder is used. Each call blocks, and raises what
    `tf.estimator.Estimator` raises.
    """

    _Config = RunConfig

    def __init__(self, model_dir: str | None = None, config: Any = None) -> None:
        config = RunConfig() if config is None else config
        if model_dir is not None and config.model_dir not in (None, model_dir):
            raise ValueError(
                "model_dir are set both in constructor and RunConfig, but with different values. In constructor: "
                f"'{model_dir}', in RunConfig: '{config.model_dir}' "
            )
        core = CoreEstimator(self._model_fn_of(None), model_dir, config)
        self._config = core.config
        self._model_dir = core.model_dir
        #: What the labels of the input were, for placeholders where there are none.
        self._labels_info: Any = None
        #: "Features" and "Labels" → what the first input's tensors were: all others must be alike.
        self._signatures: dict[str, Any] = {}

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        raise NotImplementedError(f"{type(self).__name__} does not say what its model is")

    def _model_fn_of(self, metrics: Any, output_key: str | None = None) -> Any:
        """The model function that `tf.estimator` calls."""

        def model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            if mode != ModeKeys.INFER:
                self._check_inputs(features, labels)
            if labels is not None:
                self._labels_info = labels
            if mode == ModeKeys.INFER:
                labels = self._label_placeholders()
            ops = self._call_model_fn(features, labels, mode, metrics, config)
            spec = ops.estimator_spec(output_key)
            if mode == ModeKeys.EVAL and MetricKey.LOSS in ops.eval_metric_ops:
                own = {_OWN_LOSS: with_update(ops.eval_metric_ops[MetricKey.LOSS])}
                spec = spec._replace(eval_metric_ops={**spec.eval_metric_ops, **own})
            return spec

        return model_fn

    def _check_inputs(self, features: Any, labels: Any) -> None:
        """Remembers what the first inputs are like. Raises ValueError for others."""
        for what, given in (("Features", features), ("Labels", labels)):
            if what not in self._signatures:
                self._signatures[what] = signature_of(given)
            else:
                check_signature(what, given, self._signatures[what])

    def _core(self, metrics: Any = None, output_key: str | None = None) -> CoreEstimator:
        return CoreEstimator(self._model_fn_of(metrics, output_key), self._model_dir, self._config)

    def _label_placeholders(self) -> Any:
        """Placeholders like the labels of the last input, None before: model functions may compute a loss from them."""
        info = self._labels_info
        if isinstance(info, dict):
            return {key: placeholder_like(each) for key, each in info.items()}
        return None if info is None else placeholder_like(info)

    @property
    def config(self) -> Any:
        """A copy of the settings."""
        return copy.deepcopy(self._config)

    @property
    def model_dir(self) -> str:
        """The folder of checkpoints and event files."""
        return self._model_dir

    @property
    def model_fn(self) -> Any:
        """The model function: `(features, labels, mode, config) → ModelFnOps`."""

        def public_model_fn(features: Any, labels: Any, mode: str, config: Any) -> Any:
            return self._call_model_fn(features, labels, mode, config=config)

        return public_model_fn

    def get_variable_value(self, name: str) -> Any:
        """The value in the newest checkpoint."""
        return self._core().get_variable_value(name)

    def get_variable_names(self) -> list[str]:
        """The names in the newest checkpoint."""
        return self._core().get_variable_names()

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Public attributes that are not functions, as scikit-learn asks for them."""
        found = {key: value for key, value in vars(self).items() if not key.startswith("_") and not callable(value)}
        if deep:
            for key, value in list(found.items()):
                if hasattr(value, "get_params"):
                    found.update({f"{key}__{name}": each for name, each in value.get_params().items()})
        return found

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int | None = None,
        batch_size: int | None = None,
        monitors: Any = None,
        max_steps: int | None = None,
    ) -> BaseEstimator:
        """Trains on from the newest checkpoint, `steps` steps or up to step `max_steps`. Returns itself."""
        if steps is not None and max_steps is not None:
            raise ValueError("Can not provide both steps and max_steps.")
        check_inputs(x, y, input_fn, None, batch_size)
        if x is not None:
            input_fn, feed_fn = input_of(x, y, None, None, batch_size, shuffle=True, epochs=None)
            monitors = [FeedFnHook(feed_fn), *(monitors or ())]
        hooks = monitor_lib.replace_monitors_with_hooks(monitors, self)
        self._core().train(input_fn=without_arguments(input_fn), hooks=hooks, steps=steps, max_steps=max_steps)
        return self

    def partial_fit(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        steps: int = 1,
        batch_size: int | None = None,
        monitors: Any = None,
    ) -> BaseEstimator:
        """`fit` of a few steps."""
        return self.fit(x=x, y=y, input_fn=input_fn, steps=steps, batch_size=batch_size, monitors=monitors)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        input_fn: Any = None,
        feed_fn: Any = None,
        batch_size: int | None = None,
        steps: int | None = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
        log_progress: bool = True,
    ) -> dict[str, Any]:
        """The metrics' values, the loss and the global step. Raises NotFittedError without a checkpoint."""
        check_inputs(x, y, input_fn, feed_fn, batch_size)
        if x is not None:
            input_fn, feed_fn = input_of(x, y, None, None, batch_size)
        return self._evaluate_model(input_fn, steps, feed_fn, metrics, name, checkpoint_path, hooks)

    def _evaluate_model(
        self,
        input_fn: Any,
        steps: int | None,
        feed_fn: Any = None,
        metrics: Any = None,
        name: str | None = None,
        checkpoint_path: str | None = None,
        hooks: Any = None,
    ) -> dict[str, Any]:
        if metrics is not None and not isinstance(metrics, dict):
            raise ValueError(f"Metrics argument should be None or dict. Got {metrics}.")
        checkpoint_path = checkpoint_path or self._checkpoint()
        hooks = [*(hooks or ()), *([FeedFnHook(feed_fn)] if feed_fn else ())]
        found: dict[str, Any] = self._core(metrics).evaluate(
            input_fn=without_arguments(input_fn), steps=steps, hooks=hooks, checkpoint_path=checkpoint_path, name=name
        )
        if _OWN_LOSS in found:
            found[MetricKey.LOSS] = found.pop(_OWN_LOSS)
        return found

    def _checkpoint(self) -> str:
        found = checkpoint_management.latest_checkpoint(self._model_dir)
        if not found:
            raise NotFittedError(f"Couldn't find trained model at {self._model_dir}.")
        return found

    def predict(
        self,
        x: Any = None,
        input_fn: Any = None,
        batch_size: int | None = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        """The predictions of each example one after the other, or of all at once unless `as_iterable`.

        An input function without queues and feeds gives one batch. `outputs` picks some keys. Raises NotFittedError.
        """
        check_inputs(x, None, input_fn, None, batch_size)
        if x is not None and not as_iterable:
            input_fn, feed_fn = input_of(x, None, None, None, batch_size)
            return joined(list(self._infer_model(input_fn, feed_fn, outputs, iterate_batches=True)))
        input_fn, feed_fn = input_of(x, None, input_fn, None, batch_size)
        return self._infer_model(input_fn, feed_fn, outputs, as_iterable, iterate_batches)

    def _infer_model(
        self,
        input_fn: Any,
        feed_fn: Any = None,
        outputs: Any = None,
        as_iterable: bool = True,
        iterate_batches: bool = False,
    ) -> Any:
        checkpoint = self._checkpoint()
        with Graph().as_default() as graph:
            set_random_seed(self._config.tf_random_seed)
            create_global_step(graph)
            result = input_fn()
            features = result[0] if isinstance(result, (list, tuple)) else result
            ops = self._call_model_fn(features, self._label_placeholders(), ModeKeys.INFER)
            predictions = picked(ops.predictions, outputs)
            creator = ChiefSessionCreator(
                checkpoint_filename_with_path=checkpoint, scaffold=ops.scaffold, config=self._config.session_config
            )
            session = MonitoredSession(session_creator=creator)
            if as_iterable:
                once = feed_fn is None and not graph.get_collection(GraphKeys.QUEUE_RUNNERS)
                return each_prediction(session, predictions, feed_fn, iterate_batches, once)
            with session:
                return session.run(predictions, feed_fn() if feed_fn else None)

    def export_savedmodel(
        self,
        export_dir_base: Any,
        serving_input_fn: Any,
        default_output_alternative_key: str | None = None,
        assets_extra: Any = None,
        as_text: bool = False,
        checkpoint_path: str | None = None,
        graph_rewrite_specs: Any = _AS_IT_IS,
        strip_default_attrs: bool = False,
    ) -> Any:
        """Exports a SavedModel, and returns its folder. `serving_input_fn` gives InputFnOps. Raises ValueError for a
        graph that is to be rewritten, NotFittedError without a checkpoint."""
        if serving_input_fn is None:
            raise ValueError("serving_input_fn must be defined.")
        if not graph_rewrite_specs or any(spec.transforms for spec in graph_rewrite_specs):
            raise ValueError("The first element of graph_rewrite_specs must specify no transforms.")

        def receiver_fn() -> ServingInputReceiver:
            given = serving_input_fn()
            inputs = given.default_inputs if hasattr(given, "default_inputs") else given[0]
            for key in given[0] if isinstance(given[0], dict) else ():
                add_to_collection(COLLECTION_DEF_KEY_FOR_INPUT_FEATURE_KEYS, key)
            return ServingInputReceiver(given[0], inputs)

        core: Any = self._core(output_key=default_output_alternative_key)
        return core.export_savedmodel(
            export_dir_base,
            receiver_fn,
            assets_extra=assets_extra,
            as_text=as_text,
            checkpoint_path=checkpoint_path or self._checkpoint(),
            strip_default_attrs=strip_default_attrs,
        )

    def export(self, *args: Any, **kwargs: Any) -> Any:
        """Raises NotImplementedError: it made a session bundle, which nothing reads any more."""
        raise NotImplementedError("Estimator.export makes session bundles, which are gone: use export_savedmodel()")


class Estimator(BaseEstimator):
    """An estimator of a model function. As TensorFlow 1.15's `tf.contrib.learn.Estimator`.

    `feature_engineering_fn(features, labels)` changes both before the model function gets them. Raises ValueError for
    `params` that the model function does not take.
    """

    def __init__(
        self,
        model_fn: Any = None,
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        feature_engineering_fn: Any = None,
    ) -> None:
        if model_fn is not None:
            takes = "params" in fn_args(model_fn)
            if params is not None and not takes:
                raise ValueError(
                    f"Estimator's model_fn ({model_fn}) does not have a params argument, but params ({params}) were "
                    "passed to the Estimator's constructor."
                )
            if params is None and takes:
                logging.warning(
                    "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.",
                    model_fn,
                )
        super().__init__(model_dir=model_dir, config=config)
        self._model_fn = model_fn
        self.params = params
        self._feature_engineering_fn = feature_engineering_fn

    def _call_model_fn(
        self, features: Any, labels: Any, mode: str, metrics: Any = None, config: Any = None
    ) -> ModelFnOps:
        if self._feature_engineering_fn is not None:
            features, labels = self._feature_engineering_fn(features, labels)
        known = {
            "mode": mode,
            "params": self.params,
            "config": config or self.config,
            "model_dir": self.model_dir,
        }
        names = fn_args(self._model_fn)
        made = self._model_fn(features, labels, **{key: value for key, value in known.items() if key in names})
        if not isinstance(made, ModelFnOps):
            if not isinstance(made, (list, tuple)) or len(made) != 3:
                raise ValueError("Unrecognized value returned by model_fn, please return ModelFnOps.")
            made = ModelFnOps(mode=mode, predictions=made[0], loss=made[1], train_op=made[2])
        if metrics:
            made.eval_metric_ops.update(metric_ops(metrics, features, labels, made.predictions))
        return made
