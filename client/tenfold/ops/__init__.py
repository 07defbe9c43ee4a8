"""The user-facing functions, one file an op family: math, nn, array, control_flow, random, string, io, state.

The `tf` namespace (tenfold/__init__.py) is made of them. All end in op_builder.apply_op.
"""
