"""A whole checkpoint and the increments that follow it: which they are, and whether they fit together.

Increments lie in a folder of their own below the checkpoints', with a state file that lists them in order. Each says
which file it follows, with that file's checksum; one of DeepRec's says nothing and has all that changed since the whole
checkpoint. Used by incremental_saver.py and checkpoint_compaction.py; core/checkpoint/increments.py has the names.
"""

from __future__ import annotations

import os
import re
import weakref
from typing import Any, NamedTuple

from tenfold import logging
from tenfold.train.checkpoint_management import checkpoint_exists, get_checkpoint_mtimes, get_checkpoint_state
from tenfold_core import errors
from tenfold_core.checkpoint import BundleReader, data_filename, increments, meta_filename
from tenfold_core.file_names import file_path, is_url, join, parent, relative
from tenfold_core.files import EVERYWHERE

#: The folder of increments below that of checkpoints, as DeepRec's.
SUB_INCR_CKPT_DIR = ".incremental_checkpoint"


def increments_folder(checkpoint_dir: str) -> str:
    """Where the increments of a folder's checkpoints are."""
    return join(checkpoint_dir, SUB_INCR_CKPT_DIR)


def increments_after(full: str, checkpoint_dir: str) -> list[str]:
    """The prefixes of the increments that follow the whole checkpoint `full` of that folder, in order, each whole and
    fitting the one before. None where increments are of a checkpoint that `full` has replaced.

    Blocks while their indexes are read. Raises DataLossError, naming the file and what it should be, where one is
    missing or damaged or follows another file.
    """
    folder = increments_folder(checkpoint_dir)
    state_file = join(folder, "checkpoint")
    if not EVERYWHERE.exists(file_path(state_file)):
        return []
    state = get_checkpoint_state(folder)
    if state is None:
        raise _broken(f"{state_file}, the list of the increments that follow {full}, cannot be read")
    prefixes = list(state.all_model_checkpoint_paths)
    if is_newer(full, prefixes[-1]):
        logging.info("The increments in %s are of a checkpoint before %s: skipped", folder, full)
        return []
    follows = [
        links_of(prefix, f"{state_file} lists it, {i + 1} of {len(prefixes)}") for i, prefix in enumerate(prefixes)
    ]
    if follows[-1] is None:
        return prefixes[-1:]
    before = full
    for prefix, links in zip(prefixes, follows, strict=True):
        if links is None:
            raise _broken(f"The increment {prefix} does not say what it follows; it should follow {before}")
        link = links[0]
        named = link.follows(prefix)
        if named != settled(before):
            raise _broken(f"The increment {prefix} follows {named}, but what is before it is {before}")
        found = increments.digest_of(file_path(before))
        if found != link.digest:
            raise _broken(
                f"The increment {prefix} follows {before} with the checksum {link.digest[:12]}…, but "
                f"{meta_filename(before)} has {found[:12]}…: it was written again, or damaged"
            )
        before = prefix
    return prefixes


def link_to(previous: str, folder: str) -> tuple[str, str]:
    """What an increment in `folder` writes of the file that it follows: its name as seen from there, its checksum.

    Blocks. Raises NotFoundError where there is no such file any more."""
    path = file_path(previous)
    if not EVERYWHERE.exists(meta_filename(path)):
        raise errors.NotFoundError(None, None, f"{meta_filename(path)}, which the increment is to follow, is not there")
    here, name = (folder, path) if is_url(path) else (os.path.abspath(file_path(folder)), os.path.abspath(path))
    return relative(name, here), increments.digest_of(path)


def step_of(prefix: str) -> int | None:
    """100, of model.ckpt-100; None for a name without a step."""
    found = re.search(r"-(\d+)$", prefix)
    return int(found[1]) if found else None


#: The newest whole checkpoint that a graph's Saver, by the name of its file's tensor, has saved or restored.
_WHOLE: weakref.WeakKeyDictionary[Any, dict[str, str]] = weakref.WeakKeyDictionary()


def remember_whole(saver_def: Any, graph: Any, prefix: str) -> None:
    """A Saver calls it with what it has saved or restored."""
    if saver_def is not None:
        _WHOLE.setdefault(graph, {})[saver_def.filename_tensor_name] = prefix


def last_whole(saver_def: Any, graph: Any) -> str | None:
    """The newest whole checkpoint of a Saver; None without one."""
    return None if saver_def is None else _WHOLE.get(graph, {}).get(saver_def.filename_tensor_name)


class Link(NamedTuple):
    """What an increment says of a file that it follows: its name as seen from the increment's folder, its checksum."""

    name: str
    digest: str

    def follows(self, prefix: str) -> str:
        """The whole name of the file that the increment `prefix` follows."""
        return settled(join(parent(prefix), self.name))


def links_of(prefix: str, listed: str) -> list[Link] | None:
    """What an increment follows: the end of its chain, and of the first of a chain perhaps the end of the one before.
    None for DeepRec's.

    Blocks. Raises DataLossError, which says how it is `listed`, where it is missing or not whole."""
    if not checkpoint_exists(prefix):
        raise _broken(f"The increment {prefix} is missing ({listed})")
    path = file_path(prefix)
    with BundleReader(path) as reader:
        for shard in range(reader.num_shards):
            data = data_filename(path, shard, reader.num_shards)
            if not EVERYWHERE.exists(data):
                raise _broken(f"The increment {prefix} is not whole: {data} is missing ({listed})")
        if not reader.contains(increments.PREVIOUS):
            return None
        said = ((increments.PREVIOUS, increments.DIGEST), (increments.ALSO, increments.ALSO_DIGEST))
        links = [
            Link(*(reader.read(each).item().decode() for each in pair)) for pair in said if reader.contains(pair[0])
        ]
    return [link for link in links if link.name] or None


def is_newer(full: str, increment: str) -> bool:
    """Whether a whole checkpoint was saved after an increment. Blocks for times of files where names have no steps."""
    steps = step_of(full), step_of(increment)
    if steps[0] is not None and steps[1] is not None:
        return steps[0] >= steps[1]
    times = [*get_checkpoint_mtimes([full]), *get_checkpoint_mtimes([increment])]
    return len(times) == 2 and times[0] > times[1]


def settled(prefix: str) -> str:
    """A prefix by which two names of one file are known to be the same."""
    path = file_path(prefix)
    return path if is_url(path) else os.path.abspath(path)


def _broken(message: str) -> errors.DataLossError:
    return errors.DataLossError(None, None, message)
