"""Local variables of generated code: which is taken, which is free again, and the names where there are branches."""

from __future__ import annotations

import pytest

from tenfold_compiler.part.guards import ALIVE, ANY, Literal, case_of, truth_of
from tenfold_compiler.write.registers import Names, Registers, known_as, name_of, test_of

text_of = test_of
del test_of


def test_a_variable_is_taken_again_last_in_first_out() -> None:
    registers = Registers({(0, 0): 5, (1, 0): 5, (2, 0): 6})
    assert [registers.take((index, 0)) for index in range(3)] == ["v0", "v1", "v2"]
    assert registers.held((1, 0)) == "v1"
    assert registers.held((9, 0)) is None
    assert registers.free_after(4, [(0, 0)]) == []
    assert registers.free_after(5, [(0, 0), (1, 0), (0, 0), (2, 0)]) == ["v0", "v1"]
    assert registers.held((0, 0)) is None
    assert [registers.take((index, 0)) for index in (3, 4, 5)] == ["v1", "v0", "v3"]


def test_what_nobody_reads_is_free_at_once() -> None:
    registers = Registers({})
    registers.take((0, 0))
    registers.give_back((0, 0))
    assert registers.held((0, 0)) is None
    assert registers.take((1, 0)) == "v0"


def test_what_is_in_no_variable_is_not_freed() -> None:
    assert Registers({(0, 0): 5}).free_after(5, [(0, 0)]) == []


def test_where_there_are_branches_each_output_has_a_name() -> None:
    names = Names([(3, 0)])
    assert names.last_use == {(3, 0): 0}
    assert names.held((3, 0)) == names.take((3, 0)) == "v3"
    assert names.free_after(0, [(3, 0)]) == []
    names.give_back((3, 0))
    assert names.held((3, 1)) == "v3_1"


@pytest.mark.parametrize(
    ("edge", "name"), [((7, 0), "v7"), ((7, 2), "v7_2"), ((7, ALIVE), "b7_2"), (truth_of((7, 1)), "b7_6")]
)
def test_names(edge: tuple[int, int], name: str) -> None:
    assert name_of(edge) == name


@pytest.mark.parametrize(
    ("edge", "known", "literal", "test"),
    [
        ((5, ALIVE), "v is not D", 1, "b5_2"),
        ((5, ANY), "case(v, 3)", 1, "b5_3"),
        (truth_of((5, 0)), "not not v", 1, "b5_4"),
        (truth_of((5, 0)), "not not v", 0, "not b5_4"),
        (case_of((5, 0)), "case(v, 3)", 0, "b5_5 == 0"),
        (case_of((5, 1)), "case(v, 3)", 2, "b5_7 == 2"),
    ],
)
def test_what_is_tested(edge: tuple[int, int], known: str, literal: int, test: str) -> None:
    if edge[1] != ANY:
        assert known_as(edge, "v", 3) == known
    assert text_of(Literal(edge, literal, 3)) == test
