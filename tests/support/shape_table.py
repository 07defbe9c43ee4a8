"""What TensorFlow infers of a node's static shapes: the table shape_table.txt, and the same asked here.

Under the name of an op stand its cases, a line each: inputs, `->`, TensorFlow's answer, and after ` | ` the attributes
that are not what `plain_attrs` gives.

    [2,?] =[3,-1] -> [3,?]
    [2,3] [3] -> refused: Shape must be rank 2 but is rank 1 | transpose_a=true

An input is a shape, with ? for a size or all of it that is not known, or a constant (=), with ? for an element that
only the step knows. tests/interop/make_shape_table.py makes the table, tests/unit/core/opdefs/test_inferred_shapes.py
compares it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors, opdefs
from tenfold_core.node_signature import signature
from tenfold_core.shape_inference import infer_shapes
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_core.op_def import AttrDef, OpDef

TABLE = Path(__file__).with_name("shape_table.txt")
REFUSED = "refused: "

#: Op → why we infer another shape than TensorFlow does.
DIFFERENT: dict[str, str] = {
    "MatrixDiagV2": "TensorFlow takes a number of rows that is not known for -1; it may come as another",
    "MatrixDiagV3": "as MatrixDiagV2",
    "ExtractVolumePatches": "where sizes are open TensorFlow gives four axes, as for images; a volume has five",
    **dict.fromkeys(
        ("BlockLSTMGrad", "BlockLSTMGradV2", "GRUBlockCellGrad"),
        "TensorFlow gives the ranks of operands that are not known; ours are the operands' shapes as they are",
    ),
    **dict.fromkeys(
        ("Dilation2DBackpropFilter", "Dilation2DBackpropInput", "DrawBoundingBoxes", "DrawBoundingBoxesV2"),
        "TensorFlow takes the shape of an operand, whatever its rank; the kernels of both refuse all but one",
    ),
    **dict.fromkeys(
        ("EncodeJpegVariableQuality", "FractionalAvgPoolGrad", "RaggedBincount", "SparseBincount"),
        "operands of a rank that TensorFlow's kernel refuses are refused here when the graph is built",
    ),
    **dict.fromkeys(
        ("FractionalAvgPool", "FractionalMaxPool"),
        "the sequences have one element more than the output is long, in TensorFlow's steps too; it infers one too few",
    ),
    "NthElement": "TensorFlow takes a rank that both kernels refuse; it is refused here when the graph is built",
    **dict.fromkeys(
        (
            *("AvgPool", "AvgPool3D", "DecodePaddedRaw", "ExtractGlimpseV2", "MaxPool", "MaxPool3D", "MaxPoolV2"),
            *("MaxPoolWithArgmax", "ResizeArea", "ResizeBicubic", "ResizeNearestNeighborGrad", "ScaleAndTranslate"),
            *("ParseSingleSequenceExample", "ParseSequenceExample", "ParseSequenceExampleV2", "Reshape", "Transpose"),
        ),
        "sizes, strides and numbers of things that both kernels refuse are refused here when the graph is built",
    ),
    **dict.fromkeys(
        (
            *("ApproximateEqual", "CombinedNonMaxSuppression", "Dilation2D", "ExtractImagePatches", "Select"),
            *("FusedBatchNormGrad", "MaxPoolGradGradWithArgmax", "StridedSlice", "SparseConcat", "SplitV"),
            *("_FusedConv2D", "_FusedDepthwiseConv2dNative"),
        ),
        "where TensorFlow leaves a size open that the other operands tell, it is told here",
    ),
    "SerializeIterator": "a scalar in TensorFlow 1.15, a vector in 2.21",
    "QueueSizeV2": "TensorFlow takes the shape of the handle; a size is a scalar, whatever is known of the handle",
    "ResourceGatherNd": "TensorFlow takes the shape of the handle where it knows none of the variable",
}

#: How ops of optimizers begin: a slot's shape may say more of a variable whose own is not known; ours keep its own.
DIFFERENT_OPTIMIZERS = ("Apply", "SparseApply")

#: None is an unknown rank.
Shape = list[int | None] | None


class Input(NamedTuple):
    """One input: its type, its shape, and its value where it is a constant; None for an element that is not known."""

    dtype: DType
    shape: Shape
    value: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether it is a constant of which all is known."""
        return self.value is not None and not (isinstance(self.value, list) and None in self.value)


class ShapeCase(NamedTuple):
    op: str
    attrs: dict[str, Any]
    inputs: tuple[Input, ...]

    def __str__(self) -> str:
        return f"{self.op} {_inputs_text(self)} {_attrs_text(self)}"


def shape_of(value: Any) -> Shape:
    """The shape of a constant that is a number or lists of numbers."""
    shape: list[int | None] = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else 0
    return shape


def plain_attrs(definition: OpDef) -> dict[str, Any]:
    """The attributes of a node of which nothing is said: defaults, and the first types that are allowed."""
    return {attr.name: _plain(attr) for attr in definition.attrs}


def _plain(attr: AttrDef) -> Any:
    if attr.has_default:
        return attr.default
    return attr.allowed[0] if attr.allowed else dtypes.float32


# ---- text ------------------------------------------------------------------------------------------------------------


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":")).replace(" ", "\\u0020")


