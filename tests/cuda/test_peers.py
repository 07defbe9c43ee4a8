"""GPUs of a process reach each other's memory where the machine can; elsewhere the driver copies by the host's."""

from __future__ import annotations

import pytest

from tenfold_kernels.cuda._peers import Peers


class FakeCuda:
    """What CuPy's runtime says of three GPUs, of which 0 and 1 have a way to each other."""

    class CUDARuntimeError(RuntimeError):
        pass

    def __init__(self, enabled: bool = False) -> None:
        self.asked: list[str] = []
        self._enabled = enabled

    def deviceCanAccessPeer(self, index: int, other: int) -> int:
        self.asked.append(f"can {index} {other}")
        return int({index, other} == {0, 1})

    def deviceEnablePeerAccess(self, other: int) -> None:
        self.asked.append(f"enable {other}")
        if self._enabled:
            raise self.CUDARuntimeError("cudaErrorPeerAccessAlreadyEnabled")


@pytest.mark.parametrize("enabled", [False, True])
def test_a_gpu_reaches_those_that_it_can_and_asks_once(enabled: bool) -> None:
    cuda = FakeCuda(enabled)
    peers = Peers(cuda, 0)

    for other in (1, 2, 1, 2):
        peers.reach(other)

    assert cuda.asked == ["can 0 1", "enable 1", "can 0 2"]
