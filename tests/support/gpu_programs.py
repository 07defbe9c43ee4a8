"""Programs on GPUs in this process: sessions that have some, real ones or the simulator's. Used by tests/cuda/."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support import dry_gpu
from tenfold.session import inprocess
from tenfold_kernels import gpus
from tenfold_kernels.cuda import _runtime, _simulated
from tenfold_services.worker.loaded_program import LoadedProgram

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tenfold_compiler.fuse.fusion import Fusion


@contextlib.contextmanager
def with_gpus(count: int = 1, memory: int | None = None) -> Iterator[None]:
    """Sessions of this process see `count` GPUs meanwhile, simulated ones of `memory` bytes where there is no driver.

    Skips the test on a machine that has fewer, and where `memory` is given on one that has real ones.
    """
    if dry_gpu.is_on():
        pytest.skip("a program needs what its kernels give")
    with pytest.MonkeyPatch.context() as patch:
        if not gpus.has_driver():
            patch.setenv(_runtime.SIMULATOR, "1")
            patch.setenv(_runtime.SIMULATED_GPUS, str(count))
            if memory is not None:
                patch.setenv(_simulated.MEMORY_BYTES, str(memory))
            # other tests have runtimes of their own
            patch.setattr(_runtime, "_runtimes", {})
        elif memory is not None or len(gpus.physical_gpus()) < count:
            pytest.skip("needs simulated GPUs" if memory is not None else f"needs {count} GPUs")
        patch.setattr(_runtime, "_meant", {})
        patch.setattr(_runtime, "_shares", {})
        inprocess.stop_shared_server()
        try:
            yield
        finally:
            inprocess.stop_shared_server()


@contextlib.contextmanager
def fused_programs() -> Iterator[list[Fusion]]:
    """Programs on a GPU are hot at once meanwhile: what each is fused to."""
    found: list[Fusion] = []
    swap = LoadedProgram.swap

    def noted(self: LoadedProgram, fusion: Fusion) -> None:
        found.append(fusion)
        swap(self, fusion)

    with pytest.MonkeyPatch.context() as patch, with_gpus(1):
        patch.setenv("TENFOLD_FUSION", "eager")
        patch.setattr(LoadedProgram, "swap", noted)
        yield found


def trained(
    device: str, build: Callable[[], tuple[Any, Any]], feeds: list[Any], seed: int = 1
) -> tuple[list[Any], dict[str, set[str]]]:
    """Builds a model on `device`, what has no kernel there on the CPU, and takes a step for each of `feeds`.

    `build` gives (the fetches of a step, what to fetch at the end), of placeholders named like the keys of a feed.
    Returns what the steps gave, and the end; and where each op ran in the last of them, which is traced. Variables and
    random numbers begin as `seed` has it.
    """
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(seed)
        with tf.device(device):
            step, end = build()
        config = tf.ConfigProto(allow_soft_placement=True)
        with tf.Session(config=config) as session:
            session.run(tf.global_variables_initializer())
            named = [{graph.get_tensor_by_name(f"{name}:0"): value for name, value in feed.items()} for feed in feeds]
            found = [session.run(step, feed) for feed in named[:-1]]
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            found.append(session.run(step, named[-1], options=options, run_metadata=metadata))
            return [*found, session.run(end)], ops_on(metadata)


def same_training(
    build: Callable[[], tuple[Any, Any]],
    feeds: list[Any],
    ops: Collection[str] = (),
    *,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> list[Any]:
    """Asserts that a model learns on a GPU what it learns on the CPU, and that all nodes of these `ops` ran there.

    Gives what it learned on the GPU.
    """
    ours, places = trained("/gpu:0", build, feeds)
    theirs, _ = trained("/cpu:0", build, feeds)
    assert {op: places.get(op) for op in ops} == {op: {"GPU:0"} for op in ops}
    for number, (found, wanted) in enumerate(zip(ours, theirs, strict=True)):
        flat = zip(tf.contrib.framework.nest.flatten(found), tf.contrib.framework.nest.flatten(wanted), strict=True)
        for one, other in flat:
            if one is not None:
                np.testing.assert_allclose(one, other, rtol=rtol, atol=atol, err_msg=f"after step {number}")
    return ours


def ops_on(metadata: Any) -> dict[str, set[str]]:
    """Op → the devices on which nodes of it ran in a traced step."""
    found: dict[str, set[str]] = {}
    for device in _devices(metadata):
        for node in device.node_stats:
            op = node.timeline_label.partition(" = ")[2].partition("(")[0]
            found.setdefault(op, set()).add(device.device.rpartition("/device:")[2])
    return found


def ran_on(metadata: Any) -> dict[str, str]:
    """Node → "GPU:0" and so on, of a traced step; what ran several times is there once."""
    return {
        node.node_name: device.device.rpartition("/device:")[2]
        for device in _devices(metadata)
        for node in device.node_stats
    }


def _devices(metadata: Any) -> list[Any]:
    """The devices of a traced step, without what the streams of a GPU have run."""
    return [device for device in metadata.step_stats.dev_stats if "/stream:" not in device.device]
