"""Bodies of CUDA kernels. Every module imports Numba, so that only builders of kernels import them, when they run."""
