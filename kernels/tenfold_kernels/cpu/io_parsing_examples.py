"""Examples: serialized protos to dense, sparse and ragged tensors. SequenceExamples are io_parsing_sequences.py's.

Rows that do not parse, or whose values have another type or number than asked for, are an error that names them. A
batch is read by compiled loops (_examples_at_once.py) unless something in it is unusual; how features become tensors
then is in _examples.py. Follows example_proto_fast_parsing.cc and example_parsing_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._examples import (
    Inputs,
    Rows,
    attr_keys,
    columns_of,
    dense_features_of,
    features_of,
    keys_of,
    outputs_in_order,
    shapes_of_attr,
)
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cpu._examples_at_once import AtOnce


class _Parser:
    """The op of one node. Keys and defaults are constants as a rule: what is made of them is kept while they stay."""

    def __init__(self, node: KernelNode) -> None:
        self._node = node
        self._shapes = shapes_of_attr(node, "dense_shapes")
        #: The inputs after the records, when they were last looked at, and what they were found to ask for.
        self._known: tuple[tuple[Array, ...], Array | None, AtOnce] | None = None

    def __call__(self, *values: Array) -> Any:
        serialized, op = values[0], self._node.op
        if op == "ParseSingleExample" and serialized.ndim:
            raise invalid(f"Expected serialized to be a scalar, got shape: {shape_text(serialized.shape)}")
        if op == "ParseExample" and serialized.ndim != 1:
            raise invalid(f"Expected serialized to be a vector, got shape: {shape_text(serialized.shape)}")
        names, wanted = self._wanted(values[1:])
        found = None
        if serialized.ndim <= 1 and (names is None or names.size in (0, serialized.size)):
            found = wanted.outputs(serialized)
        if found is None:
            rows = Rows(serialized, names, example_pb2.Example)
            maps = [proto.features.feature for proto in rows.protos]
            found = features_of(rows, maps, wanted.sparse, wanted.dense, wanted.ragged)
        return outputs_in_order(found)

    def rows(self, count: int, values: Sequence[Array], has_rows: Sequence[bool]) -> list[Array] | None:
        """The next calls at once, of dense features of fixed shapes; None where something is unusual."""
        serialized, *others = values
        if any(has_rows[1:]) or serialized.ndim != 1 or any(len(shape) and shape[0] == -1 for shape in self._shapes):
            return None
        _, wanted = self._wanted(tuple(others))
        return None if wanted.sparse or wanted.ragged else wanted.outputs(serialized)

    def _wanted(self, values: tuple[Array, ...]) -> tuple[Array | None, AtOnce]:
        """The names of the records, if there are any, and the features. Raises InvalidArgumentError for wrong ones."""
        known = self._known
        if known is not None and all(old is new for old, new in zip(known[0], values, strict=True)):
            return known[1], known[2]
        from tenfold_kernels.cpu._examples_at_once import AtOnce

        attrs, inputs = self._node.attrs, Inputs(values)
        names = None
        ragged_keys: list[str] = []
        if self._node.op == "ParseSingleExample":
            sparse_keys, dense_keys = attr_keys(self._node, "sparse_keys"), attr_keys(self._node, "dense_keys")
        else:
            names = inputs.one()
            if self._node.op == "ParseExample":
                sparse_keys, dense_keys = inputs.keys(int(attrs["Nsparse"])), inputs.keys(int(attrs["Ndense"]))
            else:
                sparse_keys, dense_keys, ragged_keys = (keys_of(inputs.one()) for _ in range(3))
        dense_types = attrs.get("Tdense", ())
        dense = dense_features_of(dense_keys, dense_types, self._shapes, inputs.take(len(dense_types)))
        sparse = columns_of(sparse_keys, attrs.get("sparse_types", ()))
        ragged = columns_of(ragged_keys, attrs.get("ragged_value_types", ()), attrs.get("ragged_split_types", ()))
        wanted = AtOnce(sparse, dense, ragged)
        self._known = values, names, wanted
        return names, wanted


@kernel("ParseExample", "ParseExampleV2", "ParseSingleExample")
def build_parse_example(node: KernelNode) -> Compute:
    """Serialized Examples: a vector of them, a scalar in V2 too, just a scalar in ParseSingleExample."""
    from tenfold_kernels.cpu._compiled import examples

    examples.scan()  # looked for here, and not in a step
    examples.fill()
    return _Parser(node)
