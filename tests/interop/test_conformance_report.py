"""The comparison behind docs/conformance.md: what counts, what is left out, what a row says. No TensorFlow needed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(str(Path(__file__).with_name("conformance")))
    # the benchmarks have a module of that name, too
    sys.modules.pop("report", None)
    yield importlib.import_module("report")
    del sys.modules["report"]


def results(report: Any, **outcomes: tuple[str, int]) -> Any:
    made = {
        f"m.C.{test}": report.Outcome(outcome, "ValueError: 7", 0.1, calls)
        for test, (outcome, calls) in outcomes.items()
    }
    return report.FileResult(made)


def test_only_tests_that_pass_and_send_something_count(report: Any) -> None:
    theirs = results(report, a=("pass", 3), b=("pass", 1), c=("pass", 0), d=("fail", 2), e=("pass", 1))
    ours = results(report, a=("pass", 3), b=("error", 1), c=("error", 0), d=("pass", 2))
    compared = report.compare("x/y_test.py", theirs, ours)
    assert compared.counted == ["m.C.a", "m.C.b", "m.C.e"]
    assert compared.passed == ["m.C.a"]
    assert {test: outcome.outcome for test, outcome in compared.differ.items()} == {"m.C.b": "error", "m.C.e": "unrun"}
    assert compared.offline == 1
    assert compared.share == pytest.approx(100 / 3)


def test_what_is_left_out_has_its_reason(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = report.files.Exclusion("x/y_test.py", "C.b*", "it is about GPUs")
    monkeypatch.setattr(report.files, "EXCLUDED", (rule,))
    theirs = results(report, a=("pass", 1), b1=("pass", 1))
    compared = report.compare("x/y_test.py", theirs, results(report, a=("pass", 1)))
    assert compared.counted == ["m.C.a"]
    assert compared.excluded == {"m.C.b1": "it is about GPUs"}
    assert compared.share == 100
    within = report.files.Exclusion("x/y_test.py", "C.test*Wrapper", "")
    assert [within.covers("x/y_test.py", f"m.C.{test}") for test in ("testAWrapper", "testAWrapperB")] == [True, False]


def test_files_that_were_not_run_again_keep_their_marked_rows(report: Any, tmp_path: Path) -> None:
    again, kept = report.files.REQUIRED[:2]
    name = Path(kept).name
    before = f"{report.TITLE}\n\n| **`{name}`** | 2 | 1 | 50.0 % | 0 | 0 |\n\n### `{kept}`\n\n- 1: a reason (`C.a`)\n"
    for server in ("tensorflow", "tenfold"):
        (tmp_path / server).mkdir()
        (tmp_path / server / f"{Path(again).stem}.json").write_text(
            json.dumps(results(report, a=("pass", 1)).as_json())
        )

    first = report.document(tmp_path, report.part(f"# Other\n\n| `x` |\n\n{before}", report.TITLE))
    second = report.document(tmp_path, first)

    assert f"| **`{name}`** † | 2 | 1 | 50.0 % | 0 | 0 |" in first
    assert "- 1: a reason (`C.a`)" in first
    assert f"| **`{Path(again).name}`** | 1 | 1 | 100.0 % | 0 | 0 |" in first
    assert "`x`" not in first
    assert second == first


def test_the_document_has_a_row_a_file_and_the_reasons(report: Any, tmp_path: Path) -> None:
    path = report.files.REQUIRED[0]
    theirs, ours = results(report, a=("pass", 1), b=("pass", 1)), results(report, a=("pass", 1), b=("fail", 1))
    for server, result in (("tensorflow", theirs), ("tenfold", ours)):
        (tmp_path / server).mkdir()
        (tmp_path / server / f"{Path(path).stem}.json").write_text(json.dumps(result.as_json()))
    text = report.document(tmp_path)
    assert f"| **`{Path(path).name}`** | 2 | 1 | 50.0 % | 0 | 0 |" in text
    assert "- 1: ValueError: … (`C.b`)" in text


def test_every_file_is_found_by_its_stem(report: Any) -> None:
    assert report.files.resolve("fifo_queue_test").endswith("data_structures/fifo_queue_test.py")
    with pytest.raises(KeyError, match="no test file"):
        report.files.resolve("nothing_test")


def test_a_difference_may_be_explained(report: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = report.files.REQUIRED[0]
    monkeypatch.setattr(report.files, "EXPLAINED", (report.files.Exclusion(path, "C.b*", "nobody wrote it"),))
    theirs, ours = results(report, a=("pass", 1), b7=("pass", 1)), results(report, a=("pass", 1), b7=("fail", 1))
    for server, result in (("tensorflow", theirs), ("tenfold", ours)):
        (tmp_path / server).mkdir()
        (tmp_path / server / f"{Path(path).stem}.json").write_text(json.dumps(result.as_json()))

    text = report.document(tmp_path)

    assert f"| **`{Path(path).name}`** | 2 | 1 | 50.0 % | 0 | 0 |" in text
    assert "- 1: nobody wrote it (`C.b7`)" in text


def test_ids_do_not_depend_on_where_objects_lie(report: Any) -> None:
    kept = report.FileResult({"m.C.t (<function f at 0x7f86ecda8f40>)": report.Outcome("pass", "", 0.1, 1)}).as_json()

    assert list(report.FileResult.from_json(kept).outcomes) == ["m.C.t (<function f>)"]


def test_one_table_leaves_the_other(report: Any, tmp_path: Path) -> None:
    file = tmp_path / "conformance.md"
    report.replace_part(file, "# One", "# One\n\nold\n")
    report.replace_part(file, "# Two", "# Two\n\n## Differences\n")
    report.replace_part(file, "# One", "# One\n\nnew\n")
    assert file.read_text() == "# One\n\nnew\n\n# Two\n\n## Differences\n"


def test_the_table_of_the_client_counts_public_behaviour(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    api_report = importlib.import_module("api_report")
    rule = report.files.Exclusion("x/y_test.py", "C.c", "it is private")
    monkeypatch.setattr(api_report.api_files, "EXCLUDED", (rule,))
    result = results(report, a=("pass", 0), b=("error", 0), c=("error", 0), d=("skip", 0))
    found = api_report.count("x/y_test.py", result)
    assert (found.passed, list(found.failed), found.skipped) == (1, ["m.C.b"], 1)
    assert found.excluded == {"m.C.c": "it is private"}
    assert found.share == 50


@pytest.fixture
def api_report(report: Any) -> Any:
    return importlib.import_module("api_report")


def test_the_page_of_the_client_sums_families_and_keeps_other_files_rows(api_report: Any, tmp_path: Path) -> None:
    again, kept = (f"tensorflow/python/saved_model/{stem}_test.py" for stem in ("loader", "simple_save"))
    before = "| `simple_save_test.py` | 4 | 3 | 75.0 % | 1 | 2 |\n\n### `{}`, on the client\n\n- 1: a reason (`C.a`)\n"
    outcomes = {"m.C.a": api_report.Outcome("pass"), "m.C.b": api_report.Outcome("error", "KeyError")}
    made = api_report.FileResult(outcomes)
    (tmp_path / f"{api_report.api_files.kept_as(again)}.json").write_text(json.dumps(made.as_json()))

    first = api_report.document(tmp_path, before.format(kept))

    assert "| tf.saved_model | 6 | 4 | 66.7 % | 1 | 2 |" in first
    assert "| `loader_test.py` | 2 | 1 | 50.0 % | 0 | 0 |" in first
    assert "| `simple_save_test.py` † | 4 | 3 | 75.0 % | 1 | 2 |" in first
    assert "- 1: a reason (`C.a`)" in first
    assert "- 1: KeyError (`C.b`)" in first
    assert api_report.document(tmp_path, first) == first


def test_every_file_has_a_family_and_a_row_of_its_own(api_report: Any) -> None:
    paths = api_report.api_files.ALL
    assert {api_report.family_of(path) for path in paths} == {api_report.TRAINING, *api_report.FAMILIES}
    assert len({api_report._shown(path) for path in paths}) == len(paths)
