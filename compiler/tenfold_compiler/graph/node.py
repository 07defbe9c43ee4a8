"""A node of the runtime's graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold_core.dtypes import DType
    from tenfold_core.node_names import TensorName
    from tenfold_core.op_def import OpDef
    from tenfold_protos.node_def_pb2 import NodeDef


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation. Immutable: a pass that changes it makes another with `replace`."""

    name: str
    op: str
    op_def: OpDef
    #: As it came from the client; shared between graphs, so it is never written to.
    node_def: NodeDef
    #: Attributes as Python values, defaults filled.
    attrs: Mapping[str, Any]
    #: Data inputs in order.
    inputs: tuple[TensorName, ...]
    #: Names of nodes that must have run before, without the "^".
    control_inputs: tuple[str, ...]
    #: Types that the inputs are declared with; a reference type means that the op writes through the edge.
    input_types: tuple[DType, ...]
    output_types: tuple[DType, ...]
    #: What the program asked for, in canonical spelling; may be partial or empty.
    requested_device: str
    #: The full name of the device it was placed on, "" before `place`.
    device: str = ""

    @property
    def sources(self) -> Iterator[str]:
        """The names of all nodes that this one waits for, data first; a name may come several times."""
        for tensor in self.inputs:
            yield tensor.node
        yield from self.control_inputs
