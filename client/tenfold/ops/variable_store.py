"""The variables of a graph by name: what `tf.get_variable` finds, checks or makes.

One store per graph, kept in a collection; variable_scope.py resolves names and defaults before it calls the store.
Follows _VariableStore of TensorFlow's ops/variable_scope.py.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.op_builder import apply_op
from tenfold.graph.tensor import Tensor
from tenfold.graph.traceback import user_frames
from tenfold.ops import init_ops
from tenfold.ops.partitioned_variable import PartitionedVariable, PartitionInfo, call_partitioner, parts_of
from tenfold.ops.variables import Variable, VariableSynchronization
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


#: Arguments of a custom getter's getter after `partitioner`.
_LAST_ARGUMENTS = ("validate_shape", "use_resource", "constraint", "synchronization", "aggregation")


class VariableStore:
    """Name → variable, for the variables made by `get_variable`."""

    def __init__(self) -> None:
        #: Parts of partitioned variables too, as `<name>/part_<i>`.
        self.variables: dict[str, Any] = {}
        self.partitioned: dict[str, PartitionedVariable] = {}

    def get_variable(
        self, name: str, shape: Any = None, *, custom_getter: Callable[..., Any] | None = None, **arguments: Any
    ) -> Any:
        """The variable `name`, found or made; by `custom_getter(getter, name, …)` if there is one.

        Raises ValueError when `reuse` and what exists do not agree, or shape, dtype or initializer do not fit.
        """
        arguments["shape"] = shape
        if custom_getter is None:
            return self._true_getter(name, **arguments)
        if not callable(custom_getter):
            raise ValueError(f"Passed a custom_getter which is not callable: {custom_getter}")
        parameters = inspect.signature(custom_getter).parameters
        takes_any = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())
        if "constraint" not in parameters and not takes_any:
            # Getters written before constraints existed keep working.
            arguments.pop("constraint", None)
        if arguments.get("trainable") is None:
            # Getters are told, as in TensorFlow, and need not know the default.
            on_read = arguments.get("synchronization") == VariableSynchronization.ON_READ
            arguments["trainable"] = not on_read
        return custom_getter(getter=self._true_getter, name=name, **arguments)

    def _true_getter(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        trainable: bool | None = None,
        collections: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        *rest: Any,
        **arguments: Any,
    ) -> Any:
        """What a custom getter calls, by name or by position: in TensorFlow's order."""
        arguments |= dict(zip(_LAST_ARGUMENTS, rest, strict=False))
        arguments |= {"initializer": initializer, "regularizer": regularizer, "trainable": trainable}
        arguments |= {"collections": collections, "caching_device": caching_device}
        arguments["dtype"] = as_dtype(dtype).base_dtype
        scalar = isinstance(shape, (list, tuple)) and not shape
        if partitioner is not None and not scalar:
            if not callable(partitioner):
                raise ValueError(f"Partitioner must be callable, but received: {partitioner}")
            with get_default_graph().name_scope(None):
                return self.get_partitioned_variable(name, partitioner, shape=shape, reuse=reuse, **arguments)
        if reuse is True and name in self.partitioned:
            return self.get_partitioned_variable(name, None, shape=shape, reuse=reuse, **arguments)
        if f"{name}/part_0" in self.variables:
            raise ValueError(
                f"No partitioner was provided, but a partitioned version of the variable was found: {name}/part_0. "
                "Perhaps a variable of the same name was already created with partitioning?"
            )
        return self._single(name, shape=shape, reuse=reuse, **arguments)

    def get_partitioned_variable(
        self,
        name: str,
        partitioner: Callable[..., Any] | None,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        reuse: Any = None,
        **arguments: Any,
    ) -> PartitionedVariable:
        """The variable `name`, found or made in parts `<name>/part_0`, …; the arguments are those of `get_variable`.

        Raises ValueError when what exists under the name does not fit.
        """
        if name in self.variables:
            raise ValueError(
                f"A partitioner was provided, but an unpartitioned version of the variable was found: {name}.  "
                "Perhaps a variable of the same name was already created without partitioning?"
            )
        dtype, full = as_dtype(dtype).base_dtype, as_shape(shape)
        if isinstance(initializer, Tensor):
            full = full.merge_with(initializer.get_shape())
        partitions = None if partitioner is None else call_partitioner(partitioner, full, dtype)
        if name in self.partitioned:
            return self._existing_parts(name, full, dtype, partitions, reuse)
        if reuse is True or partitions is None:
            raise ValueError(
                f"PartitionedVariable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=False or reuse=tf.AUTO_REUSE in VarScope?"
            )
        self._check_part_count(name, max(partitions))
        if initializer is None:
            initializer = default_initializer(name, dtype)
        dims: Any = full.as_list()
        parts = []
        for i, (offset, part_shape) in enumerate(parts_of(dims, partitions)):
            part_name, init = f"{name}/part_{i}", initializer
            size: list[int] | None = part_shape
            with get_default_graph().name_scope(part_name + "/PartitionedInitializer"):
                if not callable(initializer):
                    whole = convert_to_tensor(initializer, dtype=None if isinstance(initializer, Tensor) else dtype)
                    init, size = apply_op("Slice", input=whole, begin=offset, size=part_shape), None
            with get_default_graph().name_scope(None):
                info = PartitionInfo(dims, offset)
                part = self._single(part_name, size, dtype, init, reuse=reuse, partition_info=info, **arguments)
            part._set_save_slice_info(Variable.SaveSliceInfo(name, dims, offset, part_shape))
            parts.append(part)
        found = PartitionedVariable(name, full, dtype, parts, partitions)
        self.partitioned[name] = found
        return found

    def _existing_parts(
        self, name: str, shape: TensorShape, dtype: DType, partitions: list[int] | None, reuse: Any
    ) -> PartitionedVariable:
        found = self.partitioned[name]
        if reuse is False:
            raise ValueError(
                f"Partitioned variable with name {name} already exists. "
                "Did you mean to set reuse=True or reuse=tf.AUTO_REUSE in VarScope?"
            )
        trying = f"Trying to reuse partitioned variable {name}, but specified"
        if not shape.is_compatible_with(found.get_shape()):
            raise ValueError(f"{trying} shape {shape} and found shape {found.get_shape()}.")
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(f"{trying} dtype {dtype.name} and found dtype {found.dtype.name}.")
        if partitions is not None and list(found._get_partitions()) != partitions:
            raise ValueError(f"{trying} partitions {partitions} and found partitions {found._get_partitions()}.")
        return found

    def _check_part_count(self, name: str, count: int) -> None:
        """Raises ValueError if parts of that name exist, but not as many."""
        if f"{name}/part_0" not in self.variables:
            return
        said = (
            "Partitioner returned a different partitioning than what was already found.  Partitioner returned "
            f"{count} shards, and shard {name}/part_0 was found, but"
        )
        if f"{name}/part_{count - 1}" not in self.variables:
            raise ValueError(f"{said} {name}/part_{count - 1} was not.")
        if f"{name}/part_{count}" in self.variables:
            raise ValueError(f"{said} so was the extra shard {name}/part_{count}.")

    def _single(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        initializer: Any = None,
        regularizer: Callable[[Any], Any] | None = None,
        reuse: Any = None,
        partition_info: PartitionInfo | None = None,
        **arguments: Any,
    ) -> Any:
        """The variable, found or made whole; `arguments` are those of Variable."""
        from_value = initializer is not None and not callable(initializer)
        if shape is not None and from_value:
            raise ValueError("If initializer is a constant, do not specify shape.")
        data_type = as_dtype(dtype).base_dtype
        known_shape = as_shape(shape)
        if name in self.variables:
            return self._existing(name, known_shape, data_type, reuse)
        if reuse is True:
            raise ValueError(
                f"Variable {name} does not exist, or was not created with tf.get_variable(). "
                "Did you mean to set reuse=tf.AUTO_REUSE in VarScope?"
            )
        if initializer is None:
            initializer = default_initializer(name, data_type)
        initial_value: Any = initializer
        variable_dtype: DType | None = None
        if not from_value:
            initial_value, sized = _bound_initializer(initializer, shape, known_shape, data_type, partition_info)
            variable_dtype = data_type if sized else None
        variable = Variable(initial_value=initial_value, name=name, dtype=variable_dtype, **arguments)
        self.variables[name] = variable
        if regularizer is not None:
            self._regularize(name, variable, regularizer)
        return variable

    def _existing(self, name: str, shape: TensorShape, dtype: DType, reuse: Any) -> Any:
        found = self.variables[name]
        if reuse is False:
            frames = user_frames(getattr(found.op, "traceback", None))
            place = '  File "{}", line {}, in {}'.format(*frames[-1]) if frames else "  (unknown)"
            raise ValueError(
                f"Variable {name} already exists, disallowed. Did you mean to set reuse=True or "
                f"reuse=tf.AUTO_REUSE in VarScope? Originally defined at:\n\n{place}"
            )
        if not shape.is_compatible_with(found.get_shape()):
            raise ValueError(
                f"Trying to share variable {name}, but specified shape {shape} and found shape {found.get_shape()}."
            )
        if not dtype.is_compatible_with(found.dtype):
            raise ValueError(
                f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
                f"{found.dtype.base_dtype.name}."
            )
        return found

    @staticmethod
    def _regularize(name: str, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        graph = variable.graph
        with graph.colocate_with(variable.op), graph.name_scope(name + "/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)


def default_initializer(name: str, dtype: DType) -> Any:
    """Glorot uniform for floating types, zeros for the others. Raises ValueError where neither makes sense."""
    if dtype.is_floating:
        return init_ops.GlorotUniform()
    if dtype.is_integer or dtype.is_bool or dtype == dtypes.string:
        return init_ops.Zeros()
    raise ValueError(f"An initializer for variable {name} of {dtype} is required")


def _bound_initializer(
    initializer: Any, shape: Any, known_shape: TensorShape, dtype: DType, partition_info: PartitionInfo | None
) -> tuple[Callable[[], Any], bool]:
    """A function without arguments that makes the initial value, and whether shape and dtype were bound into it."""
    if inspect.isclass(initializer):
        initializer = initializer()
    parameters = inspect.signature(initializer).parameters.values()
    if shape is not None and known_shape.is_fully_defined():
        dims = known_shape.as_list()
        if any(p.name == "partition_info" for p in parameters):
            return lambda: initializer(dims, dtype=dtype, partition_info=partition_info), True
        return lambda: initializer(dims, dtype=dtype), True
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    if all(p.default is not inspect.Parameter.empty or p.kind in optional for p in parameters):
        return initializer, False
    raise ValueError(
        "The initializer passed is not valid. It should be a callable with no arguments and the shape should not be "
        "provided or an instance of `tf.keras.initializers.*' and `shape` should be fully defined. "
        f"The shape is {known_shape}."
    )
