"""How many turns the loops of a step may take, and the error of one that takes more. A loop need never end by itself.

What runs a loop counts: generated code (tenfold_compiler/write/flow_writer.py) and the propagator all loops of a
part together, compiled loops (fusion/loops.py) and calls of functions (cpu/control_flow_functions.py) each call by
itself. tenfold_services/limits.py sets the number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from tenfold_core.env_settings import limit_reached

if TYPE_CHECKING:
    from tenfold_core import errors

#: By default: what takes a compiled loop, of a nanosecond a turn, a quarter of an hour.
MOST_TURNS = 1 << 40
#: What sets another number.
VARIABLE = "TENFOLD_TASK_LOOP_TURNS"


def too_many_turns(most: int) -> errors.OpError:
    """The ResourceExhaustedError of a step whose loops have taken `most` turns and go on."""
    return limit_reached(f"The loops of this step have taken {most} turns on this task, and go on", most, VARIABLE)


def end(most: int) -> NoReturn:
    """Raises it."""
    raise too_many_turns(most)
