"""The view "op" of a profile: the nodes of each type of op together, one type after the other.

A type's sums count the types after it. Called by model_analyzer.py. Follows TensorFlow 1.15's
core/profiler/internal/tfprof_op.cc.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.profiler import shown
from tenfold.profiler.figures import FIGURES
from tenfold.profiler.scope_view import node_proto
from tenfold_protos.tfprof_output_pb2 import MultiGraphNodeProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold.profiler.figures import NodeFigures

_LIMITS = {"min_params": "total_parameters", "min_float_ops": "total_float_ops"}


@dataclass(slots=True)
class _Kind:
    proto: MultiGraphNodeProto
    nodes: list[NodeFigures]


def profile(nodes: Mapping[str, NodeFigures], options: dict[str, Any]) -> tuple[MultiGraphNodeProto, str]:
    """A chain below a root that counts everything: each type's child is the type after it. And its text."""
    patterns = options.get("account_type_regexes", ())
    by_op: dict[str, list[NodeFigures]] = {}
    for node in nodes.values():
        by_op.setdefault(node.op, [])
        if any(shown.any_matches(each, patterns) for each in node.types):
            by_op[node.op].append(node)
    kinds = [_kind(op, each, options) for op, each in by_op.items() if each or ".*" in patterns]
    kinds = shown.in_order(kinds, lambda kind: kind.proto, options.get("order_by", "name"))
    root = MultiGraphNodeProto(name=shown.ROOT)
    _sum_from_the_end([kind.proto for kind in kinds], root)
    visible = list(_visible(kinds, options))
    if options.get("account_displayed_op_only", False):
        _sum_from_the_end([kind.proto for kind in visible], root)
    lines = [f"node name | {' | '.join(_legend(options))}\n"]
    lines += [_line(kind, root, options) for kind in visible]
    inner: MultiGraphNodeProto | None = None
    for kind in reversed(visible):
        if inner is not None:
            kind.proto.children.append(inner)
        inner = kind.proto
    if inner is not None:
        root.children.append(inner)
    return root, "".join(lines)


def _kind(op: str, nodes: list[NodeFigures], options: dict[str, Any]) -> _Kind:
    proto = MultiGraphNodeProto(name=op)
    for node in sorted(nodes, key=lambda each: each.name):
        of_node = node_proto(node, options.get("step", -1))
        of_node.total_definition_count, of_node.total_run_count = 1, of_node.run_count
        for figure in FIGURES:
            value = getattr(of_node, figure)
            setattr(of_node, f"total_{figure}", value)
            setattr(proto, figure, getattr(proto, figure) + value)
        proto.graph_nodes.append(of_node)
    for figure in FIGURES:
        setattr(proto, f"total_{figure}", getattr(proto, figure))
    return _Kind(proto, nodes)


def _sum_from_the_end(protos: Sequence[MultiGraphNodeProto], root: MultiGraphNodeProto) -> None:
    for figure in FIGURES:
        total = 0
        for proto in reversed(protos):
            total += getattr(proto, figure)
            setattr(proto, f"total_{figure}", total)
        setattr(root, f"total_{figure}", total)


def _visible(kinds: Sequence[_Kind], options: dict[str, Any]) -> Iterable[_Kind]:
    starts = options.get("start_name_regexes", ())
    names = [kind.proto.name for kind in kinds]
    first = next((i for i, name in enumerate(names) if not starts or shown.any_matches(name, starts)), len(kinds))
    for depth, kind in enumerate(kinds[first:]):
        trimmed = shown.any_matches(kind.proto.name, options.get("trim_name_regexes", ()))
        if trimmed or depth > options.get("max_depth", 10):
            return
        if shown.is_shown(kind.proto, options, depth, _LIMITS):
            yield kind


def _legend(options: dict[str, Any]) -> list[str]:
    select = set(options.get("select", ()))
    names = [text for key, (_, text) in shown.MEMORY.items() if key in select]
    names += [shown.TIMES[key][1] for key in shown.times_of(select)]
    names += [text for key, (_, text) in shown.COUNTS.items() if key in select]
    others = {"device": "assigned devices", "op_types": "op types", "occurrence": "op occurrence (run|defined)"}
    return names + [text for key, text in others.items() if key in select]


def _line(kind: _Kind, root: MultiGraphNodeProto, options: dict[str, Any]) -> str:
    select, proto = set(options.get("select", ())), kind.proto

    def share(figure: str, form: Any, unit: str = "") -> str:
        own, below = getattr(proto, figure), getattr(proto, f"total_{figure}")
        whole = getattr(root, f"total_{figure}") or 1
        return f"{f'{form(own)}{unit} ({100 * below / whole:.2f}%, {100 * own / whole:.2f}%)':>30}"

    found = [share(figure, shown.memory) for key, (figure, _) in shown.MEMORY.items() if key in select]
    found += [share(shown.TIMES[key][0], shown.micros) for key in shown.times_of(select)]
    if "params" in select:
        found.append(share("parameters", shown.number, " params"))
    if "float_ops" in select:
        found.append(share("float_ops", shown.number, " float_ops"))
    if "device" in select:
        found.append("|".join(sorted({node.device for node in kind.nodes})))
    if "op_types" in select:
        found.append("|".join(sorted({each for node in kind.nodes for each in node.types})))
    if "occurrence" in select:
        found.append(f"{f'{sum(each.run_count for each in proto.graph_nodes)}|{len(proto.graph_nodes)}':>10}")
    return f"{proto.name:<25}{', '.join(found)}\n"
