"""Gradients op by op, and what TensorFlow answers: the table gradient_answers.txt, and what runs it.

A line of the table is an expression, `D(R.MatMul, a=N(2, 3), b=N(3, 4))`: the gradients of what a function (R has the
ops themselves) makes of its drawn arguments by each of them; S, too, but with static shapes alone. N draws from all
numbers, P positive ones, U between 0 and 1, X has the value itself, V is a resource variable; I is an integer that is
constant where shapes are known. The indented lines below have a label: "all" outputs used, "0" only that one, "second"
for the gradient of "all" by the arguments and by what came in; "dims" and "fed" only where less static shape gives
another answer: sizes unknown, then ranks and integers, too. "-" is not compared: see tests/interop/gradient_table.py,
which asks TensorFlow for the answers. Run here by tests/kernels/test_gradients_as_tensorflow.py and under TensorFlow by
tests/interop/test_gradients_oracle.py, so it imports nothing but NumPy.
"""

from __future__ import annotations

import functools
import math
import os
import re
import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .odd_inputs import same

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gradient_answers.txt")
#: Static shapes known; ranks alone; nothing, and integers are fed.
VARIANTS = ("all", "dims", "fed")
_FLOWING = ("float16", "float32", "float64", "complex64", "complex128")


def read(table: str = TABLE) -> dict[str, dict[str, list[str]]]:
    """Expression → label → the answer: a line for each argument, or the class of an error."""
    found: dict[str, dict[str, list[str]]] = {}
    with open(table) as lines:
        for line in lines:
            if line.startswith(" "):
                label, _, text = line.strip().partition(" ")
                found[expression].setdefault(label, []).append(text)  # noqa: F821  # a line without indentation is first
            elif line.strip() and not line.startswith("#"):
                expression = line.strip()
                found[expression] = {}
    return found


def group_of(expression: str) -> str:
    """What a test of the expression is called: the op or the function that it is about."""
    found = re.search(r"\bR\.(\w+)", expression) or re.search(r"tf\.([\w.]+)", expression)
    assert found is not None
    return found[1]


@dataclass(frozen=True)
class _Given:
    """An argument of a case."""

    value: Any
    kind: str


