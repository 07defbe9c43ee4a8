"""When an index of ids grows, and how far the old one has been moved into the new one: numbers, and no memory.

An index of S slots is five eighths full when one of 2 S begins, into which each call moves _MOVED_PER_KEY slots of the
old one for each of its keys, from its beginning on (cpu/_compiled/id_index.py). What was moved gives its memory back,
and the new one gets its own as it is filled. So an id takes most when the last slot has been moved: the ids are three
quarters of S, and 2 S slots of 4 bytes are 10.7 bytes for each. Used by id_map.py.
"""

from __future__ import annotations

#: Slots that a call moves: so many for each of its keys, and so many besides. With eight for each new key the old index
#: is empty when there are three quarters as many ids as it has slots.
_MOVED_PER_KEY, _MOVED = 8, 256
_FEWEST_SLOTS = 16
#: Slots behind the places of keys: a row of full ones that is longer does not come about by chance (10⁻³⁰).
_MOST_BEHIND = 4096
#: Bytes of a slot.
_SLOT = 4


class IndexGrowth:
    """Of one index; not thread-safe."""

    def __init__(self) -> None:
        #: Places of keys in the index, a power of two; and in the one before it, 0 while there is none.
        self.slots, self.old_slots = _FEWEST_SLOTS, 0
        #: Slots of the old one that were moved.
        self.moved = 0

    @property
    def nbytes(self) -> int:
        """What the index, and what is left of the old one, take."""
        if not self.old_slots:
            return _SLOT * self.slots
        _, filled = self.filled(0, min(self.moved, self.old_slots))
        return _SLOT * (filled + max(0, self.old_slots - self.moved))

    def has_room(self, ids: int) -> bool:
        """Whether so many ids in all can be there without a larger index."""
        return 8 * ids <= 5 * self.slots and not self.is_late(ids)

    def is_late(self, ids: int) -> bool:
        """Whether the old index is too full for so many, and has to be moved at once."""
        return 4 * ids > 3 * self.old_slots > 0

    def slots_for(self, ids: int) -> int:
        """Of an index in which there is room for so many ids."""
        slots = self.slots
        while 8 * ids > 5 * slots:
            slots *= 2
        return slots

    def begin(self, slots: int) -> None:
        """There is a larger index, and the old one is all there."""
        self.slots, self.old_slots, self.moved = slots, self.slots, 0

    def next(self, keys: int) -> int:
        """The slot of the old index before which a call with so many keys moves all."""
        return min(self.moved + _MOVED_PER_KEY * keys + _MOVED, size_of(self.old_slots))

    def filled(self, first: int, last: int) -> tuple[int, int]:
        """Where the keys between these slots of the old index are put, but for some that stand behind."""
        times = self.slots // self.old_slots
        return first * times, last * times

    def go_on(self, moved: int) -> bool:
        """So many slots were moved; whether these are all."""
        self.moved = moved
        if moved < size_of(self.old_slots):
            return False
        self.old_slots = 0
        return True


def size_of(slots: int) -> int:
    """Slots in memory of an index with so many places."""
    return slots + min(slots, _MOST_BEHIND)
