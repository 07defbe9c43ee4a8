"""CUDA kernels, a file an op family, as in cpu/. Nothing here imports Numba before a GPU's kernel is built.

    _runtime.py     what a GPU does for the kernels: memory, copies, launches, products (Runtime)
    _simulated.py   that by Numba's simulator, in the host's memory (_simulated_memory.py, _simulated_libraries.py)
    _driver.py      that by CuPy and the CUDA driver (_host_copies.py, _feeds.py: copies beside the kernels)
    _arrays.py      DeviceArray, the value on an edge between two nodes of a GPU
    _launch.py      a kernel's Python function and its argument types, compiled once a process
    _loops.py       elementwise loops with broadcasting (loop_text.py their text, loop_sums.py those that end in sums)
    _moves.py       copies between strided places: all that only moves elements
    _views.py       which elements the CPU's views would have
    _picks.py       elements and rows picked by numbers in the GPU's memory
    _scatter.py     rows brought together by number, in their order; _sorting.py sorts the numbers
    _code/          the bodies of kernels, which import Numba

Every launch of a GPU is put on its one stream, in the order of the calls, from any thread, and so is every copy but
large ones from and to the host, which have streams beside it, and events to keep that order (_host_copies.py). So
memory is free again as soon as no Python object holds it, though kernels that read it still run.
"""
