"""The gradient table: one row per op type, read by the reverse walk in walker.py.

A row is either a rule (``@RegisterGradient("MatMul")``) or a statement that the op has no gradient
(``not_differentiable("Shape", "Rank")``); differentiating an op without a row raises LookupError.
The family modules beside this file hold the rows. They are imported at the first look-up, so that
``import tenfold`` stays fast. Follows the public surface of TensorFlow's framework/ops.py.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold.gradients.broadcast import undo_broadcast
from tenfold.graph.op_builder import apply_op
from tenfold_core import opdefs

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation

#: What a rule returns: one gradient per input of the op, or a single one for ops with one input.
#: An entry is a Tensor, an IndexedSlices, or None where nothing flows.
Gradients = Any
RuleFunction = Callable[..., Gradients]
RuleFunctionT = TypeVar("RuleFunctionT", bound=RuleFunction)


def _conjugated(g: Any) -> Any:
    return apply_op("Conj", input=g) if hasattr(g, "op") and g.dtype.is_complex else g


@dataclass(frozen=True, slots=True)
class GradientRule:
    """How to differentiate one op type. Calling it adds gradient ops to the default graph."""

    function: RuleFunction
    #: The op broadcasts its first two inputs; the rule may return gradients in the shape of the output, and
    #: `__call__` adds the sum over the broadcast dimensions.
    broadcasts: bool = False
    #: The rule is written for real numbers and holds for complex ones with conjugates: the gradient of a real loss
    #: through a holomorphic f is g * conj(f'), which is the conjugate of what the rule gives for conj(g).
    holomorphic: bool = False

    def __call__(self, op: Operation, *grads: Any) -> list[Any]:
        """Returns one gradient per input of `op`. Raises ValueError when the rule returns another count."""
        through = self.holomorphic and op.outputs[0].dtype.is_complex
        answer = self.function(op, *(map(_conjugated, grads) if through else grads))
        in_grads = list(answer) if isinstance(answer, (list, tuple)) else [answer]
        if through:
            in_grads = [_conjugated(g) for g in in_grads]
        if len(in_grads) != len(op.inputs):
            raise ValueError(
                f"Num gradients {len(in_grads)} generated for op {op.name!r} (op type: {op.type}) "
                f"do not match num inputs {len(op.inputs)}"
            )
        if self.broadcasts:
            in_grads[:2] = undo_broadcast(op.inputs[0], op.inputs[1], in_grads[0], in_grads[1])
        return in_grads


@dataclass(frozen=True, slots=True)
class _GradientRow:
    rule: GradientRule | None  # None: not differentiable
    place: str  # where the row was written, for the message on a clash
    is_refusal: bool  # the rule raises LookupError


_rows: dict[str, _GradientRow] = {}
_load_lock = threading.RLock()
#: True once every family module was imported. Only written under _load_lock.
_loaded = False


def _add_row(op_type: str, rule: GradientRule | None, place: str, is_refusal: bool = False) -> None:
    if not isinstance(op_type, str):
        raise TypeError("op_type must be a string")
    known = _rows.get(op_type)
    if known is not None:
        raise KeyError(f"Registering two gradients with name '{op_type}'! First at {known.place}, again at {place}")
    _rows[op_type] = _GradientRow(rule, place, is_refusal)


def _place_of(function: RuleFunction) -> str:
    code = getattr(function, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else repr(function)


class RegisterGradient:
    """Decorator that registers the gradient rule of an op type, as `tf.RegisterGradient`.

    The function gets the forward Operation and one gradient per output, and returns one gradient per input.
    """

    def __init__(self, op_type: str) -> None:
        if not isinstance(op_type, str):
            raise TypeError("op_type must be a string")
        self._op_type = op_type

    def __call__(self, f: RuleFunctionT) -> RuleFunctionT:
        """Registers `f`. Raises KeyError, naming both places, when the op type has a row already."""
        _ensure_loaded_for_user(f)
        _add_row(self._op_type, GradientRule(f), _place_of(f))
        return f


def gradient(
    *op_types: str, broadcasts: bool = False, holomorphic: bool = False
) -> Callable[[RuleFunctionT], RuleFunctionT]:
    """Decorator of the family modules: one rule for one or several op types. See GradientRule for the switches."""

    def register(function: RuleFunctionT) -> RuleFunctionT:
        for op_type in op_types:
            _add_row(op_type, GradientRule(function, broadcasts, holomorphic), _place_of(function))
        return function

    return register


def not_differentiable(*op_types: str, why: str = "") -> None:
    """Adds rows for op types without a gradient: the gradient of their inputs is None.

    `why` is kept with the row for readers and clash messages.
    """
    for op_type in op_types:
        _add_row(op_type, None, f"not_differentiable({op_type!r}{f', why={why!r}' if why else ''})")


def not_implemented(*op_types: str) -> None:
    """Adds rows for op types with a gradient in TensorFlow but not here; differentiating them raises LookupError."""

    def refuse(op: Operation, *grads: Any) -> Any:
        raise LookupError(f"No gradient is implemented for operation {op.name!r} (op type: {op.type})")

    for op_type in op_types:
        _add_row(op_type, GradientRule(refuse), f"not_implemented({op_type!r})", is_refusal=True)


def NotDifferentiable(op_type: str) -> None:
    """Specifies that ops of type `op_type` are not differentiable, as `tf.NotDifferentiable`."""
    ensure_loaded()
    not_differentiable(op_type)


#: Old alias, still public in TensorFlow 1.x.
NoGradient = NotDifferentiable


def modules() -> list[str]:
    """The modules beside this one that hold rows: <family>.py and <family>_*.py. Imports none of them."""
    folder = str(Path(__file__).parent)
    stems = (module.name for module in pkgutil.iter_modules([folder]))
    return [f"{__package__}.{stem}" for stem in stems if opdefs.family_of_module(stem) is not None]


def ensure_loaded() -> None:
    """Imports every family module once. Blocks only on those imports."""
    global _loaded
    if _loaded:
        return
    with _load_lock:
        if not _loaded:
            for module in modules():
                importlib.import_module(module)
            _loaded = True


def _ensure_loaded_for_user(function: RuleFunction) -> None:
    """Loads Tenfold's rows before a user's, so that a clash is reported at the user's row."""
    if not getattr(function, "__module__", "").startswith("tenfold.gradients."):
        ensure_loaded()


