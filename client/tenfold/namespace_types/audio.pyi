# Written by `make stubs` from the table of tf.audio in namespaces.py.

from tenfold.ops.generated_ops import decode_wav
from tenfold.ops.generated_ops import encode_wav

__all__ = [
    "decode_wav",
    "encode_wav",
]
