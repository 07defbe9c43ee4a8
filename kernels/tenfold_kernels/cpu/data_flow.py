"""Which data-flow ops have no kernel, and why; the others stand in data_flow_*.py.

Loaded last of its family, so that the rows of the others are there.
"""

from __future__ import annotations

from tenfold_kernels.registry import no_kernel

no_kernel("FakeQueue", device="CPU", why="it is TensorFlow's own test double")
