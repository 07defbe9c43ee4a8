"""Machine code of a module that was written with llvmlite alone, for what cannot wait until Numba is loaded.

memory_code.py and philox_code.py write such modules: llvmlite takes a tenth of Numba's time.
"""

from __future__ import annotations

import contextlib
from typing import Any


def compile_module(module: Any, *, for_this_processor: bool = False) -> Any:
    """The engine that has the code of an `llvmlite.ir.Module`: `get_function_address(name)`. Keep it.

    Blocks for some 50 ms. Raises what llvmlite raises where there can be no code.
    """
    from llvmlite import binding  # type: ignore[import-untyped]

    with contextlib.suppress(RuntimeError):  # from LLVM 20 on it says so if it needs no call
        binding.initialize()
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    parsed = binding.parse_assembly(str(module))
    parsed.verify()
    processor = {}
    if for_this_processor:
        processor = {"cpu": binding.get_host_cpu_name(), "features": binding.get_host_cpu_features().flatten()}
    machine = binding.Target.from_default_triple().create_target_machine(opt=2, **processor)
    engine = binding.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    return engine
