"""What mkdocs calls while it builds the site: thin, the work is in the other files of this folder.

Pages link as a checkout has them (outside.py), list public names by a marker (public_names.py), show output apart from
commands (outputs.py) and end with the date on which their code last passed (verified.py). llms.txt lists the pages for
programs that read documentation.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))  # mkdocs loads this file by its path

import verified
from llms import llms_txt
from mkdocs.structure.files import File
from outputs import FOLDERS, with_outputs
from outside import Outside, notebook_of
from public_names import filled

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.nav import Navigation
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]


class _Site:
    """What one build knows of its pages."""

    def __init__(self) -> None:
        self.rows = verified.table()
        self.changed = verified.last_changes(ROOT)
        self.texts: dict[str, str] = {}
        self.nav: Navigation | None = None


_site = _Site()


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Every page of docs/ with its links rewritten, and the pages that they need."""
    global _site
    _site = _Site()
    outside = Outside(ROOT)
    for file in files.documentation_pages():
        text = (ROOT / "docs" / file.src_uri).read_text(encoding="utf-8")
        _site.texts[file.src_uri] = outside.rewritten(text, f"docs/{file.src_uri}")
    outside.add_notebooks()
    for place, text in outside.pages.items():
        _site.texts[place] = text
        if files.get_file_from_path(place) is None:
            files.append(File.generated(config, place, content=text))
    for place, path in outside.files.items():
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keeps the navigation for llms.txt."""
    _site.nav = nav
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """The page's text as the site has it. A page of the repository or a list of files has no line on its code."""
    place = page.file.src_uri
    text = filled(_site.texts.get(place, markdown), ROOT)
    if place.startswith(FOLDERS):
        text = with_outputs(text)
    source = next((each for each in (place, notebook_of(place)) if (ROOT / "docs" / each).exists()), None)
    if source is None:
        return text
    line = verified.note(markdown, _site.rows.get(source), _site.changed.get(source))
    return f"{text}\n\n---\n\n*{line}*\n" if line else text


def on_post_build(config: MkDocsConfig) -> None:
    """Writes llms.txt beside the first page."""
    assert _site.nav is not None, "mkdocs builds the navigation before it writes pages"
    Path(config.site_dir, "llms.txt").write_text(llms_txt(config.site_name, _site.nav, _site.texts), encoding="utf-8")
