"""The status page at `/`: one small HTML page without script, that reloads itself every two seconds. Pure."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from tenfold_control_api.views import timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_control_api.cluster import Cluster, Task
    from tenfold_control_api.leases import LeaseTable
    from tenfold_control_api.runs.models import RunView

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #1c2430; background: #fbfbfa }
h1 { font-size: 1.3rem; margin-bottom: .2rem }
h2 { font-size: 1.1rem; margin: 2rem 0 .3rem }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #e2e2dd; vertical-align: top }
th { font-weight: 600; color: #5a6472; font-size: .85rem }
code { font: 13px ui-monospace, monospace }
.ready { color: #0b7a4b }
.finished { color: #4a6fa5 }
.missing, .stopped, .PENDING, .STOPPED { color: #9a6b00 }
.RUNNING { color: #0b6e99 }
.SUCCEEDED { color: #0b7a4b }
.FAILED { color: #b3261e; font-weight: 600 }
.lost { color: #b3261e; font-weight: 600 }
.quiet { color: #5a6472 }
"""


def render_page(clusters: Iterable[Cluster], leases: LeaseTable, sessions: int, runs: Iterable[RunView] = ()) -> str:
    """The page for all clusters and the newest runs. All text that comes from requests is escaped."""
    sections = "".join(_cluster(cluster, leases) for cluster in clusters)
    if not sections:
        sections = (
            "<p>No cluster is declared. Declare one:</p><p><code>curl -X PUT http://HOST:PORT/v1/clusters/default "
            '-H \'Content-Type: application/json\' -d \'{"jobs": {"ps": 1, "worker": 2}}\'</code></p>'
        )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">'
        f"<title>Tenfold</title><style>{_STYLE}</style></head><body><h1>Tenfold control service</h1>"
        f'<p class="quiet">{sessions} open session{"" if sessions == 1 else "s"} · '
        '<a href="/docs">REST interface</a></p>'
        f"{_runs(runs)}{sections}</body></html>"
    )


def _runs(runs: Iterable[RunView]) -> str:
    rows = "".join(_run(run) for run in runs)
    if not rows:
        return ""
    head = "".join(f"<th>{name}</th>" for name in ("run", "state", "created", "progress", "program", "why"))
    return f"<h2>Runs</h2><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _run(run: RunView) -> str:
    known = run.progress
    parts: list[str] = []
    if known is not None:
        if known.global_step is not None:
            parts.append(f"step {known.global_step:,}")
        if known.steps_per_second is not None:
            parts.append(f"{known.steps_per_second:.1f} steps/s")
        for name, value in sorted(known.values.items())[:4]:
            parts.append(f"{name} {value:.4g}" if isinstance(value, float) else f"{name} {value}")
    cells = (
        f"<code>{escape(run.name)}</code>",
        f'<span class="{run.state}">{run.state}</span>',
        escape(run.created),
        escape(" · ".join(parts)),
        f"<code>{escape(' '.join(run.entrypoint))}</code>",
        escape(run.reason),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _cluster(cluster: Cluster, leases: LeaseTable) -> str:
    missing = cluster.missing
    told = (
        f'<span class="lost">waiting for {escape(", ".join(missing[:20]))}</span>'
        if missing
        else '<span class="ready">everyone is there</span>'
    )
    rows = "".join(_row(task, leases) for task in cluster.tasks.values())
    return (
        f'<h2>{escape(cluster.name)} <span class="quiet">· spec version {cluster.version}</span></h2><p>{told}</p>'
        "<table><thead><tr><th>task</th><th>state</th><th>since</th><th>heartbeat</th><th>address</th><th>why</th></tr></thead>"
        f"<tbody>{rows}</tbody></table>"
    )


def _row(task: Task, leases: LeaseTable) -> str:
    age = leases.age(task.lease_id) if task.lease_id is not None else None
    code = "" if task.exit_code is None else f" (exit code {task.exit_code})"
    cells = (
        f"<code>/job:{escape(task.job)}/task:{task.index}</code>",
        f'<span class="{task.state.value}">{task.state.value}</span>',
        escape(timestamp(task.since)),
        "" if age is None else f"{age:.1f} s ago",
        f"<code>{escape(task.address or '')}</code>",
        escape(task.reason + code),
    )
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
