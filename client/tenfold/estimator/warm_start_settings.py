"""`tf.estimator.WarmStartSettings`: which variables of an estimator start from which checkpoint.

train/warm_starting.py does it. Follows TF 1.15's estimator/estimator.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import gfile, logging

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.train.warm_starting import VocabInfo

#: Where a SavedModel keeps its variables.
_VARIABLES = ("variables", "variables")


class _WarmStartSettings(NamedTuple):
    ckpt_to_initialize_from: str
    vars_to_warm_start: Any
    var_name_to_vocab_info: Mapping[str, VocabInfo]
    var_name_to_prev_var_name: Mapping[str, str]


class WarmStartSettings(_WarmStartSettings):
    """The arguments of `tf.train.warm_start`: a checkpoint (or its folder), and variables.

    Raises ValueError without a checkpoint. As TensorFlow 1.15's `tf.estimator.WarmStartSettings`.
    """

    __slots__ = ()

    def __new__(
        cls,
        ckpt_to_initialize_from: str,
        vars_to_warm_start: Any = ".*",
        var_name_to_vocab_info: Mapping[str, VocabInfo] | None = None,
        var_name_to_prev_var_name: Mapping[str, str] | None = None,
    ) -> WarmStartSettings:
        if not ckpt_to_initialize_from:
            raise ValueError("`ckpt_to_initialize_from` MUST be set in WarmStartSettings")
        return super().__new__(
            cls,
            ckpt_to_initialize_from,
            vars_to_warm_start,
            var_name_to_vocab_info or {},
            var_name_to_prev_var_name or {},
        )


def warm_start_settings(warm_start_from: Any) -> WarmStartSettings | None:
    """Settings from what an Estimator was given: settings, None, or the path of a checkpoint or a SavedModel.

    Raises ValueError for anything else.
    """
    if warm_start_from is None or isinstance(warm_start_from, WarmStartSettings):
        return warm_start_from
    if not isinstance(warm_start_from, (str, bytes, os.PathLike)):
        raise ValueError(
            f"warm_start_from must be a string or a WarmStartSettings, instead got {type(warm_start_from)}"
        )
    path = os.fsdecode(warm_start_from)
    variables = os.path.join(path, *_VARIABLES)
    if gfile.Exists(variables + ".index"):
        logging.info("Warm-starting from a SavedModel")
        path = variables
    return WarmStartSettings(path)
