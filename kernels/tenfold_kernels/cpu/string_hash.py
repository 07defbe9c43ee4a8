"""Strings to bucket numbers, with the three hash functions of hashes.py. Outputs are fresh.

Follows string_to_hash_bucket_op.h and string_to_hash_bucket_fast_op.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels import hashes
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.cpu._strings import elementwise
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

_FUNCTIONS: dict[str, Callable[[bytes], int]] = {
    "StringToHashBucket": hashes.hash64,
    "StringToHashBucketFast": hashes.fingerprint64,
}


@kernel(*_FUNCTIONS)
def build_string_to_hash_bucket(node: KernelNode) -> Compute:
    function, buckets = _FUNCTIONS[node.op], int(node.attrs["num_buckets"])
    return lambda x: elementwise(x, lambda v: function(v) % buckets, np.int64)


@kernel("StringToHashBucketStrong")
def build_string_to_hash_bucket_strong(node: KernelNode) -> Compute:
    """Without the key, strings that fall into one bucket cannot be chosen."""
    buckets, key = int(node.attrs["num_buckets"]), [int(word) for word in node.attrs["key"]]
    if len(key) != 2:
        raise invalid("Key must have 2 elements")
    words = (key[0], key[1])

    def compute(x: Array) -> Array:
        return elementwise(x, lambda v: hashes.siphash(words, v) % buckets, np.int64)

    return compute