class _Ops:
    """The ops by their names, each called with its inputs and attributes."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tf.raw_ops, name)


@dataclass
class _Program:
    """A case with so much static shape: what is differentiated, by what, and what is fed."""

    ys: list[Any]
    xs: list[Any]
    feeds: dict[Any, Any]
    weights: list[Any] = field(default_factory=list)


def _drawing(seed: str) -> dict[str, Any]:
    """N, P, U, X, I, V of one case: they draw one after the other."""
    random = np.random.RandomState(zlib.crc32(seed.encode()))

    def drawn(kind: str, t: str, shape: tuple[int, ...]) -> np.ndarray:
        if t.startswith("complex"):
            return (drawn(kind, "float64", shape) + 1j * drawn(kind, "float64", shape)).astype(t)
        value = random.normal(size=shape) if kind == "N" else random.uniform(0.1, 0.9, shape)
        return np.round(value * 2 + 0.3 if kind == "P" else value, 3).astype(t)

    def form(kind: str) -> Any:
        return lambda *shape, t="float64": _Given(drawn(kind, t, shape), "float")

    return {
        "N": form("N"), "P": form("P"), "U": form("U"),
        "X": lambda value, t="float64": _Given(np.asarray(value, t), "float"),
        "I": lambda value, t="int32": _Given(np.asarray(value, t), "integer"),
        "V": lambda *shape, t="float64": _Given(drawn("N", t, shape), "variable"),
    }  # fmt: skip


class _Case:
    """One expression under one `tf`."""

    def __init__(self, tf: Any, expression: str) -> None:
        self._tf, self.expression = tf, expression
        self.programs: dict[str, _Program] = {}
        #: Label → the gradients, or the text of an error.
        self.fetches: dict[str, Any] = {}
        names = {"tf": tf, "np": np, "nan": math.nan, "inf": math.inf, "R": _Ops(tf)}
        forms = {"S": functools.partial(self._given, VARIANTS[:1]), "D": functools.partial(self._given, VARIANTS)}
        eval(expression, {**names, **forms, **_drawing(expression)})

    def _given(self, variants: tuple[str, ...], function: Any, **arguments: Any) -> None:
        self.variants, self._function, self._arguments = variants, function, arguments

    def _built(self, variant: str) -> _Program:
        """The function's outputs through which gradients flow, in the default graph."""
        feeds: dict[Any, Any] = {}
        xs: list[Any] = []

        def tensor(given: Any) -> Any:
            if isinstance(given, (list, tuple)):
                return [tensor(each) for each in given]
            if not isinstance(given, _Given):
                return given
            if given.kind == "variable":
                xs.append(self._tf.Variable(given.value, use_resource=True))
                return xs[-1]
            if given.kind == "integer" and variant != "fed":
                return self._tf.constant(given.value)
            shape = {"all": given.value.shape, "dims": [None] * given.value.ndim, "fed": None}[variant]
            placeholder = self._tf.placeholder(given.value.dtype, shape)
            feeds[placeholder] = given.value
            if given.kind == "float":
                xs.append(placeholder)
            return placeholder

        made = self._function(**{name: tensor(each) for name, each in self._arguments.items()})
        ys = [y for y in _flat(made) if y.dtype.base_dtype.name in _FLOWING]
        return _Program(ys, xs, feeds)

    def build(self, label: str) -> None:
        """Adds the function with the static shapes of `label`."""
        try:
            self.programs[label] = self._built(label)
        except Exception as error:
            self.fetches[label] = f"{type(error).__name__} when built"

    def unknown_shapes(self) -> list[Any]:
        """The outputs whose shapes a run has to tell."""
        program = self.programs.get("all")
        ys = [] if program is None else program.ys
        return [y for y in ys if y.shape.ndims is None or not y.shape.is_fully_defined()]

    def weigh(self, shapes: dict[Any, tuple[int, ...]]) -> None:
        """Makes what comes in for each output: a placeholder as wide as the output is known to be."""
        drawn = []
        for number, y in enumerate(self.programs["all"].ys if "all" in self.programs else []):
            random = np.random.RandomState(zlib.crc32(f"{self.expression} {number}".encode()))
            shape = shapes[y] if y in shapes else tuple(y.shape.as_list())
            parts = [np.round(random.normal(size=shape), 3) for _ in range(2 if y.dtype.is_complex else 1)]
            drawn.append(np.asarray(parts[0] + 1j * parts[1] if len(parts) == 2 else parts[0], y.dtype.as_numpy_dtype))
        for program in self.programs.values():
            for y, value in zip(program.ys, drawn):
                placeholder = self._tf.placeholder(y.dtype.base_dtype, y.shape)
                program.feeds[placeholder] = value
                program.weights.append(placeholder)

    def derive(self, wanted: Any) -> None:
        """Adds the gradients of the labels that are wanted, of all if that is None."""
        for variant, program in self.programs.items():
            count = len(program.ys)
            chosen = {variant: list(range(count))}
            if variant == "all" and 1 < count < 8:
                chosen.update({str(number): [number] for number in range(count)})
            for label, numbers in chosen.items():
                if wanted is None or label in wanted or label in VARIANTS:
                    ys, weights = [program.ys[n] for n in numbers], [program.weights[n] for n in numbers]
                    self.fetches[label] = self._gradients(ys, program.xs, weights)
        first = self.fetches["all"]
        if (wanted is None or "second" in wanted) and isinstance(first, list):
            self.fetches["second"] = self._second(first, self.programs["all"])

    def _gradients(self, ys: list[Any], xs: list[Any], weights: list[Any]) -> Any:
        try:
            return self._tf.gradients(ys, xs, weights)
        except Exception as error:
            return f"{type(error).__name__} when derived"

    def _second(self, first: list[Any], program: _Program) -> Any:
        """The gradient of the gradients, each weighted with numbers of its own."""
        flowing = [(grad, x) for grad, x in zip(first, program.xs) if grad is not None]
        if not flowing or any(hasattr(x, "initializer") for x in program.xs):
            return "nothing flows"
        tensors = [self._tf.convert_to_tensor(grad) for grad, _ in flowing]
        turned = [np.cos(np.arange(program.feeds[x].size)).reshape(program.feeds[x].shape) for _, x in flowing]
        constants = [self._tf.constant(value.astype(program.feeds[x].dtype)) for value, (_, x) in zip(turned, flowing)]
        return self._gradients(tensors, program.xs + program.weights, constants)

    def dense(self) -> dict[str, Any]:
        """Label → tensors to run, an error's text where there are none."""
        made: dict[str, Any] = {}
        for label, grads in self.fetches.items():
            made[label] = grads if isinstance(grads, str) else [
                self._tf.convert_to_tensor(grad) for grad in grads if grad is not None
            ]  # fmt: skip
        return made

    def feeds_of(self, label: str) -> dict[Any, Any]:
        return self.programs[label if label in self.programs else "all"].feeds

    def texts(self, label: str, values: list[Any]) -> list[str]:
        """A line for each argument."""
        rest = iter(values)
        kinds = ["slices " if type(grad).__name__ == "IndexedSlices" else "" for grad in self.fetches[label]]
        return ["None" if grad is None else kind + _text(next(rest)) for grad, kind in zip(self.fetches[label], kinds)]


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [item for each in value for item in _flat(each)]
    return [value] if hasattr(value, "dtype") else []


