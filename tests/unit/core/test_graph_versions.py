"""What a GraphDef's producer means: the tables, the refusals in TensorFlow's words, and the page that shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenfold_core import errors, graph_versions
from tenfold_protos import versions_pb2

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "graph_versions.md"


def versions(producer: int, **others: object) -> versions_pb2.VersionDef:
    return versions_pb2.VersionDef(producer=producer, **others)


def test_the_changes_are_in_order_and_on_the_page() -> None:
    numbers = [change.version for change in graph_versions.CHANGES]

    assert numbers == sorted(set(numbers))
    text = _PAGE.read_text(encoding="utf-8")
    for each in graph_versions.CHANGES:
        assert f"| {each.version} | {each.release} | {each.change} | {each.reading} |\n" in text


def test_every_operation_that_went_is_on_the_page() -> None:
    text = _PAGE.read_text(encoding="utf-8")

    for op, (version, _) in graph_versions.REMOVED.items():
        row = next(line for line in text.splitlines() if f"`{op}`" in line)
        assert row.startswith(f"| {version} |"), row


def test_an_operation_is_refused_from_the_version_on_that_went_without_it() -> None:
    graph_versions.check_op("TopK", 6)
    graph_versions.check_op("MatMul", 10_000)
    words = "Op TopK is not available in GraphDef version 7. It has been removed in version 7. Use TopKV2 instead."
    with pytest.raises(errors.UnimplementedError, match=words):
        graph_versions.check_op("TopK", 7)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            versions(-1),
            r"GraphDef producer version -1 below min producer 0 supported by .*Please regenerate your graph\.",
        ),
        (versions(21, min_consumer=9999), r"GraphDef min consumer version 9999 above current version \d+ for "),
        (
            versions(21, bad_consumers=[graph_versions.READ]),
            r"GraphDef disallows consumer version \d+\.  Please upgrade",
        ),
        (versions(21, bad_consumers=[graph_versions.WRITTEN]), r"GraphDef disallows consumer version 134\."),
    ],
)
def test_a_graph_for_other_readers_is_refused(given: versions_pb2.VersionDef, words: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=words):
        graph_versions.check_versions(given)


def test_any_other_version_is_read() -> None:
    for each in (versions(0), versions(21, min_consumer=12), versions(99_999), versions(134, bad_consumers=[7])):
        graph_versions.check_versions(each)


def test_two_graphs_together_have_the_older_producer_and_the_pickier_reader() -> None:
    joined = versions(134, min_consumer=0, bad_consumers=[5])

    graph_versions.join(joined, versions(21, min_consumer=12, bad_consumers=[3, 5]))

    assert joined == versions(21, min_consumer=12, bad_consumers=[3, 5])
