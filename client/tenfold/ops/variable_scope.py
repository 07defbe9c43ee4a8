"""`tf.variable_scope` and `tf.get_variable`: variables found by name, shared on request, with inherited defaults.

A variable scope carries a name prefix and defaults (initializer, regularizer, reuse, …) for the variables made
inside, and opens a name scope for operations. The variables themselves are in variable_store.py.
Follows TensorFlow's ops/variable_scope.py.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import threading
from typing import TYPE_CHECKING, Any

from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops.casts import cast
from tenfold.ops.scope_defaults import VariableScope
from tenfold.ops.variable_store import VariableStore
from tenfold.ops.variables import CREATORS_KEY, Variable, VariableAggregation, VariableSynchronization
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold.graph.argument_types import DTypeLike, ShapeLike
    from tenfold.graph.graph import Graph


class _ReuseMode(enum.Enum):
    AUTO_REUSE = 1


#: `reuse=AUTO_REUSE`: take the variable if it exists, make it if not.
AUTO_REUSE = _ReuseMode.AUTO_REUSE

_STORE_KEY = ("__variable_store",)
_SCOPES_KEY = ("__varscope",)
#: The value for `use_resource=None` where no scope sets it; see `enable_resource_variables`.
_default_use_resource = False


def enable_resource_variables() -> None:
    """Makes resource variables the default kind in this process."""
    global _default_use_resource
    _default_use_resource = True


def disable_resource_variables() -> None:
    """Makes reference variables the default kind in this process again."""
    global _default_use_resource
    _default_use_resource = False


def resource_variables_enabled() -> bool:
    """Whether resource variables are the default kind."""
    return _default_use_resource


def use_resource_by_default() -> bool:
    """The kind of a variable made here without `use_resource`."""
    scoped = get_variable_scope().use_resource
    return _default_use_resource if scoped is None else bool(scoped)


class _ScopeState(threading.local):
    """State of one graph and thread: the current variable scope, and how often each scope name was opened."""

    def __init__(self) -> None:
        self.current = VariableScope(False)
        #: Scope name → times opened since its parent was opened; for unique default names.
        self.counts: dict[str, int] = {}

    def open(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def close_subscopes(self, name: str) -> None:
        for key in self.counts:
            if key.startswith(name + "/"):
                self.counts[key] = 0

    def unique_default(self, prefix: str) -> str:
        """`prefix`, or `prefix_1`, … if a scope of that name was opened inside the current one."""
        full = f"{self.current.name}/{prefix}" if self.current.name else prefix
        if not self.counts.get(full, 0):
            return prefix
        index = 1
        while self.counts.get(f"{full}_{index}", 0):
            index += 1
        return f"{prefix}_{index}"


def _scope_state(graph: Graph | None = None) -> _ScopeState:
    holder = (graph or get_default_graph()).get_collection_ref(_SCOPES_KEY)
    if not holder:
        holder.append(_ScopeState())
    state: _ScopeState = holder[0]
    return state


def _get_default_variable_store() -> VariableStore:
    holder = get_default_graph().get_collection_ref(_STORE_KEY)
    if not holder:
        holder.append(VariableStore())
    store: VariableStore = holder[0]
    return store


#: As in TensorFlow, the constructor under another name.
variable = Variable


def get_variable_scope() -> VariableScope:
    """The current variable scope of the default graph."""
    return _scope_state().current


def get_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """The variable `name` of the current variable scope: made, or shared if the scope says so.

    Args as for Variable; `initializer` is a callable of (shape, dtype), a value, or None for the default of the scope
    (if none, Glorot uniform); `regularizer` maps the variable to a loss kept in REGULARIZATION_LOSSES;
    `custom_getter(getter, name, **kwargs)` may change what is made.
    Raises ValueError if the variable exists and is not to be reused, or the reverse, or shape or dtype differ.
    """
    return get_variable_scope().get_variable(
        _get_default_variable_store(),
        name,
        shape=shape,
        dtype=dtype,
        initializer=initializer,
        regularizer=regularizer,
        trainable=trainable,
        collections=collections,
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def get_local_variable(
    name: str,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = False,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Any = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Like `get_variable`, but the variable is local: in LOCAL_VARIABLES and never trainable."""
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        trainable=False,
        collections=[*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        caching_device=caching_device,
        partitioner=partitioner,
        validate_shape=validate_shape,
        use_resource=use_resource,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def no_regularizer(_: Any) -> None:
    """Use this to keep a scope's default regularizer from applying."""
    return


def _entered(
    state: _ScopeState, name_or_scope: str | VariableScope, old_name_scope: str | None, given: dict[str, Any]
) -> VariableScope:
    """The scope to enter: inherits from the re-entered or the current scope, changed by the arguments `given`."""
    if isinstance(name_or_scope, VariableScope):
        parent, name, name_scope = name_or_scope, name_or_scope.name, name_or_scope.original_name_scope
    else:
        parent = state.current
        name = f"{parent.name}/{name_or_scope}" if parent.name else name_or_scope
        name_scope = name_or_scope if old_name_scope is None else old_name_scope
    scope = VariableScope(
        given["reuse"] or parent.reuse,
        name=name,
        initializer=parent.initializer,
        regularizer=parent.regularizer,
        caching_device=parent.caching_device,
        partitioner=parent.partitioner,
        custom_getter=parent.custom_getter,
        name_scope=name_scope,
        dtype=parent.dtype,
        use_resource=parent.use_resource,
        constraint=given["constraint"],
    )
    for key in ("initializer", "regularizer", "caching_device", "partitioner", "dtype", "use_resource"):
        if given[key] is not None:
            setattr(scope, key, given[key])
    if given["custom_getter"] is not None:
        scope.custom_getter = _wrapped_getter(given["custom_getter"], parent.custom_getter)
    return scope


def _wrapped_getter(custom_getter: Any, outer: Any) -> Any:
    if outer is None:
        return custom_getter

    def wrapped(getter: Any, *args: Any, **kwargs: Any) -> Any:
        return custom_getter(functools.partial(outer, getter), *args, **kwargs)

    return wrapped


class variable_scope:
    """`with tf.variable_scope("layer"):` prefixes variables and operations with `layer/`.

    `name_or_scope` is a name or a VariableScope to re-enter; with None, `default_name` is used and made unique.
    The rest are defaults for the variables inside. `auxiliary_name_scope=False` opens no name scope.
    Raises TypeError and ValueError for arguments that contradict each other.
    """

    def __init__(
        self,
        name_or_scope: str | VariableScope | None,
        default_name: str | None = None,
        values: Any = None,
        initializer: Any = None,
        regularizer: Any = None,
        caching_device: Any = None,
        partitioner: Any = None,
        custom_getter: Any = None,
        reuse: Any = None,
        dtype: DTypeLike | None = None,
        use_resource: bool | None = None,
        constraint: Any = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        if default_name is None and name_or_scope is None:
            raise TypeError("If default_name is None then name_or_scope is required")
        if name_or_scope is not None and not isinstance(name_or_scope, (str, VariableScope)):
            raise TypeError("VariableScope: name_or_scope must be a string or VariableScope.")
        reuse = None if reuse is False else reuse
        if reuse is not True and reuse is not None and reuse is not AUTO_REUSE:
            raise ValueError("The reuse parameter must be True or False or None.")
        if not isinstance(auxiliary_name_scope, bool):
            raise TypeError(f"The auxiliary_name_scope must be `True` or `False`, while get {auxiliary_name_scope}")
        self._name_or_scope = name_or_scope
        self._default_name = default_name
        self._values = [value for value in values or () if hasattr(value, "graph")]
        self._auxiliary_name_scope = auxiliary_name_scope
        self._given = {
            "reuse": reuse,
            "initializer": initializer,
            "regularizer": regularizer,
            "caching_device": caching_device,
            "partitioner": partitioner,
            "custom_getter": custom_getter,
            "dtype": dtype,
            "use_resource": use_resource,
            "constraint": constraint,
        }
        #: One per `__enter__`, since an object may be entered again: what to leave, the state, the previous scope.
        self._stacks: list[tuple[contextlib.ExitStack, _ScopeState, VariableScope]] = []

    def __enter__(self) -> VariableScope:
        stack = contextlib.ExitStack()
        with contextlib.ExitStack() as guard:
            guard.push(stack)
            graph = self._values[0].graph if self._values else get_default_graph()
            if graph is not get_default_graph():
                stack.enter_context(graph.as_default())
            scope = stack.enter_context(self._opened(graph, stack))
            guard.pop_all()
        self._stacks.append((stack, _scope_state(graph), scope))
        return scope

    def keep_weights(self, dtype: DTypeLike = dtypes.float32) -> variable_scope:
        """This scope, where variables are kept as `dtype` and read as the type they are asked for.

        DeepRec's name: of a part of a model that computes in bfloat16 the weights stay float32.
        """
        kept, outer = as_dtype(dtype), self._given["custom_getter"]

        def read(getter: Callable[..., Any], *args: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
            asked = kept if dtype is None else as_dtype(dtype)
            found = getter if outer is None else functools.partial(outer, getter)
            made = found(*args, dtype=kept if asked.is_floating else asked, **kwargs)
            return made if made.dtype.base_dtype == asked else cast(made, asked)

        self._given["custom_getter"] = read
        return self

    def __exit__(self, *exc: Any) -> None:
        stack, state, scope = self._stacks[-1]
        if state.current is not scope:
            # Leave nothing, so that the caller can still leave the inner scopes first.
            raise RuntimeError("Improper nesting of variable_scope.")
        self._stacks.pop()
        stack.__exit__(*exc)

    @contextlib.contextmanager
    def _opened(self, graph: Graph, stack: contextlib.ExitStack) -> Iterator[VariableScope]:
        state = _scope_state(graph)
        target = self._name_or_scope
        if target is None:
            if self._given["reuse"]:
                raise ValueError("reuse=True cannot be used without a name_or_scope")
            assert self._default_name is not None
            name_scope = self._name_scope(graph, stack, self._default_name)
            target = state.unique_default(self._default_name)
        elif isinstance(target, VariableScope):
            name_scope = self._name_scope(graph, stack, target.name.split("/")[-1])
        else:
            name_scope = self._name_scope(graph, stack, target)
        scope = _entered(state, target, name_scope, self._given)
        outer = state.current
        state.open(scope.name)
        counts = dict(state.counts)
        state.current = scope
        try:
            yield scope
        finally:
            if isinstance(target, VariableScope):
                # Re-entering counts once; counts of scopes opened inside are reset, so their default names start over.
                state.counts = counts
            else:
                state.close_subscopes(scope.name)
            state.current = outer

    def _name_scope(self, graph: Graph, stack: contextlib.ExitStack, name: str) -> str | None:
        """Opens the name scope; None if there is none to open."""
        if not self._auxiliary_name_scope:
            current = graph.get_name_scope()
            return stack.enter_context(graph.name_scope(current + "/" if current else None))
        return stack.enter_context(graph.name_scope(name)) if name else None


@contextlib.contextmanager
def variable_op_scope(
    values: Any, name_or_scope: str | VariableScope | None, default_name: str | None = None, **kwargs: Any
) -> Iterator[VariableScope]:
    """Old spelling of `variable_scope(name_or_scope, default_name, values)`."""
    with variable_scope(name_or_scope, default_name=default_name, values=values, **kwargs) as scope:
        yield scope


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable[..., Any]) -> Iterator[None]:
    """Variables made inside come from `variable_creator(next_creator, **kwargs)`; the innermost is called first."""
    creators = get_default_graph().get_collection_ref(CREATORS_KEY)
    creators.append(variable_creator)
    try:
        yield
    finally:
        creators.pop()


__all__ = [
    "AUTO_REUSE",
    "Variable",
    "VariableAggregation",
    "VariableScope",
    "VariableSynchronization",
    "disable_resource_variables",
    "enable_resource_variables",
    "get_local_variable",
    "get_variable",
    "get_variable_scope",
    "no_regularizer",
    "resource_variables_enabled",
    "variable_creator_scope",
    "variable_op_scope",
    "variable_scope",
]
