"""The options of embedding variables: which ids are admitted, which are evicted, what a new row begins with.

Handed to `tf.get_embedding_variable` (embedding_variables.py). Follows DeepRec's ops/variables.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType


@dataclass(frozen=True)
class InitializerOption:
    """What new rows begin with: row `id % default_value_dim` of a matrix that `initializer` makes once.

    `default_value_no_permission` is what every element of a row is that a filter has not admitted yet. Raises
    ValueError for a matrix without rows.
    """

    initializer: Any = None
    default_value_dim: int = 4096
    default_value_no_permission: float = 0.0

    def __post_init__(self) -> None:
        if self.default_value_dim < 1:
            raise ValueError(f"default_value_dim must be positive, not {self.default_value_dim}")


@dataclass(frozen=True)
class CounterFilter:
    """Admits an id once it was asked for `filter_freq` times; counts each id exactly."""

    filter_freq: int = 0


@dataclass(frozen=True)
class CBFFilter:
    """Admits an id once it was asked for `filter_freq` times. DeepRec counts in a Bloom filter of the given size and
    error; Tenfold counts exactly, as CounterFilter does, and takes the other arguments for programs that have them."""

    filter_freq: int = 0
    max_element_size: int = 0
    false_positive_probability: float = -1.0
    counter_type: DType = dtypes.uint64


@dataclass(frozen=True)
class GlobalStepEvict:
    """Evicts, when a checkpoint is saved, ids without an update in more than `steps_to_live` global steps."""

    steps_to_live: int | None = None


@dataclass(frozen=True)
class L2WeightEvict:
    """Evicts, when a checkpoint is saved, ids whose row has half a squared norm below `l2_weight_threshold`."""

    l2_weight_threshold: float = -1.0


#: DeepRec's storage types of several tiers, or of a disk alone: frequencies are counted in them.
_TIERED = frozenset((4, 5, 11, 12, 13, 14, 101, 102))


@dataclass(frozen=True)
class StorageOption:
    """Where rows are kept: in memory, or, for the types with SSDHASH or LEVELDB, in files below `storage_path` of the
    table's task, of which the system keeps in memory what is used. Persistent and GPU memory are memory here, and
    `storage_size` and `cache_strategy` do nothing. Raises ValueError for such files without a path."""

    storage_type: Any = None
    storage_path: str | None = None
    storage_size: Sequence[int] = (1 << 30,)
    cache_strategy: Any = None
    layout: str | None = None

    def __post_init__(self) -> None:
        if self.storage_type in (4, 5, 12, 14, 101, 102) and not self.storage_path:
            raise ValueError(f"The storage type {self.storage_type!r} needs a storage_path, a folder for its files")
        # a list as in DeepRec's programs, of which a feature column makes no key
        object.__setattr__(self, "storage_size", tuple(self.storage_size or ()))

    def attributes(self) -> dict[str, Any]:
        """Those of the ops that make a table."""
        kind = int(self.storage_type or 1)
        sizes = [int(size) for size in self.storage_size or ()]
        return {"storage_type": kind, "storage_path": self.storage_path or ".", "storage_size": sizes}


@dataclass(frozen=True)
class EmbeddingVariableOption:
    """All options of an embedding variable. `ht_type` and `ht_partition_num` of DeepRec's hash tables do nothing."""

    ht_type: str = ""
    ht_partition_num: int = 1000
    evict_option: GlobalStepEvict | L2WeightEvict | None = None
    ckpt: Any = None
    filter_option: CounterFilter | CBFFilter | None = None
    storage_option: StorageOption = field(default_factory=StorageOption)
    init_option: InitializerOption = field(default_factory=InitializerOption)

    def attributes(self) -> dict[str, Any]:
        """The attributes of the ops that make a table: InitializeKvVariableOp, KvResourceImportV2."""
        evict, admits = self.evict_option, self.filter_option
        steps = evict.steps_to_live if isinstance(evict, GlobalStepEvict) else 0
        least = evict.l2_weight_threshold if isinstance(evict, L2WeightEvict) else -1.0
        return {
            "steps_to_live": steps or 0,
            "l2_weight_threshold": least,
            "filter_freq": 0 if admits is None else admits.filter_freq,
            "default_value_no_permission": self.init_option.default_value_no_permission,
            "counter_type": admits.counter_type if isinstance(admits, CBFFilter) else dtypes.uint64,
            "record_freq": int(self.storage_option.storage_type or 1) in _TIERED,
            **self.storage_option.attributes(),
        }
