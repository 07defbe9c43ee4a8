"""Sets of element types that kernels are registered for: `@kernel("Add", T=NUMERIC)`. Only types with a NumPy form."""

from __future__ import annotations

from tenfold_core import dtypes

FLOATING = frozenset((dtypes.float16, dtypes.float32, dtypes.float64))
COMPLEX = frozenset((dtypes.complex64, dtypes.complex128))
SIGNED = frozenset((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64))
UNSIGNED = frozenset((dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64))
INTEGER = SIGNED | UNSIGNED
REAL = FLOATING | INTEGER
NUMERIC = REAL | COMPLEX
#: What the compiled kernels exist for.
COMPILED = frozenset((dtypes.float32, dtypes.float64))
BOOL = frozenset((dtypes.bool_,))
STRING = frozenset((dtypes.string,))
INDEX = frozenset((dtypes.int32, dtypes.int64))
#: Everything that travels as an array of numbers, booleans or strings.
TENSOR = NUMERIC | BOOL | STRING
#: Floats that are computed with as float32 (see registry.lookup): their own NumPy arithmetic is slow or coarse.
NARROW = frozenset(dtype for dtype in dtypes.ALL_TYPES if dtype.is_floating) - FLOATING
#: Integers of less than a byte, an element a byte.
SMALL = frozenset(dtype for dtype in dtypes.ALL_TYPES if dtype.is_integer) - INTEGER
#: Types that NumPy cannot compute with.
CARRIED = frozenset(dtype for dtype in dtypes.ALL_TYPES if dtype.is_carried)
#: TENSOR and those that are opaque to NumPy or hardly computed with, for kernels that only move elements about.
ANY = TENSOR | NARROW | SMALL | CARRIED | frozenset((dtypes.resource, dtypes.variant))
