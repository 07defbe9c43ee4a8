"""How a module becomes machine code: each step that LLVM wants, for any processor or for this one. No code is made."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_kernels.native_code import compile_module


class FakeBinding:
    """Stands for llvmlite.binding; remembers what it was asked for."""

    def __init__(self, needs_call: bool) -> None:
        self.asked: list[Any] = []
        self.needs_call = needs_call
        self.Target = SimpleNamespace(from_default_triple=lambda: self)

    def initialize(self) -> None:
        if not self.needs_call:
            raise RuntimeError("llvmlite.binding.initialize() is deprecated")
        self.asked.append("initialize")

    def __getattr__(self, name: str) -> Any:
        def call(*given: Any, **more: Any) -> Any:
            self.asked.append((name, *given, more) if given or more else name)
            return {"get_host_cpu_name": "zen", "flatten": "+avx"}.get(name, self)

        return call


@pytest.mark.parametrize("needs_call", [True, False])
@pytest.mark.parametrize("here", [True, False])
def test_each_step(here: bool, needs_call: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    binding = FakeBinding(needs_call)
    monkeypatch.setitem(sys.modules, "llvmlite", SimpleNamespace(binding=binding))  # type: ignore[arg-type]
    module = type("Module", (), {"__str__": lambda self: "the text"})()
    engine = compile_module(module, for_this_processor=True) if here else compile_module(module)
    assert engine is binding
    processor = {"cpu": "zen", "features": "+avx"} if here else {}
    assert binding.asked == [
        *(["initialize"] if needs_call else []),
        "initialize_native_target",
        "initialize_native_asmprinter",
        ("parse_assembly", "the text", {}),
        "verify",
        *(["get_host_cpu_name", "get_host_cpu_features", "flatten"] if here else []),
        ("create_target_machine", {"opt": 2, **processor}),
        ("create_mcjit_compiler", binding, binding, {}),
        "finalize_object",
    ]