def _text(value: np.ndarray) -> str:
    short = [complex(f"{each:.6g}") if isinstance(each, complex) else float(f"{each:.6g}") for each in
             value.ravel().tolist()]  # fmt: skip
    return f"{value.dtype.name}{list(value.shape)} {short}"


def answers(tf: Any, expressions: list[str], known: dict[str, Any] | None = None) -> dict[str, dict[str, list[str]]]:
    """What `tf` answers to each of them: to ops in one graph, to other programs each in its own.

    With `known`, of the labels in it.
    """
    if not all("R." in expression for expression in expressions) and len(expressions) > 1:
        return {key: value for each in expressions for key, value in answers(tf, [each], known).items()}
    with tf.Graph().as_default(), tf.Session() as session:
        cases = [_Case(tf, expression) for expression in expressions]
        for case in cases:
            for variant in VARIANTS:
                # what cannot be built with its shapes known says nothing without
                if variant in case.variants and (variant == "all" or "all" in case.programs):
                    case.build(variant)
        programs = [program for case in cases for program in case.programs.values()]
        initial = [x.initializer for program in programs for x in program.xs if hasattr(x, "initializer")]
        if initial:
            session.run(initial)
        shapes = {}
        for case in cases:
            ys = case.unknown_shapes()
            if ys:
                try:
                    values = session.run(ys, case.programs["all"].feeds)
                except Exception:
                    values = [np.zeros(())] * len(ys)  # the run of the gradients tells
                shapes.update({y: value.shape for y, value in zip(ys, values)})
        tensors = []
        for case in cases:
            case.weigh(shapes)
            case.derive(None if known is None else known[case.expression])
            tensors.append(case.dense())
        return {case.expression: found for case, found in zip(cases, _run(session, cases, tensors))}


def _run(session: Any, cases: list[_Case], tensors: list[dict[str, Any]]) -> list[dict[str, list[str]]]:
    """Label → answer of each case: all in one step or, where one fails, each in its own."""
    feeds = {key: value for case in cases for program in case.programs.values() for key, value in program.feeds.items()}
    flowing = [{label: some for label, some in each.items() if not isinstance(some, str)} for each in tensors]
    found: list[dict[str, list[str]]] = [
        {label: [some] for label, some in each.items() if isinstance(some, str)} for each in tensors
    ]
    try:
        values = session.run(flowing, feeds)
    except Exception:
        values = None
    for number, case in enumerate(cases):
        for label, some in flowing[number].items():
            try:
                value = values[number][label] if values is not None else session.run(some, case.feeds_of(label))
                found[number][label] = case.texts(label, value)
            except Exception as error:
                found[number][label] = [f"{type(error).__name__} when run"]
        # less static shape mostly makes no difference
        for variant in VARIANTS[1:]:
            if variant in found[number] and agree(found[number][variant], found[number]["all"]):
                del found[number][variant]
    return found


def agree(one: list[str], other: list[str]) -> bool:
    """Whether two answers are the same, but for the last digits."""
    if [text.startswith("slices ") for text in one] != [text.startswith("slices ") for text in other]:
        return False
    values = [[text.replace("slices ", "") for text in each] for each in (one, other)]
    tolerance = 1e-4 if any("float32" in text or "complex64" in text for text in one) else 2e-5
    return same(*values, tolerance)


def differing(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> dict[str, Any]:
    """Label → (ours, theirs), where they are not the same; "-" is not compared."""
    found = {}
    for label in {*ours, *theirs}:
        here, there = ours.get(label), theirs.get(label)
        if there != ["-"] and (here is None or there is None or not agree(here, there)):
            found[label] = here, there
    return found
