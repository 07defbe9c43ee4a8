"""What an op computes: plain, blocking functions from arrays to arrays, one builder per op and device type.

registry.py finds the builder, state.py holds what outlives a step, cpu/ has the kernels (stems as in tenfold/ops).
Imports tenfold_core and tenfold_protos only. Importing this package loads no kernel and no compiler.
"""
