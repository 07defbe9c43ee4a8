"""The world that runs in this process now, if any does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simulated.world import World


class _Inside:
    """Set by boundary.enter, until boundary.leave."""

    world: World | None = None


inside = _Inside()


def the_world() -> World:
    """For what is made within one only."""
    assert inside.world is not None
    return inside.world
