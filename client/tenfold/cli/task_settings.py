"""A task's settings from its command line, the environment and TF_CONFIG, as one frozen dataclass.

task.py reads them once; no module below it looks at the environment. Precedence: flag, TENFOLD_* variable, TF_CONFIG
(whose form is TensorFlow's: {"cluster": {job: [address, …]}, "task": {"type": job, "index": i}}). Every function here
is pure but `read_cluster`, which may open a file. Errors are ValueErrors whose text is a whole sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenfold_core import address as addresses
from tenfold_core.address import split_address
from tenfold_core.cluster_spec import task_pairs
from tenfold_core.loopback import WILDCARDS

#: job → index → "host:port", as ClusterSpec.as_dict() in full.
Cluster = dict[str, dict[int, str]]


@dataclass(frozen=True, slots=True)
class TaskSettings:
    """Everything that makes a process one task. Exactly one of `cluster` and `control` is set."""

    job: str
    #: None only with `control`: the control service gives out the next free index.
    index: int | None
    cluster: Cluster | None
    control: str | None
    cluster_name: str
    #: What other tasks dial; None: derived from the port that was bound.
    address: str | None
    bind: str
    insecure: bool
    #: Whether the task ends once the tasks that it serves have finished.
    stop_with_workers: bool = False
    #: Where Prometheus finds the task's metrics; None: nowhere.
    metrics_port: int | None = None
    metrics_host: str = "127.0.0.1"
    #: The folder below which graphs may use files; None: what TENFOLD_FILES says.
    files: str | None = None
    #: Where links over TCP come in; 0: any free port; None: what TENFOLD_LINK_PORT says.
    link_port: int | None = None
    #: Whether somebody said where to listen; else `bind` may be changed to where others can dial (reachable.py).
    chose_bind: bool = False
    #: The host that is registered by a task that listens on every interface; None: this machine's name.
    registers: str | None = None


def parse_cluster(data: Any, where: str) -> Cluster:
    """Checks a cluster given as JSON: {job: [address, …]} or {job: {"index": address}}. Raises ValueError."""
    if not isinstance(data, Mapping) or not data:
        raise ValueError(f'{where} must be a JSON object like {{"ps": ["localhost:2222"]}}, not {_shown(data)}')
    cluster: Cluster = {}
    for job, tasks in data.items():
        pairs = task_pairs(tasks)
        if pairs is None:
            raise ValueError(f"{where}: job {job!r} must list addresses, or map index → address; got {_shown(tasks)}")
        cluster[str(job)] = {}
        for index, address in pairs:
            if not str(index).isdecimal():
                raise ValueError(f"{where}: job {job!r} has the task index {index!r}, which is not a number")
            if not isinstance(address, str):
                raise ValueError(f"{where}: /job:{job}/task:{index} must be a string HOST:PORT, not {_shown(address)}")
            try:
                split_address(address)
            except ValueError as error:
                raise ValueError(f"{where}: /job:{job}/task:{index}: {error}") from None
            cluster[str(job)][int(index)] = address
    return cluster


def read_cluster(text: str) -> Cluster:
    """The value of --cluster: JSON, or the name of a file that holds it; a whole TF_CONFIG is accepted as well."""
    where = "--cluster"
    if not text.lstrip().startswith("{"):
        where = f"--cluster file {text}"
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise ValueError(f"--cluster is neither a JSON object nor a readable file: {error}") from None
    data = _load(text, where)
    if isinstance(data, Mapping) and isinstance(data.get("cluster"), Mapping):
        data = data["cluster"]
    return parse_cluster(data, where)


def resolve_task(
    *,
    job: str | None,
    index: int | None,
    cluster: str | None,
    control: str | None,
    cluster_name: str,
    address: str | None,
    bind: str | None,
    insecure: bool,
    tf_config: str | None,
    stop_with_workers: bool = False,
    metrics_port: int | None = None,
    metrics_host: str = "127.0.0.1",
    files: str | None = None,
    link_port: int | None = None,
) -> TaskSettings:
    """Joins what was given into settings that are complete and agree. Raises ValueError saying what is missing."""
    from_config = _load(tf_config, "TF_CONFIG") if tf_config and tf_config.strip() else {}
    if not isinstance(from_config, Mapping):
        raise ValueError(f"TF_CONFIG must be a JSON object, not {_shown(from_config)}")
    task = from_config.get("task") or {}
    if not isinstance(task, Mapping):
        raise ValueError(f'TF_CONFIG: "task" must be an object with "type" and "index", not {_shown(task)}')

    # TF_CONFIG's index belongs to TF_CONFIG's job; it does not apply to a job named by a flag.
    if job is None:
        job = task.get("type")
        if index is None and task.get("index") is not None:
            index = _index(task["index"])
    if not job:
        raise ValueError("which job is this task of? Give --job (TENFOLD_JOB), or task.type in TF_CONFIG")
    if cluster and control:
        raise ValueError("give --cluster or --control, not both: a static cluster needs no control service")
    spec = read_cluster(cluster) if cluster else None
    if spec is None and not control:
        if not from_config.get("cluster"):
            raise ValueError("where is the cluster? Give --cluster JSON|FILE, --control URL, or set TF_CONFIG")
        spec = parse_cluster(from_config["cluster"], "TF_CONFIG")
    if address is not None:
        split_address(address)
    if spec is not None:
        index = _static_index(spec, job, index)
        address = address or spec[job][index]
    return TaskSettings(
        job=job,
        index=index,
        cluster=spec,
        control=control if spec is None else None,
        cluster_name=cluster_name,
        address=address,
        bind=bind_address(address, bind),
        insecure=insecure,
        stop_with_workers=stop_with_workers,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
        files=files,
        link_port=link_port,
        chose_bind=bind is not None,
    )


def bind_address(address: str | None, bind: str | None) -> str:
    """Where to listen. Without `bind`: the address itself if it is loopback, its port on every interface if not."""
    if bind is not None:
        split_address(bind, least_port=0)
        return bind
    if address is None:
        return "127.0.0.1:0"
    return addresses.bind_address(*split_address(address))


def advertised_address(settings: TaskSettings, port: int, hostname: str) -> str:
    """What other tasks dial once `port` is bound: what was given, else the bound host; where that is every interface,
    the address towards the control service, or this machine's name."""
    if settings.address is not None:
        return settings.address
    host, _ = split_address(settings.bind, least_port=0)
    return f"{(settings.registers or hostname) if host in WILDCARDS else host}:{port}"


def _static_index(cluster: Cluster, job: str, index: int | None) -> int:
    if job not in cluster:
        raise ValueError(f"the cluster has no job {job!r}: it has {', '.join(map(repr, sorted(cluster)))}")
    tasks = sorted(cluster[job])
    if index is None:
        if len(tasks) != 1:
            raise ValueError(f"job {job!r} has {len(tasks)} tasks: say which this is with --index (TENFOLD_INDEX)")
        return tasks[0]
    if index not in cluster[job]:
        raise ValueError(f"job {job!r} has no task {index}: it has {', '.join(map(str, tasks)) or 'none'}")
    return index


def _index(value: Any) -> int:
    if isinstance(value, bool) or not str(value).isdecimal():
        raise ValueError(f"TF_CONFIG: task.index must be a number from 0, not {_shown(value)}")
    return int(value)


def _load(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is not valid JSON: {error}") from None


def _shown(value: Any) -> str:
    """A value as it goes into a message: JSON, cut short."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
