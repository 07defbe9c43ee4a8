"""Examples: serialized protos to dense, sparse and ragged tensors. SequenceExamples are parsing_sequences.py's.

Rows that do not parse, or whose values have another type or number than asked for, are an error that names them. How
features become tensors is in _examples.py. Follows example_proto_fast_parsing.cc and example_parsing_ops.cc.
"""

from __future__ import annotations

from typing import Any

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


@kernel("ParseExample", "ParseExampleV2", "ParseSingleExample")
def build_parse_example(node: KernelNode) -> Compute:
    """Serialized Examples: a vector of them, a scalar in V2 too, just a scalar in ParseSingleExample."""
    op, attrs = node.op, node.attrs
    shapes = shapes_of_attr(node, "dense_shapes")
    sparse_types, dense_types = attrs.get("sparse_types", ()), attrs.get("Tdense", ())
    ragged_types, split_types = attrs.get("ragged_value_types", ()), attrs.get("ragged_split_types", ())

    def compute(*values: Array) -> Any:
        inputs = Inputs(values)
        serialized = inputs.one()
        names = None
        ragged_keys: list[str] = []
        if op == "ParseSingleExample":
            if serialized.ndim:
                raise invalid(f"Expected serialized to be a scalar, got shape: {shape_text(serialized.shape)}")
            sparse_keys, dense_keys = attr_keys(node, "sparse_keys"), attr_keys(node, "dense_keys")
        else:
            names = inputs.one()
            if op == "ParseExample":
                if serialized.ndim != 1:
                    raise invalid(f"Expected serialized to be a vector, got shape: {shape_text(serialized.shape)}")
                sparse_keys, dense_keys = inputs.keys(int(attrs["Nsparse"])), inputs.keys(int(attrs["Ndense"]))
            else:
                sparse_keys, dense_keys, ragged_keys = (keys_of(inputs.one()) for _ in range(3))
        dense = dense_features_of(dense_keys, dense_types, shapes, inputs.take(len(dense_types)))
        rows = Rows(serialized, names, example_pb2.Example)
        maps = [proto.features.feature for proto in rows.protos]
        return outputs_in_order(
            features_of(
                rows,
                maps,
                columns_of(sparse_keys, sparse_types),
                dense,
                columns_of(ragged_keys, ragged_types, split_types),
            )
        )

    return compute
