"""Submitting a run, and the working directories that are uploaded for it. Used by service.py."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

from tenfold.launchers import LaunchRefusedError, registry
from tenfold.launchers.interface import checked_options
from tenfold.runs.entrypoint import read_entrypoint
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.details import taken_out
from tenfold_control_api.runs.record import EXTERNAL, LOCAL, RunRecord
from tenfold_core.errors import OpError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.runs.supervisors import Supervisors
    from tenfold_control_api.runs.table import RunTable
    from tenfold_control_api.service_settings import Settings


def _why(error: OSError | OpError) -> str:
    return error.message if isinstance(error, OpError) else f"{error.filename}; {error.strerror or error}"


class Submissions:
    """What is asked of the service before there is a run."""

    def __init__(
        self,
        table: RunTable,
        store: RunStore,
        supervisors: Supervisors,
        settings: Settings,
        replicas: Replicas,
        wall_clock: Clock = time.time,
    ) -> None:
        self._table, self._store, self._supervisors, self._settings = table, store, supervisors, settings
        self._replicas, self._wall = replicas, wall_clock
        #: Whether the last package could not be written.
        self._disk_failed = False

    async def add_package(self, name: str, content: bytes) -> bool:
        """Keeps an uploaded working directory; False if it was there. Raises what `Packages.add` raises,
        PERMISSION_DENIED where runs are not allowed, and UNAVAILABLE that says what the disk said."""
        self.require_allowed()
        try:
            added = await asyncio.to_thread(self._supervisors.packages.add, name, content)
        except (OSError, OpError) as error:
            self._disk_failed = True
            raise ApiError("disk-unavailable", f"the package cannot be kept: {_why(error)}.") from error
        self._disk_failed = False
        return added

    async def trouble(self) -> str:
        """Why packages cannot be kept, where the last one could not be; "" where they can."""
        if self._disk_failed:
            try:
                await asyncio.to_thread(self._supervisors.packages.probe)
            except (OSError, OpError) as error:
                return f"packages cannot be kept: {_why(error)}"
            self._disk_failed = False
        return ""

    async def has_package(self, name: str) -> bool:
        return await asyncio.to_thread(self._supervisors.packages.has, name)

    async def forget_packages(self, now: float) -> None:
        """Removes the packages that nobody has asked for lately."""
        await asyncio.to_thread(self._supervisors.packages.forget, now - self._settings.package_memory)

    async def submit(
        self,
        submission: Mapping[str, Any],
        submission_id: str | None,
        launcher: str = LOCAL,
        submitter: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> tuple[RunRecord, bool]:
        """Keeps a submission and has it started, unless its launcher is EXTERNAL; tells whether it is new. `details`
        says what it is called; of a run that there is already they change nothing. Raises
        PERMISSION_DENIED where runs are not allowed, ALREADY_EXISTS for another submission under the same id, or
        another submitter's, RESOURCE_EXHAUSTED, INVALID_ARGUMENT."""
        await self.check(submission, launcher)
        fingerprint = hashlib.sha256(json.dumps(submission, sort_keys=True).encode()).hexdigest()
        run_id = f"run-{uuid.uuid4().hex[:12]}"
        now, owner = self._wall(), self._replicas.id if launcher != EXTERNAL else None
        name = submission_id or run_id
        called, diff = taken_out(dict(details or {}))
        run = RunRecord(
            *(run_id, name, fingerprint, launcher, submission, now), owner=owner, submitter=submitter, details=called
        )
        if submission_id is not None and (known := await self._store.by_submission(submission_id)) is not None:
            return self._same(known, run), False
        await asyncio.to_thread(self._check_program, submission, launcher)
        self._table.admit()
        if not await self._store.add(run, diff):
            known = await self._store.by_submission(run.submission_id)
            if known is None:
                raise ApiError("run-deleted", "the run of this submission id was just deleted; send the request again.")
            return self._same(known, run), False
        self._table.hear(run.id)
        self._table.publish(run)
        return run, True

    def require_allowed(self) -> None:
        """Raises PERMISSION_DENIED where runs are not allowed."""
        if not self._settings.allow_runs:
            raise ApiError(
                "runs-not-allowed", "this control service starts no programs: it was started without --allow-runs."
            )

    def check_size(self, submission: Mapping[str, Any]) -> None:
        """Raises INVALID_ARGUMENT."""
        tasks = sum(submission["jobs"].values())
        if tasks > self._settings.max_tasks:
            raise ApiError(
                "run-too-large", f"{tasks} tasks are too many: the limit is {self._settings.max_tasks}.", at=("jobs",)
            )

    async def check(self, submission: Mapping[str, Any], launcher: str) -> None:
        """Raises PERMISSION_DENIED where runs are not allowed, NOT_FOUND for a package that is not there, and
        INVALID_ARGUMENT."""
        if launcher != EXTERNAL:
            self.require_allowed()
        self._check_members(submission, launcher)
        package = submission.get("package")
        if package is not None and not await asyncio.to_thread(self._supervisors.packages.has, package):
            raise ApiError(
                "no-such-package",
                f"there is no package {package}. Upload it first: PUT /v1/packages/{package}.",
                at=("package",),
            )

    def _check_members(self, submission: Mapping[str, Any], launcher: str) -> None:
        self.check_size(submission)
        if not any(job != "ps" for job in submission["jobs"]):
            raise ApiError(
                "run-without-worker",
                "there is nobody to end the run: jobs needs a worker or a chief besides parameter servers.",
                at=("jobs",),
            )
        if launcher not in (LOCAL, EXTERNAL):
            self._check_launcher(launcher, submission.get("launcher_options") or {})
        if not submission["entrypoint"][0]:
            raise ApiError(
                "empty-entrypoint",
                'the entrypoint is empty; give a command, as in ["python", "trainer.py"].',
                at=("entrypoint", 0),
            )
        folder = submission["working_dir"]
        if folder is not None and submission.get("package") is not None:
            raise ApiError(
                "working-dir-and-package",
                "working_dir and package exclude each other: the run starts in the unpacked package.",
                at=("working_dir",),
            )
        if launcher != EXTERNAL and folder is not None and not (os.path.isabs(folder) and os.path.isdir(folder)):
            raise ApiError(
                "no-such-working-dir",
                f"working_dir {folder!r} is not an absolute path of a folder on the control service's machine.",
                at=("working_dir",),
            )

    def _check_program(self, submission: Mapping[str, Any], launcher: str) -> None:
        """Raises INVALID_ARGUMENT for a program whose file is not in the package or, where the tasks run on this
        machine, not in the working directory. Blocks for a look at the disk."""
        entrypoint = read_entrypoint(submission["entrypoint"])
        file, folder, package = entrypoint.file, submission["working_dir"], submission.get("package")
        if file is None:
            return
        if package is not None and not os.path.isabs(file):
            where, found = f"the package {package}", self._supervisors.packages.contains(package, file)
        elif folder is not None and launcher == LOCAL:
            where, found = f"the folder {folder}", os.path.exists(os.path.join(folder, file))
        else:
            return
        if not found:
            at = ("entrypoint", 1 + len(entrypoint.interpreter))
            raise ApiError("no-such-program", f"there is no file {file!r} in {where}, in which the run starts.", at=at)

    @staticmethod
    def _check_launcher(name: str, options: Mapping[str, str]) -> None:
        """Raises INVALID_ARGUMENT for a launcher that there is not or that has no such options, FAILED_PRECONDITION for
        one that cannot be used on this machine."""
        member = "launcher"
        try:
            found = registry.launcher(name)
            member = "launcher_options"
            checked_options(found, options)
        except LaunchRefusedError as error:
            raise ApiError("invalid-launcher", f"{error}.", at=(member,)) from None
        if (why := found.missing()) is not None:
            raise ApiError(
                "launcher-not-usable",
                f"{name} cannot be used on the control service's machine: {why}.",
                at=("launcher",),
            )

    @staticmethod
    def _same(known: RunRecord, asked: RunRecord) -> RunRecord:
        if known.submitter not in (None, asked.submitter):
            raise ApiError(
                "submission-differs",
                f"submission id {known.submission_id!r} is that of run {known.id}, which another caller has submitted. "
                "Choose another one.",
                at=("submission_id",),
            )
        if known.fingerprint != asked.fingerprint:
            raise ApiError(
                "submission-differs",
                f"submission id {known.submission_id!r} is that of run {known.id}, which was submitted with another "
                "program or other options. Choose another one.",
                at=("submission_id",),
            )
        return known
