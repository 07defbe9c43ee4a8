"""Collections of a graph: the standard keys (`tf.GraphKeys`) and the store that a Graph carries.

A collection is a named list of any objects; programs find their variables, losses and summaries in it. Mixed into
graph/graph.py. The key strings must not change: a MetaGraphDef written by TensorFlow uses the same ones.
"""

from __future__ import annotations

import re
import threading
from typing import Any


class GraphKeys:
    """Standard names of graph collections, as in TensorFlow 1.x."""

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    REGULARIZATION_LOSSES = "regularization_losses"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    EMBEDDING_VARIABLES = "embedding_variables"
    #: Of DeepRec's programs, which run what is in them first; here initializers depend on each other.
    EV_INIT_VAR_OPS, EV_INIT_SLOT_OPS = "ev_init_var_ops", "ev_init_slot_ops"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    #: The name that GLOBAL_VARIABLES had before TensorFlow 1.0.
    VARIABLES = GLOBAL_VARIABLES


class CollectionStore:
    """The collections of one graph. Thread-safe; `get_collection` returns copies of the lists."""

    def __init__(self) -> None:
        self._collections: dict[Any, list[Any]] = {}
        #: Guards everything that grows with the graph: nodes, names and collections.
        self._lock = threading.RLock()

    def _check_not_finalized(self) -> None:
        raise NotImplementedError

    def add_to_collection(self, name: Any, value: Any) -> None:
        """Appends `value` to the collection `name`. Collections are not sets: a value may be added twice."""
        self._check_not_finalized()
        with self._lock:
            self._collections.setdefault(name, []).append(value)

    def add_to_collections(self, names: Any, value: Any) -> None:
        """Appends `value` to each of `names`: one name or several; a name given twice counts once."""
        several = (names,) if isinstance(names, (str, bytes)) else dict.fromkeys(names)
        for name in several:
            self.add_to_collection(name, value)

    def get_collection_ref(self, name: Any) -> list[Any]:
        """The list itself, created if absent. Changing it changes the collection."""
        with self._lock:
            return self._collections.setdefault(name, [])

    def get_collection(self, name: Any, scope: str | None = None) -> list[Any]:
        """A copy of the collection; with `scope`, only the items whose name begins with a match of that regex."""
        with self._lock:
            items = list(self._collections.get(name, ()))
        if scope is None:
            return items
        matches = re.compile(scope).match
        return [item for item in items if hasattr(item, "name") and matches(item.name)]

    def get_all_collection_keys(self) -> list[str]:
        """The names of all collections that are strings."""
        with self._lock:
            return [key for key in self._collections if isinstance(key, str)]

    @property
    def collections(self) -> list[Any]:
        """The names of all collections."""
        with self._lock:
            return list(self._collections)

    def clear_collection(self, name: Any) -> None:
        """Removes the collection `name`, if there is one."""
        self._check_not_finalized()
        with self._lock:
            self._collections.pop(name, None)
