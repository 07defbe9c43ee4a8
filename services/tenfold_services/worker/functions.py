"""Calls functions of a graph's library from kernels: what could not be put in place when the graph was lowered.

A function that calls itself, or one that an attribute names (what to do with each element), is compiled as a program of
its own, once for each choice of attributes, and run on its caller's device. No thread is held: a call whose body has to
wait (a queue) answers with a Waiting. Reached by kernels as KernelNode.functions, made by program_loader.py. Follows
FunctionLibraryRuntime in TensorFlow's common_runtime/function.cc.
"""

from __future__ import annotations

import re
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.graph.function_library import FunctionLibrary
from tenfold_compiler.graph.functions import Functions
from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.node import assigned, new_def
from tenfold_compiler.graph.partition import partition
from tenfold_compiler.graph.prune import prune
from tenfold_compiler.graph.rows import of_rows
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_core import errors
from tenfold_core.node_names import TensorName
from tenfold_core.op_gradients import no_gradients
from tenfold_kernels.arrays import as_array
from tenfold_kernels.loop_turns import MOST_TURNS
from tenfold_kernels.resources.waiting import Lack, Waiting
from tenfold_protos.attr_value_pb2 import NameAttrList
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_protos.graph_pb2 import GraphDef
from tenfold_protos.node_def_pb2 import NodeDef

from .arrivals import settle
from .direct_call import DirectCall
from .execution import cancelled, kept, no_send
from .part_run import DONE, PartRun
from .row_plan import RowPlan
from .run_policy import FUNCTION_CALLER, is_callable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from tenfold_core.op_gradients import OpGradients
    from tenfold_kernels.registry import ByRows
    from tenfold_protos.attr_value_pb2 import AttrValue
    from tenfold_protos.function_pb2 import FunctionDefLibrary

    from .loaded_program import LoadedProgram

    #: Of each parameter the rank for one element, and whether it has a row for each of many.
    _Ranks: TypeAlias = tuple[tuple[int, bool], ...]

#: How deep calls may stand in each other on one thread: each takes some ten of Python's frames.
MAX_DEPTH = 50
#: Functions that one graph may instantiate; attributes come from a peer.
MAX_INSTANTIATIONS = 4096
#: A call waited for by a kernel that cannot wait otherwise ends after so many seconds.
WAIT_S = 3600.0

_depth = threading.local()
#: Takes on what was waited for and what takes long. Two threads: nothing here holds one while it waits.
_pool = ThreadPoolExecutor(2, thread_name_prefix="tenfold-functions")


@dataclass(frozen=True, slots=True)
class _Compiled:
    """A function as a program."""

    program: LoadedProgram
    #: The rendezvous keys of the parameters, in order; None for one that the body does not use.
    feeds: Sequence[str | None]
    #: The rendezvous keys of the outputs, in order.
    fetches: Sequence[str]
    #: The program as a call of all parameters; None for one that may have to wait.
    direct: DirectCall | None
    #: No kernel of it calls functions: calls cannot stand in each other.
    is_leaf: bool
    #: Of a program for many elements at once: whether each output has a row for each of them.
    has_rows: Sequence[bool] = ()


