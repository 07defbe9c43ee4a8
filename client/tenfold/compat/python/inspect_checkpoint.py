"""`tensorflow.python.tools.inspect_checkpoint`: prints what a checkpoint holds."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from tenfold.train.checkpoint_utils import NewCheckpointReader


def print_tensors_in_checkpoint_file(
    file_name: str,
    tensor_name: str,
    all_tensors: bool,
    all_tensor_names: bool = False,
    count_exclude_pattern: str = "",
) -> None:
    """Prints one tensor, all with `all_tensors`, their names with `all_tensor_names`, or what there is.

    Raises NotFoundError if there is no such checkpoint or tensor.
    """
    reader = NewCheckpointReader(file_name)
    shapes = reader.get_variable_to_shape_map()
    if all_tensors or all_tensor_names:
        for name in sorted(shapes):
            print("tensor_name: ", name)
            if all_tensors:
                print(reader.get_tensor(name))
    elif tensor_name:
        print("tensor_name: ", tensor_name)
        print(reader.get_tensor(tensor_name))
    else:
        print(reader.debug_string().decode("utf-8"))
    excluded = re.compile(count_exclude_pattern) if count_exclude_pattern else None
    counted = [shape for name, shape in shapes.items() if excluded is None or not excluded.search(name)]
    print("# Total number of params:", sum(int(np.prod(shape)) for shape in counted))


def parse_numpy_printoption(kv_str: str) -> None:
    """Sets an option of NumPy's printing, `precision=3`. Raises ValueError for one that there is not."""
    name, _, text = kv_str.partition("=")
    options: dict[str, Any] = dict(np.get_printoptions())
    if name not in options or not text:
        raise ValueError(f"Setting '{kv_str}' from the command line is not an option of NumPy's printing")
    kind = type(options[name])
    change: dict[str, Any] = {name: text.lower() == "true" if kind is bool else kind(text)}
    np.set_printoptions(**change)
