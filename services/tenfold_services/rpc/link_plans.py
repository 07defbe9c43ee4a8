"""How one part of a client graph is run over a link: what is fed, fetched and pushed, by rendezvous key.

Made by master/pushes.py, carried out by link_worker.py; the peer hears of it once, as a LinkRunPlan message.
"""

from __future__ import annotations

from tenfold_protos.link_calls_pb2 import LinkRunPlan


class RunPlan:
    """How a part is run over a link; the master makes one for each part. Compared by content, hashed once."""

    __slots__ = (
        "_hash",
        "_key",
        "answered",
        "brought",
        "expected",
        "feeds",
        "fetches",
        "graph_handle",
        "pushed",
        "session_handle",
    )

    def __init__(
        self,
        session_handle: str,
        graph_handle: str,
        feeds: tuple[str, ...] = (),
        fetches: tuple[str, ...] = (),
        answered: tuple[str, ...] = (),
        pushed: tuple[tuple[str, tuple[str, ...]], ...] = (),
        expected: tuple[str, ...] = (),
        brought: tuple[str, ...] = (),
    ) -> None:
        """All are rendezvous keys; the fields of LinkRunPlan say which."""
        self.session_handle, self.graph_handle = session_handle, graph_handle
        self.feeds, self.fetches = feeds, fetches
        self.answered, self.pushed, self.expected, self.brought = answered, pushed, expected, brought
        self._key = (session_handle, graph_handle, feeds, fetches, answered, pushed, expected, brought)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, RunPlan) and self._key == other._key)

    def to_message(self) -> LinkRunPlan:
        message = LinkRunPlan(
            session_handle=self.session_handle,
            graph_handle=self.graph_handle,
            feed_key=self.feeds,
            fetch_key=self.fetches,
            answer_key=self.answered,
            expected_key=self.expected,
            call_key=self.brought,
        )
        for task, keys in self.pushed:
            message.push.add(task=task, key=keys)
        return message