class FunctionRuntime:
    """The functions of one registered graph, on one device of its task. Thread-safe."""

    def __init__(
        self,
        library: FunctionDefLibrary,
        compile_graph: Callable[[GraphDef, FunctionRuntime], LoadedProgram],
        gradients: OpGradients = no_gradients,
        most_turns: int = MOST_TURNS,
    ) -> None:
        """`compile_graph` makes a program whose kernels call functions of this same runtime. A loop of calls takes
        `most_turns`."""
        self.most_turns = most_turns
        self.library = FunctionLibrary(library)
        self._functions = Functions(self.library)
        self._compile_graph, self._gradients = compile_graph, gradients
        self._compiled: dict[tuple[bytes, str, _Ranks | None], _Compiled | None] = {}
        self._lock = threading.RLock()

    def instantiate(self, name: str, attrs: Mapping[str, AttrValue], device: str) -> LibraryFunction:
        """The function with these attributes, for callers on `device`. Compiles nothing yet.

        Raises NotFoundError for a function that the library does not have, InvalidArgumentError for one that is wrong.
        """
        self._functions.body(name, attrs)
        return LibraryFunction(self, NameAttrList(name=name, attr=attrs), device)

    def later(self, work: Callable[[], None]) -> None:
        """Runs `work` on a thread that may be held for a while."""
        _pool.submit(work)

    def compiled(self, call: NameAttrList, device: str, ranks: _Ranks | None = None) -> _Compiled | None:
        """The function's program; made at the first call, since a function may stand in its own body.

        With `ranks`, that for many elements at once; None where there is none.
        """
        key = (call.SerializeToString(deterministic=True), device, ranks)
        if key in self._compiled:
            return self._compiled[key]
        with self._lock:
            if key not in self._compiled:
                if len(self._compiled) >= MAX_INSTANTIATIONS:
                    raise errors.resource_exhausted(
                        f"The graph calls functions in more than {MAX_INSTANTIATIONS} different ways."
                    )
                self._compiled[key] = self._compile(call, device, ranks)
        return self._compiled[key]

    def _compile(self, call: NameAttrList, device: str, ranks: _Ranks | None) -> _Compiled | None:
        body = self._functions.body(call.name, call.attr)
        # A function's name may have in it what a node's may not.
        label = re.sub(r"[^A-Za-z0-9_.\\/>-]", ".", call.name if call.name[:1].isalnum() else f".{call.name}")
        if ranks is not None:
            _check_count(call, len(body.arg_types), len(ranks))
        parameters = [f"{label}.parameter_{number}" for number in range(len(body.arg_types))]
        attrs = {"f": call, "Tin": list(body.arg_types), "Tout": list(body.output_types)}
        nodes = [new_def("StatefulPartitionedCall", label, parameters, attrs)]
        for name, dtype in zip(parameters, body.arg_types, strict=True):
            nodes.append(new_def("Placeholder", name, (), {"dtype": dtype}))
        graph_def = GraphDef(library=self.library.proto, node=nodes)
        graph = lower(RuntimeGraph.from_graph_def(graph_def), gradients=self._gradients)
        graph = graph.with_nodes(assigned(node, device) for node in graph.nodes.values())
        fetches = [TensorName(label, number) for number in range(len(body.output_types))]
        has_rows: Sequence[bool] = ()
        if ranks is not None:
            fetches = [graph.outputs.get(each, each) for each in fetches]
            changed = of_rows(graph, dict(zip(parameters, ranks, strict=True)), fetches)
            if changed is None or not any(changed[1]):
                return None
            graph, has_rows = changed
        fed = [f"{name}:0" for name in parameters if name in graph.nodes]
        here = DeviceAttributes(name=device, incarnation=1)
        wanted = list(map(str, fetches))
        graph = prune(graph, fed, list(dict.fromkeys(wanted)), [] if has_rows else [label], client_device=here)
        graph.refuse_missing()
        (part,) = partition(graph, incarnation=lambda _: 1).parts.values()
        program = self._compile_graph(part, self)
        compiled = program.compiled
        used = {feed.key.split(";")[3]: feed.key for feed in compiled.transfers.feeds}
        sent = {key.split(";")[3]: key for key in compiled.transfers.fetch_keys}
        feeds, keys = [used.get(f"{name}:0") for name in parameters], [sent[fetch] for fetch in wanted]
        direct = DirectCall(program, feeds, keys) if is_callable(compiled) and not compiled.blocks else None
        attributes = [value for node in compiled.part.nodes for value in node.node_def.attr.values()]
        is_leaf = not any(value.HasField("func") or value.list.func for value in attributes)
        return _Compiled(program, feeds, keys, direct, is_leaf, has_rows)


def _check_count(call: NameAttrList, takes: int, has: int) -> None:
    """Raises InvalidArgumentError for a call with another number of values than the function takes."""
    if takes != has:
        raise errors.invalid_argument(f"Function '{call.name}' takes {takes} values; it is called with {has}.")


def _called(direct: DirectCall, values: Sequence[Any]) -> list[Any]:
    """The outputs of a call, the caller's own: what a program only lends (a variable's memory) is copied."""
    outputs = direct(values, [])
    for number, output in enumerate(outputs):
        if type(output) is not np.ndarray:
            outputs[number] = as_array(output)
        elif not output.flags.writeable and not any(output is value for value in values):
            outputs[number] = kept(output)
    return outputs


