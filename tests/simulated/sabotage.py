"""Takes away what keeps a promise, so that a test sees the simulation notice it: `run.py --without request-ids`."""

from __future__ import annotations

from typing import Any


def _request_ids() -> None:
    """A request that comes again is served again (P2)."""
    from tenfold_services.master.request_ids import RecentRequests

    async def run(self: Any, key: Any, work: Any, by: str = "") -> Any:
        return await work()

    RecentRequests.run = run  # type: ignore[method-assign]
    RecentRequests.knows = lambda self, key, by="": False  # type: ignore[method-assign]


def _cleanup() -> None:
    """Steps that are over are not forgotten, and never will be (P7)."""
    from tenfold_services.worker.rendezvous import StepTable

    StepTable.finish = lambda self, step_id: None  # type: ignore[method-assign]
    StepTable.sweep = lambda self, now: 0  # type: ignore[method-assign]


def _signs_of_life() -> None:
    """Nobody asks a peer that owes an answer whether it is still there (P1)."""
    from tenfold_link.aio.link import Link
    from tenfold_services.rpc.grpc_worker import GrpcWorker

    async def none(self: Any) -> None:
        """Ends at once."""

    Link._check_life = lambda self: None  # type: ignore[method-assign]
    GrpcWorker._probe_peer = none  # type: ignore[method-assign]


WAYS = {"request-ids": _request_ids, "cleanup": _cleanup, "signs-of-life": _signs_of_life}
