"""Runs the golden stories (*.txt) through the graph passes: place, prune, partition.

A story opens with a drawing and says what to notice. Then come `---- given` (devices, master, what is run),
`---- graph`, and one section for each pass, holding its result; small constants are copied before `partition`.
`gpu kernels` lists the ops that have one on a GPU; `registry` means the real ones.
With `reasons: yes` each node says why it is where it is. `pytest tests/golden --rewrite` writes the results anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.fake_cluster import fake_device
from support.graph_text import parse_text
from support.verify_graph import verify, verify_parts
from tenfold_compiler.graph.copy_constants import copy_constants
from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.placement import placement_reasons
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.graph.send_recv import channel_of
from tenfold_core import errors
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS
from tenfold_kernels import registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tenfold_compiler.graph.place import DevicesWithKernel
    from tenfold_protos.node_def_pb2 import NodeDef

STORIES = sorted(Path(__file__).parent.glob("*.txt"))
RESULTS = ("place", "prune", "partition")


def read(path: Path) -> dict[str, str]:
    """Section → text; the opening is the section ""."""
    sections = {"": ""}
    name = ""
    for line in path.read_text().splitlines():
        if line.startswith("---- "):
            name = line.removeprefix("---- ").strip()
            sections[name] = ""
        else:
            sections[name] += line + "\n"
    return sections


def write(path: Path, sections: dict[str, str]) -> None:
    path.write_text(
        "".join((f"---- {name}\n" if name else "") + text.strip("\n") + "\n\n" for name, text in sections.items())
    )


def short(device: str) -> str:
    return device.replace("/replica:0", "").replace("/device:", "/").replace("/job:", "")


def show(node: NodeDef, inputs: list[str]) -> str:
    line = f"{node.name} = {node.op}({', '.join(inputs)})"
    if node.op in SEND_OPS or node.op in RECV_OPS:
        channel = channel_of(node)
        other = channel.recv_device if node.op in SEND_OPS else channel.send_device
        arrow = "->" if node.op in SEND_OPS else "<-"
        end = "the client" if channel.client_terminated else f"{short(other)}"
        line += f" {arrow} {end} as {channel.tensor_name}"
    return line


def play(sections: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(pass, result); stops after a refusal."""
    given = dict(line.split(": ", 1) for line in sections["given"].splitlines() if line)
    names = {key: tuple(given.get(key, "").split()) for key in ("feeds", "fetches", "targets")}
    found = [item.partition("/device:") for item in given["devices"].split()]
    attributes = [
        fake_device(task, device.partition(":")[0] or "CPU", int(device.partition(":")[2] or 0), incarnation=number)
        for number, (task, _, device) in enumerate(found, 1)
    ]
    master = fake_device(given["master"]).name
    devices = DeviceSet(attributes, master)
    gpu_ops = given.get("gpu kernels", "").split()

    def listed(op: str, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        return ("GPU", "CPU") if op in gpu_ops else ("CPU",)

    kernels: DevicesWithKernel = registry.devices_with_kernel if gpu_ops == ["registry"] else listed
    try:
        graph = verify(RuntimeGraph.from_graph_def(parse_text(sections["graph"])), after="build")
        soft = given.get("soft placement") == "yes"
        graph = place(graph, devices, devices_with_kernel=kernels, soft=soft)
        verify(graph, after="place")
        why = {}
        if given.get("reasons") == "yes":
            found = placement_reasons(graph, devices, devices_with_kernel=kernels, soft=soft)
            why = {name: f"  ({reason})" for name, reason in found.items()}
        yield (
            "place",
            "".join(f"{short(node.device)}  {node.name}{why.get(node.name, '')}\n" for node in graph.nodes.values()),
        )
        if not names["fetches"] and not names["targets"]:
            return
        graph = prune(graph, names["feeds"], names["fetches"], names["targets"], client_device=devices.device(master))
        verify(graph, after="prune")
        yield (
            "prune",
            "".join(
                show(n.node_def, [*map(str, n.inputs), *(f"^{c}" for c in n.control_inputs)]) + "\n"
                for n in graph.nodes.values()
            ),
        )
        graph = verify(copy_constants(graph), after="prune")
        parts = partition(graph, incarnation=devices.incarnation).parts
        verify_parts(parts)
        lines = []
        for task, part in parts.items():
            lines.append(f"{short(task)}\n")
            lines += [f"  {show(node, list(node.input))}\n" for node in part.node]
        yield "partition", "".join(lines)
    except errors.OpError as e:
        yield "refused", f"{type(e).__name__}: {e.message}\n"


@pytest.mark.parametrize("path", STORIES, ids=[path.stem for path in STORIES])
def test_story(path: Path, rewrite: bool) -> None:
    sections = read(path)

    result = dict(play(sections))

    if rewrite:
        write(path, {name: sections[name] for name in ("", "given", "graph")} | result)
        return
    expected = {name: text.strip("\n") for name, text in sections.items() if name not in ("", "given", "graph")}
    assert {name: text.strip("\n") for name, text in result.items()} == expected
