"""What is kept of the REST interface is what is served, and each of its problems has a row of its own.

`make openapi` writes docs/openapi.json and the table of docs/rest.md anew (tests/support/rest_docs.py).
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from support import rest_docs
from support.mirror import ROOT
from tenfold_control_api.openapi import TYPES
from tenfold_control_api.problem_types import PROBLEM_TYPES
from tenfold_control_api.step_models import InferenceRequest
from tenfold_control_api.steps import MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = ROOT / "control_api" / "tenfold_control_api"


def raised() -> Iterator[tuple[str, str]]:
    """(place, kind) of each `ApiError(…)`; a kind that is chosen between two is both of them."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "ApiError":
                place = f"{path.relative_to(SOURCES)}:{node.lineno}"
                first = node.args[0]
                for part in (first.body, first.orelse) if isinstance(first, ast.IfExp) else (first,):
                    if isinstance(part, ast.Constant):
                        yield place, str(part.value)


def test_each_problem_that_is_raised_has_a_row() -> None:
    missing = [(place, kind) for place, kind in raised() if kind not in PROBLEM_TYPES]

    assert not missing, "add a row to control_api/tenfold_control_api/problem_types.py for these kinds"


def test_each_row_is_raised_somewhere() -> None:
    told = {kind for _, kind in raised()} | {"no-such-route", "method-not-allowed", "malformed-body"}

    assert {name for name in PROBLEM_TYPES if not name.startswith("runtime-")} == told


def test_each_row_says_what_it_means_and_what_to_do() -> None:
    for row in PROBLEM_TYPES.values():
        assert row.meaning.endswith("."), row.name
        assert row.remedy.endswith("."), row.name
        assert row.status >= 400, row.name
    assert len({row.meaning for row in PROBLEM_TYPES.values()}) == len(PROBLEM_TYPES)


def test_the_description_that_is_kept_is_the_one_that_is_served() -> None:
    kept = (rest_docs.DOCS / "openapi.json").read_text(encoding="utf-8")

    assert kept == rest_docs.document(), "run `make openapi`"


def test_the_table_of_the_page_is_that_of_the_code() -> None:
    page = (rest_docs.DOCS / "rest.md").read_text(encoding="utf-8")

    assert page == rest_docs.with_table(page), "run `make openapi`"


def test_each_operation_lists_its_problems() -> None:
    import json

    paths = json.loads(rest_docs.document())["paths"]
    for path, methods in paths.items():
        for method, operation in methods.items():
            statuses = {str(PROBLEM_TYPES[kind].status) for kind in operation[TYPES]}
            assert statuses == {status for status in operation["responses"] if status >= "400"}, (method, path)


def test_the_members_of_a_step_are_those_that_are_described() -> None:
    assert InferenceRequest.model_fields.keys() == MEMBERS
