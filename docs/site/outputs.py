"""What commands print looks different from what a reader types: its fences get a title, a style and no copy button.

Pages keep the plain fence ```text, as a checkout shows it and tests/support/typed_pages.py reads it; only the site has
Material's attributes. The style is docs/assets/output.css. Pure; hooks.py calls it.
"""

from __future__ import annotations

import re

#: Folders of docs/ in which every block of plain text is output: those whose pages are typed, and notebooks.
FOLDERS = ("tutorials/", "how-to/", "notebooks/")
_FENCE = re.compile(r'^```text(?: title="(?P<terminal>[^"]+)")?$', re.MULTILINE)


def with_outputs(text: str) -> str:
    """The Markdown with each fence of plain text as one of output; a title names the terminal that shows it."""

    def marked(found: re.Match[str]) -> str:
        terminal = found["terminal"]
        title = f"Output in {terminal[0].lower()}{terminal[1:]}" if terminal else "Output"
        return f'``` {{ .text .output .no-copy title="{title}" }}'

    return _FENCE.sub(marked, text)
