"""Chooses the cases of each op, asks TensorFlow for their answers and writes answers.txt.

`.venv/bin/python tests/support/kernel_net/make.py [OP ...]`, with TensorFlow's environments in .venv-tf and
.venv-tf1.15; lines of other ops stay as they are. Of many cases it keeps those that reach something new in the kernels,
here, and more up to a number of each kind: what gives values, and what is refused.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import pytest

from interop.environments import interpreter_path
from support.kernel_net import answers
from support.kernel_net.cases import Case, case_of
from support.kernel_net.known import KNOWN, Known
from support.kernel_net.loops import StandIns, without_compiler
from support.random_nodes import only_computes
from tenfold_core import attr_value, dtypes, errors, graph_versions, opdefs, tensor_util
from tenfold_core.node_signature import signature
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.cpu._compiled import compiling
from tenfold_protos import graph_pb2, tensor_pb2

TRIES, VALUES, REFUSED = 320, 10, 7
#: Ops that no TensorFlow has on a CPU any more, and those that do the same.
TWINS = {f"Batch{op}": op for op in ("FFT", "FFT2D", "FFT3D", "IFFT", "IFFT2D", "IFFT3D")}
TWINS |= {f"Segment{how}V2": f"UnsortedSegment{how}" for how in ("Sum", "Max", "Min", "Prod")}
#: Ops whose shape function wants to know more than nothing.
WITH_SHAPES = {"SpaceToBatchND", "BatchToSpaceND", "ParallelConcat", "GatherTree"}
_GONE = (
    "not registered",
    "No OpKernel",
    "not available in GraphDef",
    "has constraint on attr",
    "not in Op<name=",
    "Cannot assign a device",
    "not in the list of allowed values",
)
_KERNELS = f"{os.sep}tenfold_kernels{os.sep}"


def ops() -> list[str]:
    """Every op with a kernel here that only computes."""
    return [name for name in opdefs.names() if only_computes(name) and registry._rows_of(name, "CPU")]


def _traced(case: Case) -> tuple[Any, frozenset[tuple[Any, int, int]]]:
    """What a case gives here, and the pairs of lines of kernels that it goes over."""
    found: set[tuple[Any, int, int]] = set()

    def enter(frame: Any, event: str, argument: Any) -> Any:
        if _KERNELS not in frame.f_code.co_filename:
            return None
        last = [0]

        def line(frame: Any, event: str, argument: Any) -> Any:
            if event == "line":
                found.add((frame.f_code.co_filename, last[0], frame.f_lineno))
                last[0] = frame.f_lineno
            return line

        return line

    sys.settrace(enter)
    try:
        result = answers.compute(case)
    except Exception as error:
        result = errors.InternalError(None, None, repr(error))
        print(f"internal error: {case}: {error!r}", file=sys.stderr)
    finally:
        sys.settrace(None)
    return result, frozenset(found)


def chosen(op: str) -> list[Case]:
    """The op's cases for the table."""
    seen: set[tuple[Any, int, int]] = set()
    counts: Counter[bool] = Counter()
    rest: list[tuple[bool, Any, Case]] = []
    kept: list[Case] = []
    checks: set[int] = set()
    for number in range(TRIES):
        case = case_of(op, number)
        if case.check() in checks:
            continue
        checks.add(case.check())
        result, found = _traced(case)
        is_refused = isinstance(result, errors.OpError)
        if found - seen and (not is_refused or counts[True] < 12):
            seen |= found
            counts[is_refused] += 1
            kept.append(case)
        else:
            shapes = str([value.shape for value in (case.inputs if is_refused else result)])
            rest.append((is_refused, shapes, case))
    known: set[Any] = set()
    for repeated in (False, True):
        for is_refused, shapes, case in rest:
            if counts[is_refused] < (REFUSED if is_refused else VALUES) and (shapes in known) == repeated:
                counts[is_refused] += 1
                known.add(shapes)
                kept.append(case)
                rest = [each for each in rest if each[2] is not case]
    return sorted(kept, key=lambda case: case.number)


