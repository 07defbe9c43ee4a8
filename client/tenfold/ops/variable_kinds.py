"""The default creator of `Variable(...)`: makes a reference variable or a resource variable, or finds an embedding one.

The call, the VariableDef that is read, the variable scope, or the default of the process decides the kind. Registers
with variables.py, which imports neither class. Loaded with tenfold.ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.graph.scope_names import prepend_scope
from tenfold.ops import variables
from tenfold.ops.embedding_variables import EmbeddingVariable
from tenfold.ops.reference_variables import RefVariable
from tenfold.ops.resource_variables import ResourceVariable
from tenfold.ops.variable_scope import use_resource_by_default

if TYPE_CHECKING:
    from tenfold.ops.variables import Variable


def _default_creator(use_resource: bool | None = None, **kwargs: Any) -> Variable:
    kwargs.pop("expected_shape", None)
    definition = kwargs.get("variable_def")
    if definition is not None:
        use_resource = definition.is_resource
        name = prepend_scope(definition.variable_name, kwargs.get("import_scope"))
        if use_resource and get_default_graph().get_tensor_by_name(name).op.type == "KvVarHandleOp":
            return EmbeddingVariable(**kwargs)
    if use_resource is None:
        use_resource = use_resource_by_default()
    return ResourceVariable(**kwargs) if use_resource else RefVariable(**kwargs)


variables.set_default_creator(_default_creator)
