"""Look-up of kernels: what is found, and what the error says when nothing is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, opdefs
from tenfold_kernels import registry
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.state import ResourceManager


def node(op: str, **attrs: object) -> KernelNode:
    return KernelNode("n", op, attrs, (), (), "/job:a/replica:0/task:0/device:CPU:0", ResourceManager())


def test_every_op_of_every_family_is_written_down() -> None:
    missing = [op for op in opdefs.names() if not registry.has_kernel(op, "CPU") and not registry.absence(op, "CPU")]

    assert missing == []


def test_every_row_is_for_an_op_that_is_defined() -> None:
    registered = {op for op in opdefs.names() if registry.has_kernel(op, "CPU")}  # loads every family

    assert {op for op, _ in registry._rows if opdefs.has(op)} == registered
    assert [op for op, _ in [*registry._rows, *registry._absences] if not opdefs.has(op) and op != "TestClash"] == []


def test_an_unknown_op_gets_the_nearest_names() -> None:
    with pytest.raises(errors.NotFoundError, match=r"No kernel for op 'MatMull' of node 'n'.*Did you mean .*MatMul"):
        registry.lookup(node("MatMull"), "CPU")


def test_a_wrong_type_gets_the_types_that_exist() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"No CPU kernel for op 'Floor' .* T=string.*T in \[float16"):
        registry.lookup(node("Floor", T=dtypes.string), "CPU")


def test_a_device_without_kernels_says_why_and_what_there_is() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"No GPU kernel .*TensorFlow has none.*with a kernel: CPU"):
        registry.lookup(node("NthElement", T=dtypes.float32), "GPU")


def test_a_written_absence_is_part_of_the_error() -> None:
    with pytest.raises(errors.NotFoundError, match=r"on any device type .*no program of the op census uses it"):
        registry.lookup(node("ApplyAddSign"), "CPU")


def test_ops_of_the_executor_can_be_placed_but_not_looked_up() -> None:
    assert registry.devices_with_kernel("Switch", {"T": dtypes.float32}, ["CPU"]) == ("CPU",)
    with pytest.raises(errors.NotFoundError, match="belong to the executor"):
        registry.lookup(node("Switch", T=dtypes.float32), "CPU")


def test_devices_with_kernel_asks_for_the_types() -> None:
    assert set(registry.devices_with_kernel("Floor", {"T": dtypes.float32})) == {"CPU", "GPU"}
    assert registry.devices_with_kernel("Betainc", {"T": dtypes.float32}) == ("CPU",)
    assert registry.devices_with_kernel("Floor", {"T": dtypes.int32}) == ()
    assert registry.devices_with_kernel("NoSuchOp", {}) == ()


def test_a_clash_names_both_places() -> None:
    floats, half = frozenset((dtypes.float32, dtypes.float64)), dtypes.float16

    @registry.kernel("TestClash", T=floats)
    def build_first(_: KernelNode) -> registry.Compute:
        return np.add

    @registry.kernel("TestClash", T=half)
    def build_second(_: KernelNode) -> registry.Compute:
        return np.add

    with pytest.raises(errors.AlreadyExistsError, match=r"'TestClash'.*test_registry\.py:\d+ and .*test_registry\.py:"):

        @registry.kernel("TestClash", T=dtypes.float64)
        def build_third(_: KernelNode) -> registry.Compute:
            return np.add


def test_placing_and_plain_ops_load_no_compiler() -> None:
    script = """
import sys
from typing import Any
from tenfold_core import dtypes, opdefs
from tenfold_kernels import registry
from tenfold_kernels.resources import state
for op in opdefs.names():
    registry.devices_with_kernel(op, {})
node = registry.KernelNode("n", "Identity", {"T": dtypes.string}, (dtypes.string,), (dtypes.string,), "d", None)
registry.lookup(node, "CPU")(node)
sys.exit(any(m in sys.modules for m in ("numba", "llvmlite", "grpc", "asyncio")))
"""

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it. Every family is loaded before, or its rows would be, too."""
    for device in ("CPU", "GPU"):
        for op in opdefs.names():
            registry.has_kernel(op, device)
    for name in ("_rows", "_absences", "_blocking", "_views", "_files"):
        kind = getattr(registry, name)
        monkeypatch.setattr(registry, name, type(kind)(kind))


