"""Strings to buckets: published answers of each hash, bucket by bucket."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels import hashes


def words(*values: bytes) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def test_examples_of_tensorflows_documentation(ops: Any) -> None:
    fast = ops.run("StringToHashBucketFast", [words(b"Hello", b"TensorFlow", b"2.x")], num_buckets=3)
    assert (fast.dtype, fast.tolist()) == (np.int64, [0, 2, 2])
    strong = ops.run("StringToHashBucketStrong", [words(b"Hello", b"TF")], num_buckets=3, key=[1, 2])
    assert (strong.dtype, strong.tolist()) == (np.int64, [2, 0])


def test_siphash_gives_the_answer_of_its_paper(ops: Any) -> None:
    key = [0x0706050403020100, 0x0F0E0D0C0B0A0908]
    for buckets in (1, 1000, (1 << 63) - 1):
        found = ops.run("StringToHashBucketStrong", [words(bytes(range(15)))], num_buckets=buckets, key=key)
        assert found.tolist() == [0xA129CA6149BE45E5 % buckets]


@pytest.mark.parametrize(("op", "function"), [("StringToHashBucket", hashes.hash64),
                                              ("StringToHashBucketFast", hashes.fingerprint64)])  # fmt: skip
@pytest.mark.parametrize("buckets", [1, 2, 1000, (1 << 63) - 1])
def test_a_bucket_is_what_is_left_of_the_hash(ops: Any, op: str, function: Any, buckets: int) -> None:
    texts = words(b"", b"a", b"\xff" * 40)
    assert ops.run(op, [texts], num_buckets=buckets).tolist() == [function(text) % buckets for text in texts]


@pytest.mark.parametrize("key", [[], [1], [1, 2, 3]])
def test_a_key_has_two_words(ops: Any, key: list[int]) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Key must have 2 elements$"):
        ops.run("StringToHashBucketStrong", [words(b"a")], num_buckets=3, key=key)
