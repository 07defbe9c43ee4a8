"""Links of the documentation that leave docs/ lead somewhere on the site too: what they name becomes a page of it.

A page links to `../examples/hello.py` or to the folder `decisions/`, as a checkout has them. The site has no such
places, so a file outside docs/ becomes the page `repository/<path>`, a folder a list of its files, a notebook of docs/
the page that shows it, and the link is rewritten. Pure functions over texts and paths; hooks.py calls them.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from notebooks import markdown_of

if TYPE_CHECKING:
    from collections.abc import Callable

#: A fenced block or a span of code, whose text is no link; or a link's end, with its target and anchor.
_LINK = re.compile(
    r"^ *```.*?^ *```|`[^`\n]*`|\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)", re.MULTILINE | re.DOTALL
)
_URL = re.compile(r"^[a-z][a-z0-9+.-]*:")
#: Endings of files that the site has as they are.
_COPIED = (".png", ".svg", ".json")
NOTEBOOK = ".ipynb"
#: What a fence says of a file by its ending; any other is plain text.
_LANGUAGES = {".py": "python", ".sh": "sh", ".yml": "yaml", ".yaml": "yaml", ".json": "json", ".toml": "toml"}


def with_links(text: str, change: Callable[[str], str]) -> str:
    """The Markdown with the target of each relative link changed; anchors, URLs and code stay."""

    def changed(found: re.Match[str]) -> str:
        target = found["target"]
        if target is None or _URL.match(target) or target.startswith("/"):
            return found[0]
        return f"]({change(target)}{found['anchor'] or ''})"

    return _LINK.sub(changed, text)


def notebook_of(place: str) -> str:
    """The notebook that would be shown by that page of the site."""
    return place.removesuffix(".md") + NOTEBOOK


def links(text: str) -> list[str]:
    """The targets of a page's relative links, in order, without their anchors."""
    found: list[str] = []

    def keep(target: str) -> str:
        found.append(target)
        return target

    with_links(text, keep)
    return found


class Outside:
    """What pages link to beyond the files that mkdocs knows.

    `pages` maps a page's path to its Markdown, `files` the path of a file that is copied to where it is.
    """

    def __init__(self, root: Path, docs: str = "docs") -> None:
        self.root = root
        self.docs = docs
        self.pages: dict[str, str] = {}
        self.files: dict[str, Path] = {}

    def rewritten(self, text: str, source: str) -> str:
        """The Markdown of that file of the repository with links for the site; adds the pages that it needs.

        A link to what does not exist stays as it is: mkdocs names it, and `--strict` fails.
        """
        place = self.place(source)

        def change(target: str) -> str:
            named = os.path.normpath(PurePosixPath(source).parent / target)
            if named.startswith("..") or not (self.root / named).exists():
                return target
            self._add(named)
            return os.path.relpath(self.place(named), PurePosixPath(place).parent)

        return with_links(text, change)

    def place(self, named: str) -> str:
        """Where the site has a file or folder of the repository, below docs/."""
        if named.endswith(NOTEBOOK):
            named = named.removesuffix(NOTEBOOK) + ".md"
        inside = named.removeprefix(f"{self.docs}/") if named.startswith(f"{self.docs}/") else f"repository/{named}"
        if (self.root / named).is_dir():
            return f"{inside}/index.md"
        kept = named.startswith(f"{self.docs}/") or named.endswith((".md", *_COPIED))
        return inside if kept else f"{inside}.md"

    def add_notebooks(self) -> None:
        """Adds the page of every notebook of docs/, linked to or not: the navigation names them."""
        for path in sorted((self.root / self.docs).rglob(f"*{NOTEBOOK}")):
            self._add(path.relative_to(self.root).as_posix())

    def _add(self, named: str) -> None:
        place, path = self.place(named), self.root / named
        if named.endswith(NOTEBOOK) and place not in self.pages:
            self.pages[place] = self.rewritten(markdown_of(path.read_text(encoding="utf-8")), named)
            self.pages[place] += f"\n[Download this notebook]({path.name}), and run it in Jupyter.\n"
            return
        if place in self.pages or (path.is_file() and named.startswith(f"{self.docs}/")):
            return
        if named.endswith(_COPIED):
            self.files[place] = path
            return
        self.pages[place] = ""  # a page that links back to this one finds it added
        if path.is_dir():
            text = self._listing(named)
            self.pages[place] = self.rewritten(text, f"{named}/index.md")
        elif named.endswith(".md"):
            self.pages[place] = self.rewritten(path.read_text(encoding="utf-8"), named)
        else:
            language = _LANGUAGES.get(path.suffix, "text")
            self.pages[place] = f"# {named}\n\n````{language}\n{path.read_text(encoding='utf-8')}````\n"

    def _listing(self, named: str) -> str:
        found = sorted((self.root / named).rglob("*"))
        paths = [path for path in found if path.is_file() and not _is_clutter(path.relative_to(self.root / named))]
        pages = [path for path in paths if path.suffix == ".md"]
        lines = [f"# {PurePosixPath(named).name.capitalize()}", ""]
        for path in pages or paths:
            inside = path.relative_to(self.root / named).as_posix()
            lines.append(f"- [{_title(path) if pages else inside}]({inside})")
        return "\n".join([*lines, ""])


def _is_clutter(path: Path) -> bool:
    """Whether programs and tools left it in the folder: it belongs to no page, and may be no text."""
    return any(part == "__pycache__" or part.startswith(".") for part in path.parts)


def _title(path: Path) -> str:
    heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return heading[1].replace("`", "") if heading else path.name
