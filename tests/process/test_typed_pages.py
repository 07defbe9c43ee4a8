"""Tutorials and how-to pages do what they say: their blocks are typed in order in an empty folder, as a reader does.

One page of each kind stands for all in `make test`; the others are thorough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.faults.lan import why_not
from support.typed_pages import DOCS, Block, blocks, hosts_of, ports_of, type_page, typed_pages, with_ports

if TYPE_CHECKING:
    from pathlib import Path

QUICK = ("tutorials/guide/1-server.md", "how-to/free-variables.md")


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough)
        for name in (page.relative_to(DOCS).as_posix() for page in typed_pages())
    ],
)
def test_a_page_as_typed(name: str, tmp_path: Path) -> None:
    if hosts_of((DOCS / name).read_text(encoding="utf-8")) and (why := why_not()):
        pytest.skip(why)
    type_page(DOCS / name, tmp_path)


def test_blocks_say_what_becomes_of_them() -> None:
    page = 'Text\n\n```sh title="Terminal 2"\necho\n```\n\n```text\n1\n```\n'

    assert blocks(page) == [Block("sh", "Terminal 2", "echo\n", 3), Block("text", "", "1\n", 7)]
    with pytest.raises(ValueError, match="begins no block that can be typed"):
        blocks("```{.sh}\necho\n```\n")


def test_ports_are_exchanged_for_free_ones() -> None:
    text = "tenfold up --control-port 8080; curl http://localhost:8080 127.0.0.1:2222 # 18080 steps"

    ports = ports_of(text)

    assert set(ports) == {"8080", "2222"}
    assert with_ports(text, {"8080": "1", "2222": "2"}) == (
        "tenfold up --control-port 1; curl http://localhost:1 127.0.0.1:2 # 18080 steps"
    )


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("```sh\nfalse\n```\n", "is done"),
        ("```sh\necho one\n```\n\n```text\ntwo\n```\n", "'two' was not written 1 times"),
        ("```python\npass\n```\n", "has no title"),
    ],
)
def test_what_a_page_says_and_what_happens_differ(
    page: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("support.typed_pages.ROOT", tmp_path)
    monkeypatch.setattr("support.typed_pages.PATIENCE", 1.0)
    (tmp_path / "page.md").write_text(page)
    (folder := tmp_path / "folder").mkdir()

    with pytest.raises((AssertionError, ValueError), match=wrong) as failure:
        type_page(tmp_path / "page.md", folder)

    assert failure.value.__notes__ == ["page.md, line 1"] or "line 5" in failure.value.__notes__[0]
