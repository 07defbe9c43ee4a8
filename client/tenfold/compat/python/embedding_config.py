"""Enumerations of DeepRec's core/framework/embedding/config.proto, which its programs import as config_pb2."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["CacheType", "SlotType", "StorageType"]


class StorageType(IntEnum):
    """Where the rows of an embedding variable are, from the fastest tier to the slowest."""

    INVALID = 0
    DRAM = 1
    PMEM_MEMKIND = 2
    PMEM_LIBPMEM = 3
    SSDHASH = 4
    LEVELDB = 5
    HBM = 6
    DRAM_PMEM = 11
    DRAM_SSDHASH = 12
    HBM_DRAM = 13
    DRAM_LEVELDB = 14
    DRAM_PMEM_SSDHASH = 101
    HBM_DRAM_SSDHASH = 102


class SlotType(IntEnum):
    """What an optimizer's slot is."""

    EMBEDDING_VARIABLE = 0
    VARIABLE = 1


class CacheType(IntEnum):
    """Which rows stay in the faster tier: those used last, or those used most often."""

    LRU = 0
    LFU = 1
