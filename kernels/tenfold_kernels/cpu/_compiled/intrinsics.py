"""Vector registers of this machine, and the compiler intrinsics that use them, known without importing Numba.

Loops name the intrinsics of tiles.py, product_tiles.py, sandwiches.py, pool_windows.py, chunk_intrinsics.py,
reading.py, memory_views.py and singles.py by these; machine_code.py puts the real ones in their places when it
compiles. Used by convolve.py, depthwise.py, products.py, winograd.py, pooling.py, activations.py and all loops that
index by data, and for the sizes by the kernels' plans.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .loop_spec import Inlined

if TYPE_CHECKING:
    from collections.abc import Callable


def _features() -> set[str]:
    """What the processor can do: of Linux, which costs nothing to ask, or of LLVM."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        found = next(line for line in lines if line.startswith(("flags", "Features")))
        return set(found.partition(":")[2].replace("asimd", "neon").split())
    except (OSError, StopIteration):
        pass
    import llvmlite.binding  # type: ignore[import-untyped]

    try:
        return {name for name, has in llvmlite.binding.get_host_cpu_features().items() if has}
    except RuntimeError:  # a processor that LLVM cannot ask
        return set()


def _registers() -> tuple[int, int]:
    """Bytes of a vector register here, and how many of them may lie side by side: with six rows, none is spilled."""
    features = _features()
    if "avx512f" in features:
        return 64, 4
    if "avx" in features:
        return 32, 2
    return 16, 4 if "neon" in features else 2


VECTOR_BYTES, MOST_VECTORS = _registers()
#: Rows of a tile: 6 × 4 sums, 4 vectors of B and one of A are 29 of 32 registers, or 6 × 2 + 2 + 1 of 16.
MOST_ROWS = 6
#: How many vectors wide a tile may be, the widest first.
WIDTHS = tuple(width for width in (4, 2, 1) if width <= MOST_VECTORS)


def lanes(element: Any) -> int:
    """Elements of a vector: of float32 or float64."""
    return VECTOR_BYTES // int(element.itemsize)


class Intrinsic(Inlined):
    """An intrinsic of a module beside this one, which is imported when a loop that names it is compiled."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def _load(self) -> Any:
        return getattr(import_module(f"{__package__}.{self._module}"), self._name)

    @property
    def made_of(self) -> tuple[object, ...]:
        """What its code depends on, without making it: its name, and when its file was changed."""
        return self._module, self._name, Path(__file__).with_name(f"{self._module}.py").stat().st_mtime_ns

    @property
    def dispatcher(self) -> Any:
        return self._load()

    @property
    def py_func(self) -> Callable[..., Any]:  # type: ignore[override]  # made anew, never kept
        """What generates its code: an edit of it is noticed in the names of the loops."""
        generator: Callable[..., Any] = self._load()._defn
        return generator


#: Documented where they are made.
tile, window_tile = Intrinsic("tiles", "tile"), Intrinsic("tiles", "window_tile")
input_tile = Intrinsic("sandwiches", "input_tile")
output_tile_2, output_tile_4 = Intrinsic("sandwiches", "output_tile_2"), Intrinsic("sandwiches", "output_tile_4")
spread_tile_2, spread_tile_4 = Intrinsic("sandwiches", "spread_tile_2"), Intrinsic("sandwiches", "spread_tile_4")
spread_to_largest = Intrinsic("pool_windows", "spread_to_largest")
#: Products of matrices: rows of a tile two vectors wide, so that with 32 registers 24 are sums, 2 hold B and one A, or
#: 12, 2 and 1 of 16; columns of a tile of dot products; inner elements of a panel of B that is copied to the stack,
#: 64 KB with the widest vectors; int64s of a job.
PRODUCT_ROWS, DOT_COLUMNS, PANEL_INNER, JOB_WORDS = 12 if VECTOR_BYTES == 64 else 6, 4, 512, 24
#: Rows of a block of A that stays in the second cache, 384 KB of PANEL_INNER columns: a multiple of PRODUCT_ROWS.
BLOCK_ROWS = 192
#: Whether they pay: elsewhere a BLAS is as good, or there are no masks.
MULTIPLIES = VECTOR_BYTES == 64 or (VECTOR_BYTES == 32 and {"avx2", "fma"} <= _features())
row_sums, dot_tile = Intrinsic("product_tiles", "row_sums"), Intrinsic("product_tiles", "dot_tile")
transpose_block, copy_line = Intrinsic("product_tiles", "transpose_block"), Intrinsic("product_tiles", "copy_line")
move_float, put = Intrinsic("product_tiles", "move_float"), Intrinsic("product_tiles", "put")
panel_memory, job_memory = Intrinsic("product_tiles", "panel_memory"), Intrinsic("product_tiles", "job_memory")
block_memory = Intrinsic("product_tiles", "block_memory")
load, store = Intrinsic("chunk_intrinsics", "load"), Intrinsic("chunk_intrinsics", "store")
fetch_add, exchange = Intrinsic("chunk_intrinsics", "fetch_add"), Intrinsic("chunk_intrinsics", "exchange")
call_0, call_1 = Intrinsic("chunk_intrinsics", "call_0"), Intrinsic("chunk_intrinsics", "call_1")
call_2, call_clock = Intrinsic("chunk_intrinsics", "call_2"), Intrinsic("chunk_intrinsics", "call_clock")
two_words = Intrinsic("chunk_intrinsics", "two_words")
sgemm, dgemm = Intrinsic("chunk_intrinsics", "sgemm"), Intrinsic("chunk_intrinsics", "dgemm")
once, once_2 = Intrinsic("reading", "once"), Intrinsic("reading", "once_2")
int64s, int32s = Intrinsic("memory_views", "int64s"), Intrinsic("memory_views", "int32s")
floats, number = Intrinsic("memory_views", "floats"), Intrinsic("memory_views", "number")
prefetch, copy_bytes = Intrinsic("memory_views", "prefetch"), Intrinsic("memory_views", "copy_bytes")
fetch_ahead = Intrinsic("reading", "fetch_ahead")
sigmoid_single, tanh_single = Intrinsic("singles", "sigmoid_single"), Intrinsic("singles", "tanh_single")
#: The points of a minimal-filtering convolution but for ∞, in the order of the places of a tile.
POINTS = (0.0, 1.0, -1.0, 0.5, -2.0)
#: Rows and columns of a tile of the image, and of what it is transformed into.
SIZE = len(POINTS) + 1
