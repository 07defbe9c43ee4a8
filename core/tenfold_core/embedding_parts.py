"""How the ids of an embedding variable are cut into parts: by `id % PART_BUCKETS % parts`, as DeepRec cuts them, and as
its checkpoints say where the ids of each remainder begin."""

from __future__ import annotations

PART_BUCKETS = 1000
