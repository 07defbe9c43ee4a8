"""`replicate_model_fn` and `TowerOptimizer`: one batch, split over several devices of one process.

Each device has a tower: the model function, on its share of the batch, with the same variables. The optimizer of the
last tower applies the sums of all towers' gradients. What becomes of the towers' specs is tower_specs.py's. Follows TF
1.15's contrib/estimator/python/estimator/replicate_model_fn.py, with its names and error messages.
"""

from __future__ import annotations

import copy
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tenfold import logging
from tenfold.contrib.estimator import tower_specs
from tenfold.estimator.mode_keys import ModeKeys
from tenfold.estimator.util import call_with_known
from tenfold.graph import (
    Graph,
    IndexedSlices,
    control_dependencies,
    convert_to_tensor,
    device,
    get_default_graph,
    name_scope,
)
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.losses import Reduction
from tenfold.ops import control_flow, math, slicing, variable_scope
from tenfold.ops.sparse import sparse_split
from tenfold.train.device_setter import RoundRobinStrategy
from tenfold.train.optimizer import Optimizer
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold.estimator.model_fn import EstimatorSpec

#: Types of operations that hold what towers share.
_VARIABLES = ("Variable", "VariableV2", "VarHandleOp")


@dataclass
class _Towers:
    """What the towers of one graph know of each other."""

    number: int = 1
    loss_reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS
    #: The tower that is being built.
    current: int = 0
    #: Variable scope and name scope of the first tower.
    first_scopes: tuple[Any, str] | None = None
    used: bool = False
    #: For each tower, the gradients of each call of an optimizer.
    collected: dict[int, list[list[tuple[Any, Any]]]] = field(default_factory=dict)

    @contextmanager
    def tower(self, number: int, var_scope: Any, scope: str) -> Iterator[None]:
        if number == 0:
            self.first_scopes = (var_scope, scope)
        self.current = number
        yield


_towers: WeakKeyDictionary[Graph, _Towers] = WeakKeyDictionary()


def _of_graph() -> _Towers:
    return _towers.setdefault(get_default_graph(), _Towers())


def replicate_model_fn(
    model_fn: Callable[..., EstimatorSpec],
    loss_reduction: str = Reduction.SUM_BY_NONZERO_WEIGHTS,
    devices: Sequence[str] | None = None,
) -> Callable[..., EstimatorSpec]:
    """The model function, replicated over `devices` (default: this process's GPUs, else the CPU).

    Features and labels are split along the batch, which must be divisible; losses and gradients are summed, and
    averaged unless `loss_reduction` is SUM; metrics are those of all towers, predictions are concatenated. With
    several devices, the model's optimizers must be wrapped by TowerOptimizer. Raises ValueError for no reduction. As
    TensorFlow 1.15's `tf.contrib.estimator.replicate_model_fn`.
    """
    if loss_reduction == Reduction.NONE:
        raise ValueError(f"Tower losses need to be reduced in some way, yet {loss_reduction} reduction is specified.")
    places = list(devices or _local_devices("GPU") or _local_devices("CPU"))
    shared = places[0] if len(places) == 1 and "GPU" in places[0].upper() else "/CPU:0"
    logging.info("Replicating the `model_fn` across %s.  Variables are going to be placed on %s.", places, shared)

    def replicated_model_fn(
        features: Any, labels: Any, mode: str, params: Any = None, config: Any = None
    ) -> EstimatorSpec:
        several = len(places) > 1
        shards = _split_batch(features, labels, len(places), shared) if several else ([features], [labels])
        specs = _build_towers(model_fn, mode, *shards, params, config, places, shared, loss_reduction)
        if len(specs) == 1:
            return specs[0]
        if mode == ModeKeys.TRAIN:
            return tower_specs.train_spec(specs, shared)
        joined = tower_specs.eval_spec if mode == ModeKeys.EVAL else tower_specs.predict_spec
        return joined(specs, shared)

    return replicated_model_fn


def _local_devices(kind: str) -> list[str]:
    from tenfold.session.session import Session

    with Graph().as_default(), Session() as session:
        found = session.list_devices()
    return [each.name[each.name.index("/device:") :] for each in found if each.device_type == kind]


def _split_batch(features: Any, labels: Any, number: int, place: str) -> tuple[list[Any], list[Any]]:
    """The shards of features and of labels. Raises ValueError for a batch that cannot be divided."""

    def parts(value: Any) -> list[Any]:
        if isinstance(value, SparseTensor):
            return list(sparse_split(sp_input=value, num_split=number, axis=0))
        size = convert_to_tensor(value).get_shape().as_list()[0]
        if size is not None and size % number:
            raise ValueError(f"Batch size {size} needs to be divisible by the number of GPUs, which is {number}.")
        return list(slicing.split(value, number))

    def shards(value: Any) -> list[Any]:
        if value is None:
            return [None] * number
        if not isinstance(value, dict):
            return parts(value)
        columns = {name: parts(each) for name, each in value.items()}
        return [{name: column[at] for name, column in columns.items()} for at in range(number)]

    with name_scope("split_inputs"), device(place):
        return shards(features), shards(labels)