def build(_: KernelNode) -> registry.Compute:
    return np.add


F16, F32, F64, I32, BF16 = dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bfloat16
FLOATS = frozenset((F32, F64))


def found(op: str, device: str, **attrs: object) -> registry.Builder:
    return registry.lookup(node(op, **attrs), device)


def test_a_row_accepts_the_types_of_each_attribute_that_a_node_has(tables: None) -> None:
    registry.kernel("TestTypes", T=FLOATS, Tidx=I32)(build)
    (row,) = registry._rows["TestTypes", "CPU"]
    assert row.types == {"T": FLOATS, "Tidx": frozenset((I32,))}
    for attrs, accepts in (
        ({"T": F32, "Tidx": I32}, True),
        ({"T": F64}, True),
        ({}, True),
        ({"T": None, "Tidx": I32}, True),
        ({"T": F16, "Tidx": I32}, False),
        ({"T": F32, "Tidx": F32}, False),
        ({"T": [F32, F64]}, True),
        ({"T": (F32, F16)}, False),
        ({"T": ()}, True),
        ({"other": F16}, True),
    ):
        assert row.accepts(attrs) is accepts, attrs


def test_rows_of_different_attributes_clash(tables: None) -> None:
    registry.kernel("TestApart", T=F32, U=I32)(build)
    registry.kernel("TestApart", T=F32, U=F32)(build)
    registry.kernel("TestApart", T=F64)(build)
    with pytest.raises(errors.AlreadyExistsError, match=r"Two CPU kernels for op 'TestApart' accept the same types: "):
        registry.kernel("TestApart", V=F64)(build)
    registry.kernel("TestApart", "TestOther", device="GPU", V=F64)(build)
    assert [key for key in registry._rows if key[0] in ("TestApart", "TestOther")] == [
        *(("TestApart", "CPU"), ("TestApart", "GPU"), ("TestOther", "GPU"))
    ]


def test_what_a_row_says_of_its_kernels(tables: None) -> None:
    registry.kernel("TestPlain")(build)
    registry.kernel("TestBlocks", blocking=True)(build)
    registry.kernel("TestViews", views=True)(build)
    registry.kernel("TestFiles", files=True)(build)
    registry.kernel("TestGpu", "TestPlain", device="GPU", host=["x"], replays=False)(build)
    registry.kernel("TestRecords", device="GPU")(build)
    plain = registry._rows["TestPlain", "CPU"][0]
    assert (plain.blocking, plain.host, plain.replays, plain.device_type) == (False, frozenset(), True, "CPU")
    gpu = registry._rows["TestGpu", "GPU"][0]
    assert (gpu.blocking, gpu.host, gpu.replays, gpu.device_type) == (False, frozenset("x"), False, "GPU")
    ops = ("TestPlain", "TestBlocks", "TestViews", "TestFiles", "TestNone")
    assert [registry.is_blocking(op) for op in ops] == [False, True, False, False, False]
    assert [registry.may_view_input(op) for op in ops] == [False, False, True, False, False]
    assert [registry.uses_files(op) for op in ops] == [False, False, False, True, False]
    assert [registry.has_kernel(op, "CPU") for op in ops] == [True, True, True, True, False]
    # a GPU's may view where the CPU's may; the rest is its own
    assert [registry.may_view_input(op, "GPU") for op in ops] == [False, False, True, False, False]
    assert [registry.is_blocking("TestBlocks", "GPU"), registry.uses_files("TestFiles", "GPU")] == [False, False]
    assert [registry.may_replay(op, {}, "GPU") for op in ("TestGpu", "TestRecords", "TestViews")] == [
        *(False, True, False)
    ]


