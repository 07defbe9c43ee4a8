"""What `tenfold placement` prints: golden output at 80 columns."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from tenfold.cli.placement import rendered, short, size
from tenfold.control import Placement


def node(name: str, op: str, task: str, reason: str) -> dict[str, Any]:
    assigned = f"/job:{task.replace('/', '/replica:0/task:')}/device:CPU:0" if task else ""
    return {"name": name, "op": op, "requested": "", "assigned": assigned, "reason": reason}


def shown(found: dict[str, Any]) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(rendered(Placement.from_json(found), 80))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_tasks_and_nodes() -> None:
    found = {
        "session": "5f1e",
        "graph_version": 0,
        "tasks": [
            {"task": "/job:worker/replica:0/task:0", "nodes": 2, "variables": 0, "variable_bytes": 0},
            {"task": "/job:ps/replica:0/task:0", "nodes": 1, "variables": 1, "variable_bytes": 3 << 19},
        ],
        "nodes": [
            node("w", "VariableV2", "ps/0", "as requested"),
            node("x", "Placeholder", "worker/0", "default: first of 2 devices, the master's own task"),
            node("later", "NoOp", "", "placed anew for each step (place_pruned_graph)"),
        ],
        "next": "later",
    }

    assert shown(found) == (
        "session 5f1e\n"
        "task      nodes  variables  bytes\n"
        "worker/0  2      0          0 B\n"
        "ps/0      1      1          1.5 MiB\n"
        "\n"
        "node   op           device          why\n"
        "w      VariableV2   ps/0 CPU:0      as requested\n"
        "x      Placeholder  worker/0 CPU:0  default: first of 2 devices, the master's o…\n"
        "later  NoOp         -               placed anew for each step (place_pruned_gra…\n"
        "… and more: -n shows them, --name and --op choose"
    )


@pytest.mark.parametrize(
    ("full", "text"),
    [
        ("/job:ps/replica:0/task:3/device:GPU:1", "ps/3 GPU:1"),
        ("/job:ps/replica:0/task:3", "ps/3"),
        ("", ""),
    ],
)
def test_names_are_short(full: str, text: str) -> None:
    assert short(full) == text


@pytest.mark.parametrize(("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 30, "5.0 GiB")])
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
