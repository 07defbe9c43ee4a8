"""Fetches and feeds: every structure that `Session.run` takes, against a real graph and without a session."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import pytest

from tenfold.graph import Graph, IndexedSlices, Tensor
from tenfold.session import composite_values
from tenfold.session.feeds import convert_feed, read_only, resolve_feeds
from tenfold.session.fetches import FetchPlan
from tenfold_core import dtypes
from tenfold_protos import attr_value_pb2, tensor_shape_pb2


class Pair(NamedTuple):
    a: Any
    b: Any


class Attrs:
    """What the attrs library makes, as far as a session looks."""

    class _Attribute:
        def __init__(self, name: str) -> None:
            self.name = name

    __attrs_attrs__ = (_Attribute("left"), _Attribute("right"))

    def __init__(self, left: Any, right: Any) -> None:
        self.left, self.right = left, right


class Stored:
    """Stands for a tensor, as a variable does."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def _as_graph_element(self) -> Tensor:
        return self.tensor


def placeholder(graph: Graph, name: str, dtype: Any = "float32", shape: list[int] | None = None) -> Tensor:
    proto = tensor_shape_pb2.TensorShapeProto(unknown_rank=shape is None)
    for size in shape or ():
        proto.dim.add(size=size)
    enum: Any = dtypes.as_dtype(dtype).as_datatype_enum
    attrs = {"dtype": attr_value_pb2.AttrValue(type=enum), "shape": attr_value_pb2.AttrValue(shape=proto)}
    return graph.create_op("Placeholder", [], name=name, attrs=attrs).outputs[0]


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    placeholder(graph, "x")
    placeholder(graph, "y")
    graph.create_op("NoOp", [], name="init")
    return graph


def fetched(graph: Graph, fetches: Any) -> tuple[list[str], list[str], Any]:
    """Names to fetch, names to run, and the result with every value replaced by "value of <name>"."""
    plan = FetchPlan(graph, fetches)
    return plan.names, plan.target_names, plan.build([f"value of {name}" for name in plan.names])


def test_single_elements(graph: Graph) -> None:
    x, init = graph.get_tensor_by_name("x:0"), graph.get_operation_by_name("init")

    assert fetched(graph, x) == (["x:0"], [], "value of x:0")
    assert fetched(graph, "x:0") == (["x:0"], [], "value of x:0")
    assert fetched(graph, b"x:0") == (["x:0"], [], "value of x:0")
    assert fetched(graph, Stored(x)) == (["x:0"], [], "value of x:0")
    assert fetched(graph, init) == ([], ["init"], None)
    assert fetched(graph, "init") == ([], ["init"], None)


def test_sequences(graph: Graph) -> None:
    assert fetched(graph, ["x:0", "init", "y:0"])[2] == ["value of x:0", None, "value of y:0"]
    assert fetched(graph, ("x:0",))[2] == ("value of x:0",)
    assert fetched(graph, Pair("x:0", "init"))[2] == Pair("value of x:0", None)
    assert fetched(graph, [])[2] == []
    assert fetched(graph, ())[2] == ()


def test_mappings_keep_type_and_order(graph: Graph) -> None:
    result = fetched(graph, collections.OrderedDict([("second", "y:0"), ("first", "x:0")]))[2]

    assert isinstance(result, collections.OrderedDict)
    assert list(result.items()) == [("second", "value of y:0"), ("first", "value of x:0")]


def test_nesting_and_attrs(graph: Graph) -> None:
    fetches = {"k": [Pair("x:0", ("y:0", "init")), {}], "a": Attrs("y:0", ["x:0"])}

    names, targets, result = fetched(graph, fetches)

    assert names == ["x:0", "y:0"]
    assert targets == ["init"]
    assert result["k"] == [Pair("value of x:0", ("value of y:0", None)), {}]
    assert (result["a"].left, result["a"].right) == ("value of y:0", ["value of x:0"])


