"""`tf.contrib.predictor`: a model as a function from arrays to arrays, from an estimator or from a SavedModel.

A predictor holds its graph and its session. As TensorFlow 1.15's contrib/predictor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.contrib.learn.estimator import BaseEstimator
from tenfold.contrib.learn.utils import saved_model_export_utils as alternatives
from tenfold.estimator.estimator import Estimator
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.graph import Graph
from tenfold.saved_model import loader_impl, signature_constants
from tenfold.session.session import Session
from tenfold.train.checkpoint_management import latest_checkpoint
from tenfold.train.monitored_session import MonitoredSession
from tenfold.train.session_creators import ChiefSessionCreator
from tenfold_core import saved_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_protos.meta_graph_pb2 import SignatureDef

__all__ = ["from_contrib_estimator", "from_estimator", "from_saved_model"]

#: The signature that contrib's estimators of old exported for the default.
_OLD_SIGNATURE = "default_input_alternative:{}"


class Predictor:
    """Calls a model: `predictor({name: array})` blocks and returns `{name: array}`."""

    def __init__(self, graph: Graph, session: Any, feeds: Mapping[str, Any], fetches: Mapping[str, Any]) -> None:
        self.graph = graph
        self.session = session
        self.feed_tensors = dict(feeds)
        self.fetch_tensors = dict(fetches)

    def __repr__(self) -> str:
        return f"{type(self).__name__} with feed tensors {self.feed_tensors} and fetch_tensors {self.fetch_tensors}"

    def __call__(self, input_dict: Mapping[str, Any]) -> dict[str, Any]:
        """Runs the model; inputs that are left out or None are not fed. Raises ValueError for names of no input."""
        unexpected = set(input_dict) - set(self.feed_tensors)
        if unexpected:
            raise ValueError(f"Got unexpected keys in input_dict: {unexpected}\nexpected: {set(self.feed_tensors)}")
        feeds = {self.feed_tensors[key]: value for key, value in input_dict.items() if value is not None}
        found: dict[str, Any] = self.session.run(self.fetch_tensors, feed_dict=feeds)
        return found


class SavedModelPredictor(Predictor):
    """A predictor of a SavedModel."""


class CoreEstimatorPredictor(Predictor):
    """A predictor of a `tf.estimator.Estimator`."""


class ContribEstimatorPredictor(Predictor):
    """A predictor of a `tf.contrib.learn.Estimator`."""


def from_saved_model(
    export_dir: str,
    signature_def_key: str | None = None,
    signature_def: SignatureDef | None = None,
    input_names: Mapping[str, str] | None = None,
    output_names: Mapping[str, str] | None = None,
    tags: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """A predictor of the SavedModel in a folder, by its signature `signature_def_key` ("serving_default"), by the one
    given, or by names of tensors. `tags` are separated by commas ("serve"). Blocks while variables are restored.

    Raises ValueError if more than one of these is given, for an unknown signature and for unknown tags, OSError without
    a SavedModel.
    """
    if (input_names is None) != (output_names is None):
        raise ValueError("input_names and output_names must both be specified or both be unspecified.")
    if sum(each is not None for each in (signature_def_key, signature_def, input_names)) > 1:
        raise ValueError(
            "You must specify at most one of signature_def_key OR signature_def OR(input_names AND output_names)."
        )
    tags = tags or "serve"
    graph = graph or Graph()
    if input_names is None:
        signature = signature_def or _signature(export_dir, signature_def_key, tags)
        input_names = {key: info.name for key, info in signature.inputs.items()}
        output_names = {key: info.name for key, info in signature.outputs.items()}
    with graph.as_default():
        session = Session(config=config)
        loader_impl.load(session, tags.split(","), export_dir)
    return SavedModelPredictor(graph, session, _tensors(graph, input_names), _tensors(graph, output_names or {}))


def _signature(export_dir: str, key: str | None, tags: str) -> SignatureDef:
    wanted = {tag.strip() for tag in tags.split(",")}
    graphs = saved_model.read(export_dir).meta_graphs
    found = next((each for each in graphs if set(each.meta_info_def.tags) == wanted), None)
    if found is None:
        raise ValueError(
            f"Could not find MetaGraphDef with tags {tags}: there are "
            f"{[sorted(each.meta_info_def.tags) for each in graphs]}"
        )
    key = key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
    old = _OLD_SIGNATURE.format(key)
    if key in found.signature_def:
        return found.signature_def[key]
    if old in found.signature_def:
        logging.warning('Could not find signature def "%s". Using "%s" instead', key, old)
        return found.signature_def[old]
    raise ValueError(f'Got signature_def_key "{key}". Available signatures are {list(found.signature_def)}.')


def _tensors(graph: Graph, names: Mapping[str, str]) -> dict[str, Any]:
    return {key: graph.get_tensor_by_name(name) for key, name in names.items()}


def from_estimator(
    estimator: Any,
    serving_input_receiver_fn: Callable[[], Any],
    output_key: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """A predictor of a `tf.estimator.Estimator` as it is in its newest checkpoint; the inputs are those of
    `serving_input_receiver_fn()`, the outputs the export output `output_key` ("serving_default").

    Blocks while the checkpoint is restored. Raises TypeError for an estimator of contrib, KeyError for an output that
    the model does not have.
    """
    if isinstance(estimator, BaseEstimator):
        raise TypeError(
            "Expected estimator to be of type tf.python.estimator.Estimator, but got type "
            "tf.contrib.learn.Estimator. You likely want to call from_contrib_estimator."
        )
    graph = graph or Graph()
    with graph.as_default():
        receiver = serving_input_receiver_fn()
        key = output_key or signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY
        outputs = estimator.model_fn(receiver.features, None, ModeKeys.PREDICT, estimator.config).export_outputs
        if key not in outputs:
            raise KeyError(f"output_key must be one of {outputs.keys()}; got {key}")
        signature = outputs[key].as_signature_def(receiver.receiver_tensors)
        session = MonitoredSession(ChiefSessionCreator(config=config, checkpoint_dir=estimator.model_dir))
    inputs = {name: info.name for name, info in signature.inputs.items()}
    fetched = {name: info.name for name, info in signature.outputs.items()}
    return CoreEstimatorPredictor(graph, session, _tensors(graph, inputs), _tensors(graph, fetched))


def from_contrib_estimator(
    estimator: Any,
    prediction_input_fn: Callable[[], Any],
    input_alternative_key: str | None = None,
    output_alternative_key: str | None = None,
    graph: Graph | None = None,
    config: ConfigProto | None = None,
) -> Predictor:
    """A predictor of a `tf.contrib.learn.Estimator` as it is in its newest checkpoint; `prediction_input_fn()` gives
    InputFnOps. A model of several heads needs the name of one.

    Blocks while the checkpoint is restored. Raises TypeError for an estimator of core, ValueError for an unknown head
    and for no features.
    """
    if isinstance(estimator, Estimator):
        raise TypeError(
            "Expected estimator to be of type tf.contrib.learn.Estimator, but got type "
            "tf.python.estimator.Estimator. You likely want to call from_estimator."
        )
    graph = graph or Graph()
    with graph.as_default():
        given = prediction_input_fn()
        inputs, features = alternatives.get_input_alternatives(given)
        made = estimator.model_fn(features, None, ModeKeys.PREDICT, estimator.config)
        newest = latest_checkpoint(estimator.model_dir)
        session = MonitoredSession(ChiefSessionCreator(config=config, checkpoint_filename_with_path=newest))
    outputs, head = alternatives.get_output_alternatives(made, output_alternative_key)
    feeds = inputs[input_alternative_key or alternatives.DEFAULT_INPUT_ALTERNATIVE_KEY]
    return ContribEstimatorPredictor(graph, session, feeds, outputs[head][1])
