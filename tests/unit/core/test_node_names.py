"""Names in a graph: how they are read, made free, suggested where one is wrong, and told in errors."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from tenfold_core import errors
from tenfold_core.node_names import at_node, free_name, is_valid_node_name, parse_tensor_name, suggestion


@pytest.mark.parametrize(
    ("name", "node", "output"),
    [
        ("a", "a", 0),
        ("a:0", "a", 0),
        ("a:1", "a", 1),
        ("a/b:12", "a/b", 12),
        ("a:b:2", "a:b", 2),
        ("^a", "^a", 0),
        ("7", "7", 0),
        (":3", "", 3),
        ("a:", "a:", 0),
        ("a:b", "a:b", 0),
        ("a:-1", "a:-1", 0),
        ("a:\N{SUPERSCRIPT TWO}", "a:\N{SUPERSCRIPT TWO}", 0),
        ("a:\N{ARABIC-INDIC DIGIT THREE}", "a:\N{ARABIC-INDIC DIGIT THREE}", 0),
        ("a:999999999", "a", 999_999_999),
        ("a:1000000000", "a:1000000000", 0),  # no node has so many outputs
    ],
)
def test_a_tensor_is_a_node_and_the_number_of_its_output(name: str, node: str, output: int) -> None:
    found = parse_tensor_name(name)

    assert found == (node, output)
    assert str(found) == f"{node}:{output}"


@pytest.mark.parametrize("name", ["a", "A9", "0", ".x", "a/b_c-d.e\\f>g"])
def test_names_that_a_client_may_give(name: str) -> None:
    assert is_valid_node_name(name)


@pytest.mark.parametrize(
    "name", ["", "_a", "/a", "-a", "a b", "a:0", "^a", "a\n", "\N{LATIN SMALL LETTER A WITH DIAERESIS}"]
)
def test_names_that_a_client_may_not_give(name: str) -> None:
    assert not is_valid_node_name(name)


def test_a_free_name_has_the_least_number_that_is_free_and_is_taken_then() -> None:
    taken = {"a", "a_2"}

    assert [free_name(wanted, taken) for wanted in ("b", "a", "a", "b", "b", "a_2")] == [
        "b", "a_1", "a_3", "b_1", "b_2", "a_2_1",
    ]  # fmt: skip
    assert taken == {"a", "a_1", "a_2", "a_3", "a_2_1", "b", "b_1", "b_2"}


def test_an_error_ends_with_its_node() -> None:
    node = SimpleNamespace(name="dense/MatMul")
    operation = SimpleNamespace(name="dense/MatMul", node_def=node)

    for each in (node, operation):
        error = at_node(each, "shapes do not fit", errors.InternalError)
        assert isinstance(error, errors.InternalError)
        assert error.message == "shapes do not fit\n\t [[{{node dense/MatMul}}]]"
        assert error.node_def is node
    assert isinstance(at_node(node, "x"), errors.InvalidArgumentError)


# -- suggestions -------------------------------------------------------------------------------------------------------


def test_the_nearest_names_are_suggested() -> None:
    assert suggestion("weigths", ["weights", "bias"]) == "; did you mean 'weights'?"
    assert suggestion("x", ["weights", "bias"]) == ""


def test_three_names_are_suggested_at_most() -> None:
    assert suggestion("weight_9", [f"weight_{number}" for number in range(8)]).count("weight_") == 3
    assert suggestion("weight_9", ["weight_1", "weight_2"]) == "; did you mean 'weight_2' or 'weight_1'?"


def test_among_many_names_the_nearest_is_found_too() -> None:
    names = [f"layer_{number}/kernel" for number in range(15_000)]

    assert "'layer_1234/kernel'" in suggestion("layer_1234/kernl", names)
    assert "'layer_1234/kernel'" in suggestion("layer_1234/kernel_1", names), "one begins with the other"


def test_a_graph_that_is_too_large_or_a_name_that_is_too_long_has_no_suggestions() -> None:
    names = ["weights", *(str(number) for number in range(19_999))]

    assert "'weights'" in suggestion("weigths", names)
    assert suggestion("weigths", [*names, "bias"]) == ""
    assert suggestion(199 * "w" + "x", [200 * "w"])
    assert suggestion(200 * "w" + "x", [201 * "w"]) == ""


#: More than twenty names that begin and end as the wrong one does, and are not near.
DECOYS = [f"a{number}e" for number in range(30)]


@pytest.mark.parametrize(
    ("wrong", "near", "characters", "found"),
    [
        ("abcde", "zabcdez", 100_000, True),  # 500,000 in all
        ("abcde", "zabcdez", 100_001, False),
        ("abe", "zabez", 166_666, True),
        ("abe", "zabez", 166_667, False),  # 500,001 in all
    ],
)
def test_a_name_that_is_alike_at_neither_end_is_found_among_few(
    wrong: str, near: str, characters: int, found: bool
) -> None:
    names = [near, *DECOYS]
    names.append((characters - sum(map(len, names))) * "L")

    assert suggestion(wrong, names) == (f"; did you mean {near!r}?" if found else "")


#: Makes any search too long for comparing all names.
LONG = 600_000 * "L"


@pytest.mark.parametrize(("decoys", "found"), [(19, True), (20, False)])
def test_of_too_many_names_the_twenty_that_are_most_alike_at_their_ends_are_compared(decoys: int, found: bool) -> None:
    assert bool(suggestion("abcde", ["zabcdez", *DECOYS[:decoys], LONG])) is found


@pytest.mark.parametrize("near", ["abcdefgh", "xabcdefghi", "abcdefghix", "abcdXefghi", "abcdefghi1234"])
def test_both_ends_of_a_name_count(near: str) -> None:
    decoys = [f"ab{number:04}hi" for number in range(30)] if near[0] == "a" else [f"ab{n:05}" for n in range(30)]

    assert suggestion("abcdefghi", [*decoys, near, LONG]) == f"; did you mean {near!r}?"


def test_names_that_are_too_long_to_be_near_take_no_place_of_those_that_are_compared() -> None:
    twice = [f"abcd{number:08}efgh" for number in range(30)]

    assert {len(name) for name in twice} == {2 * len("abcdefgh")}
    assert suggestion("abcdefgh", [*twice, "zabcdefghz", LONG]) == "; did you mean 'zabcdefghz'?"


def test_names_that_are_all_alike_are_not_searched_for_long() -> None:
    """Compared each with each, these would take minutes."""
    names = ["a" * 180 + str(number) for number in range(20_000)]
    begin = time.process_time()

    assert suggestion("a" * 190, names)
    assert time.process_time() - begin < 5
