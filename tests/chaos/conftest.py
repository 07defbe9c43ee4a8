"""Faults on real processes: what docs/promises.md promises is tried here while something breaks.

A fault is a context manager of tests/support/faults or of this folder that is undone however the test ends; one that
this machine cannot make (no right to make network namespaces, say) skips its tests with the reason. Each file has a
short form that `make test` runs; the long ones are marked `long`, and `make chaos` runs both.
"""
