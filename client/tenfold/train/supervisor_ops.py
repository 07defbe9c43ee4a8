"""The operations and the saver that a Supervisor works with: given, else found in the graph's collections, else made.

Used by supervisor.py. Collections and rules follow TF 1.15's training/supervisor.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import add_to_collection, get_collection, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.ops import control_flow
from tenfold.ops import variables as variables_module
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

#: "Not given": stands for TensorFlow's default where None has a meaning of its own.
USE_DEFAULT: Any = object()


def given_or_made(given: Any, key: str, make: Callable[[], Any] | None) -> Any:
    """What was given; else the first item of the collection; else a new one, which is added to it."""
    if given is not USE_DEFAULT:
        return given
    found = get_collection(key)
    if len(found) > 1:
        logging.info("Found %d %s operations. Returning the first one.", len(found), key)
    if found:
        return found[0]
    made = None if make is None else make()
    if made is not None:
        add_to_collection(key, made)
    return made


def default_local_init_op() -> Any:
    """Initialises local variables and tables."""
    tables = get_collection(GraphKeys.TABLE_INITIALIZERS)
    return control_flow.group(variables_module.local_variables_initializer(), *tables)


def default_saver() -> Any:
    """Of all global variables; None where there are none."""
    from tenfold.train.saver import Saver

    return Saver() if variables_module.global_variables() else None


def increments_beside(saver: Any) -> dict[str, Any]:
    """`incr_saver`, where the saver's checkpoints may be followed by increments."""
    if not getattr(saver, "_incremental", False):
        return {}
    from tenfold.train.incremental_saver import _get_incremental_saver

    saver.build()
    return {"incr_saver": _get_incremental_saver(True, saver)}


def default_summary_op() -> Any:
    """All summaries as one; None where there are none."""
    from tenfold.summary import merge_all

    return merge_all()


def default_global_step() -> Any:
    """The tensor of the name "global_step", if it counts; else None."""
    try:
        step = get_default_graph().get_tensor_by_name("global_step:0")
    except KeyError:
        return None
    if step.dtype.base_dtype in (dtypes.int32, dtypes.int64):
        return step
    logging.warning("Found 'global_step' is not an int type: %s", step.dtype)
    return None
