"""The view "scope" of a profile: nodes below the scopes of their names, each with the sums of what is below it.

Called by model_analyzer.py. Follows TensorFlow 1.15's core/profiler/internal/tfprof_scope.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.profiler import shown
from tenfold.profiler.figures import FIGURES, NodeFigures
from tenfold_protos.tfprof_output_pb2 import GraphNodeProto

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SUMMED = ("run_count", *FIGURES)
_OWN_LIMITS = {"min_params": "parameters", "min_float_ops": "float_ops", "min_occurrence": "run_count"}


@dataclass(slots=True)
class _Scope:
    figures: NodeFigures
    proto: GraphNodeProto = field(default_factory=GraphNodeProto)
    below: list[_Scope] = field(default_factory=list)
    #: Of `below`, what is counted, and then what is shown.
    kept: list[_Scope] = field(default_factory=list)
    counts: bool = False
    text: str = ""

    def count_itself(self) -> None:
        self.proto.total_definition_count = 1
        for figure in _SUMMED:
            setattr(self.proto, f"total_{figure}", getattr(self.proto, figure))

    def count(self, other: _Scope) -> None:
        for figure in ("definition_count", *_SUMMED):
            total = f"total_{figure}"
            setattr(self.proto, total, getattr(self.proto, total) + getattr(other.proto, total))


def node_proto(node: NodeFigures, step: int) -> GraphNodeProto:
    """A node's own figures."""
    proto = GraphNodeProto(name=node.name, devices=[node.device] if node.device else [])
    for figure, value in node.measured(step).items():
        setattr(proto, figure, value)
    return proto


def profile(nodes: Mapping[str, NodeFigures], options: dict[str, Any]) -> tuple[GraphNodeProto, str]:
    """The tree below a root that counts everything, and its text."""
    root = _Scope(NodeFigures(shown.ROOT, "_kTFScopeParent", set(), ()), GraphNodeProto(name=shown.ROOT))
    root.kept = _counted(_tree(nodes), options)
    for each in root.kept:
        root.count(each)
    starts = options.get("start_name_regexes", ())
    if list(starts) != [".*"]:
        root.kept = _started(root.kept, starts)
    _show([root], options, depth=1, indent=0)
    lines = [f"node name | {' | '.join(_legend(options))}\n"]
    _write(root, lines)
    return root.proto, "".join(lines)


def _tree(nodes: Mapping[str, NodeFigures]) -> list[_Scope]:
    """A scope for each node and for each part of its name before a slash; those at the top."""
    scopes: dict[str, _Scope] = {name: _Scope(node) for name, node in nodes.items()}
    for name in nodes:
        while "/" in name:
            name = name.rpartition("/")[0]
            if name in scopes:
                break
            scopes[name] = _Scope(NodeFigures(name, "_kTFScopeParent", {"_kTFScopeParent"}, ()))
    top: list[_Scope] = []
    for name in sorted(scopes):
        above = name.rpartition("/")[0] if "/" in name else None
        (top if above is None else scopes[above].below).append(scopes[name])
    return top


def _counted(scopes: Iterable[_Scope], options: dict[str, Any]) -> list[_Scope]:
    """Those of an accounted type, or with one below them; their sums count what is below."""
    patterns = options.get("account_type_regexes", ())
    found = []
    for scope in scopes:
        below = _counted(scope.below, options)
        scope.proto = node_proto(scope.figures, options.get("step", -1))
        scope.counts = any(shown.any_matches(each, patterns) for each in scope.figures.types)
        if scope.counts or below:
            scope.kept = below
            scope.count_itself()
            for each in below:
                scope.count(each)
            found.append(scope)
    return found


def _started(scopes: Iterable[_Scope], patterns: Sequence[str]) -> list[_Scope]:
    """The first scopes downwards whose names match."""
    found = []
    for scope in scopes:
        matches = shown.any_matches(scope.proto.name, patterns)
        found += [scope] if matches else _started(scope.kept, patterns)
    return found


def _show(scopes: Iterable[_Scope], options: dict[str, Any], depth: int, indent: int) -> list[_Scope]:
    """What is shown of these; what is not shown is replaced by what is shown below it."""
    found = []
    for scope in scopes:
        visible = shown.is_shown(scope.proto, options, depth, _OWN_LIMITS)
        below: list[_Scope] = []
        trimmed = shown.any_matches(scope.proto.name, options.get("trim_name_regexes", ()))
        if not trimmed and depth <= options.get("max_depth", 10):
            below = _show(scope.kept, options, depth + 1, indent + 2 * visible)
        if not visible:
            found += below
            continue
        scope.kept = shown.in_order(below, lambda each: each.proto, options.get("order_by", "name"))
        if options.get("account_displayed_op_only", False):
            scope.count_itself()
            for each in scope.kept:
                scope.count(each)
        scope.text = f"{' ' * indent}{scope.proto.name} ({', '.join(_texts(scope, options))})\n"
        found.append(scope)
    return found


def _write(scope: _Scope, lines: list[str]) -> None:
    lines.append(scope.text)
    for each in scope.kept:
        _write(each, lines)
        scope.proto.children.append(each.proto)


def _legend(options: dict[str, Any]) -> list[str]:
    select = set(options.get("select", ()))
    names = [text for key, (_, text) in (*shown.COUNTS.items(), *shown.MEMORY.items()) if key in select]
    names += [shown.TIMES[key][1] for key in shown.times_of(select)]
    others = {"device": "assigned devices", "op_types": "op types", "occurrence": "op count (run|defined)"}
    return names + [text for key, text in others.items() if key in select]


def _texts(scope: _Scope, options: dict[str, Any]) -> list[str]:
    select, proto = set(options.get("select", ())), scope.proto

    def both(figure: str, form: Any, unit: str = "") -> str:
        own = form(getattr(proto, figure)) if scope.counts else "--"
        return f"{own}/{form(getattr(proto, f'total_{figure}'))}{unit}"

    found = []
    if "params" in select:
        found += ["x".join(str(size) for size in scope.figures.shape)] if scope.figures.shape else []
        found.append(both("parameters", shown.number, " params"))
    if "float_ops" in select:
        found.append(both("float_ops", shown.number, " flops"))
    found += [both(figure, shown.memory) for key, (figure, _) in shown.MEMORY.items() if key in select]
    found += [both(shown.TIMES[key][0], shown.micros) for key in shown.times_of(select)]
    if "device" in select and proto.devices:
        found.append("|".join(proto.devices))
    if "op_types" in select:
        found.append("|".join(sorted(scope.figures.types)))
    if "occurrence" in select:
        defined = f"{1 if scope.counts else '--'}/{shown.number(proto.total_definition_count)}"
        found.append(f"{both('run_count', shown.number)}|{defined}")
    return found
