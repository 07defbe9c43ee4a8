"""A linear model that stochastic dual coordinate ascent solves: its losses, its steps, and how far it is from the best.

The examples' dual variables are in a table by the examples' ids, so that each pass goes on where the last one was. Used
by sdca.py and contrib/linear_optimizer. Follows TensorFlow 1.15's
`estimator/canned/linear_optimizer/python/utils/sdca_ops.py`; a step is the op SdcaOptimizerV2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging, summary
from tenfold.estimator.canned.sdca_table import ShardedMutableDenseHashTable
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import colocate_with, control_dependencies, name_scope
from tenfold.ops import array, math, nn, nn_losses, slicing, state_ops
from tenfold.ops.control_flow import group
from tenfold.ops.embedding import embedding_lookup
from tenfold.ops.generated_ops import sdca_fprint, sdca_optimizer_v2
from tenfold.ops.variables import Variable
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_LOSSES = ("logistic_loss", "squared_loss", "hinge_loss", "smooth_hinge_loss", "poisson_loss")
_WEIGHTS = ("sparse_features_weights", "dense_features_weights")


class SDCAModel:
    """The solver for one batch of examples.

    `examples` has example_labels and example_weights, float32 [B], example_ids, string [B], sparse_features (a list of
    SparseFeatureColumns) and dense_features (a list of float32 [B, size]); `variables` has sparse_features_weights and
    dense_features_weights, lists of variables, of which one may be a list of its parts; `options` has loss_type,
    symmetric_l1_regularization, symmetric_l2_regularization, and may have num_loss_partitions, num_table_shards and
    adaptive. Raises ValueError for what is missing or no such thing.
    """

    #: What follows the name of a weight in the name of the variable before it is shrunk.
    _SLOT = "_unshrunk"

    def __init__(self, examples: Mapping[str, Any], variables: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        if not examples or not variables or not options:
            raise ValueError("examples, variables and options must all be specified.")
        if options["loss_type"] not in _LOSSES:
            raise ValueError("Unsupported loss_type: ", options["loss_type"])
        _check(examples, "example_labels", "example_weights", "example_ids", "sparse_features", "dense_features")
        _check(variables, *_WEIGHTS)
        _check(options, "loss_type", "symmetric_l2_regularization", "symmetric_l1_regularization")
        self._check_regularization(options)
        self._examples, self._variables, self._options = examples, variables, options
        self._slots = {name: [self._slots_of(variable) for variable in variables[name]] for name in _WEIGHTS}
        self._table = ShardedMutableDenseHashTable(
            dtypes.int64, dtypes.float32, [0.0] * 4, [0, 0], [1, 1], options.get("num_table_shards") or 1
        )
        summary.scalar("approximate_duality_gap", self.approximate_duality_gap())
        summary.scalar("examples_seen", self._table.size())

    # --- what subclasses may take otherwise ---

    def _check_regularization(self, options: Mapping[str, Any]) -> None:
        if options["symmetric_l2_regularization"] <= 0.0:
            raise ValueError("symmetric_l2_regularization should be positive.")
        if options["symmetric_l2_regularization"] <= 1.0:
            logging.warning(
                "symmetric_l2_regularization for SDCA should typically be larger than for online optimization methods. "
                "Recommended value is of the order of the average L2 norm of the training examples."
            )
        if options["symmetric_l1_regularization"] < 0.0:
            raise ValueError("symmetric_l1_regularization should be non-negative.")

    def _l2(self) -> float:
        """What the solver takes for the L2 regularization."""
        return float(self._options["symmetric_l2_regularization"])

    # --- training ---

    def minimize(self, global_step: Any = None, name: str | None = None) -> Any:
        """The operation of a step: changes the weights before they are shrunk, then adds 1 to `global_step`."""
        options = self._options
        sparse = self._examples["sparse_features"]
        with name_scope(name, "sdca/minimize"):
            ids = sdca_fprint(convert_to_tensor(self._examples["example_ids"]))
            state = self._table.lookup(ids)
            places = [slicing.unique(column.feature_indices)[0] for column in sparse]
            weights = [
                embedding_lookup(parts, place, partition_strategy="div")
                for parts, place in zip(self._slots[_WEIGHTS[0]], places, strict=True)
            ]
            state, sparse_deltas, dense_deltas = sdca_optimizer_v2(
                sparse_example_indices=[column.example_indices for column in sparse],
                sparse_feature_indices=[column.feature_indices for column in sparse],
                sparse_feature_values=[each.feature_values for each in sparse if each.feature_values is not None],
                dense_features=[_whole(each) for each in self._examples["dense_features"]],
                example_weights=convert_to_tensor(self._examples["example_weights"]),
                example_labels=convert_to_tensor(self._examples["example_labels"]),
                sparse_indices=places,
                sparse_weights=weights,
                dense_weights=[_whole(parts) for parts in self._slots[_WEIGHTS[1]]],
                example_state_data=state,
                loss_type=options["loss_type"],
                l1=float(options["symmetric_l1_regularization"]),
                l2=self._l2(),
                num_loss_partitions=options.get("num_loss_partitions", 1),
                num_inner_iterations=1,
                adaptive=options.get("adaptive", True),
            )
            with control_dependencies([state]):
                updates = [self._table.insert(ids, state)]
                for parts, place, delta in zip(self._slots[_WEIGHTS[0]], places, sparse_deltas, strict=True):
                    updates += _added_at(parts, place, delta)
                for parts, delta in zip(self._slots[_WEIGHTS[1]], dense_deltas, strict=True):
                    sizes = [part.shape.as_list()[0] for part in parts]
                    deltas = [delta] if len(parts) == 1 else slicing.split(delta, sizes)
                    updates += [state_ops.assign_add(part, each) for part, each in zip(parts, deltas, strict=True)]
            if global_step is None:
                return group(*updates)
            with control_dependencies(updates):
                return state_ops.assign_add(global_step, 1, name=name).op

    def update_weights(self, train_op: Any) -> Any:
        """The operation that gives the variables their values, shrunk by the L1 regularization; `train_op` first.

        In a cluster one worker need do it.
        """
        l1 = self._options["symmetric_l1_regularization"]
        updates = []
        with control_dependencies([train_op]):
            for name in _WEIGHTS:
                for variable, slots in zip(self._variables[name], self._slots[name], strict=True):
                    for part, slot in zip(_parts(variable), slots, strict=True):
                        with colocate_with(part):
                            value = convert_to_tensor(slot)
                            if l1 > 0:
                                value = math.sign(value) * math.maximum(0.0, math.abs(value) - l1 / self._l2())
                            updates.append(state_ops.assign(part, value))
        return group(*updates)

    # --- losses ---

    def approximate_duality_gap(self) -> Any:
        """How far the loss is from the best one, at most; NaN before the first step. float64, a scalar."""
        with name_scope("sdca/approximate_duality_gap"):
            _, values = self._table.export_sharded()
            sums: list[Any] = []
            for part in values:
                # One after the other: the float64 copy of a large table is gone before the next one is made.
                with control_dependencies(sums):
                    sums.append(math.reduce_sum(math.cast(part, dtypes.float64), 0))
            total = math.add_n(sums)
            return (total[1] + total[2] + self._l1_loss() + 2.0 * self._l2_loss(self._l2())) / total[3]

    def predictions(self, examples: Mapping[str, Any]) -> Any:
        """Probabilities for the logistic loss, rates for Poisson's, else weighted sums. [B]. Raises ValueError."""
        _check(examples, "example_weights", "sparse_features", "dense_features")
        sums = self._linear_predictions(examples)
        if self._options["loss_type"] == "logistic_loss":
            return math.sigmoid(sums, name="sdca/logistic_prediction")
        return math.exp(sums, name="sdca/poisson_prediction") if self._options["loss_type"] == "poisson_loss" else sums

    def unregularized_loss(self, examples: Mapping[str, Any]) -> Any:
        """The weighted mean of the examples' losses, float64. Raises ValueError for what is missing."""
        _check(examples, "example_labels", "example_weights", "sparse_features", "dense_features")
        with name_scope("sdca/unregularized_loss"):
            found = math.cast(self._linear_predictions(examples), dtypes.float64)
            labels = math.cast(convert_to_tensor(examples["example_labels"]), dtypes.float64)
            weights = math.cast(convert_to_tensor(examples["example_weights"]), dtypes.float64)
            kind = self._options["loss_type"]
            if kind == "logistic_loss":
                losses = nn_losses.sigmoid_cross_entropy_with_logits(labels=labels, logits=found)
            elif kind == "poisson_loss":
                losses = nn_losses.log_poisson_loss(targets=labels, log_input=found)
            elif kind == "squared_loss":
                losses = math.square(labels - found) / 2.0
            else:
                losses = nn.relu(1.0 - (2.0 * labels - 1.0) * found)
            return math.reduce_sum(losses * weights) / math.reduce_sum(weights)

    def regularized_loss(self, examples: Mapping[str, Any]) -> Any:
        """`unregularized_loss` and the regularization, each example's share. Raises ValueError for what is missing."""
        _check(examples, "example_labels", "example_weights", "sparse_features", "dense_features")
        with name_scope("sdca/regularized_loss"):
            weights = math.cast(convert_to_tensor(examples["example_weights"]), dtypes.float64)
            penalty = self._l1_loss() + self._l2_loss(self._options["symmetric_l2_regularization"])
            return penalty / math.reduce_sum(weights) + self.unregularized_loss(examples)

    def _linear_predictions(self, examples: Mapping[str, Any]) -> Any:
        """The weighted sum of each example, float32 [B]."""
        with name_scope("sdca/prediction"):
            count = array.shape(examples["example_ids"])[0]
            found = array.zeros([count])
            for column, weights in zip(examples["sparse_features"], self._variables[_WEIGHTS[0]], strict=True):
                terms = array.reshape(slicing.gather(_whole(weights), column.feature_indices), [-1])
                if column.feature_values is not None:
                    terms = terms * column.feature_values
                sums = math.segment_sum(terms, column.example_indices)
                found += array.pad(sums, [[0, count - array.shape(sums)[0]]])
            for features, weights in zip(examples["dense_features"], self._variables[_WEIGHTS[1]], strict=True):
                found += array.reshape(math.matmul(_whole(features), array.reshape(_whole(weights), [-1, 1])), [-1])
        return found

    def _l1_loss(self) -> Any:
        with name_scope("sdca/l1_loss"):
            return self._options["symmetric_l1_regularization"] * self._sum_of(math.abs)

    def _l2_loss(self, l2: float) -> Any:
        with name_scope("sdca/l2_loss"):
            return l2 * self._sum_of(math.square) / 2.0

    def _sum_of(self, function: Any) -> Any:
        """The sum of a function of all weights, float64."""
        sums = []
        for part in self._all_parts():
            with colocate_with(part):
                sums.append(math.reduce_sum(function(math.cast(convert_to_tensor(part), dtypes.float64))))
        return math.add_n(sums)

    def _all_parts(self) -> Iterable[Any]:
        return (part for name in _WEIGHTS for variable in self._variables[name] for part in _parts(variable))

    def _slots_of(self, variable: Any) -> list[Any]:
        """A variable for each part of a weight: its values before they are shrunk."""
        slots = []
        for part in _parts(variable):
            with colocate_with(part):
                zeros = array.zeros_like(part.initialized_value(), dtypes.float32)
                slots.append(Variable(zeros, name=f"{part.op.name}{self._SLOT}"))
        return slots


