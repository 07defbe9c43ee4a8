"""The site of docs/: links that leave it, dates of verification, public names, the list of pages for programs.

mkdocs itself checks links and anchors (`make docs`); here are the parts of docs/site that it calls.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from support.typed_pages import blocks, typed_pages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module", autouse=True)
def site() -> Iterator[None]:
    """docs/site is a folder of files that mkdocs loads, no package: it is importable for as long as these tests run."""
    before = set(sys.modules)
    sys.path.insert(0, str(DOCS / "site"))
    yield
    sys.path.remove(str(DOCS / "site"))
    for name in {"notebooks", "outputs", "outside", "public_names", "verified"} - before:
        sys.modules.pop(name, None)


def load(name: str) -> ModuleType:
    return importlib.import_module(name)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name, text in {
        "docs/index.md": "[a program](../examples/a.py#L3), [why](decisions/), [here](#x), [gone](no.md), `[x](../y)`",
        "docs/decisions/0001-one.md": "# One\n\n[back](../index.md)",
        "examples/a.py": "print(1)\n",
        "NOTES.md": "# Notes\n\n[the program](examples/a.py) ![a picture](picture.png)",
        "picture.png": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_a_page_links_to_outside_of_docs_is_a_page_of_the_site(repository: Path) -> None:
    outside = load("outside").Outside(repository)

    text = outside.rewritten((repository / "docs/index.md").read_text(), "docs/index.md")

    assert text == (
        "[a program](repository/examples/a.py.md#L3), [why](decisions/index.md), [here](#x), [gone](no.md), `[x](../y)`"
    )
    assert outside.pages["repository/examples/a.py.md"] == "# examples/a.py\n\n````python\nprint(1)\n````\n"
    assert "[One](0001-one.md)" in outside.pages["decisions/index.md"]


def test_a_folder_is_listed_without_what_programs_left_in_it(repository: Path) -> None:
    for name in ("examples/__pycache__/a.cpython-311.pyc", "examples/.cache/b"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_bytes(b"\xa7\r\r\n")
    outside = load("outside").Outside(repository)

    outside.rewritten("[examples](../examples/)", "docs/index.md")

    assert outside.pages["repository/examples/index.md"] == "# Examples\n\n- [a.py](a.py.md)\n"
    assert set(outside.pages) == {"repository/examples/index.md", "repository/examples/a.py.md"}


def test_pages_of_the_repository_bring_what_they_link_to(repository: Path) -> None:
    outside = load("outside").Outside(repository)

    outside.rewritten("[notes](../NOTES.md)", "docs/index.md")

    assert (
        outside.pages["repository/NOTES.md"] == "# Notes\n\n[the program](examples/a.py.md) ![a picture](picture.png)"
    )
    assert outside.files == {"repository/picture.png": repository / "picture.png"}


def test_a_page_says_when_its_code_last_passed_and_whether_it_has_changed_since() -> None:
    verified = load("verified")
    page = "Text\n\n```sh\necho\n```\n"
    row = {"date": "2026-01-02", "digest": verified.digest(page)}

    assert verified.note(f"More {page}", row, None) == "The code on this page was last run, and passed, on 2026-01-02."
    assert "has changed since it was last run, on 2026-01-02" in verified.note(page.replace("echo", "ls"), row, None)
    assert verified.note(page, None, "2026-01-03").startswith("No test types all the code on this page.")
    assert verified.note("Text", None, "2026-01-03") == "Last changed on 2026-01-03."


def test_the_table_of_verified_pages_names_pages_that_there_are() -> None:
    rows = load("verified").table()

    assert {page.relative_to(DOCS).as_posix() for page in typed_pages()} <= rows.keys(), "run `make verify-docs`"
    assert [name for name in rows if not (DOCS / name).exists()] == []
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", row["date"]) for row in rows.values())


def test_every_public_name_of_the_reference_is_found_in_the_source() -> None:
    names = load("public_names")
    pages = {page.stem: page.read_text() for page in (DOCS / "reference").glob("*.md") if page.stem != "index"}

    filled = {stem: names.filled(text, ROOT) for stem, text in pages.items()}

    assert filled.keys() == {"tf", "session", "train", "data", "sdk", "launchers"}
    assert "::: tenfold.session.session.Session\n    options:\n      heading: tf.Session\n" in filled["session"]
    assert "::: tenfold.gradients.walker.gradients\n    options:\n      heading: tf.gradients\n" in filled["session"]
    assert "::: tenfold_core.cluster_spec.ClusterSpec\n" in filled["train"]
    assert not [stem for stem, text in filled.items() if names.MARKER.search(text)]


def test_a_public_name_without_a_definition_is_an_error() -> None:
    names = load("public_names")

    with pytest.raises(LookupError, match=r"tf\.nothing: no definition of tenfold\.graph\.nothing"):
        names.directives("tf", "from tenfold.graph import nothing\n", "", ROOT)


def test_the_navigation_has_four_parts() -> None:
    text = re.sub(r"!!python\S+ ", "", (ROOT / "mkdocs.yml").read_text())

    nav = yaml.safe_load(text)["nav"]

    assert [next(iter(each)) for each in nav] == ["Home", "Tutorials", "How-to", "Concepts", "Reference"]


def test_each_block_of_output_is_shown_as_output() -> None:
    outputs = load("outputs")
    marked = re.compile(r'^``` \{ \.text \.output \.no-copy title="Output(?: in [^"]+)?" \}$', re.MULTILINE)

    for page in typed_pages():
        name, text = page.relative_to(DOCS).as_posix(), page.read_text(encoding="utf-8")
        shown = outputs.with_outputs(text)

        assert name.startswith(outputs.FOLDERS)
        assert len(marked.findall(shown)) == sum(block.language == "text" for block in blocks(text)), name
        # nothing else has changed: what is typed can be copied
        typed = [block for block in blocks(marked.sub("```text", shown)) if block.language != "text"]
        assert typed == [block for block in blocks(text) if block.language != "text"], name


def test_output_of_another_terminal_names_it() -> None:
    shown = load("outputs").with_outputs('```text title="Terminal 2"\nx\n```\n')

    assert shown == '``` { .text .output .no-copy title="Output in terminal 2" }\nx\n```\n'
    assert "extra_css: [assets/output.css]" in (ROOT / "mkdocs.yml").read_text()
    assert "\n.md-typeset .output " in (DOCS / "assets/output.css").read_text()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("code", [0, 1])
def test_a_build_that_fails_leaves_the_former_site(tmp_path: Path, code: int) -> None:
    """`make docs` with an mkdocs that writes a page, and then succeeds or fails."""
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in ("pyproject.toml", ".venv-docs/.installed", "build/site/index.html", ".venv-docs/bin/mkdocs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    mkdocs = tmp_path / ".venv-docs/bin/mkdocs"
    mkdocs.write_text(f'#!/bin/sh\nmkdir -p "$4" && echo new > "$4/index.html"\nexit {code}\n')
    mkdocs.chmod(0o755)

    done = subprocess.run(["make", "-C", str(tmp_path), "docs"], capture_output=True, text=True, timeout=60)

    assert (done.returncode == 0) == (code == 0), done.stderr
    assert (tmp_path / "build/site/index.html").read_text().strip() == ("old" if code else "new")


def test_warnings_of_mkdocs_are_errors() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0]

    # --strict counts what is logged, and --quiet logs no warning
    assert "mkdocs build --strict" in recipe
    assert not re.search(r"--quiet|\s-q\b", recipe)
    assert re.search(r"^make .*\bdocs\b", (ROOT / ".ci/run").read_text(), re.MULTILINE)


NOTEBOOK = json.dumps(
    {
        "nbformat": 4,
        "cells": [
            {"cell_type": "markdown", "source": ["# Curves\n", "see [a](a.md)"]},
            {
                "cell_type": "code",
                "source": "draw()",
                "outputs": [
                    {"output_type": "stream", "name": "stdout", "text": ["one\n"]},
                    {"output_type": "stream", "name": "stderr", "text": ["a warning\n"]},
                    {"output_type": "stream", "name": "stdout", "text": ["two\n"]},
                    {"output_type": "display_data", "data": {"image/png": "QUJD\n", "text/plain": ["<Figure>"]}},
                ],
            },
        ],
    }
)


def test_a_notebook_is_shown_with_what_its_cells_wrote() -> None:
    page = load("notebooks").markdown_of(NOTEBOOK)

    assert page == (
        "# Curves\nsee [a](a.md)\n\n```python\ndraw()\n```\n\n```text\none\ntwo\n```\n\n"
        "![the figure that this cell draws](data:image/png;base64,QUJD)\n"
    )


def test_a_notebook_whose_cell_failed_is_no_page() -> None:
    failed = NOTEBOOK.replace('"output_type": "display_data"', '"output_type": "error", "ename": "E", "evalue": "x"')

    with pytest.raises(ValueError, match="a cell ended with E: x"):
        load("notebooks").markdown_of(failed)


def test_a_link_to_a_notebook_leads_to_its_page(repository: Path) -> None:
    (repository / "docs/curves.ipynb").write_text(NOTEBOOK)
    outside = load("outside").Outside(repository)
    outside.add_notebooks()

    assert outside.rewritten("[curves](curves.ipynb)", "docs/index.md") == "[curves](curves.md)"
    assert "[Download this notebook](curves.ipynb)" in outside.pages["curves.md"]
