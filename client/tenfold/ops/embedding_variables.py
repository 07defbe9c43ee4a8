"""Embedding variables: weights by ids that nobody counts beforehand, made by `tf.get_embedding_variable`.

A variable that trains like a table of rows, but is asked for ids of any size; its rows come with their first lookup.
The table is on the variable's task (kernels/resources/embedding_tables.py). Slots of optimizers are embedding
variables, too, with another as their primary one. Options are in embedding_options.py. Follows DeepRec's
ops/kv_variable_ops.py.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, NoReturn

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import building_graph, get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.graph.scope_names import prepend_scope
from tenfold.ops import variable_names as names
from tenfold.ops import variable_scope
from tenfold.ops.embedding_options import EmbeddingVariableOption, GlobalStepEvict
from tenfold.ops.init_ops import TruncatedNormal
from tenfold.ops.initialized_value import guarded, initial_tensor
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.resource_variables import ResourceVariable
from tenfold.ops.save_slice_info import SaveSliceInfo
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold.graph.argument_types import DTypeLike
    from tenfold.graph.graph import Graph
    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType

#: Rows that a partitioner is told: more than any table has.
_MANY = (1 << 31) - 1


class EmbeddingVariable(ResourceVariable):
    """Rows of `embedding_dim` elements by ids. Its shape is that of one row; there is no tensor of all rows.

    Args beside those of Variable: `key_dtype` of the ids, `options`, and `primary`, the variable whose slot this is.
    """

    _parts: tuple[int, int] = (0, 1)

    def __init__(
        self,
        *,
        key_dtype: DType = dtypes.int64,
        options: EmbeddingVariableOption | None = None,
        primary: EmbeddingVariable | None = None,
        **arguments: Any,
    ) -> None:
        self._key_dtype = key_dtype
        self._options = options or EmbeddingVariableOption()
        self._primary = primary or self
        super().__init__(**arguments)
        if arguments.get("variable_def") is None and primary is None:
            get_default_graph().add_to_collection(GraphKeys.EMBEDDING_VARIABLES, self)

    def _build(
        self,
        graph: Graph,
        scope: str,
        initial_value: Any,
        dtype: Any,
        shape: Any,
        validate_shape: bool,
        caching_device: Any,
    ) -> None:
        handle_name = scope.rstrip("/")
        with names.colocated_with_name(graph, handle_name):
            value = initial_tensor(graph, initial_value, dtype)
            if not value.get_shape()[-1:].is_fully_defined():
                raise ValueError(f"The rows of an embedding variable must have a known size: {value}")
            self._shape, self._dtype = value.get_shape()[-1:], value.dtype.base_dtype
            self._handle: Tensor = apply_op(
                "KvVarHandleOp",
                shape=self._shape,
                dtype=self._dtype,
                Tkeys=self._key_dtype,
                shared_name=handle_name,
                name=scope,
            )
        names.check_made_outside(value, scope)
        self._initial_value = guarded(scope, value)
        with graph.name_scope("IsInitialized"):
            self._is_initialized_op = self.is_initialized()
        after = [] if self._primary is self else [self._primary.initializer]
        with graph.name_scope("Assign") as name, self._on_own_device(), graph.control_dependencies(after):
            self._initializer_op = apply_op(
                "InitializeKvVariableOp", value=self._initial_value, name=name, **self._table_inputs()
            )
        self._graph_element = self._handle

    def _table_inputs(self, **more_options: Any) -> dict[str, Any]:
        """Inputs and attributes of an op that makes the table where there is none; options without an attribute of
        their own are JSON in one."""
        given: dict[str, Any] = {
            "resource_self": self._handle,
            "resource_primary": self._primary.handle,
            "empty_key": convert_to_tensor(-1, dtype=self._key_dtype),
            "shape": self._shape,
            "counter_type": dtypes.uint64,
        }
        if self._primary is self:
            given |= self._options.attributes()
            given["record_freq"] |= os.environ.get("TF_RECORD_FREQ") == "1"
            given["record_version"] = os.environ.get("TF_RECORD_VERSION") == "1"
        else:
            given["slot_index"] = 1
        if not _is_set("TF_EV_SAVE_FILTERED_FEATURES", True):
            more_options["saves_filtered"] = False
        if more_options:
            given["attr_json_str"] = json.dumps(more_options)
        return given

    def _init_from_proto(self, variable_def: Any, import_scope: str | None) -> None:
        graph = get_default_graph()

        def element(name: str) -> Any:
            return graph.as_graph_element(prepend_scope(name, import_scope))

        self._graph_element = self._handle = element(variable_def.variable_name)
        op = self._handle.op
        self._shape = TensorShape.from_proto(op.get_attr("shape"))
        self._dtype, self._key_dtype = as_dtype(op.get_attr("dtype")), as_dtype(op.get_attr("Tkeys"))
        self._initializer_op = element(variable_def.initializer_name)
        self._initial_value = self._initializer_op.inputs[2]
        primary = self._initializer_op.inputs[1]
        if primary is not self._handle:
            keys = GraphKeys.EMBEDDING_VARIABLES, GraphKeys.GLOBAL_VARIABLES
            known = [each for key in keys for each in graph.get_collection(key) if is_embedding_variable(each)]
            found = [each for each in known if each.handle is primary]
            if not found:
                raise ValueError(f"{variable_def.variable_name} is a slot of {primary.name}, which comes before it")
            self._primary = found[0]
        self._trainable = variable_def.trainable
        self._constraint = None
        if variable_def.HasField("save_slice_info_def"):
            info = SaveSliceInfo(save_slice_info_def=variable_def.save_slice_info_def, import_scope=import_scope)
            self._set_save_slice_info(info)

    @contextlib.contextmanager
    def slots(self) -> Iterator[None]:
        """Variables made inside are slots of this one: a row for each of its ids, on its task."""

        def creator(next_creator: Callable[..., Any], **arguments: Any) -> EmbeddingVariable:
            arguments.pop("use_resource", None)
            return EmbeddingVariable(key_dtype=self._key_dtype, primary=self, **arguments)

        with variable_scope.variable_creator_scope(creator):
            yield

    @property
    def key_dtype(self) -> DType:
        """The type of the ids, int64 or int32."""
        return self._key_dtype

    @property
    def primary(self) -> EmbeddingVariable:
        """The variable whose slot this is; itself for one that is no slot."""
        return self._primary

    @property
    def counts_lookups(self) -> bool:
        """Whether the table counts how often it is asked for an id: for a filter, or because it records frequencies."""
        return bool(self._initializer_op.get_attr("filter_freq") or self._initializer_op.get_attr("record_freq"))

    def sparse_read(
        self, indices: Any, name: str | None = None, ev_init_value: Any = None, counts: Any = None
    ) -> Tensor:
        """The rows of the ids `indices`, [*indices.shape, embedding_dim]; unknown ones are added, with the rows of
        `ev_init_value` if it is given. `counts` says how often each id is counted. Its gradient is IndexedSlices."""
        graph = building_graph(self._handle.graph)
        with graph.name_scope(name or "Gather") as scope:
            rows = self.rows_of(convert_to_tensor(indices, name="indices"), scope, ev_init_value, counts)
        tensor: Tensor = apply_op("Identity", input=rows)
        return tensor

    def rows_of(self, ids: Tensor, name: str | None = None, first: Any = None, counts: Any = None) -> Tensor:
        """As `sparse_read`, on the variable's task: without a copy on this one."""
        if ids.dtype.base_dtype != self._key_dtype:
            ids = apply_op("Cast", x=ids, DstT=self._key_dtype)
        given: dict[str, Any] = {"resource": self._handle, "indices": ids, "dtype": self._dtype, "name": name}
        given["is_use_default_value_tensor"] = first is not None
        given["default_value"] = convert_to_tensor(1.0 if first is None else first, dtype=self._dtype)
        if counts is None:
            value: Tensor = apply_op("KvResourceGather", **given)
        else:
            value = apply_op("KvResourceGatherV1", counts=counts, **given)
        value.set_shape(ids.get_shape().concatenate(self._shape))
        return value

    def get_dynamic_shape(self) -> Tensor:
        """[rows, embedding_dim] at the moment, an int32 vector."""
        found: Tensor = apply_op("KvVariableShape", input=self._handle, Tkeys=self._key_dtype, dtype=self._dtype)
        return found

    def total_count(self) -> Tensor:
        """DeepRec's older name of `get_dynamic_shape`."""
        return self.get_dynamic_shape()

    def get_frequency(self, ids: Any) -> Tensor:
        """How often each id was counted, int64; 0 where nothing is counted."""
        found: Tensor = apply_op("EVGetFrequency", resource_handle=self._handle, ids=ids, Tvalues=self._dtype)
        return found

    def get_version(self, ids: Any) -> Tensor:
        """The global step of each id's last update, int64; 0 without one, and where none is kept."""
        found: Tensor = apply_op("EVGetVersion", resource_handle=self._handle, ids=ids, Tvalues=self._dtype)
        return found

    def lookup_tier(self, ids: Any) -> Tensor:
        """The tier in which the row of each id is, int32: 0, the memory; -1 for ids without one."""
        found: Tensor = apply_op("KvResourceLookupTier", resource=self._handle, ids=ids, dtype=self._dtype)
        return found

    def export(self) -> Any:
        """Four tensors: keys [N], values [N, embedding_dim], versions [N], frequencies [N]."""
        return apply_op("KvResourceExport", resource_handle=self._handle, Tkeys=self._key_dtype, Tvalues=self._dtype)

    def is_initialized(self, name: str | None = None) -> Any:
        return apply_op(
            "KvVarIsInitializedOp", resource=self._handle, Tkeys=self._key_dtype, dtype=self._dtype, name=name
        )

    def imported(self, prefix: Any, name: str) -> Any:
        """The operation that makes the table if there is none and reads what is called `name` in the checkpoint
        `prefix`, a string tensor."""
        part, parts = self._parts
        any_width = {"restores_any_width": True} if _is_set("TF_EV_RESTORE_CUSTOM_DIM", False) else {}
        with building_graph(self._handle.graph).device(self._handle.device or None):
            after = [] if self._primary is self else [self._primary.initializer]
            with self._handle.graph.control_dependencies(after):
                return apply_op(
                    "KvResourceImportV2",
                    prefix=prefix,
                    value=self._initial_value,
                    tensor_names=self._saved_as(name),
                    partition_id=part,
                    partition_num=parts,
                    **self._table_inputs(**any_width),
                )

    def changed(self, prefix: Any, name: str) -> Any:
        """The operation that changes rows as the increment `prefix` of a checkpoint, a string tensor, has `name`."""
        part, parts = self._parts
        with building_graph(self._handle.graph).device(self._handle.device or None):
            return apply_op(
                "KvResourceIncrImport",
                prefix=prefix,
                resource_handle=self._handle,
                tensor_names=self._saved_as(name),
                empty_key=convert_to_tensor(-1, dtype=self._key_dtype),
                value=self._initial_value,
                partition_id=part,
                partition_num=parts,
            )

    def _saved_as(self, name: str) -> str:
        """The name to look for in a checkpoint: of the one part of a variable in parts that of the whole, which may
        have been saved in several."""
        slot = self.op.name[len(self._primary.op.name) :]
        part = f"/part_0{slot}"
        is_divided = self._primary._get_save_slice_info() is not None
        if not is_divided or self._primary._parts[1] > 1 or not name.endswith(part):
            return name
        return name.removesuffix(part) + slot

    def _no_tensor(self) -> NoReturn:
        raise NotImplementedError(
            f"The embedding variable {self.name} has no tensor of all its rows: look ids up by "
            "tf.nn.embedding_lookup, or fetch what export() gives"
        )

    def value(self) -> NoReturn:
        self._no_tensor()

    def read_value(self) -> NoReturn:
        self._no_tensor()

    def assign(self, *arguments: Any, **more: Any) -> NoReturn:
        self._no_tensor()

    def assign_add(self, *arguments: Any, **more: Any) -> NoReturn:
        self._no_tensor()

    def assign_sub(self, *arguments: Any, **more: Any) -> NoReturn:
        self._no_tensor()

    def _set_save_slice_info(self, save_slice_info: Any) -> None:
        super()._set_save_slice_info(save_slice_info)
        self._parts = save_slice_info.var_offset[0], save_slice_info.full_shape[0]


