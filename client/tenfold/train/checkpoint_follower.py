"""What comes after a state that a training has saved: for a reader that follows it while it goes on.

A reader begins at the newest whole checkpoint and takes the increments after it one by one, each as a point. Where a
chain begins anew its first increment may follow the end of the chain before as well (incremental_saver.py); else the
newest whole checkpoint leads on. checkpoint_chain.py has the chain as a training restores it. Used by the control
service's models.
"""

from __future__ import annotations

from dataclasses import dataclass

from tenfold.train.checkpoint_chain import Link, increments_folder, is_newer, links_of, settled, step_of
from tenfold.train.checkpoint_management import get_checkpoint_mtimes, get_checkpoint_state
from tenfold_core import errors
from tenfold_core.checkpoint import BundleReader, increments, meta_filename
from tenfold_core.file_names import file_path, join
from tenfold_core.files import EVERYWHERE


@dataclass(frozen=True, slots=True)
class Point:
    """A state that a training saved."""

    #: The prefix of the whole checkpoint that its chain begins with, and of the increment, or of the same.
    whole: str
    last: str
    #: The checksum of the file `last`.
    digest: str
    #: None where there is no `global_step`, and no number behind the name.
    global_step: int | None
    #: When it was written, in seconds since the epoch, by the clock of the files.
    saved_at: float


@dataclass(frozen=True, slots=True)
class Ahead:
    """What there is after a point."""

    #: Increments that lead on, in order, each whole and fitting the one before.
    points: tuple[Point, ...] = ()
    #: Why the ones behind those do not lead on; "" where there are none.
    trouble: str = ""
    #: A whole checkpoint that is newer, which no increment leads to: if none comes, it has to be read itself.
    newer: Point | None = None
    #: Whether none can come any more.
    only_newer: bool = False


def signature(checkpoint_dir: str) -> tuple[bytes, bytes]:
    """What changes with every checkpoint and every increment of the folder. Blocks for two small files."""
    return _read_state(checkpoint_dir), _read_state(increments_folder(checkpoint_dir))


def newest_whole(checkpoint_dir: str) -> Point:
    """Blocks. Raises NotFoundError where there is no whole checkpoint yet, DataLossError for one that is damaged."""
    state = get_checkpoint_state(checkpoint_dir)
    if state is None:
        raise errors.NotFoundError(
            None,
            None,
            f"There is no checkpoint in {checkpoint_dir} yet: {join(checkpoint_dir, 'checkpoint')} is missing",
        )
    return _point(state.model_checkpoint_path, state.model_checkpoint_path)


def ahead(checkpoint_dir: str, at: Point) -> Ahead:
    """What follows the state `at` of that folder. Blocks while indexes of what is new are read."""
    before = signature(checkpoint_dir)
    found = _ahead(checkpoint_dir, at)
    if (found.trouble or found.only_newer) and signature(checkpoint_dir) != before:
        # it was looked at between two files of a save
        return Ahead(found.points)
    return found


def _ahead(checkpoint_dir: str, at: Point) -> Ahead:
    folder = increments_folder(checkpoint_dir)
    try:
        state, listed = get_checkpoint_state(checkpoint_dir), get_checkpoint_state(folder)
        if state is None:
            return Ahead(trouble=f"{join(checkpoint_dir, 'checkpoint')}, the list of checkpoints, cannot be read")
        whole = state.model_checkpoint_path
        prefixes = [] if listed is None else list(listed.all_model_checkpoint_paths)
        rest = _after(at, whole, prefixes)
        is_same = settled(whole) == settled(at.whole)
        # those that are listed are of a chain that the newest whole checkpoint has ended
        is_over = not prefixes or is_newer(whole, prefixes[-1])
        newer = None if is_same and rest is not None else _point(whole, whole)
    except errors.OpError as error:
        return Ahead(trouble=error.message)
    except (OSError, ValueError) as error:
        return Ahead(trouble=str(error))
    if rest is not None:
        points, trouble = _fitting(at.whole if is_over else whole, at, rest)
        if not is_over and not trouble:
            newer = None  # the increments lead past it
        return Ahead(tuple(points), trouble, newer, only_newer=bool(trouble) and newer is not None)
    if not is_over:
        return Ahead(trouble=f"No increment in {folder} follows {at.last}", newer=newer, only_newer=True)
    if not is_same:
        return Ahead(newer=newer)
    if settled(at.last) == settled(whole):
        return Ahead()
    return Ahead(trouble=f"The increments in {folder} are gone, of which {at.last} was the last one that was read")


def _after(at: Point, whole: str, prefixes: list[str]) -> list[str] | None:
    """Those of the increments that come after `at`; None where none of them does, and `at` is none of them."""
    if not prefixes:
        return None
    names = [settled(prefix) for prefix in prefixes]
    if settled(at.last) in names:
        path = file_path(at.last)
        # a file that has been deleted since it was read is not needed any more
        is_same = not EVERYWHERE.exists(meta_filename(path)) or increments.digest_of(path) == at.digest
        return prefixes[names.index(settled(at.last)) + 1 :] if is_same else None
    links = links_of(prefixes[0], f"the first of {len(prefixes)}")
    if links is None:
        return prefixes[-1:] if settled(at.whole) == settled(whole) else None
    return prefixes if any(_fits(link, prefixes[0], at) for link in links) else None


def _fits(link: Link, prefix: str, at: Point) -> bool:
    return link.follows(prefix) == settled(at.last) and link.digest == at.digest


def _fitting(whole: str, at: Point, rest: list[str]) -> tuple[list[Point], str]:
    """A point for each of the increments that fit, and what is wrong with the next one."""
    points: list[Point] = []
    for i, prefix in enumerate(rest):
        try:
            links = links_of(prefix, f"{i + 1} of {len(rest)} that follow {at.last}")
            if links is None:
                if i < len(rest) - 1:
                    continue  # DeepRec's last one has all
            elif not any(_fits(link, prefix, at) for link in links):
                link = links[0]
                return points, (
                    f"The increment {prefix} follows {link.follows(prefix)} with the checksum {link.digest[:12]}…, but "
                    f"what is before it is {at.last} with {at.digest[:12]}…: it was written again, or damaged"
                )
            at = _point(whole, prefix)
        except errors.OpError as error:
            return points, error.message
        points.append(at)
    return points, ""


def _point(whole: str, last: str) -> Point:
    """Raises OpError for files that are missing or damaged."""
    path = file_path(last)
    try:
        digest = increments.digest_of(path)
        times = get_checkpoint_mtimes([last])
    except OSError as error:
        raise errors.DataLossError(None, None, f"The checkpoint {last} cannot be read: {error}") from None
    with BundleReader(path) as reader:
        step = step_of(last)
        if reader.contains("global_step"):
            step = int(reader.read("global_step").reshape(-1)[0])
    return Point(whole, last, digest, step, times[0] if times else 0.0)


def _read_state(folder: str) -> bytes:
    try:
        return EVERYWHERE.read_whole(file_path(join(folder, "checkpoint")))
    except OSError:
        return b""
