"""What a seed draws: as many files of each area, the same again, and other ones for another seed."""

from __future__ import annotations

from collections import Counter

import pytest

from mutants import draw, equivalent
from mutants.changes import changes
from support.mirror import ROOT


@pytest.mark.thorough
def test_areas_have_the_same_share() -> None:
    paths = draw.draw_files(1, 21)

    assert Counter(area for area in draw.AREAS for path in paths if path in draw.files_of(area)) == dict.fromkeys(
        draw.AREAS, 3
    )
    assert paths == draw.draw_files(1, 21)
    assert set(paths) != set(draw.draw_files(2, 21))


def test_changes_of_a_file_are_of_all_kinds_and_drawn_once() -> None:
    path = "core/tenfold_core/records.py"
    drawn = draw.draw_changes(1, path, 12)

    assert len({mutant.key for mutant in drawn}) == 12
    assert len({mutant.change.kind for mutant in drawn}) >= 6
    assert [mutant.key for mutant in drawn] == [mutant.key for mutant in draw.draw_changes(1, path, 12)]


def test_a_file_is_named_by_its_end() -> None:
    assert draw.path_of("worker/rendezvous.py") == "services/tenfold_services/worker/rendezvous.py"
    with pytest.raises(SystemExit, match="is no module"):
        draw.path_of("worker/no_such.py")


@pytest.mark.thorough
def test_what_is_said_to_be_equivalent_is_still_there() -> None:
    kept = equivalent.read()
    known = {
        path: {(change.function, change.what) for change in changes((ROOT / path).read_text(encoding="utf-8"))}
        for path in {path for path, _, _ in kept}
    }

    assert not [(path, function, what) for path, function, what in kept if (function, what) not in known[path]]


def test_a_line_without_a_reason_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = tmp_path / "equivalent.txt"
    table.write_text("# a comment\na.py | f | x → y | it is the same\n")
    assert equivalent.read(table) == {("a.py", "f", "x → y"): "it is the same"}
    table.write_text("a.py | f | x → y\n")
    with pytest.raises(ValueError, match=r"equivalent.txt:1: not `file \| function \| change \| reason`"):
        equivalent.read(table)
    table.write_text("a.py | f | x → y | one\na.py | f | x → y | two\n")
    with pytest.raises(ValueError, match="stands there twice"):
        equivalent.read(table)
