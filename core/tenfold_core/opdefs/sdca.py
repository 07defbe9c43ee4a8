"""Op definitions: stochastic dual coordinate ascent, the solver of linear models.

A row each: name, inputs, outputs, attributes (TensorFlow's registry at 2.21 is the source of every name, order and
default), flags, and the function that infers static shapes. See `tenfold_core/op_def.py` for the notation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs import shape_fns as s
from tenfold_core.opdefs.table import family
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

op = family("sdca")

_INPUTS = """
sparse_example_indices: num_sparse_features * int64, sparse_feature_indices: num_sparse_features * int64,
sparse_feature_values: num_sparse_features_with_values * float, dense_features: num_dense_features * float,
example_weights: float, example_labels: float, sparse_indices: num_sparse_features * int64,
sparse_weights: num_sparse_features * float, dense_weights: num_dense_features * float, example_state_data: float
"""
_OUTPUTS = """
out_example_state_data: float, out_delta_sparse_weights: num_sparse_features * float,
out_delta_dense_weights: num_dense_features * float
"""


def _solved(c: ShapeContext) -> list[TensorShape]:
    """The state of the examples, [?, 4]; a delta is like its weights, which are the inputs before the last one."""
    return [TensorShape([None, 4]), *c.inputs[-c.output_count : -1]]


def _fingerprints(c: ShapeContext) -> list[TensorShape]:
    size = c.input(0).as_list()[0] if c.input(0).ndims == 1 else None
    return [TensorShape([size, 2])]


def _solver(name: str, adaptive: str) -> None:
    op(
        name,
        _INPUTS,
        _OUTPUTS,
        "loss_type: {'logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss'}",
        f"{adaptive}: bool = false",
        "num_sparse_features: int >= 0",
        "num_sparse_features_with_values: int >= 0",
        "num_dense_features: int >= 0",
        "l1: float",
        "l2: float",
        "num_loss_partitions: int >= 1",
        "num_inner_iterations: int >= 1",
        shape=_solved,
    )


_solver("SdcaOptimizer", "adaptative")
_solver("SdcaOptimizerV2", "adaptive")
op(
    "SdcaShrinkL1",
    "weights: Ref(num_features * float)",
    "",
    "num_features: int >= 0",
    "l1: float",
    "l2: float",
    shape=s.no_outputs,
)
op("SdcaFprint", "input: string", "output: int64", shape=_fingerprints)
