"""What one part of a client graph exchanges in a step: what is fed, fetched, pushed, expected, by rendezvous key.

The master makes one plan for each part when a graph is registered (master/arrangement.py), because both ends of an edge
must agree: a tensor that is pushed is not kept for RecvTensor, and one that is expected is not asked for. The part's
worker carries it out (worker/outbox.py); a peer hears of it once for each link, as a LinkRunPlan message, and by a
number from then on (step_frames.py). Decision 0008.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_protos.link_calls_pb2 import LinkRunPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: One tensor on its way: (rendezvous key, value, is_dead).
Sent: TypeAlias = "tuple[str, Any, bool]"
#: Takes tensors to a task: (task, step_id, tensors). On the loop's thread, never blocks. Raises UnavailableError.
Push: TypeAlias = "Callable[[str, int, list[Sent]], None]"


class ExchangePlan:
    """Of one part. Keys in none of its tables are exchanged by RecvTensor. Compared by content, hashed once."""

    __slots__ = (
        "_hash", "_key", "answer_keys", "answered", "brought", "call_keys", "consumers", "expected", "feeds", "fetches",
        "graph_handle", "pushed", "sent", "session_handle",
    )  # fmt: skip

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
        """All are rendezvous keys, `pushed` by consuming task; the fields of LinkRunPlan say which."""
        self.session_handle, self.graph_handle = session_handle, graph_handle
        #: What the client feeds and fetches here.
        self.feeds, self.fetches = feeds, fetches
        #: Sent here, consumed by the task that asked for the run: the key's number in the answer.
        self.answer_keys = answered
        self.answered = {key: number for number, key in enumerate(answered)}
        #: Sent here, consumed by other tasks: the task.
        self.pushed = {key: task for task, keys in pushed for key in keys}
        self.consumers = tuple([task for task, _ in pushed])
        #: All that goes out by itself.
        self.sent = frozenset((*self.answered, *self.pushed))
        #: Received here and pushed by its producer.
        self.expected = frozenset(expected)
        #: What of that may come with the call for the run: the key's number in the call.
        self.call_keys = brought
        self.brought = {key: number for number, key in enumerate(brought)}
        self._key = (session_handle, graph_handle, feeds, fetches, answered, pushed, expected, brought)
        self._hash = hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, ExchangePlan) and self._key == other._key)

    @classmethod
    def from_message(cls, message: LinkRunPlan) -> ExchangePlan:
        """The plan that a peer sent."""
        return cls(
            message.session_handle,
            message.graph_handle,
            tuple(message.feed_key),
            tuple(message.fetch_key),
            tuple(message.answer_key),
            tuple([(push.task, tuple(push.key)) for push in message.push]),
            tuple(message.expected_key),
            tuple(message.call_key),
        )

    def to_message(self) -> LinkRunPlan:
        """What a peer is told."""
        session_handle, graph_handle, feeds, fetches, answered, pushed, expected, brought = self._key
        message = LinkRunPlan(
            session_handle=session_handle,
            graph_handle=graph_handle,
            feed_key=feeds,
            fetch_key=fetches,
            answer_key=answered,
            expected_key=expected,
            call_key=brought,
        )
        for task, keys in pushed:
            message.push.add(task=task, key=keys)
        return message


def numbered(tensors: Sequence[Sent], plan: ExchangePlan) -> list[tuple[int, Any, bool]]:
    """Tensors that go with the call for a run: (number of the key in the call, value, is_dead)."""
    return [(plan.brought[key], value, is_dead) for key, value, is_dead in tensors]
