"""LocalWorkMgr: the works that a worker took from a WorkQueue, in files, so that it takes them again after a restart.

For inference, where every work's answers must be written: a worker's files are `<folder>/<job>_<index>/…`, one a work,
written before the work is handed out. Used by work_queue.py. Follows DeepRec's ops/work_queue.py, which has the works
of a table's slices, named `…?start=0&end=4`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tenfold import gfile, logging
from tenfold.graph import GraphKeys, control_dependencies
from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops import array, slicing, string
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.io import write_file
from tenfold.ops.math import less_equal
from tenfold.ops.variables import Variable
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor

_SLICE = re.compile(r".*\?start=(\d+)&end=(\d+)")


class LocalWorkMgr:
    """The works of the task `job_name` (worker or chief) `task_index` below the folder `restore_works_dir`, which must
    be there. Raises ValueError for other jobs, a negative index, and where there is no such folder."""

    def __init__(self, job_name: str, task_index: int, restore_works_dir: str, name: str | None = None) -> None:
        if job_name not in ("worker", "chief"):
            raise ValueError(f"job_name must be 'worker' or 'chief', not {job_name!r}")
        if task_index < 0:
            raise ValueError(f"task_index must not be negative: {task_index}")
        if not gfile.IsDirectory(restore_works_dir):
            raise ValueError(f"restore_works_dir is no folder: {restore_works_dir}")
        self.job_name, self.task_index, self.restore_works_dir = job_name, task_index, restore_works_dir
        self._name = name or "local_works"
        self._folder = f"{restore_works_dir.rstrip('/')}/{job_name}_{task_index}"
        self._works = self._kept()

    @property
    def works(self) -> list[str]:
        """What was taken before the restart, in the order of the slices."""
        return self._works

    def _kept(self) -> list[str]:
        if not gfile.IsDirectory(self._folder):
            return []
        found: list[str] = []
        for file in gfile.ListDirectory(self._folder):
            with gfile.GFile(f"{self._folder}/{file}", "r") as lines:
                for line in filter(None, (line.strip() for line in lines)):
                    if _SLICE.fullmatch(line):
                        found.append(line)
                    else:
                        logging.error("%s/%s has no work of the form …?start=0&end=4: %s", self._folder, file, line)
        return sorted(found, key=_start_of)

    def taken(self, take: Callable[[], Tensor]) -> Tensor:
        """The next of the kept works, and then what `take()` gives, which is kept first."""
        count = Variable(0, name=f"{self._name}/handed_out", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        place = count.assign_add(1)
        if not self._works:
            return self._keep(take())
        works = convert_to_tensor(self._works, dtype=dtypes.string)

        def kept() -> Tensor:
            found: Tensor = slicing.gather(works, place - 1)
            return found

        work: Tensor = cond(less_equal(place, len(self._works)), kept, lambda: self._keep(take()))
        return work

    def _keep(self, work: Tensor) -> Tensor:
        # two tables may have the same slices
        number = string.as_string(string.string_to_hash_bucket_fast(work, (1 << 62) - 1))
        slice_ = string.regex_replace(work, r"^.*\?start=(\d+)&end=(\d+)$", r"start_\1_end_\2_")
        file = string.string_join([f"{self._folder}/", slice_, number])
        with control_dependencies([write_file(file, string.string_join([work, "\n"]))]):
            kept: Tensor = array.identity(work)
            return kept

    def hook(self) -> SessionRunHook:
        """A hook for programs that have it: kept works need none."""
        return SessionRunHook()


def _start_of(work: Any) -> int:
    found = _SLICE.fullmatch(work)
    assert found is not None
    return int(found[1])
