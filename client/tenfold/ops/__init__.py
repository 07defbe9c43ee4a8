"""The user-facing functions, one file an op family: math, nn, array, control_flow, random, string, io, state.

The `tf` namespace (tenfold/__init__.py) is made of them. All call graph/op_builder.apply_op. Importing this package
registers what the graph needs from the ops: conversions of Python values and of IndexedSlices, the operators of
tensors, the kinds of variables, and the kinds of control flow contexts that a meta graph may hold.
"""

import tenfold.ops.array
import tenfold.ops.control_flow_cond
import tenfold.ops.indexed_slices
import tenfold.ops.operators
import tenfold.ops.variable_kinds
import tenfold.ops.while_context  # noqa: F401
