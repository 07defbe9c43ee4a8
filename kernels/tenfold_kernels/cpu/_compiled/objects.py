"""The loops as machine code: from object files, without Numba, where machine_code.py has left them; else by Numba.

Used by compiling.py and loading.py, and for callbacks by all that work in chunks. Nothing here imports Numba before a
loop has to be compiled.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from tenfold_kernels import object_code

from .loop_spec import CALLBACK
from .object_names import OF_CHUNKS, file_of, file_of_callback

if TYPE_CHECKING:
    from collections.abc import Callable

    from .loop_spec import LoopSpec


def is_on_disk(spec: LoopSpec) -> bool:
    """Whether `compile_spec` will probably load machine code, not make it."""
    if object_code.is_supported():
        return object_code.is_there(file_of(spec)[0])
    from . import machine_code

    return machine_code.is_on_disk(spec)


def compile_spec(spec: LoopSpec) -> Callable[..., Any]:
    """The loop as machine code, from the disk where it can. Blocks: milliseconds to load, a second to compile.

    Of a callback: a function that gives its address.
    """
    if spec.codes == CALLBACK:
        address = compile_callback(spec.function)
        return lambda: address
    if object_code.is_supported():
        path, name = file_of(spec)
        what = f"{spec.function.__module__}.{spec.function.__qualname__}"
        found = object_code.load(path, name, what)
        if found is None and not object_code.is_there(path):
            from . import machine_code

            found = object_code.load(path, name, what, machine_code.make_object(spec))
        if found is not None:
            return found
    from . import machine_code

    return machine_code.compile_spec(spec)


@functools.cache
def compile_callback(function: Callable[..., Any], signature: str = OF_CHUNKS) -> int:
    """The address of `function` compiled as a C function, for threads without the GIL; it lives as long as the process.

    It must not raise. Blocks while it is loaded or compiled.
    """
    if object_code.is_supported():
        path, name = file_of_callback(function, signature)
        found = object_code.load_address(path, name)
        if found is None and not object_code.is_there(path):
            from . import machine_code

            found = object_code.load_address(path, name, machine_code.make_object_of_callback(function, signature))
        if found is not None:
            return found
    from . import machine_code

    return machine_code.compile_callback(function, signature)
