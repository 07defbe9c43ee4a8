"""A unit test is found by its module's path: each file's place names a module, or its topic is listed."""

from __future__ import annotations

import re

import pytest

from support.mirror import PACKAGES, ROOT, TOPICS, files_of_tests, mirrored, topics_of

UNIT = [path for path in files_of_tests() if path.parts[1] == "unit"]


def test_each_unit_test_names_a_module_or_a_listed_topic() -> None:
    homeless = [
        str(path)
        for path in UNIT
        if path.parts[2] != "house" and str(path.relative_to("tests/unit")) not in TOPICS and mirrored(path) is None
    ]

    assert not homeless, f"no module is at the place that these files name, and TOPICS does not list them: {homeless}"


@pytest.mark.parametrize("topic", TOPICS)
def test_a_topic_is_a_file_and_its_modules_exist(topic: str) -> None:
    path = ROOT / "tests/unit" / topic

    assert path.is_file()
    assert mirrored(path.relative_to(ROOT)) is None, "it names a module: it needs no row"
    for glob in TOPICS[topic]:
        assert list(ROOT.glob(glob)), f"no module is at {glob}"


def test_folders_of_unit_tests_are_folders_of_modules() -> None:
    for folder in {path.parent for path in UNIT}:
        top, *below = folder.parts[2:] or ["house"]
        assert top == "house" or (ROOT / top / PACKAGES[top]).joinpath(*below).is_dir(), folder


def test_names_of_test_files_do_not_count() -> None:
    """A file that is the second of its kind is named after its topic."""
    assert not [str(path) for path in files_of_tests() if re.search(r"(_more|_misc|_second|_\d)\.py$", path.name)]


def test_a_module_finds_its_topics() -> None:
    (path,) = ROOT.glob("services/tenfold_services/worker/propagator.py")

    assert [test.name for test in topics_of(path.relative_to(ROOT))] == ["test_loops_over_tasks.py"]
