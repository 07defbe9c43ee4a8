"""Small stand-ins for the packages that TensorFlow's test files import: six, absl.testing.parameterized, portpicker.

Put in place by api_shim.py, so that running the files needs neither.
"""

from __future__ import annotations

import functools
import itertools
import operator
import socket
import types
import unittest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def stand_ins() -> dict[str, types.ModuleType]:
    """Small stand-ins for the packages that test files import."""
    six = types.ModuleType("six")
    vars(six).update(
        iterkeys=lambda mapping: iter(mapping.keys()),
        next=next,
        string_types=(str,),
        integer_types=(int,),
        text_type=str,
        binary_type=bytes,
        PY2=False,
        PY3=True,
        b=lambda text: text.encode("latin-1"),
        iteritems=lambda mapping: iter(mapping.items()),
        itervalues=lambda mapping: iter(mapping.values()),
        assertRaisesRegex=lambda self, *args: self.assertRaisesRegex(*args),
    )
    moves = types.ModuleType("six.moves")
    import builtins
    import queue

    vars(moves).update(xrange=range, range=range, zip=zip, map=map, builtins=builtins, queue=queue)
    vars(moves).update(reduce=functools.reduce, input=input, zip_longest=itertools.zip_longest)
    vars(six)["moves"] = moves
    parameterized = types.ModuleType("absl.testing.parameterized")
    vars(parameterized).update(
        TestCase=_ParameterizedTestCase, parameters=_parameters, named_parameters=_named_parameters
    )
    absl, testing = types.ModuleType("absl"), types.ModuleType("absl.testing")
    vars(absl)["testing"], vars(testing)["parameterized"] = testing, parameterized
    portpicker = types.ModuleType("portpicker")
    vars(portpicker).update(pick_unused_port=_free_port)
    return {
        "portpicker": portpicker,
        "six": six,
        "six.moves": moves,
        "absl": absl,
        "absl.testing": testing,
        "absl.testing.parameterized": parameterized,
    }


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class _Cases:
    """A test method and the arguments of each of its runs."""

    def __init__(self, method: Callable[..., None], cases: list[tuple[str, Any]]) -> None:
        self.method, self.cases = method, cases


def _parameters(*cases: Any) -> Callable[[Any], Any]:
    if len(cases) == 1 and not isinstance(cases[0], (tuple, dict, str)):
        cases = tuple(cases[0])
    return _decorating([(str(number), case) for number, case in enumerate(cases)])


def _decorating(cases: list[tuple[str, Any]]) -> Callable[[Any], Any]:
    """Decorates a test, or every test of a class."""

    def decorate(thing: Any) -> Any:
        if not isinstance(thing, type):
            return _Cases(thing, cases)
        tests = {name: value for name, value in vars(thing).items() if name.startswith("test") and callable(value)}
        for name in tests:
            delattr(thing, name)
        for name, method in tests.items():
            for suffix, case in cases:
                setattr(thing, f"{name}{suffix}", _bound(method, case))
        return thing

    return decorate


def _named_parameters(*cases: Any) -> Callable[[Any], Any]:
    named: list[tuple[str, Any]] = []
    for case in cases:
        if isinstance(case, dict):
            named.append((case["testcase_name"], {key: v for key, v in case.items() if key != "testcase_name"}))
        else:
            named.append((operator.getitem(case, 0), tuple(case[1:])))
    return _decorating(named)


class _ParameterizedTestCase(unittest.TestCase):
    """Makes one test of each case."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        for name, value in list(vars(cls).items()):
            if not isinstance(value, _Cases):
                continue
            delattr(cls, name)
            for suffix, case in value.cases:
                setattr(cls, f"{name}{suffix}", _bound(value.method, case))


def _bound(method: Callable[..., None], case: Any) -> Callable[..., None]:
    @functools.wraps(method)
    def test(self: Any) -> None:
        if isinstance(case, dict):
            method(self, **case)
        elif isinstance(case, (tuple, list)):
            method(self, *case)
        else:
            method(self, case)

    return test
