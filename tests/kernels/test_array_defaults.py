"""A kernel reads an attribute that its node leaves out as the op's definition has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.kernel_net import answers
from support.kernel_net.cases import case_of
from support.kernel_net.known import KNOWN
from support.kernel_net.loops import InPython, without_compiler
from tenfold_core import errors, opdefs
from tenfold_core.node_signature import signature
from tenfold_kernels import registry
from tenfold_kernels.cpu._compiled import compiling
from tenfold_kernels.resources.state import ResourceManager

TABLE = answers.table()
OPS = [op for op in TABLE if any(Path(row.place).name.startswith("array") for row in registry._rows_of(op, "CPU"))]


class Hiding(dict[str, Any]):
    """Attributes of which some are only there for who has no default of his own."""

    def __init__(self, attrs: dict[str, Any], hidden: set[str]) -> None:
        super().__init__(attrs)
        self._hidden = hidden

    def get(self, name: str, default: Any = None) -> Any:
        return default if name in self._hidden and default is not None else super().get(name, default)


@pytest.mark.parametrize("op", OPS)
def test_what_is_left_out_is_the_definitions(monkeypatch: pytest.MonkeyPatch, op: str) -> None:
    without_compiler(monkeypatch)
    monkeypatch.setattr(compiling, "loops", InPython())
    defaults = {attr.name: attr.default for attr in opdefs.get(op).attrs if attr.has_default and attr.type != "type"}
    for number, _, _, answer in TABLE[op]:
        case = case_of(op, number)
        # the V2 of these ops has no alignment, and another one than the V3 where none is said
        usual = {name for name, value in defaults.items() if case.attrs[name] == value and name != "align"}
        types = signature(opdefs.get(op), case.attrs)
        node = registry.KernelNode(
            "n",
            op,
            Hiding(case.attrs, usual),
            types.input_types,
            types.output_types,
            "/device:CPU:0",
            ResourceManager(),
        )
        found: Any
        try:
            with registry.quiet():
                found = registry.lookup(node, "CPU")(node)(*case.inputs)
        except errors.OpError as error:
            found = error
        else:
            found = list(found) if isinstance(found, tuple) else [found]
        slack = KNOWN[op].slack if op in KNOWN else 1.0
        assert answers.difference(found, answer, slack) is None, f"{number} {case} without {usual}"