def question(case: Case) -> tuple[bytes, dict[str, bytes], None, str]:
    """A graph with placeholders for the inputs, and the node "n"."""
    graph = graph_pb2.GraphDef()
    went, _ = graph_versions.REMOVED.get(TWINS.get(case.op, case.op), (1883, ""))
    graph.versions.producer = went - 1
    definition = opdefs.get(TWINS.get(case.op, case.op))
    node = graph.node.add(name="n", op=TWINS.get(case.op, case.op), device="/device:CPU:0")
    fed = {}
    for k, dtype in enumerate(signature(opdefs.get(case.op), case.attrs).input_types):
        placeholder = graph.node.add(name=f"x{k}", op="Placeholder")
        placeholder.attr["dtype"].type = dtype.as_datatype_enum
        if case.op in WITH_SHAPES:
            placeholder.attr["shape"].shape.CopyFrom(TensorShape(case.inputs[k].shape).as_proto())
        else:
            placeholder.attr["shape"].shape.unknown_rank = True
        node.input.append(f"x{k}")
        fed[f"x{k}:0"] = tensor_util.tensor_to_proto(case.inputs[k]).SerializeToString()
    for name, value in case.attrs.items():
        node.attr[name].CopyFrom(attr_value.to_proto(value, definition.attr_by_name[name].type))
    if "FFT" in case.op and case.op in TWINS:
        node.attr["Tcomplex"].type = dtypes.complex64.as_datatype_enum
    return graph.SerializeToString(), fed, None, "n"


def ask(version: str, asked: list[Any]) -> list[Any]:
    """TensorFlow's answers to questions: values as arrays, or a text that begins with the error's class."""
    with tempfile.TemporaryDirectory() as folder:
        questions, found = Path(folder, "questions"), Path(folder, "answers")
        questions.write_bytes(pickle.dumps(asked))
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
            "TF_ENABLE_ONEDNN_OPTS": "0",
        }
        script = Path(__file__).with_name("ask.py")
        subprocess.run(
            [str(interpreter_path(version)), str(script), str(questions), str(found)],
            check=True, env=environment, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        replies: list[Any] = pickle.loads(found.read_bytes())
    return [
        [tensor_util.make_ndarray(tensor_pb2.TensorProto.FromString(data)) for data in reply]
        if isinstance(reply, list)
        else reply
        for reply in replies
    ]


def all_answers(cases: list[Case]) -> list[Any]:
    """Of TensorFlow 2.21, or of 1.15 for what 2.21 has no more."""
    asked = [question(case) for case in cases]
    replies = ask("2.21", asked)
    gone = [k for k, reply in enumerate(replies) if isinstance(reply, str) and _is_gone(reply)]
    if gone:
        for k, reply in zip(gone, ask("1.15", [asked[k] for k in gone]), strict=True):
            replies[k] = reply
    return replies


def _is_gone(reply: str) -> bool:
    return reply == "ended" or any(text in reply for text in _GONE)


def answer_to(case: Case, reply: Any) -> Any:
    """The table's entry for TensorFlow's reply; None where the case is left out, which is said."""
    known = KNOWN.get(case.op, Known(""))
    ours = _traced(case)[0]
    refused_here = isinstance(ours, errors.OpError)
    if known.leaves(case):
        return None
    if isinstance(reply, str) and _is_gone(reply):
        return None if refused_here else ["here:", *map(answers.text_of, ours)]
    if not isinstance(reply, str):
        reply = reply if known.reading is None else [known.reading(value) for value in reply]
        if refused_here and known.is_stricter:
            return f"only here: {type(ours).__name__.removesuffix('Error')}"
        return [answers.text_of(value) if known.compares(k, case.attrs) else None for k, value in enumerate(reply)]
    kind, _, why = reply.partition(": ")
    if kind == "graph" and not refused_here:
        return None
    if refused_here:
        return kind if type(ours).__name__ == f"{kind}Error" else "refused"
    if any(text in why for text in known.accepts):
        return None
    return kind


def main() -> None:
    wanted = sys.argv[1:] or ops()
    without_compiler(pytest.MonkeyPatch())
    compiling.loops = StandIns()
    cases = [case for op in wanted for case in chosen(op)]
    print(len(cases), "cases", file=sys.stderr)
    lines: dict[str, list[str]] = {}
    for case, reply in zip(cases, all_answers(cases), strict=True):
        answer = answer_to(case, reply)
        if answer is None:
            print(f"left out: {case.op} {case.number}: {reply[:160]}", file=sys.stderr)
            continue
        limited = answers.is_limited(case)
        lines.setdefault(case.op, []).append(json.dumps([case.op, case.number, case.check(), limited, answer]))
        answer = answer[1:] if answer[:1] == ["here:"] else answer
        if found := answers.difference(_traced(case)[0], answer, KNOWN.get(case.op, Known("")).slack):
            print(
                f"otherwise here: {case}\n    here:       {found}\n    TensorFlow: {str(reply)[:400]}", file=sys.stderr
            )
    if sys.argv[1:]:
        for line in answers.TABLE.read_text(encoding="utf-8").splitlines():
            if line.startswith("[") and (op := json.loads(line)[0]) not in wanted:
                lines.setdefault(op, []).append(line)
    head = "# What TensorFlow 2.21, or 1.15, answers: see answers.py. Made by tests/support/kernel_net/make.py.\n"
    text = "\n".join(line for op in sorted(lines) for line in lines[op])
    answers.TABLE.write_text(f"{head}{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
