from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tenfold.launchers.hosts import MOST_HOSTS, Host, expanded, read_file, read_list

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (" a , b ,", ["a", "b"]),
        ("n[1-3]", ["n1", "n2", "n3"]),
        ("n[01-03]", ["n01", "n02", "n03"]),
        ("n[8-11]", ["n8", "n9", "n10", "n11"]),
        ("n[1,3-4],m", ["n1", "n3", "n4", "m"]),
        ("r[1-2]n[1-2].net", ["r1n1.net", "r1n2.net", "r2n1.net", "r2n2.net"]),
        ("me@n[1-2]", ["me@n1", "me@n2"]),
        ("fe80::1", ["fe80::1"]),
    ],
)
def test_a_list_names_hosts_in_order(text: str, names: list[str]) -> None:
    assert expanded(text) == names
    assert read_list(text) == [Host(name) for name in names]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the list names no host"),
        (",", "the list names no host"),
        ("a,a", "the list names a twice; write slots=2 for two tasks"),
        ("n[1", "'n[1' has a bracket without its other half"),
        ("n1]", "'n1]' has a bracket without its other half"),
        ("n[]", "'' in 'n[]' is neither a number nor a range as 1-3"),
        ("n[x]", "'x' in 'n[x]' is neither a number nor a range as 1-3"),
        ("n[3-1]", "'3-1' in 'n[3-1]' is not a range"),
        ("n[1-99999999]", "'1-99999999' in 'n[1-99999999]' is not a range"),
        ("n[1-200]m[1-200]", "'n[1-200]m[1-200]' names more than 10000 hosts"),
        ("n[1-6000],m[1-6000]", "the list names more than 10000 hosts"),
        ("-oProxyCommand=touch", "'-oProxyCommand=touch' is not a name of a host"),
        ("-v", "'-v' is not a name of a host"),
        ("a b", "'a b' is not a name of a host"),
        ("$(x)", "'$(x)' is not a name of a host"),
    ],
)
def test_what_is_no_list_is_refused(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=r".") as refused:
        read_list(text)
    assert str(refused.value) == words


def test_a_list_may_name_so_many_hosts_and_no_more() -> None:
    assert len(expanded(f"n[1-{MOST_HOSTS}]")) == MOST_HOSTS


def test_a_file_says_what_hosts_have(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("# ours\n\nn1 slots=4 address=10.0.0.1 # the first\nme@n[2-3]\tslots=2\n")
    assert read_file(str(file)) == [Host("n1", 4, "10.0.0.1"), Host("me@n2", 2), Host("me@n3", 2)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("n1\nn2 slots=0\n", ":2: slots=0 is not a number of tasks"),
        ("n1 slots=x\n", ":1: slots=x is not a number of tasks"),
        ("n1 slots=\n", ":1: 'slots=' is neither slots=NUMBER nor address=NAME"),
        ("n1 cores=2\n", ":1: 'cores=2' is neither slots=NUMBER nor address=NAME"),
        ("n[1-2] address=x\n", ":1: one address for 2 hosts"),
        ("n[1\n", ":1: 'n[1' has a bracket without its other half"),
        ("# none\n", " names no host"),
        ("n1\nn1\n", " names n1 twice; write slots=2 for two tasks"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "hosts"
    file.write_text(text)
    with pytest.raises(ValueError, match=r".") as refused:
        read_file(str(file))
    assert str(refused.value) == f"{file}{words}"


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_file(str(tmp_path / "none"))