def _shape_text(shape: Shape) -> str:
    return _dumps(shape).replace("null", "?")


def _inputs_text(case: ShapeCase) -> str:
    return " ".join(_shape_text(i.shape) if i.value is None else f"={_shape_text(i.value)}" for i in case.inputs)


def _attrs_text(case: ShapeCase) -> str:
    definition = opdefs.get(case.op)
    plain = plain_attrs(definition)
    return " ".join(
        f"{name}={_dumps(_plainly(definition.attr_by_name[name].type, value))}"
        for name, value in case.attrs.items()
        if value != plain[name] or type(value) is not type(plain[name])
    )


def _plainly(kind: str, value: Any) -> Any:
    """An attribute as JSON has it."""
    if kind.startswith("list("):
        return [_plainly(kind[5:-1], item) for item in value]
    if kind == "type":
        return value.name
    if kind == "shape":
        shape = TensorShape(value)
        return None if shape.ndims is None else shape.as_list()
    if kind == "string":
        return value.decode("latin-1")
    return value.name if kind == "func" else value


def _from_plain(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return [_from_plain(kind[5:-1], item) for item in value]
    if kind == "type":
        return dtypes.as_dtype(value)
    if kind == "shape":
        return TensorShape(value)
    if kind == "string":
        return value.encode("latin-1")
    return NameAttrList(name=value) if kind == "func" else value


def line_of(case: ShapeCase, answer: list[Shape] | str) -> str:
    """`answer` is a list of shapes, or why TensorFlow refuses the node."""
    said = REFUSED + answer if isinstance(answer, str) else " ".join(map(_shape_text, answer))
    attrs = _attrs_text(case)
    return f"{_inputs_text(case)} -> {said}" + (f" | {attrs}" if attrs else "")


def _case_of(op: str, line: str) -> tuple[ShapeCase, list[Shape] | str]:
    inputs, _, rest = line.partition(" -> ") if " -> " in line else ("", "", line.removeprefix("-> "))
    said, _, told = rest.partition(" | ")
    definition = opdefs.get(op)
    attrs = plain_attrs(definition)
    for each in told.split():
        name, _, text = each.partition("=")
        attrs[name] = _from_plain(definition.attr_by_name[name].type, json.loads(text))
    types = signature(definition, attrs).input_types
    case = ShapeCase(op, attrs, tuple(map(_input_of, types, inputs.split())))
    return case, said.removeprefix(REFUSED) if said.startswith(REFUSED) else [*map(_from_text, said.split())]


def _input_of(dtype: DType, text: str) -> Input:
    if text.startswith("="):
        value = _from_text(text[1:])
        return Input(dtype, shape_of(value), value)
    return Input(dtype, _from_text(text))


def _from_text(text: str) -> Any:
    return json.loads(text.replace("?", "null"))


def lines(table: Path = TABLE) -> dict[str, list[str]]:
    """Op → the lines of its cases."""
    found: dict[str, list[str]] = {}
    some: list[str] = []
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            some.append(line.strip())
        elif line and not line.startswith("#"):
            some = found.setdefault(line, [])
    return found


def cases(op: str, texts: list[str]) -> list[tuple[ShapeCase, list[Shape] | str]]:
    """(case, TensorFlow's answer) for each line of an op."""
    return [_case_of(op, text) for text in texts]


# ---- here ------------------------------------------------------------------------------------------------------------


def ours(case: ShapeCase) -> list[Shape]:
    """The shapes that are inferred here. Raises ValueError as shape functions do."""
    definition = opdefs.get(case.op)
    inputs = [TensorShape(given.shape) for given in case.inputs]

    def constant(index: int) -> Any:
        given = case.inputs[index]
        return np.array(given.value, given.dtype.base_dtype.as_numpy_dtype) if given.is_whole else None

    def partial(index: int) -> TensorShape:
        given = case.inputs[index]
        known = given.value if isinstance(given.value, list) else None
        if known is not None:
            return TensorShape([None if size is None or size < 0 else size for size in known])
        rank = given.shape[0] if given.value is None and given.shape is not None and len(given.shape) == 1 else None
        return TensorShape(None if rank is None else [None] * rank)

    outputs = len(signature(definition, case.attrs).output_types)
    by_element = partial if any(given.value is not None and not given.is_whole for given in case.inputs) else None
    found = infer_shapes(definition, case.attrs, inputs, constant, outputs, by_element)
    return [None if shape.ndims is None else shape.as_list() for shape in found]


def difference(case: ShapeCase, answer: list[Shape] | str) -> str | None:
    """How our answer differs from TensorFlow's; None where it does not. A refusal has to say what is wrong."""
    try:
        found: Any = ours(case)
    except (ValueError, errors.InvalidArgumentError) as error:
        if isinstance(answer, str) and str(error).strip():
            return None
        return f"{case}: we refuse it ({error}), TensorFlow infers {answer}"
    except Exception as error:
        return f"{case}: {type(error).__name__} ({error}), TensorFlow says {answer}"
    if isinstance(answer, str):
        return f"{case}: {found} here, TensorFlow refuses it: {answer}"
    return None if found == answer else f"{case}: {found} here, {answer} there"