def test_duplicates_are_fetched_once(graph: Graph) -> None:
    x = graph.get_tensor_by_name("x:0")

    names, targets, result = fetched(graph, [x, "x:0", Stored(x), "init", "init"])

    assert names == ["x:0"]
    assert targets == ["init"]
    assert result == ["value of x:0"] * 3 + [None, None]


def test_indexed_slices(graph: Graph) -> None:
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")

    assert fetched(graph, IndexedSlices(x, y))[2] == ("value of x:0", "value of y:0", None)
    assert resolve_feeds(graph, {IndexedSlices(x, y): ([1.0], [2.0])}).keys() == {"x:0", "y:0"}


def test_registered_conversions(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite_values, "_registered", [])

    class Doubled:
        tensor = graph.get_tensor_by_name("x:0")

    composite_values.register_session_run_conversion_functions(
        Doubled,
        lambda doubled: ([doubled.tensor], lambda values: values[0] * 2),
        lambda doubled, value: [(doubled.tensor, value / 2)],
    )

    assert FetchPlan(graph, [Doubled()]).build([21]) == [42]
    assert resolve_feeds(graph, {Doubled(): 6.0})["x:0"] == 3.0
    with pytest.raises(ValueError, match="has already been registered"):
        composite_values.register_session_run_conversion_functions(Doubled, lambda fetch: ([], list))


@pytest.mark.parametrize(
    ("fetches", "error", "text"),
    [
        (None, TypeError, 'Argument `fetch` = None has invalid type "NoneType". Cannot be None'),
        (["x:0", None], TypeError, "Cannot be None"),
        (5, TypeError, r'`fetch` = 5 has invalid type "int" must be a string or Tensor. \(Can not convert a int into'),
        ("nope", ValueError, r"`fetch` = nope cannot be interpreted as a Tensor. \(The name 'nope' refers"),
        ("nope:0", ValueError, r"\(The name 'nope:0' refers to a Tensor which does not exist. The operation, 'nope', "),
        ("x:5", ValueError, "exists but only has 1 outputs"),
        ("a:b:c", ValueError, 'Tensor names must be of the form "<op_name>:<output_index>"'),
    ],
)
def test_bad_fetches(graph: Graph, fetches: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        FetchPlan(graph, fetches)


def test_fetch_of_another_graph(graph: Graph) -> None:
    other = placeholder(Graph(), "z")

    with pytest.raises(ValueError, match=r"cannot be interpreted as a Tensor.*is not an element of this graph"):
        FetchPlan(graph, other)


def test_unfetchable(graph: Graph) -> None:
    graph.prevent_fetching(graph.get_operation_by_name("x"))

    with pytest.raises(ValueError, match="Operation 'x' has been marked as not fetchable"):
        FetchPlan(graph, ["x:0"])


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
     "complex64", "complex128", "bool"],
)  # fmt: skip
def test_numeric_feeds(dtype: str) -> None:
    tensor = placeholder(Graph(), "t", dtype)

    for value in (1, [[1, 0]], np.array([1, 0], np.int8), np.zeros((0, 3)), True):
        array = convert_feed(tensor, value)
        assert array.dtype == np.dtype(dtype)
        assert array.shape == np.shape(value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("é", np.array("é".encode(), object)),
        (b"\x00a\x00", np.array(b"\x00a\x00", object)),
        (["a", b"b"], np.array([b"a", b"b"], object)),
        ([["a"], [""]], np.array([[b"a"], [b""]], object)),
        (np.array(["a", "bc"]), np.array([b"a", b"bc"], object)),
        (np.array([b"a", b"bc"]), np.array([b"a", b"bc"], object)),
        (np.empty((0, 2), object), np.empty((0, 2), object)),
    ],
)
def test_string_feeds(value: Any, expected: np.ndarray) -> None:
    array = convert_feed(placeholder(Graph(), "s", "string"), value)

    assert array.dtype == object
    assert array.shape == expected.shape
    assert array.ravel().tolist() == expected.ravel().tolist()


