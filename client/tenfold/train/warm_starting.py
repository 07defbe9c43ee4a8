"""`tf.train.warm_start`: variables start from a checkpoint of another model, under the same or other names.

A VocabInfo describes the changed vocabulary of an embedding, and vocab_remapping.py finds the rows by their
words; checkpoint_utils.py does the rest. Follows TF 1.15's training/warm_starting_util.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import logging
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import get_collection
from tenfold.ops.partitioned_variable import PartitionedVariable
from tenfold.ops.state_ops import assign
from tenfold.ops.variables import Variable
from tenfold.train.checkpoint_utils import checkpoint_filename, init_from_checkpoint
from tenfold.train.vocab_remapping import Axis, remapped_value

if TYPE_CHECKING:
    from collections.abc import Mapping


class _VocabInfo(NamedTuple):
    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int = -1
    backup_initializer: Any = None
    axis: int = 0


class VocabInfo(_VocabInfo):
    """Which rows of an old embedding belong to which words. Raises ValueError unless axis is 0 or 1."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> VocabInfo:
        made = super().__new__(cls, *args, **kwargs)
        if made.axis not in (0, 1):
            raise ValueError(
                f"The only supported values for the axis argument are 0 and 1.  Provided axis: {made.axis}"
            )
        return made


def warm_start(
    ckpt_to_initialize_from: str,
    vars_to_warm_start: Any = ".*",
    var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
    var_name_to_prev_var_name: Mapping[str, str] | None = None,
) -> None:
    """Makes variables start from a checkpoint.

    `vars_to_warm_start`: a regular expression over the trainable variables' names (None: all), a list of expressions
    over those of all global variables, or a list of variables. `var_name_to_vocab_info` says whose vocabulary changed,
    `var_name_to_prev_var_name` gives the names that differ. Raises ValueError for arguments that match no variable.
    """
    logging.info("Warm-starting from: %s", ckpt_to_initialize_from)
    vocabularies, previous = dict(var_name_to_vocab_info or {}), dict(var_name_to_prev_var_name or {})
    grouped: dict[str, list[Any]] = {}
    for variable in _chosen(vars_to_warm_start):
        for part in variable if isinstance(variable, list) else [variable]:
            grouped.setdefault(_infer_var_name([part]), []).append(part)
    for what, names in (
        ("var_name_to_prev_var_name", set(previous) - set(grouped)),
        ("var_name_to_vocab_info", set(vocabularies) - set(grouped)),
    ):
        if names:
            raise ValueError(
                f"You provided the following variables in {what} that were not used: {names}.  Perhaps you misspelled "
                f"them?  Here is the list of viable variable names: {list(grouped)}"
            )
    plain: dict[str, Any] = {}
    for name, parts in grouped.items():
        info = vocabularies.get(name)
        if info is not None:
            warm_start_var_with_vocab(
                parts,
                info.new_vocab,
                info.new_vocab_size,
                ckpt_to_initialize_from,
                info.old_vocab,
                info.old_vocab_size,
                info.num_oov_buckets,
                previous.get(name),
                info.backup_initializer,
                info.axis,
            )
        elif vars_to_warm_start:
            source, found = get_var_info(parts[0] if len(parts) == 1 else parts, previous.get(name))
            plain[source] = found
    init_from_checkpoint(ckpt_to_initialize_from, plain)
    logging.info("Warm-started %d variables.", len(plain) + len(vocabularies))


def warm_start_var_with_vocab(
    var: Any,
    current_vocab_path: str,
    current_vocab_size: int,
    prev_ckpt: str,
    prev_vocab_path: str,
    previous_vocab_size: int = -1,
    current_oov_buckets: int = 0,
    prev_tensor_name: str | None = None,
    initializer: Any = None,
    axis: int = 0,
) -> None:
    """Makes a matrix start from a checkpoint's, whose rows (`axis` 0) or columns (1) had another vocabulary.

    `var` is as for `get_var_info`; `initializer` makes the rows that the old model lacks (default: zeros). Raises
    ValueError for missing arguments, another axis, or shapes that do not fit.
    """
    if not (current_vocab_path and current_vocab_size and prev_ckpt and prev_vocab_path):
        raise ValueError(
            "Invalid args: Must provide all of [current_vocab_path, current_vocab_size, prev_ckpt, prev_vocab_path}."
        )
    if axis not in (0, 1):
        raise ValueError(f"The only supported values for the axis argument are 0 and 1.  Provided axis: {axis}")
    source, found = get_var_info(var, prev_tensor_name)
    parts = found if isinstance(found, list) else [found]
    checkpoint = checkpoint_filename(prev_ckpt)
    if checkpoint is None:
        raise ValueError(f"Couldn't find 'checkpoint' file or checkpoints in given directory {prev_ckpt}")
    words = Axis(current_vocab_size, current_oov_buckets, current_vocab_path, prev_vocab_path, previous_vocab_size)
    height = sum(part.get_shape().as_list()[0] for part in parts)
    for part in parts:
        shape = part.get_shape().as_list()
        info = part._get_save_slice_info()
        value = remapped_value(
            checkpoint,
            source,
            shape,
            0 if info is None else info.var_offset[0],
            words if axis == 0 else Axis(height),
            words if axis == 1 else Axis(shape[1]),
            initializer,
        )
        part._initializer_op = assign(part, value)
        part._initial_value = value


def get_var_info(var: Any, prev_tensor_name: str | None = None) -> tuple[str, Any]:
    """(name in the checkpoint, the variable or the list of its parts) for `init_from_checkpoint`.

    `var` is a variable, a list of the parts of one, or a PartitionedVariable; raises TypeError for anything else.
    """
    if isinstance(var, Variable):
        return prev_tensor_name or _infer_var_name([var]), var
    if isinstance(var, PartitionedVariable):
        var = list(var)
    if isinstance(var, list) and var and all(isinstance(part, Variable) for part in var):
        return prev_tensor_name or _infer_var_name(var), var
    raise TypeError(
        f"var MUST be one of the following: a Variable, list of Variable or PartitionedVariable, but is {type(var)}"
    )


def _infer_var_name(parts: list[Any]) -> str:
    """The name of the whole. Raises TypeError unless all are parts of one variable."""
    names = set()
    for part in parts:
        info = part._get_save_slice_info()
        names.add(part.op.name if info is None else str(info.full_name))
    if len(names) > 1:
        raise TypeError(f"`var` = {parts} passed as arg violates the constraints: several variables, {sorted(names)}")
    return str(names.pop())


def _chosen(vars_to_warm_start: Any) -> list[Any]:
    if vars_to_warm_start is None or isinstance(vars_to_warm_start, str):
        logging.info("Warm-starting variables only in TRAINABLE_VARIABLES.")
        return get_collection(GraphKeys.TRAINABLE_VARIABLES, vars_to_warm_start)
    if not isinstance(vars_to_warm_start, list):
        raise ValueError(f"`vars_to_warm_start must be a `list` or `str`.  Given type is {type(vars_to_warm_start)}")
    if all(isinstance(item, str) for item in vars_to_warm_start):
        found = [v for scope in vars_to_warm_start for v in get_collection(GraphKeys.GLOBAL_VARIABLES, scope)]
        return list(dict.fromkeys(found))
    if all(isinstance(item, Variable) for item in vars_to_warm_start):
        return vars_to_warm_start
    raise ValueError(
        "If `vars_to_warm_start` is a list, it must be all `Variable` or all `str`.  Given types are "
        f"{[type(item) for item in vars_to_warm_start]}"
    )
