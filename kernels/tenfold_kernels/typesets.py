"""Sets of element types that kernels are registered for: `@kernel("Add", T=NUMERIC)`. Only types with a NumPy form."""

from __future__ import annotations

from tenfold.framework import dtypes

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
#: TENSOR and the opaque values, for kernels that only move elements about.
ANY = TENSOR | frozenset((dtypes.resource, dtypes.variant))