def _parts(variable: Any) -> list[Any]:
    return list(variable) if isinstance(variable, list) or hasattr(variable, "as_tensor") else [variable]


def _whole(value: Any) -> Any:
    """A tensor of a tensor, a variable or its parts."""
    parts = _parts(value)
    return convert_to_tensor(parts[0]) if len(parts) == 1 else array.concat(parts, axis=0)


def _added_at(parts: Sequence[Any], places: Any, deltas: Any) -> list[Any]:
    """The operations that add to the rows at `places` of a variable in parts."""
    if len(parts) == 1:
        return [state_ops.scatter_add(parts[0], places, deltas)]
    made, start = [], 0
    for part in parts:
        size = part.shape.as_list()[0]
        within = math.logical_and(places >= start, places < start + size)
        with colocate_with(part):
            made.append(
                state_ops.scatter_add(
                    part, slicing.boolean_mask(places, within) - start, slicing.boolean_mask(deltas, within)
                )
            )
        start += size
    return made


def _check(given: Mapping[str, Any], *names: str) -> None:
    """Raises ValueError for what is missing, and for features and weights that are no list."""
    for name in names:
        if given[name] is None:
            raise ValueError(f"{name} must be specified.")
        if "features" in name and not isinstance(given[name], list):
            raise ValueError(f"{name} must be a list.")
