"""Hashes of texts of every length up to some hundred bytes, as TensorFlow gives them: a digest for each way."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from tenfold_kernels import hashes

#: As many buckets as there can be.
BUCKETS = (1 << 63) - 1
KEY = (0x0123456789ABCDEF, (1 << 64) - 5)
#: Lengths, from one to below another → digests of TensorFlow's hash64, fingerprint64, siphash and fingerprint128.
DIGESTS = {
    (4, 8): ("ad9221a095c788ff", "87eeb2f39172c5e2", "00b5a5f445c59ab1", "4f4d9712b6aab7c0"),
    (8, 17): ("c6c760f2f260b1a4", "96bc17ff749dbe6c", "fff2724603033646", "1ece255d066b8a7b"),
    (17, 33): ("dc501da6f9aa87b9", "56066db9322b5d21", "d090bc05c6badf79", "c5ccf158d979a94a"),
    (33, 65): ("d73f4296d64d20aa", "dba64dbcf2160183", "20c2cd2936ab905d", "25e2f58f8fcdc1e3"),
    (65, 129): ("ee0bf43cec373053", "2094d61890af9a25", "51c31b498ae4dfdc", "739f6ed0f904e21b"),
    (129, 200): ("088d6c36f6e2b2ee", "adede7a9dba30d99", "e9d5710e4459a2f6", "7575bd54e4cd75ec"),
    (200, 330): ("287ba63c9ffc7a46", "ef619e71b73486e5", "b06e25756f0ebe71", "48f86612bc0506bd"),
}
#: First words, second words and TensorFlow's buckets for each pair, in that order.
FIRST, SECOND = (0, 1, 0xDECAFCAFFE, (1 << 62) + 12345), (0, 1, 255, (1 << 64) - 7, (1 << 55) + 1)
PAIRS = [
    6351753276682545529,
    3322498177733977010,
    2338685798210137804,
    2644672758269108049,
    7449945423713993181,
    3502434640831192328,
    4522348394846804081,
    2765342254263008711,
    4481619714097642042,
    1601006795176648905,
    1950187560451231046,
    5199413699614396413,
    8761735389693042186,
    8708731638709191855,
    7095686209561090944,
    4382877051315961237,
    7553037466234701966,
    2310232671787938032,
    8801082946251784144,
    2771540455776554736,
]


def text(size: int) -> bytes:
    return bytes((i * i * 31 + i * 7 + size * 13) % 256 for i in range(size))


def digest(found: Any) -> str:
    return hashlib.sha256(repr(found).encode()).hexdigest()[:16]


def signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


@pytest.mark.parametrize("span", DIGESTS, ids=str)
def test_texts_of_every_length(span: tuple[int, int]) -> None:
    texts = [text(size) for size in range(*span)]
    found = (
        digest([hashes.hash64(each) % BUCKETS for each in texts]),
        digest([hashes.fingerprint64(each) % BUCKETS for each in texts]),
        digest([hashes.siphash(KEY, each) % BUCKETS for each in texts]),
        digest([[signed(word) for word in hashes.fingerprint128(each)] for each in texts]),
    )
    assert found == DIGESTS[span]


def test_two_fingerprints_are_one() -> None:
    found = [hashes.concatenated(first, second) % BUCKETS for first in FIRST for second in SECOND]
    assert found == PAIRS


def test_words_stay_words() -> None:
    texts = [text(size) for size in range(0, 330, 7)]
    every = [hashes.hash64(each) for each in texts] + [hashes.siphash((-1, -(1 << 70)), each) for each in texts]
    every += [hashes.fingerprint64(each) for each in texts]
    every += [word for each in texts for word in hashes.fingerprint128(each)]
    assert 0 <= min(every) <= max(every) < 1 << 64
    assert hashes.siphash((-1, 7), b"abc") == hashes.siphash(((1 << 64) - 1, 7), b"abc")


def test_a_seed_of_ones_own() -> None:
    assert hashes.hash64(b"abc") == hashes.hash64(b"abc", 0xDECAFCAFFE) != hashes.hash64(b"abc", 0)


def test_short_texts_are_remembered() -> None:
    hashes._fingerprint_short.cache_clear()
    for _ in range(3):
        for size in (3, 64, 65):
            hashes.fingerprint64(text(size))
    assert hashes._fingerprint_short.cache_info()[:2] == (4, 2)
    assert hashes._fingerprint_short.cache_info().maxsize == 1 << 14
