"""`tf.contrib.framework`: variables by scope, assigning from checkpoints, argument scopes, checks of tensors.

variables.py, assigning.py, tensors.py and checkpoint_ops.py have its own functions; the others are those of `tf`.
"""

from tenfold import nest
from tenfold.contrib.arg_scope import (
    add_arg_scope,
    arg_scope,
    arg_scope_func_key,
    arg_scoped_arguments,
    current_arg_scope,
    has_arg_scope,
)
from tenfold.contrib.framework.assigning import (
    assign_from_checkpoint,
    assign_from_checkpoint_fn,
    assign_from_values,
    assign_from_values_fn,
)
from tenfold.contrib.framework.checkpoint_ops import (
    load_and_remap_matrix_initializer,
    load_embedding_initializer,
    load_linear_multiclass_bias_initializer,
    load_variable_slot_initializer,
)
from tenfold.contrib.framework.deprecation import (
    deprecated,
    deprecated_arg_values,
    deprecated_args,
    experimental,
)
from tenfold.contrib.framework.tensors import (
    assert_scalar_int,
    get_graph_from_inputs,
    get_name_scope,
    get_placeholders,
    is_tensor,
    reduce_sum_n,
    remove_squeezable_dimensions,
    with_same_shape,
    with_shape,
)
from tenfold.contrib.framework.variables import (
    VariableDeviceChooser,
    add_model_variable,
    assert_or_get_global_step,
    filter_variables,
    get_local_variables,
    get_model_variables,
    get_trainable_variables,
    get_unique_variable,
    get_variable_full_name,
    get_variables,
    get_variables_by_name,
    get_variables_by_suffix,
    get_variables_to_restore,
    global_variable,
    local_variable,
    model_variable,
    variable,
)
from tenfold.graph.scope_names import prepend_scope as prepend_name_scope
from tenfold.graph.scope_names import strip_scope as strip_name_scope
from tenfold.graph.sparse_tensor import convert_to_tensor_or_sparse_tensor
from tenfold.ops.array_sort import argsort, sort
from tenfold.ops.check_ops import assert_same_float_dtype, assert_scalar
from tenfold.ops.control_flow_cond import smart_cond, smart_constant_value
from tenfold.ops.script_ops import py_func
from tenfold.ops.type_specs import TensorSpec
from tenfold.train.checkpoint_utils import init_from_checkpoint, list_variables, load_checkpoint, load_variable
from tenfold.train.training_util import (
    assert_global_step,
    create_global_step,
    get_global_step,
    get_or_create_global_step,
)

__all__ = [
    "TensorSpec", "VariableDeviceChooser", "add_arg_scope", "add_model_variable", "arg_scope", "arg_scope_func_key",
    "arg_scoped_arguments", "argsort", "assert_global_step", "assert_or_get_global_step", "assert_same_float_dtype",
    "assert_scalar", "assert_scalar_int", "assign_from_checkpoint", "assign_from_checkpoint_fn", "assign_from_values",
    "assign_from_values_fn", "convert_to_tensor_or_sparse_tensor", "create_global_step", "current_arg_scope",
    "deprecated", "deprecated_arg_values", "deprecated_args", "experimental", "filter_variables", "get_global_step",
    "get_graph_from_inputs", "get_local_variables", "get_model_variables", "get_name_scope",
    "get_or_create_global_step", "get_placeholders", "get_trainable_variables", "get_unique_variable",
    "get_variable_full_name", "get_variables", "get_variables_by_name", "get_variables_by_suffix",
    "get_variables_to_restore", "global_variable", "has_arg_scope", "init_from_checkpoint", "is_tensor",
    "list_variables", "load_and_remap_matrix_initializer", "load_checkpoint", "load_embedding_initializer",
    "load_linear_multiclass_bias_initializer", "load_variable", "load_variable_slot_initializer", "local_variable",
    "model_variable", "nest", "prepend_name_scope", "py_func", "reduce_sum_n", "remove_squeezable_dimensions",
    "smart_cond", "smart_constant_value", "sort", "strip_name_scope", "variable", "with_same_shape", "with_shape",
]  # fmt: skip
