"""The devices that a session may use: which of them a partial name means, in what order, and why it means none.

Built by the master from what the tasks answered; asked by place.py and partition.py. Follows TensorFlow's
device_set.cc; the order differs in one point: the master's own task comes before better devices elsewhere. What several
sessions share is looked for in TensorFlow's own order (`first_for_all`), which is the same for every master.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes

#: A higher number is preferred where a node may go to several types of device; TensorFlow's numbers.
TYPE_PRIORITY = {"GPU": 210, "CPU": 70}

#: Two names of one job: what TensorFlow 1.x and 2.x call the job of a server that stands alone.
LOCAL_JOBS = ("localhost", "local")


class DeviceSet:
    """Devices by full name. Immutable but for its cache of look-ups, which is bounded by `_MAX_CACHED`."""

    _MAX_CACHED = 4096

    def __init__(
        self,
        devices: Iterable[DeviceAttributes],
        client_device: str,
        excluded_tasks: Iterable[str] = (),
        finished_tasks: Iterable[str] = (),
        lost_tasks: Iterable[str] = (),
        mistaken_tasks: Mapping[str, str] | None = None,
    ) -> None:
        """`client_device` is the master's own, the default; `excluded_tasks` were left out by device filters.

        `finished_tasks` are not there any more, `lost_tasks` were not when the session was created;
        of `mistaken_tasks` another one answers at the address, and the value says so.

        Raises ValueError if a device's name is not a full one or `client_device` is not among the devices.
        """
        devices = list(devices)
        specs = {device.name: _full_spec(device.name) for device in devices}
        if client_device not in specs:
            raise ValueError(f"the master's own device {client_device} is not among {sorted(specs)}")
        self.client_device = client_device
        self.client_task = specs[client_device].task_name
        #: All devices in order of preference, the master's own task first; never empty.
        self.attributes = sorted(devices, key=lambda device: self._preference(specs[device.name]))
        self._by_name = {device.name: device for device in self.attributes}
        self._specs = {name: specs[name] for name in self._by_name}
        #: The device types that there are.
        self.types = frozenset(device.device_type for device in self.attributes)
        self.tasks = list(dict.fromkeys(spec.task_name for spec in self._specs.values()))
        lost = "was lost when this session was created: open a new session once the task is back"
        #: Tasks that may not be used, each with the reason.
        self._absent = [
            *((task, "is excluded by the session's device_filters") for task in sorted(set(excluded_tasks))),
            *((task, "has finished") for task in sorted(set(finished_tasks))),
            *((task, lost) for task in sorted(set(lost_tasks))),
            *(mistaken_tasks or {}).items(),
        ]
        #: Job → its task indices, of the tasks that may be used.
        self.jobs: dict[str, list[int]] = {}
        for job, task in sorted({(spec.job or "", spec.task or 0) for spec in specs.values()}):
            self.jobs.setdefault(job, []).append(task)
        self._cache: dict[tuple[DeviceSpec, frozenset[str] | None], list[str]] = {}

    def _preference(self, s: DeviceSpec) -> tuple[bool, int, str, int, int, int]:
        elsewhere = s.task_name != self.client_task
        return elsewhere, -_priority(s), s.job or "", s.replica or 0, s.task or 0, s.device_index or 0

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def incarnation(self, name: str) -> int:
        """The device's incarnation, unsigned. Raises KeyError for a name that is not in the set."""
        return self._by_name[name].incarnation

    def device(self, name: str) -> DeviceAttributes:
        """Raises KeyError for a name that is not in the set."""
        return self._by_name[name]

    def resolve_job(self, spec: DeviceSpec) -> DeviceSpec:
        """`/job:local` and `/job:localhost` name the same job where only one of them exists."""
        if spec.job in LOCAL_JOBS and spec.job not in self.jobs:
            other = LOCAL_JOBS[1 - LOCAL_JOBS.index(spec.job)]
            if other in self.jobs:
                return replace(spec, job=other)
        return spec

    def matching(self, spec: DeviceSpec, types: frozenset[str] | None = None) -> list[str]:
        """Full names within the partial one, best first; of these device types only, where given."""
        found = self._cache.get((spec, types))
        if found is None:
            found = [
                name
                for name, each in self._specs.items()
                if spec.matches(each) and (types is None or each.device_type in types)
            ]
            if len(self._cache) < self._MAX_CACHED:
                self._cache[spec, types] = found
        return found

    def first_for_all(self, names: Iterable[str]) -> str:
        """Which of these devices TensorFlow's order puts first: the best type, then by name, whoever's master asks.

        Raises ValueError for no names, KeyError for one that is not in the set.
        """
        return min(names, key=lambda name: (-_priority(self._specs[name]), name))

    def explain_no_match(self, spec: DeviceSpec) -> str:
        """Why no device lies within `spec`: what there is instead. Ends with a full stop."""
        if spec.job is not None and spec.job not in self.jobs:
            return self._excluded_text(spec) or f"there is no job '{spec.job}'; the cluster has {self._job_list()}."
        in_job = list(self.jobs.values()) if spec.job is None else [self.jobs[spec.job]]
        if spec.task is not None and not any(spec.task in tasks for tasks in in_job):
            if spec.job is None:
                there = f"no job has a task {spec.task}; the cluster has {self._job_list()}."
            else:
                there = f"job '{spec.job}' has {_tasks_text(self.jobs[spec.job])} only."
            return self._excluded_text(spec) or there
        here = self.matching(of_task(spec))
        if spec.replica is not None and not here:
            return f"there is no replica {spec.replica}; every task is of replica 0."
        kinds = ", ".join(sorted({name.rpartition("/device:")[2] for name in here}))
        if spec.job is None:
            return f"the tasks of this cluster have {kinds} only."
        if spec.task is None:
            return f"the tasks of job '{spec.job}' have {kinds} only."
        return f"that task has {kinds} only."

    def _excluded_text(self, spec: DeviceSpec) -> str:
        within = of_task(spec)
        found = (f"{task} {why}." for task, why in self._absent if within.matches(DeviceSpec.from_string(task)))
        return next(found, "")

    def _job_list(self) -> str:
        return ", ".join(f"{job} ({_tasks_text(tasks)})" for job, tasks in self.jobs.items())


def of_task(spec: DeviceSpec) -> DeviceSpec:
    """What a (partial) device says of its task."""
    return replace(spec, device_type=None, device_index=None)


def _priority(spec: DeviceSpec) -> int:
    return TYPE_PRIORITY.get(spec.device_type or "", 0)


def _full_spec(name: str) -> DeviceSpec:
    spec = DeviceSpec.from_string(name)
    if None in (spec.job, spec.replica, spec.task, spec.device_type, spec.device_index):
        raise ValueError(f"'{name}' is not the full name of a device, like /job:ps/replica:0/task:0/device:CPU:0")
    return spec


def _tasks_text(tasks: list[int]) -> str:
    """ "task 0", "tasks 0-3" or "tasks 0, 2, 5"."""
    if len(tasks) == 1:
        return f"task {tasks[0]}"
    if tasks == list(range(tasks[0], tasks[-1] + 1)):
        return f"tasks {tasks[0]}-{tasks[-1]}"
    return "tasks " + ", ".join(map(str, tasks))