def test_feed_keys(graph: Graph) -> None:
    x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")

    assert resolve_feeds(graph, {x: 1, "y:0": 2}) == {"x:0": 1, "y:0": 2}
    assert resolve_feeds(graph, {Stored(x): 1}) == {"x:0": 1}
    assert resolve_feeds(graph, {(x, y): (1, 2)}) == {"x:0": 1, "y:0": 2}
    assert resolve_feeds(graph, {(x, (y,)): [1, [2]]}) == {"x:0": 1, "y:0": 2}
    assert resolve_feeds(graph, None) == {}
    fed = resolve_feeds(graph, {(x, y): ([1, 2], [3, 4])})
    assert fed["y:0"].tolist() == [3, 4]


def test_feeds_of_the_right_type_are_not_copied_and_enter_read_only(graph: Graph) -> None:
    value = np.arange(3, dtype=np.float32)

    view = read_only(resolve_feeds(graph, {"x:0": value})["x:0"])

    assert np.shares_memory(view, value)
    assert not view.flags.writeable
    assert value.flags.writeable


def test_feeds_are_contiguous_and_aligned(graph: Graph) -> None:
    strided = np.arange(10, dtype=np.float32)[::2]
    unaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    swapped = np.arange(3, dtype=">f4")

    for value in (strided, unaligned, swapped, np.ones((2, 3), np.float32).T):
        array = resolve_feeds(graph, {"x:0": value})["x:0"]
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.dtype.isnative
        assert np.array_equal(array, value)


@pytest.mark.parametrize(
    ("feeds", "error", "text"),
    [
        ({"v:0": [1, 2, 3]}, ValueError, r"Cannot feed value of shape \(3,\) for Tensor v:0, which has shape \(2,\)"),
        ({"v:0": "abc"}, ValueError, r"could not convert string to float: .*feeding Tensor v:0, which has dtype float"),
        ({"v:0": [[1], [2, 3]]}, ValueError, "feeding Tensor v:0"),
        ({"v:0": object()}, TypeError, "feeding Tensor v:0"),
        ({"i:0": 300}, TypeError, "Type of feed value 300 with type <class 'int'> is not compatible with Tensor type"),
        ({"s:0": 5}, TypeError, "Type of feed value 5"),
        ({"s:0": [1, 2]}, TypeError, "Unsupported object type int"),
        ({"v": [1, 2]}, TypeError, "Cannot interpret feed_dict key as Tensor: The name 'v' refers to an"),
        ({"nope:0": 1}, TypeError, "Cannot interpret feed_dict key as Tensor: The name 'nope:0' refers to a Tensor"),
        ({5: 1}, TypeError, "Cannot interpret feed_dict key as Tensor: Can not convert a int into a Tensor."),
        ({("v:0", "i:0"): (1, 2, 3)}, ValueError, "Key had 2 elements, but value had 3 elements"),
        ({("v:0", "i:0"): 1}, TypeError, "needs a tuple or list of values, but got int"),
        ({("v:0",): ([1, 2],), "v:0": [1, 2]}, ValueError, "Cannot flatten dict because this key is not unique"),
        ([1, 2], TypeError, "`feed_dict` must be a dictionary, but got list"),
    ],
)
def test_bad_feeds(feeds: Any, error: type[Exception], text: str) -> None:
    graph = Graph()
    placeholder(graph, "v", shape=[2])
    placeholder(graph, "i", "int8")
    placeholder(graph, "s", "string")

    with pytest.raises(error, match=text):
        resolve_feeds(graph, feeds)


def test_feeding_a_tensor(graph: Graph) -> None:
    with pytest.raises(TypeError, match=r"The value of a feed cannot be a tf.Tensor object.*with key Tensor\(\"x:0\""):
        resolve_feeds(graph, {"x:0": graph.get_tensor_by_name("y:0")})


def test_unfeedable(graph: Graph) -> None:
    graph.prevent_feeding(graph.get_tensor_by_name("x:0"))

    with pytest.raises(ValueError, match="Tensor x:0 may not be fed"):
        resolve_feeds(graph, {"x:0": 1})
