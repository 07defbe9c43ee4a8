"""Device names: full, partial, and how they are merged and compared.

A full name is `/job:ps/replica:0/task:0/device:CPU:0`; programs may write any part of it, and the old `/cpu:0` too.
Used by the client's device stack, the placer and the rendezvous. Follows device_spec.py and device_name_utils.cc.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

_JOB = re.compile(r"job:([a-zA-Z][_a-zA-Z0-9]*)")
_NUMBERED = re.compile(r"(replica|task):([0-9]+|\*)")
_DEVICE = re.compile(r"device:([a-zA-Z_][a-zA-Z0-9_]*|\*)(?::([0-9]+|\*))?")
_LEGACY = re.compile(r"(cpu|gpu|CPU|GPU)(?::([0-9]+|\*))?")


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A (partial) device: any of job, replica, task, device type and device index; None where it is left open.

    Immutable, unlike TensorFlow 1.x's; build another with `replace` or `make_merged_spec`.
    """

    job: str | None = None
    replica: int | None = None
    task: int | None = None
    device_type: str | None = None
    device_index: int | None = None

    @staticmethod
    def from_string(spec: str) -> DeviceSpec:
        """Parses `/job:worker/task:1/device:GPU:0` or a part of it. Raises ValueError naming the part that is wrong."""
        return _parse(spec)

    # TensorFlow 1.x's instance method; here it gives the parsed spec.
    def parse_from_string(self, spec: str) -> DeviceSpec:
        return _parse(spec)

    def to_string(self) -> str:
        """The canonical spelling, without the parts that are open."""
        parts = []
        if self.job is not None:
            parts.append(f"/job:{self.job}")
        if self.replica is not None:
            parts.append(f"/replica:{self.replica}")
        if self.task is not None:
            parts.append(f"/task:{self.task}")
        if self.device_type is not None:
            parts.append(f"/device:{self.device_type}:{'*' if self.device_index is None else self.device_index}")
        return "".join(parts)

    def make_merged_spec(self, other: DeviceSpec) -> DeviceSpec:
        """This spec with what `other` says laid over it."""
        merged = DeviceSpec(
            job=self.job if other.job is None else other.job,
            replica=self.replica if other.replica is None else other.replica,
            task=self.task if other.task is None else other.task,
            device_type=self.device_type if other.device_type is None else other.device_type,
            device_index=self.device_index if other.device_index is None else other.device_index,
        )
        return merged

    @property
    def task_name(self) -> str:
        """`/job:ps/replica:0/task:0`, replica 0 where it is open. Raises ValueError where job or task is open."""
        if self.job is None or self.task is None:
            raise ValueError(f"'{self.to_string()}' does not name a task: a job and a task index are needed")
        return f"/job:{self.job}/replica:{self.replica or 0}/task:{self.task}"

    def matches(self, full: DeviceSpec) -> bool:
        """True if `full`, a complete name, lies within this partial one. Device types compare without case."""
        if self.job is not None and self.job != full.job:
            return False
        if self.replica is not None and self.replica != full.replica:
            return False
        if self.task is not None and self.task != full.task:
            return False
        if self.device_type is not None and self.device_type.upper() != (full.device_type or "").upper():
            return False
        return self.device_index is None or self.device_index == full.device_index

    def __str__(self) -> str:
        return self.to_string()


#: A longer name is no device's.
_LONGEST = 4096


def _parse(spec: str) -> DeviceSpec:
    if len(spec) > _LONGEST:
        raise ValueError(
            f"Malformed device specification '{spec[:80]}…': it has {len(spec)} characters, {_LONGEST} are the most."
        )
    return _parse_short(spec)


@lru_cache(maxsize=4096)
def _parse_short(spec: str) -> DeviceSpec:
    result = DeviceSpec()
    for part in spec.split("/"):
        if not part:
            continue
        if found := _JOB.fullmatch(part):
            result = replace(result, job=found.group(1))
        elif found := _NUMBERED.fullmatch(part):
            number = None if found.group(2) == "*" else int(found.group(2))
            result = replace(result, replica=number) if found.group(1) == "replica" else replace(result, task=number)
        elif found := _DEVICE.fullmatch(part) or _LEGACY.fullmatch(part):
            kind = None if found.group(1) == "*" else found.group(1)
            index = None if found.group(2) in (None, "*") else int(found.group(2))
            kind = kind.upper() if kind is not None and kind.lower() in ("cpu", "gpu") else kind
            result = replace(result, device_type=kind, device_index=index)
        else:
            raise ValueError(
                f"Malformed device specification '{spec}': '{part}' is none of job:NAME, replica:N, task:N, "
                "device:TYPE:N, cpu:N, gpu:N"
            )
    return result


def canonical_name(spec: str | DeviceSpec | None) -> str:
    """The canonical spelling of a (partial) device name; empty for None or an empty one."""
    if spec is None:
        return ""
    return spec.to_string() if isinstance(spec, DeviceSpec) else _parse(spec).to_string()


def merge(outer: str, inner: str) -> str:
    """The canonical name of `inner` laid over `outer`."""
    return _parse(outer).make_merged_spec(_parse(inner)).to_string()


def is_compatible(requested: str, actual: str) -> bool:
    """True if the full name `actual` lies within the partial name `requested`."""
    return _parse(requested).matches(_parse(actual))


def task_of(device: str) -> str:
    """`/job:ps/replica:0/task:0` of a full device name."""
    return _parse(device).task_name


def task_name(job: str, index: int) -> str:
    """`/job:ps/replica:0/task:0`."""
    return f"/job:{job}/replica:0/task:{index}"


def full_name(job: str, task: int, device_type: str = "CPU", device_index: int = 0, replica: int = 0) -> str:
    """`/job:ps/replica:0/task:0/device:CPU:0`."""
    return f"/job:{job}/replica:{replica}/task:{task}/device:{device_type}:{device_index}"
