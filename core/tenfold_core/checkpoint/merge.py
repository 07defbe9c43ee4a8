"""Joins the bundles that several tasks wrote into one: their data files are renamed, their indexes merged.

The last step of a sharded save, done by one task that sees the files of all. Used by the kernel MergeV2Checkpoints.
Follows tensor_bundle.cc's MergeBundles.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.checkpoint.bundle_reader import BundleReader, Entry, data_filename, meta_filename
from tenfold_core.checkpoint.bundle_writer import shape_of, write_index
from tenfold_core.checkpoint.files import make_folder
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import parent
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Merge:
    """What the bundles read so far come to."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.entries: dict[bytes, Entry] = {}
        #: Data file → its number in the merged bundle, in the order of first use.
        self.shards: dict[str, int] = {}

    def add(self, prefix: str) -> None:
        with BundleReader(prefix, files=self._files) as reader:
            for key, entry in reader.raw_entries():
                held = self.entries.get(key)
                if held is None:
                    path = data_filename(prefix, entry.shard_id, reader.num_shards)
                    entry.shard_id = self.shards.setdefault(path, len(self.shards))
                    self.entries[key] = entry
                else:
                    self._join(key, held, entry, prefix)

    def _join(self, key: bytes, held: Entry, entry: Entry, prefix: str) -> None:
        name = key.decode("utf-8", "backslashreplace")
        if not held.slices:
            raise errors.InvalidArgumentError(
                None, None, f"Duplicate tensor keyed by {name} encountered, when merging prefix: {prefix}"
            )
        if not entry.slices:
            raise errors.InternalError(
                None, None, f"Duplicate tensor keyed by {name}; attempting to merge in a non-slice bundle entry"
            )
        if held.dtype != entry.dtype or shape_of(held) != shape_of(entry):
            raise errors.InvalidArgumentError(
                None, None, f"Tensor {name} has another type or shape in prefix {prefix} than in those before"
            )
        held.slices.extend(entry.slices)


def merge_bundles(
    prefixes: Sequence[str], destination: str, *, allow_missing_files: bool = False, files: Files = EVERYWHERE
) -> None:
    """Makes one bundle `destination` of the bundles `prefixes`, which are gone afterwards.

    Nothing is renamed unless every index could be read. Raises InvalidArgumentError for a missing bundle (unless
    allowed) and for a tensor that two of them hold whole.
    """
    folder = parent(destination)
    make_folder(folder, files=files)
    merge = _Merge(files)
    found = []
    for prefix in prefixes:
        if not files.exists(meta_filename(prefix)):
            if allow_missing_files:
                continue
            raise errors.InvalidArgumentError(
                None,
                None,
                f"allow_missing_files was set to false and {prefix} did not exist."
                f"NOT_FOUND: {meta_filename(prefix)} not found",
            )
        found.append(prefix)
        merge.add(prefix)
    if not found:
        raise errors.InvalidArgumentError(
            None, None, "At least one prefix checkpoint file must exist, but none existed."
        )
    count = len(merge.shards)

    def publish_data() -> None:
        for path, number in merge.shards.items():
            with os_errors(path):
                files.replace(path, data_filename(destination, number, count))

    write_index(destination, max(count, 1), merge.entries, publish_data, files=files)
    for prefix in found:
        if meta_filename(prefix) != meta_filename(destination):
            with contextlib.suppress(OSError):
                files.unlink(meta_filename(prefix))
