"""SlotKeeper: the slots of an optimizer, looked up by trained variable and slot name.

The base of Optimizer (optimizer.py); slot_creator.py makes the variables. Keys hold the graph, since one optimizer
may serve several. Follows the slot methods of TensorFlow's training/optimizer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.default_stack import get_default_graph
from tenfold.ops.resource_variables import is_resource_variable
from tenfold.ops.variables import Variable
from tenfold.train import slot_creator

if TYPE_CHECKING:
    from tenfold.graph.graph import Graph
    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


class SlotKeeper:
    """Slots per trained variable, and variables of the optimizer as a whole."""

    def __init__(self) -> None:
        #: Slot name → (graph, variable name) → slot variable.
        self._slots: dict[str, dict[tuple[Graph, str], Variable]] = {}
        #: (name, graph) → variable that belongs to no single trained variable.
        self._non_slots: dict[tuple[str, Graph], Variable] = {}

    def get_slot(self, var: Any, name: str) -> Variable | None:
        """The slot `name` of `var`, or None if there is none (yet)."""
        return self._slots.get(name, {}).get(_var_key(var))

    def get_slot_names(self) -> list[str]:
        """The names of the slots kept so far, sorted."""
        return sorted(self._slots)

    def variables(self) -> list[Variable]:
        """All variables of this optimizer in the default graph, by name."""
        graph = get_default_graph()
        kept = [*self._non_slots.values(), *(slot for slots in self._slots.values() for slot in slots.values())]
        return sorted((v for v in kept if v.graph is graph), key=lambda v: v.name)

    def _slot_dict(self, slot_name: str) -> dict[tuple[Graph, str], Variable]:
        return self._slots.setdefault(slot_name, {})

    def _get_or_make_slot(self, var: Any, val: Any, slot_name: str, op_name: str) -> Variable:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_slot(var, val, op_name)
        return slots[_var_key(var)]

    def _get_or_make_slot_with_initializer(
        self, var: Any, initializer: Any, shape: TensorShape, dtype: DType, slot_name: str, op_name: str
    ) -> Variable:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_slot_with_initializer(var, initializer, shape, dtype, op_name)
        return slots[_var_key(var)]

    def _zeros_slot(self, var: Any, slot_name: str, op_name: str) -> Variable:
        slots = self._slot_dict(slot_name)
        if _var_key(var) not in slots:
            slots[_var_key(var)] = slot_creator.create_zeros_slot(var, op_name)
        return slots[_var_key(var)]

    def _create_non_slot_variable(self, initial_value: Any, name: str, colocate_with: Any) -> Variable:
        """A variable of the optimizer as a whole, on the device of `colocate_with`; made once per graph."""
        key = (name, colocate_with.graph)
        if key not in self._non_slots:
            with colocate_with.graph.colocate_with(colocate_with.op):
                self._non_slots[key] = Variable(
                    initial_value, name=name, trainable=False, use_resource=is_resource_variable(colocate_with)
                )
        return self._non_slots[key]

    def _get_non_slot_variable(self, name: str, graph: Graph) -> Variable:
        return self._non_slots[name, graph]


def _var_key(var: Any) -> tuple[Graph, str]:
    return var.op.graph, var.op.name
