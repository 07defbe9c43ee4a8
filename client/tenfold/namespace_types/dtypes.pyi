# Written by `make stubs` from the table of tf.dtypes in namespaces.py.

from tenfold.ops.math import cast
from tenfold.ops.math import saturate_cast
from tenfold.ops.math_complex import complex
from tenfold.ops.string import as_string
from tenfold_core.dtypes import DType
from tenfold_core.dtypes import QUANTIZED_DTYPES
from tenfold_core.dtypes import as_dtype
from tenfold_core.dtypes import bfloat16
from tenfold_core.dtypes import bool_ as bool
from tenfold_core.dtypes import complex128
from tenfold_core.dtypes import complex64
from tenfold_core.dtypes import double
from tenfold_core.dtypes import float16
from tenfold_core.dtypes import float32
from tenfold_core.dtypes import float64
from tenfold_core.dtypes import half
from tenfold_core.dtypes import int16
from tenfold_core.dtypes import int32
from tenfold_core.dtypes import int64
from tenfold_core.dtypes import int8
from tenfold_core.dtypes import qint16
from tenfold_core.dtypes import qint32
from tenfold_core.dtypes import qint8
from tenfold_core.dtypes import quint16
from tenfold_core.dtypes import quint8
from tenfold_core.dtypes import resource
from tenfold_core.dtypes import string
from tenfold_core.dtypes import uint16
from tenfold_core.dtypes import uint32
from tenfold_core.dtypes import uint64
from tenfold_core.dtypes import uint8
from tenfold_core.dtypes import variant

__all__ = [
    "DType",
    "QUANTIZED_DTYPES",
    "as_dtype",
    "as_string",
    "bfloat16",
    "bool",
    "cast",
    "complex",
    "complex128",
    "complex64",
    "double",
    "float16",
    "float32",
    "float64",
    "half",
    "int16",
    "int32",
    "int64",
    "int8",
    "qint16",
    "qint32",
    "qint8",
    "quint16",
    "quint8",
    "resource",
    "saturate_cast",
    "string",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "variant",
]
