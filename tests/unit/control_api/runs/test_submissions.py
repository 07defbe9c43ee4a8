"""What is asked of the service before there is a run: packages, and submissions that are checked and kept once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.record import EXTERNAL, LOCAL, RunRecord
from tenfold_control_api.runs.submissions import Submissions
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors

if TYPE_CHECKING:
    from pathlib import Path


class Packages:
    def __init__(self) -> None:
        self.names = {"there"}
        self.files = {"trainer.py"}
        self.error: Exception | None = None
        self.forgotten: list[float] = []
        self.probes = 0

    def has(self, name: str) -> bool:
        return name in self.names

    def contains(self, name: str, path: str) -> bool:
        return name in self.names and path in self.files

    def add(self, name: str, _: bytes) -> bool:
        if self.error is not None:
            raise self.error
        fresh = name not in self.names
        self.names.add(name)
        return fresh

    def probe(self) -> None:
        self.probes += 1
        if self.error is not None:
            raise self.error

    def forget(self, before: float) -> None:
        self.forgotten.append(before)


class Store:
    def __init__(self) -> None:
        self.runs: dict[str, RunRecord] = {}
        #: A run that another service keeps just before ours.
        self.faster: RunRecord | None = None
        self.refuses = False

    async def by_submission(self, name: str) -> RunRecord | None:
        return self.runs.get(name)

    async def add(self, run: RunRecord, diff: str | None = None) -> bool:
        if self.faster is not None:
            self.runs[self.faster.submission_id] = self.faster
        if self.refuses or run.submission_id in self.runs:
            return False
        self.runs[run.submission_id] = run
        return True


class Table:
    def __init__(self) -> None:
        self.done: list[Any] = []

    def admit(self) -> None:
        self.done.append("admit")

    def hear(self, run_id: str) -> None:
        self.done.append(("hear", run_id))

    def publish(self, run: RunRecord) -> None:
        self.done.append(("publish", run))


class Service:
    def __init__(self, **settings: Any) -> None:
        self.packages, self.store, self.table = Packages(), Store(), Table()
        self.submissions = Submissions(
            cast("Any", self.table),
            cast("Any", self.store),
            cast("Any", SimpleNamespace(packages=self.packages)),
            Settings(**{"allow_runs": True, **settings}),
            cast("Any", SimpleNamespace(id="me")),
            lambda: 500.0,
        )


def submission(**given: Any) -> dict[str, Any]:
    return {"jobs": {"worker": 1}, "entrypoint": ["python"], "working_dir": None, **given}


async def refused(call: Any) -> ApiError:
    with pytest.raises(ApiError) as raised:
        await call
    return raised.value


async def test_a_submission_becomes_a_run_that_this_service_starts() -> None:
    service = Service()

    run, new = await service.submissions.submit(submission(), "once", LOCAL, "ann")

    assert new
    assert (run.submission_id, run.launcher, run.created, run.owner, run.submitter) == (
        *("once", LOCAL),
        *(500.0, "me", "ann"),
    )
    assert run.submission == submission()
    assert run.id.startswith("run-")
    assert len(run.id) == 16
    assert service.table.done == ["admit", ("hear", run.id), ("publish", run)]
    assert service.store.runs == {"once": run}


async def test_one_without_an_id_is_named_by_its_run() -> None:
    service = Service()
    first, _ = await service.submissions.submit(submission(), None)
    second, new = await service.submissions.submit(submission(), None)
    assert new
    assert first.submission_id == first.id != second.id


async def test_the_same_again_is_the_same_run() -> None:
    service = Service()
    run, _ = await service.submissions.submit(submission(), "once", LOCAL, "ann")
    service.table.done.clear()
    assert await service.submissions.submit(submission(), "once", LOCAL, "ann") == (run, False)
    assert service.table.done == []


@pytest.mark.parametrize("faster", [False, True])
async def test_an_id_is_of_one_submission_and_one_caller(faster: bool) -> None:
    service = Service()
    run, _ = await Service().submissions.submit(submission(), "once", LOCAL, "ann")
    if faster:
        service.store.faster = run
    else:
        service.store.runs["once"] = run

    assert await service.submissions.submit(submission(), "once", LOCAL, "ann") == (run, False)
    error = await refused(service.submissions.submit(submission(), "once", LOCAL, "bob"))
    assert (error.kind, error.detail) == (
        "submission-differs",
        f"submission id 'once' is that of run {run.id}, which another caller has submitted. Choose another one.",
    )
    error = await refused(service.submissions.submit(submission(entrypoint=["x"]), "once", LOCAL, "ann"))
    assert (error.kind, error.detail) == (
        "submission-differs",
        f"submission id 'once' is that of run {run.id}, which was submitted with another program or other options. "
        "Choose another one.",
    )


async def test_a_run_of_an_unknown_submitter_is_everybodys() -> None:
    service = Service()
    run, _ = await service.submissions.submit(submission(), "once")
    assert await service.submissions.submit(submission(), "once", LOCAL, "bob") == (run, False)


async def test_a_run_that_is_deleted_meanwhile_may_be_asked_for_again() -> None:
    service = Service()
    service.store.refuses = True
    error = await refused(service.submissions.submit(submission(), "once"))
    assert (error.kind, error.detail) == (
        "run-deleted",
        "the run of this submission id was just deleted; send the request again.",
    )


async def test_programs_are_started_only_where_that_is_allowed() -> None:
    service = Service(allow_runs=False)
    words = "this control service starts no programs: it was started without --allow-runs."
    for call in (service.submissions.submit(submission(), "once"), service.submissions.add_package("new", b"")):
        error = await refused(call)
        assert (error.kind, error.detail) == ("runs-not-allowed", words)
    run, new = await service.submissions.submit(submission(working_dir="nowhere"), "once", EXTERNAL)
    assert (new, run.owner) == (True, None)


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"jobs": {"worker": 3, "ps": 2}}, "run-too-large", "5 tasks are too many: the limit is 4."),
        (
            {"jobs": {"ps": 1}},
            "run-without-worker",
            "there is nobody to end the run: jobs needs a worker or a chief besides parameter servers.",
        ),
        ({"entrypoint": [""]}, "empty-entrypoint", 'the entrypoint is empty; give a command, as in ["python", "tra'),
        (
            {"working_dir": "/", "package": "there"},
            "working-dir-and-package",
            "working_dir and package exclude each other: the run starts in the unpacked package.",
        ),
        (
            {"working_dir": "tests"},
            "no-such-working-dir",
            "working_dir 'tests' is not an absolute path of a folder on the control service's machine.",
        ),
        ({"working_dir": "/no/such/folder"}, "no-such-working-dir", "working_dir '/no/such/folder' is not an absolute"),
        (
            {"package": "gone"},
            "no-such-package",
            "there is no package gone. Upload it first: PUT /v1/packages/gone.",
        ),
        (
            {"package": "there", "entrypoint": ["python", "-O", "gone.py", "--steps=2"]},
            "no-such-program",
            "there is no file 'gone.py' in the package there, in which the run starts.",
        ),
        (
            {"working_dir": "/", "entrypoint": ["python", "no/trainer.py"]},
            "no-such-program",
            "there is no file 'no/trainer.py' in the folder /, in which the run starts.",
        ),
    ],
)
async def test_what_cannot_run_is_refused(given: dict[str, Any], kind: str, words: str) -> None:
    service = Service(max_tasks=4)
    error = await refused(service.submissions.submit(submission(**given), "once"))
    assert error.kind == kind
    assert error.detail.startswith(words)
    assert service.store.runs == {}


async def test_what_can_run_is_accepted(tmp_path: Path) -> None:
    service = Service(max_tasks=4)
    (tmp_path / "trainer.py").touch()
    for number, given in enumerate(
        (
            {"jobs": {"worker": 3, "ps": 1}},
            {"jobs": {"chief": 1}},
            {"package": "there"},
            {"working_dir": str(tmp_path)},
            {"package": "there", "entrypoint": ["/opt/env/bin/python", "trainer.py"]},
            {"working_dir": str(tmp_path), "entrypoint": ["python", "./trainer.py"]},
            {"working_dir": str(tmp_path), "entrypoint": ["python", "-m", "http.server"]},
            {"working_dir": str(tmp_path), "entrypoint": ["sh", "no.sh"]},
            {"entrypoint": ["python", "trainer.py"]},
        )
    ):
        assert (await service.submissions.submit(submission(**given), str(number)))[1]


async def test_a_run_that_there_is_needs_its_program_no_more(tmp_path: Path) -> None:
    service = Service()
    program = tmp_path / "trainer.py"
    program.touch()
    given = submission(working_dir=str(tmp_path), entrypoint=["python", "trainer.py"])
    run, _ = await service.submissions.submit(given, "once")
    program.unlink()

    assert await service.submissions.submit(given, "once") == (run, False)


async def test_the_files_of_an_engines_hosts_are_not_known_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Submissions, "_check_launcher", lambda *_: None)
    given = submission(working_dir=str(tmp_path), entrypoint=["python", "trainer.py"])

    assert (await Service().submissions.submit(given, None, "kubernetes"))[1]


async def test_packages_are_kept_and_forgotten() -> None:
    service = Service(package_memory=100.0)
    assert await service.submissions.add_package("new", b"x")
    assert not await service.submissions.add_package("new", b"x")
    assert await service.submissions.has_package("new")
    assert not await service.submissions.has_package("other")
    await service.submissions.forget_packages(250.0)
    assert service.packages.forgotten == [150.0]


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left", "/x/y"), "/x/y; No space left"),
        (OSError("odd"), "None; odd"),
        (errors.ResourceExhaustedError(None, None, "the disk is full"), "the disk is full"),
    ],
)
async def test_a_disk_that_takes_no_package_is_told_until_it_does(error: Exception, words: str) -> None:
    service = Service()
    assert await service.submissions.trouble() == ""
    assert service.packages.probes == 0
    service.packages.error = error

    refusal = await refused(service.submissions.add_package("new", b"x"))

    assert (refusal.kind, refusal.detail) == ("disk-unavailable", f"the package cannot be kept: {words}.")
    assert await service.submissions.trouble() == f"packages cannot be kept: {words}"
    service.packages.error = None
    assert await service.submissions.trouble() == ""
    assert await service.submissions.trouble() == ""
    assert service.packages.probes == 2

    service.packages.error = error
    await refused(service.submissions.add_package("new", b"x"))
    service.packages.error = None
    await service.submissions.add_package("new", b"x")
    assert await service.submissions.trouble() == ""
    assert service.packages.probes == 2