def _build_towers(
    model_fn: Callable[..., EstimatorSpec], mode: str, features: list[Any], labels: list[Any], params: Any,
    config: Any, places: list[str], shared: str, loss_reduction: str,
) -> list[EstimatorSpec]:  # fmt: skip
    """Each tower's spec, with its loss scaled; the first has names without a prefix."""
    graph = get_default_graph()
    state = _towers[graph] = _Towers(len(places), loss_reduction)
    specs = []
    try:
        for number, place in enumerate(places):
            with (
                variable_scope.variable_scope("", reuse=number > 0) as var_scope,
                name_scope(f"tower_{number}" if number else "") as scope,
                state.tower(number, var_scope, scope),
                device(_local_device_setter(place, [shared])),
            ):
                offered = {"params": copy.deepcopy(params), "config": copy.deepcopy(config)}
                spec = call_with_known(model_fn, offered, mode=mode, features=features[number], labels=labels[number])
                if spec.train_op is not None and len(places) > 1 and not state.used:
                    raise ValueError(
                        "Please wrap optimizers with TowerOptimizer in order to use replicate_model_fn with multiple "
                        "`devices`."
                    )
                loss = _scaled(spec.loss, loss_reduction, len(places))
                specs.append(spec if loss is spec.loss else spec._replace(loss=loss))
        if len({len(state.collected.get(number, ())) for number in range(len(places))}) > 1:
            raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.")
    finally:
        del _towers[graph]
    return specs


def _local_device_setter(place: str, shared: list[str]) -> Callable[[Any], str]:
    """Variables in turn on the shared devices, all else on `place`."""
    strategy = RoundRobinStrategy(len(shared))

    def chosen(op: Any) -> str:
        ours = shared[strategy(op)] if op.type in _VARIABLES else place
        asked = DeviceSpec.from_string(op.device or "")
        return DeviceSpec.from_string(ours).make_merged_spec(asked).to_string()

    return chosen


def _scaled(loss: Any, loss_reduction: str, number: int) -> Any:
    """A tower's share of a mean; a sum's share is the loss itself."""
    if loss is None or number == 1 or loss_reduction == Reduction.SUM:
        return loss
    return math.div(loss, 1.0 * number, name="averaged_loss")


class TowerOptimizer(Optimizer):
    """Gathers the gradients of all towers, and applies their sums in the last one.

    Takes an optimizer, or a function that makes one. Without `replicate_model_fn`, or with one tower, it is that
    optimizer.
    """

    def __init__(self, optimizer_or_optimizer_fn: Any) -> None:
        super().__init__(False, "TowerOptimizer")
        self._given = optimizer_or_optimizer_fn

    def _inner(self) -> Any:
        """The optimizer; a function is called when the graph is there."""
        if callable(self._given):
            self._given = self._given()
        _of_graph().used = True
        return self._given

    def get_name(self) -> str:
        return str(self._inner().get_name())

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        return self._inner().get_slot(*args, **kwargs)

    def get_slot_names(self) -> list[str]:
        return list(self._inner().get_slot_names())

    def variables(self) -> list[Any]:
        return list(self._inner().variables())

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        state = _of_graph()
        return self._inner().compute_gradients(_scaled(loss, state.loss_reduction, state.number), *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        state, pairs = _of_graph(), list(grads_and_vars)
        if state.number == 1:
            return self._inner().apply_gradients(pairs, global_step, name)
        state.collected.setdefault(state.current, []).append(pairs)
        if state.current < state.number - 1:
            given = [each for each, _ in pairs if each is not None]
            with control_dependencies([each.values if isinstance(each, IndexedSlices) else each for each in given]):
                return control_flow.no_op(name="train_op_placeholder")
        assert state.first_scopes is not None
        var_scope, scope = state.first_scopes
        # in the scope of the first tower, so that slots and ops have names without a prefix
        with variable_scope.variable_scope(var_scope), name_scope(scope):
            return self._inner().apply_gradients(_summed(state), global_step, name)


def _summed(state: _Towers) -> list[tuple[Any, Any]]:
    """(sum of the towers' gradients, variable) of this call, which is the same one in every tower."""
    at = len(state.collected[state.current]) - 1
    lists: dict[Any, list[Any]] = {}
    for number in range(state.number):
        calls = state.collected.get(number, ())
        if at >= len(calls):
            raise ValueError("Each invocation of model_fn was supposed to make the same optimizer calls.")
        for gradient, variable in calls[at]:
            if gradient is not None:
                lists.setdefault(variable, []).append(gradient)
    with name_scope("gradient_aggregating"):
        return [(tower_specs.sum_on_device(each, variable.device), variable) for variable, each in lists.items()]
