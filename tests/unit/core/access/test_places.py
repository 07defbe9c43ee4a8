from __future__ import annotations

import pytest

from tenfold_core.access.places import Places, affordable


def places(most: int) -> tuple[Places[str], list[str]]:
    ended: list[str] = []
    return Places(most, ended.append), ended


def test_one_user_has_a_quarter_and_his_oldest_goes() -> None:
    some, ended = places(16)
    for number in range(6):
        assert some.enter(f"a{number}", "user 7", known=False) is None
    assert (ended, len(some), some.strangers) == (["a0", "a1"], 4, 4)


def test_all_strangers_have_three_quarters() -> None:
    some, ended = places(16)
    for number in range(20):
        assert some.enter(f"x{number}", f"10.0.0.{number % 7}", known=False) is None
    assert (some.strangers, len(ended)) == (12, 8)


def test_who_is_known_gets_a_strangers_place() -> None:
    some, ended = places(4)
    for number, group in enumerate(["one", "two", "two", "three"]):
        some.enter(f"s{number}", group, known=False)
    assert [some.enter(f"k{number}", "user 0", known=True) for number in range(5)][:4] == [None] * 4
    assert some.strangers == 0
    assert some.enter("k9", "user 0", known=True) == "there are 4"
    assert some.enter("s9", "one", known=False) == "there are 4, all of those who are known"
    assert len(ended) >= 3


def test_who_is_recognized_stays() -> None:
    some, ended = places(4)
    some.enter("shows a token", "10.0.0.7", known=False)
    some.recognize("shows a token")
    some.recognize("who is that")
    for number in range(3):
        some.enter(f"s{number}", "10.0.0.7", known=False)
    assert (ended, some.strangers, len(some)) == (["s0", "s1"], 1, 2)
    for _ in range(2):
        some.leave("shows a token")
        some.leave("s2")
    assert len(some) == 0


@pytest.mark.parametrize("most", [1, 1 << 40])
def test_a_process_keeps_files_for_itself(most: int) -> None:
    assert 1 <= affordable(most) <= most