@pytest.mark.parametrize("ask", [registry.is_blocking, registry.uses_files, registry.may_view_input])
def test_a_question_loads_the_family(ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(registry, "_rows_of", lambda *given: asked.append(given))
    assert not ask("NoOp", "GPU")
    assert asked[0] == ("NoOp", "GPU")
    assert asked[1:] == ([("NoOp", "CPU")] if ask is registry.may_view_input else [])


def test_a_gpu_may_share_the_kernels_of_the_cpu(tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(registry._rows, ("Rank", "GPU"), raising=False)
    registry.shared_kernel("Rank", host=["output"], T=F32)
    (row,) = registry._rows["Rank", "GPU"]
    assert row.host == {"output"}
    assert row.builder.__module__ == __name__
    assert not row.accepts({"T": F64})
    compute = row.builder(KernelNode("n", "Rank", {"T": F32}, (F32,), (I32,), "d", ResourceManager()))
    assert compute(np.zeros((2, 3), np.float32)) == 2


def test_which_arguments_are_in_the_memory_of_a_gpu(tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(op: str, attrs: dict[str, Any], host: Any, device: str = "GPU") -> Any:
        registry._rows[op, "GPU"] = []
        registry.kernel(op, device="GPU", host=host, T=F32)(build)
        return registry.memory_of(op, attrs, device)

    assert of("ConcatV2", {"T": F32, "N": 3}, ["axis"]) == ((True, True, True, False), (True,))
    assert of("ConcatV2", {"T": F32, "N": 3}, ["axis", "output"]) == ((True, True, True, False), (False,))
    assert of("ConcatV2", {"T": F32, "N": 2}, []) == ((True,) * 3, (True,))
    assert of("ConcatV2", {"T": F64, "N": 2}, []) is None, "no row for it"
    assert of("ConcatV2", {"T": F32, "N": 2}, registry.EVERYTHING) is None
    assert of("ConcatV2", {"T": F32, "N": 2}, [], "CPU") is None
    types = {"Tin": (F32, I32), "Tout": (F32,)}
    assert of("PyFunc", types, ["output"]) == ((True, True), (False,))


def test_reasons_why_there_is_no_kernel(tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.no_kernel("TestNo", "TestNoOther", device="CPU", why="nobody needs it")
    registry.executor_op("TestLoop", device="CPU", why="the executor's")
    assert registry.absence("TestNo", "CPU") == registry.Absence("TestNo", "CPU", "nobody needs it", False)
    assert registry.absence("TestLoop", "CPU") == registry.Absence("TestLoop", "CPU", "the executor's", True)
    assert registry.absence("TestNo", "GPU") is None
    assert registry.devices_with_kernel("TestNo", {}) == ()
    assert registry.devices_with_kernel("TestLoop", {}) == ("CPU",)
    # of a whole family, where there is no row
    monkeypatch.setattr(registry.absences, "why", lambda op: f"no {op}s")
    assert registry.absence("TestNo", "GPU") == registry.Absence("TestNo", "GPU", "no TestNos")
    assert registry.absence("TestSome", "CPU") is None
    registry.kernel("TestSome", device="GPU")(build)
    assert registry.absence("TestSome", "GPU") is None


def test_narrow_floats_are_computed_in_float32_on_a_cpu_alone(tables: None) -> None:
    for device in ("CPU", "GPU"):
        registry._rows["Softsign", device] = []
        registry.kernel("Softsign", device=device, T=FLOATS)(build)
    assert found("Softsign", "CPU", T=F64) is build
    assert found("Softsign", "CPU", T=BF16) is not build
    for device, attrs in (("GPU", {"T": BF16}), ("CPU", {"T": F16})):
        with pytest.raises(errors.InvalidArgumentError):
            found("Softsign", device, **attrs)
    assert registry.devices_with_kernel("Softsign", {"T": BF16}) == ("CPU",)
    registry._rows["Softsign", "CPU"] = []
    registry.kernel("Softsign", T=FLOATS, blocking=True)(build)
    assert registry.devices_with_kernel("Softsign", {"T": BF16}) == ()
    with pytest.raises(errors.InvalidArgumentError):
        found("Softsign", "CPU", T=BF16)
    registry._rows["Softsign", "CPU"] = []
    registry.kernel("Softsign", T=F64)(build)
    assert registry.devices_with_kernel("Softsign", {"T": BF16}) == ()


def refusal(op: str, device: str, **attrs: object) -> errors.OpError:
    with pytest.raises(errors.OpError) as raised:
        found(op, device, **attrs)
    return raised.value


def test_what_is_said_where_there_is_no_kernel(tables: None, monkeypatch: pytest.MonkeyPatch) -> None:
    said = refusal("Zqxj", "CPU")
    assert (type(said), said.message) == (
        errors.NotFoundError,
        "No kernel for op 'Zqxj' of node 'n': there is no such op.",
    )
    said = refusal("Conv9D", "CPU")
    assert " Did you mean Conv" in said.message

    for op in ("Softsign", "Softplus"):
        for device in ("CPU", "GPU"):
            registry._rows[op, device] = []
    registry.kernel("Softsign", T=F32, U=FLOATS)(build)
    registry.kernel("Softsign", T=F64)(build)
    said = refusal("Softsign", "CPU", T=(F16, I32), U="x")
    assert (type(said), said.message) == (
        errors.InvalidArgumentError,
        "No CPU kernel for op 'Softsign' of node 'n' with T=[float16, int32], U='x'. There are kernels for: "
        "T in [float32], U in [float32, float64]; T in [float64].",
    )
    monkeypatch.setattr(registry.absences, "why", lambda op: "")
    said = refusal("Softsign", "GPU", T=F32)
    assert (type(said), said.message) == (
        errors.InvalidArgumentError,
        "No GPU kernel for op 'Softsign' of node 'n'. Device types with a kernel: CPU.",
    )
    monkeypatch.setattr(registry.absences, "why", lambda op: "too small")
    assert "of node 'n' (too small). Device types" in refusal("Softsign", "GPU", T=F32).message
    said = refusal("Softplus", "CPU", T=F32)
    assert type(said) is errors.NotFoundError
    assert said.message.startswith("No kernel for op 'Softplus' of node 'n' on any device type. The nearest ops with a")
    monkeypatch.setattr(registry, "_rows", {("Softplus", "CPU"): [], ("Softplus", "GPU"): []})
    monkeypatch.setattr(registry.difflib, "get_close_matches", lambda *given, **more: [])
    assert refusal("Softplus", "CPU").message == "No kernel for op 'Softplus' of node 'n' on any device type."


def test_rows_without_types_are_for_any(tables: None) -> None:
    row = registry._KernelRow("TestAny", "CPU", {}, build, "here")
    assert registry._types_text(row) == "any types"
    assert (row.blocking, row.host, row.replays) == (False, frozenset(), True)
    assert registry._name([F32, [I32, 3]]) == "[float32, [int32, 3]]"


def test_a_kernel_may_be_bound_to_its_resource() -> None:
    def compute(handle: object) -> object:
        return handle

    assert registry.binder(compute) is None
    bind = lambda handle: compute  # noqa: E731
    assert registry.bindable(compute, bind) is compute
    assert registry.binder(compute) is bind


def test_a_node_calls_nothing_of_a_program_unless_it_is_said_to() -> None:
    plain = node("NoOp")
    assert (plain.functions, plain.is_own_session) == (None, False)


def test_a_family_is_loaded_at_its_first_op(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(registry.importlib, "import_module", loaded.append)
    monkeypatch.setattr(registry, "_loaded", set())
    for op in ("DecodeWav", "EncodeWav", "NoSuchOp"):
        registry._rows_of(op, "CPU")
    assert loaded == list(registry.families.modules_of("CPU")["audio"])
    assert registry._loaded == {("audio", "CPU")}
    registry._rows_of("DecodeWav", "GPU")
    assert ("audio", "GPU") in registry._loaded
