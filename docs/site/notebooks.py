"""A notebook as a page: its cells and their outputs as Markdown, so that the site shows it without Jupyter and offline.

outside.py makes a page of each notebook that docs/ has; `make verify-docs` runs notebooks and keeps their outputs in
them. What a cell writes to stderr is not kept: warnings depend on the machine.
"""

from __future__ import annotations

import json
from typing import Any

_Cell = dict[str, Any]


def cells_of(text: str) -> list[_Cell]:
    """The cells of a notebook's file. Raises ValueError for a file that is not a notebook of format 4."""
    notebook = json.loads(text)
    if notebook.get("nbformat") != 4:
        raise ValueError(f"a notebook of format 4 is needed, not {notebook.get('nbformat')}")
    cells: list[_Cell] = notebook["cells"]
    return cells


def joined(lines: str | list[str]) -> str:
    """Text as a notebook keeps it, in one piece or line by line."""
    return lines if isinstance(lines, str) else "".join(lines)


def outputs_of(cell: _Cell) -> list[tuple[str, str]]:
    """What a page shows of a cell's outputs: ("text", …) or ("image/png", base64), in order."""
    found: list[tuple[str, str]] = []
    for output in cell.get("outputs", []):
        if output["output_type"] == "stream":
            if output["name"] == "stdout":
                # a kernel sends what a cell prints in as many pieces as it happens to have
                before = found.pop()[1] if found and found[-1][0] == "text" else ""
                found.append(("text", before + joined(output["text"])))
            continue
        if output["output_type"] == "error":
            raise ValueError(f"a cell ended with {output['ename']}: {output['evalue']}")
        data = output["data"]
        if "image/png" in data:
            found.append(("image/png", joined(data["image/png"]).replace("\n", "")))
        else:
            found.append(("text", joined(data["text/plain"])))
    return found


def markdown_of(text: str) -> str:
    """The page of a notebook's file: text as it is, code and what it printed in fences, figures inside the page."""
    parts: list[str] = []
    for cell in cells_of(text):
        source = joined(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for kind, shown in outputs_of(cell):
            if kind == "text":
                parts.append(f"```text\n{shown.rstrip()}\n```")
            else:
                parts.append(f"![the figure that this cell draws](data:image/png;base64,{shown})")
    return "\n\n".join(parts) + "\n"