class LibraryFunction:
    """One function to call, as often as wanted."""

    def __init__(self, runtime: FunctionRuntime, call: NameAttrList, device: str) -> None:
        self._runtime, self._call, self._device = runtime, call, device
        self._compiled: _Compiled | None = None
        #: What `by_rows` has found: a dataset asks each time that it begins anew.
        self._by_rows: dict[_Ranks, ByRows | None] = {}

    def start(self, values: Sequence[Any]) -> list[Any] | Waiting:
        """Calls it: its outputs in order, or a Waiting for that list where the body has to wait.

        The values belong to the caller and are only read. Raises what the body raises, naming the node.
        """
        compiled = self._compiled
        if compiled is not None and compiled.is_leaf and compiled.direct is not None:
            return _called(compiled.direct, values)
        depth = getattr(_depth, "value", 0)
        if depth >= MAX_DEPTH:
            raise errors.resource_exhausted(
                f"Function '{self._call.name}' was called {MAX_DEPTH} deep: what calls itself must come to an end."
            )
        if compiled is None:
            compiled = self._runtime.compiled(self._call, self._device)
            assert compiled is not None
            # once: what calls it, a node or a dataset, always has as many
            _check_count(self._call, len(compiled.feeds), len(values))
            self._compiled = compiled
        _depth.value = depth + 1
        try:
            if compiled.direct is not None:
                return _called(compiled.direct, values)
            return _CallWaiter(compiled, values).begin()
        finally:
            _depth.value = depth

    def by_rows(self, ranks: Sequence[tuple[int, bool]]) -> ByRows | None:
        """The function of many elements at once, which stand on top of each other: its outputs have a row for each.

        `ranks` are those of the parameters for one element, and whether a parameter has rows. A body that works row by
        row is a program of its own (graph/rows.py); else its kernels are called one after the other (row_plan.py). None
        where neither can be.
        """
        key = tuple(ranks)
        if key not in self._by_rows:
            self._by_rows[key] = self._found_by_rows(key)
        return self._by_rows[key]

    def _found_by_rows(self, ranks: _Ranks) -> ByRows | None:
        has_rows = [each for _, each in ranks]
        compiled = self._runtime.compiled(self._call, self._device, ranks)
        if compiled is not None and compiled.direct is not None:
            return _AtOnce(compiled.direct, compiled.has_rows, has_rows.index(True))
        plain = self._runtime.compiled(self._call, self._device)
        if plain is None or plain.direct is None or not plain.is_leaf or not any(has_rows):
            return None
        try:
            return RowPlan(plain.program.compiled, plain.feeds, plain.fetches, has_rows)
        except ValueError:
            return None

    def stateful_op(self) -> str | None:
        """An op in it, or in a function that it calls, that has a state of its own; None where there is none."""
        call = self._call
        return self._runtime.library.stateful_op(NodeDef(name=call.name, op=call.name, attr=call.attr))

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        """Calls it and waits for the end. Blocks while the body waits: not for the event loop's thread."""
        result = self.start(values)
        if type(result) is not Waiting:
            return result  # type: ignore[return-value]
        over: Future[list[Any]] = Future()
        result.listen(partial(settle, over))
        try:
            return over.result(WAIT_S)
        except TimeoutError:
            result.cancel()
            raise errors.deadline_exceeded(f"Function '{self._call.name}' did not end in {WAIT_S:g} s.") from None


@dataclass(frozen=True)
class _AtOnce:
    """A program whose parameters have rows, the `first` of them at least, and some of its outputs."""

    call: DirectCall
    has_rows: Sequence[bool]
    first: int
    is_sure = True

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        outputs = _called(self.call, values)
        count = len(values[self.first])
        for number, (output, is_made) in enumerate(zip(outputs, self.has_rows, strict=True)):
            if not is_made:
                outputs[number] = np.broadcast_to(output, (count, *output.shape))
        return outputs


class _CallWaiter:
    """Waits for one call's run, on one thread at a time: first its caller's, after a wait one of the pool's."""

    def __init__(self, compiled: _Compiled, values: Sequence[Any]) -> None:
        self._fetches = compiled.fetches
        feeds = {key: value for key, value in zip(compiled.feeds, values, strict=True) if key is not None}
        self._run = PartRun(compiled.program, feeds, no_send)
        #: Guards `_turning`: a thread is in `turn`.
        self._lock = threading.Lock()
        self._turning = False
        #: What the caller waits for; None while it has not been told to wait.
        self._answer: Waiting | None = None

    def begin(self) -> list[Any] | Waiting:
        """The outputs, or a Waiting for them. Raises what the body raises."""
        run = self._run
        try:
            if run.turn(FUNCTION_CALLER) == DONE:
                return self._outputs()
        except BaseException:
            run.end()
            raise
        self._answer = Waiting(self._cancel)
        self._answer.lack = self._lack
        # the thread that completes what the body waits for has other things to do
        run.wake = self._go_on_later
        # what came since the turn woke no thread
        self._go_on_later()
        return self._answer

    def _lack(self) -> Lack | None:
        """What a node of the body waits for; None while it computes. Any thread."""
        lacks = (each.lack() for each in self._run.waitings() if each.lack is not None)
        return next((lack for lack in lacks if lack is not None), None)

    def _go_on_later(self) -> None:
        _pool.submit(self._go_on)

    def _go_on(self) -> None:
        """Takes another turn if there is something to go on with; on a thread of the pool."""
        run, answer = self._run, self._answer
        assert answer is not None
        with self._lock:
            if self._turning or run.ended or not run.can_go_on:
                return
            self._turning = True
        try:
            outputs = self._outputs() if run.turn(FUNCTION_CALLER) == DONE else None
        except Exception as error:  # a bug, too, must end the step, not leave it waiting
            run.end()
            answer.fail(errors.as_op_error(error))
            return
        if outputs is not None:
            run.end()
            answer.complete(outputs)
            return
        with self._lock:
            self._turning = False
        if run.can_go_on:
            self._go_on_later()

    def _cancel(self) -> None:
        """The caller needs the result no more; any thread."""
        run = self._run
        run.stop.append(True)
        with self._lock:
            if self._turning:
                # the thread that takes the turn ends the run
                run.fail(cancelled())
                return
            self._turning = True
        run.end()

    def _outputs(self) -> list[Any]:
        fetched = self._run.fetched()
        return [fetched[key] for key in self._fetches]