def _is_set(name: str, default: bool) -> bool:
    """A switch in the environment, as DeepRec's programs have them: "0", "1", "false" or "true"."""
    text = os.environ.get(name, "").lower()
    return default if text not in ("0", "1", "false", "true") else text in ("1", "true")


def is_embedding_variable(value: Any) -> bool:
    """Whether `value` is an embedding variable."""
    return isinstance(value, EmbeddingVariable)


def get_embedding_variable(
    name: str,
    embedding_dim: int,
    key_dtype: DTypeLike = dtypes.int64,
    value_dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    custom_getter: Any = None,
    constraint: Any = None,
    init_data_source: Any = None,
    ev_option: EmbeddingVariableOption | None = None,
    steps_to_live: int | None = None,
) -> Any:
    """The embedding variable `name` of the current variable scope, made or shared as by `tf.get_variable`; in parts,
    with a partitioner: ids are then spread over them by `id % 1000 % parts`.

    `initializer` makes the rows that ids begin with (default: a truncated normal distribution); `steps_to_live` is
    short for GlobalStepEvict. Raises ValueError as `tf.get_variable` does, TypeError for other types of keys, and
    NotImplementedError for a data source.
    """
    if init_data_source is not None:
        raise NotImplementedError("An embedding variable cannot be filled from a data source; restore a checkpoint")
    keys = as_dtype(key_dtype)
    if keys not in (dtypes.int64, dtypes.int32):
        raise TypeError(f"The ids of an embedding variable are int64 or int32, not {keys.name}")
    options = ev_option or EmbeddingVariableOption()
    if steps_to_live:
        options = EmbeddingVariableOption(**{**vars(options), "evict_option": GlobalStepEvict(steps_to_live)})
    scope = variable_scope.get_variable_scope()
    dtype = as_dtype(value_dtype or scope.dtype)
    first = options.init_option.initializer or (scope.initializer if initializer is None else initializer)

    def initial_value() -> Any:
        if first is not None and not callable(first):
            return convert_to_tensor(first, dtype=dtype)
        make = TruncatedNormal() if first is None else first() if isinstance(first, type) else first
        return make([options.init_option.default_value_dim, embedding_dim], dtype=dtype)

    def creator(next_creator: Callable[..., Any], **arguments: Any) -> EmbeddingVariable:
        arguments.pop("use_resource", None)
        return EmbeddingVariable(key_dtype=keys, options=options, **arguments)

    def one(name: str) -> EmbeddingVariable:
        with variable_scope.variable_creator_scope(creator):
            found: EmbeddingVariable = variable_scope.get_variable(
                name,
                dtype=dtype,
                initializer=initial_value,
                regularizer=regularizer,
                trainable=trainable,
                collections=collections,
                caching_device=caching_device,
                validate_shape=validate_shape,
                custom_getter=custom_getter,
                constraint=constraint,
            )
        if not is_embedding_variable(found) or found.shape.as_list() != [embedding_dim]:
            raise ValueError(f"The variable {name} is there, but is no embedding variable of {embedding_dim} elements")
        return found

    divide = scope.partitioner if partitioner is None else partitioner
    scope_partitioner, scope.partitioner = scope.partitioner, None
    try:
        if divide is None:
            return one(name)
        count = divide(shape=TensorShape([_MANY, embedding_dim]), dtype=dtype)[0]
        parts = [one(f"{name}/part_{i}") for i in range(count)]
    finally:
        scope.partitioner = scope_partitioner
    full_name = parts[0].op.name.removesuffix("/part_0")
    for i, part in enumerate(parts):
        part._set_save_slice_info(SaveSliceInfo(full_name, [count, embedding_dim], [i, 0], [1, embedding_dim]))
    return PartitionedVariable(full_name, TensorShape([count, embedding_dim]), dtype, parts, [count, 1])
