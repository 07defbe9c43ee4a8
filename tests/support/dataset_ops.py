"""Runs ops of datasets as a program's steps would, with functions that are Python's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, Called, result
from support.kernel_runs import DEVICE, make_node
from tenfold_core import errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.resources.datasets.core import Dataset, dataset_of
from tenfold_kernels.resources.state import ResourceManager
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Library:
    """A graph's library whose functions are Python's, by their names."""

    most_turns = 1

    def __init__(self, bodies: Mapping[str, Callable[..., Any]]) -> None:
        self._bodies = bodies

    def instantiate(self, name: str, attrs: Mapping[str, Any], device: str) -> Called:
        assert device == DEVICE
        return Called(self._bodies[name])


class DatasetSteps:
    """Steps of one task. An attribute that can be called is a function of the library; datasets of int64 scalars are
    declared unless something else is; numbers stand for int64 scalars, bytes and texts for strings.
    """

    def __init__(self) -> None:
        self.resources = ResourceManager()

    def build(
        self, op: str, *inputs: Any, name: str = "n", functions: Mapping[str, Any] | None = None, **attrs: Any
    ) -> tuple[Any, list[Any]]:
        """The compute function, and what it is to be called with. `functions`: those in lists."""
        values = [_value(each) for each in inputs]
        known = {attr.name for attr in opdefs.get(op).attrs}
        declared = {"output_types": list(INT), "Toutput_types": list(INT), "output_shapes": list(SCALAR)}
        bodies = {key: value for key, value in attrs.items() if callable(value)}
        given = {
            **{key: value for key, value in declared.items() if key in known},
            **{key: NameAttrList(name=key) if key in bodies else value for key, value in attrs.items()},
        }
        node = make_node(op, values, given, self.resources, name)
        bodies.update(functions or {})
        if bodies:
            node = dataclasses.replace(node, functions=Library(bodies))
        return registry.lookup(node, "CPU")(node), values

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """What the op gives its step."""
        compute, values = self.build(op, *inputs, **attrs)
        return result(compute(*values))

    def dataset(self, op: str, *inputs: Any, **attrs: Any) -> Any:
        """The dataset that the op makes."""
        return dataset_of(self(op, *inputs, **attrs))


def _value(value: Any) -> Any:
    if isinstance(value, Dataset):
        return value.as_array()
    if isinstance(value, str | bytes):
        return scalar_object(value.encode() if isinstance(value, str) else value)
    if isinstance(value, bool | float):
        return np.array(value)
    return np.array(value, np.int64) if isinstance(value, int) else value


def refused(text: str) -> Any:
    """What is done within it raises InvalidArgumentError with a message that `text` matches."""
    return pytest.raises(errors.InvalidArgumentError, match=text)