def has_row(op_type: str) -> bool:
    """Whether `op_type` has a rule or is declared not differentiable."""
    ensure_loaded()
    return op_type in _rows


def is_differentiable(op_type: str) -> bool:
    """Whether `op_type` has a rule (False for not differentiable and for unknown op types)."""
    ensure_loaded()
    row = _rows.get(op_type)
    return row is not None and row.rule is not None


def kind_of(op_type: str) -> str:
    """What the table says of an op type: "rule", "none" (not differentiable), "refused" (not implemented), "absent"."""
    ensure_loaded()
    row = _rows.get(op_type)
    if row is None:
        return "absent"
    return "none" if row.rule is None else "refused" if row.is_refusal else "rule"


def registered() -> Sequence[str]:
    """All op types with a row, sorted."""
    ensure_loaded()
    return sorted(_rows)


def lookup(op_type: str) -> GradientRule | None:
    """The rule of an op type, None where it is declared not differentiable.

    Raises LookupError, with the nearest registered names, when the op type has no row.
    """
    ensure_loaded()
    row = _rows.get(op_type)
    if row is None:
        near = difflib.get_close_matches(op_type, _rows, n=3)
        hint = f"; nearest registered: {', '.join(near)}" if near else ""
        raise LookupError(f"gradient registry has no entry for: {op_type}{hint}")
    return row.rule


def get_gradient_function(op: Operation) -> GradientRule | None:
    """The rule for one operation, honouring `graph.gradient_override_map` (attr `_gradient_op_type`).

    Returns None for an op without inputs or without gradient. Raises LookupError for an op type without a row.
    """
    if not op.inputs:
        return None
    override = op.node_def.attr.get("_gradient_op_type")
    if override is None and op.type in op.graph._functions:
        from tenfold.gradients.function_call import gradient_of_call

        return GradientRule(op.graph._function_rules.get(op.type, gradient_of_call))
    return lookup(override.s.decode() if override is not None else op.type)
