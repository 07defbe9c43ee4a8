"""llms.txt: the site's pages as a list that a program reads, by parts, each page with its first sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mkdocs.structure.nav import Section
from mkdocs.structure.pages import Page

if TYPE_CHECKING:
    from mkdocs.structure import StructureItem
    from mkdocs.structure.nav import Navigation

_SUMMARY = "TensorFlow 1.x's distributed runtime, rebuilt in modern Python: dataflow graphs over many processes."


def first_sentence(text: str) -> str:
    """The first sentence of the first paragraph of plain text, without Markdown's marks; empty if there is none."""
    for paragraph in re.split(r"\n\s*\n", re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
        if plain and plain[0] not in "#|!<`-*>:" and not paragraph.startswith("    "):
            return re.split(r"(?<=[.:])\s", plain, maxsplit=1)[0].rstrip(":").replace("`", "")
    return ""


def llms_txt(name: str, nav: Navigation, texts: dict[str, str]) -> str:
    """The whole file, in the order of the navigation. `texts` maps a page's path to its Markdown."""
    lines = [f"# {name}", "", f"> {_SUMMARY}", ""]

    def add(items: list[StructureItem], level: int = 2) -> None:
        for item in items:
            if isinstance(item, Page):
                sentence = first_sentence(texts.get(item.file.src_uri, ""))
                lines.append(f"- [{item.title}]({item.url})" + (f": {sentence}" if sentence else ""))
            elif isinstance(item, Section):
                lines.extend(["", f"{'#' * level} {item.title}", ""])
                add(item.children, level + 1)

    add(list(nav.items))
    return "\n".join([*lines, ""])
