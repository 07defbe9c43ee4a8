"""`tf.make_template`: a function whose variables are made at its first call and shared at the later ones.

Follows TensorFlow 1.15's ops/template.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tenfold.ops.variable_lists import global_variables, local_variables, trainable_variables
from tenfold.ops.variable_scope import variable_scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.ops.scope_defaults import VariableScope


def make_template(
    name_: str,
    func_: Callable[..., Any],
    create_scope_now_: bool = False,
    unique_name_: str | None = None,
    custom_getter_: Any = None,
    **kwargs: Any,
) -> Template:
    """`func_` with `kwargs` bound, and with a variable scope of its own: its variables are shared between calls.

    The scope is named at the first call, or now; `unique_name_` is used unchanged. Raises ValueError if
    `func_` makes variables in a later call.
    """
    function = functools.partial(func_, **kwargs) if kwargs else func_
    return Template(name_, function, create_scope_now_, unique_name_, custom_getter_)


class Template:
    """The result of `make_template`; called like the function."""

    def __init__(
        self, name: str, function: Callable[..., Any], create_scope_now: bool, unique_name: str | None, getter: Any
    ) -> None:
        if name is None:
            raise ValueError("name cannot be None.")
        self._name = name
        self._function = function
        self._unique_name = unique_name
        self._custom_getter = getter
        self._scope: VariableScope | None = None
        self._called = False
        if create_scope_now:
            self._find_scope()

    def _find_scope(self) -> VariableScope:
        if self._scope is None:
            with variable_scope(self._unique_name, self._name, custom_getter=self._custom_getter) as scope:
                self._scope = scope
        return self._scope

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's result, computed in the template's scope."""
        scope = self._find_scope()
        before = len(global_variables()), len(trainable_variables())
        with variable_scope(scope, reuse=self._called or scope.reuse):
            result = self._function(*args, **kwargs)
        after = len(global_variables()), len(trainable_variables())
        if self._called and after[1] != before[1]:
            raise ValueError(
                "New variable created when calling a template after the first time, perhaps you used tf.Variable when "
                f"you meant tf.get_variable: {trainable_variables()[before[1] :]}"
            )
        self._called = True
        return result

    @property
    def name(self) -> str:
        """The name given."""
        return self._name

    @property
    def func(self) -> Callable[..., Any]:
        """The function."""
        return self._function

    @property
    def variable_scope(self) -> VariableScope | None:
        """The scope, None before it is named."""
        return self._scope

    @property
    def variable_scope_name(self) -> str | None:
        """The scope's name."""
        return self._scope.name if self._scope is not None else None

    def _own(self, variables: list[Any]) -> list[Any]:
        prefix = (self._scope.name + "/") if self._scope is not None else "\0"
        return [variable for variable in variables if variable.name.startswith(prefix)]

    @property
    def variables(self) -> list[Any]:
        """The global and local variables made by the function."""
        return self._own(global_variables() + local_variables())

    @property
    def trainable_variables(self) -> list[Any]:
        """The ones that are trained."""
        return self._own(trainable_variables())

    @property
    def global_variables(self) -> list[Any]:
        """The ones that are global."""
        return self._own(global_variables())
