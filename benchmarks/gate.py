"""16. What it costs to be accepted: steps and REST with a token and the look at the caller's user, beside none of both
(`--insecure`); and links over TCP with mTLS beside plain ones.

All of a case take turns, round after round, on one machine. Steps go over links, which ask when they are opened, and
over gRPC, which asks with each call. The demand: with a token at most LIMIT times as long. TLS is told, not demanded.
"""

from __future__ import annotations

import functools
import statistics
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from control_service import CLUSTER, Rest, build_graph, repeat
from cross_task import remote_op
from dense_pull import pull, rows_of
from harness import ALONE, PS_WORKER, REMOTE, Case, Effort, Side, Subject, Wish
from harness.rounds import rows_of_cases
from null_step import feed_and_fetch

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Times as long as without that a step may take that is asked for a token.
LIMIT = 1.03
TOKEN = "tenfold-of-the-benchmark"
_OPEN, _TOKEN = {"TENFOLD_INSECURE": "1"}, {"TENFOLD_TOKEN": TOKEN}

OPEN, GUARDED = Side("tenfold open", "tenfold", _OPEN), Side("tenfold token", "tenfold", _TOKEN)
GRPC = {"TENFOLD_LINK": "off", "TENFOLD_SHARED_MEMORY": "off"}
OPEN_GRPC = Side("tenfold grpc open", "tenfold", _OPEN | GRPC)
GUARDED_GRPC = Side("tenfold grpc token", "tenfold", _TOKEN | GRPC)
PLAIN = harness.TENFOLD_TCP
#: Its certificates are made when the subject runs.
TLS = replace(PLAIN, name="tenfold tcp tls")
#: A side → the one that it is held against, and by how much it may be slower; None: it is only told.
PAIRS: dict[str, tuple[str, float | None]] = {
    GUARDED.name: (OPEN.name, LIMIT),
    GUARDED_GRPC.name: (OPEN_GRPC.name, LIMIT),
    "the same user": ("open", LIMIT),
    "a token": ("open", LIMIT),
    TLS.name: (PLAIN.name, None),
}

ENTRY = Subject(
    number="16",
    module="gate",
    title="what it costs to be accepted",
    sides=(OPEN, GUARDED, OPEN_GRPC, GUARDED_GRPC),
    cases=(
        Case("null step, in process", ALONE, feed_and_fetch),
        Case("null step, remote", REMOTE, feed_and_fetch),
        Case("op on the ps", PS_WORKER, remote_op),
    ),
)
ENCRYPTED = replace(
    ENTRY,
    sides=(PLAIN, TLS),
    cases=(
        Case("link over TCP: op on the ps", PS_WORKER, remote_op),
        *(
            Case(f"link over TCP: pull {size} MB", PS_WORKER, pull(size), work=rows_of(size) * 4096, unit="B")
            for size in (1, 16, 64)
        ),
    ),
)
#: role.py finds a case by its name.
SUBJECT = replace(ENTRY, cases=ENTRY.cases + ENCRYPTED.cases)


def certificates(folder: Path) -> dict[str, str]:
    """The variables of processes that speak TLS with each other, on this machine, too."""
    from tenfold_core.access.issue import authority, issue
    from tenfold_core.access.roles import Role

    hosts = ("localhost", "127.0.0.1")
    cert, key = issue(folder, "task", hosts, Role.REGISTER, timedelta(days=1), authority(folder)[:2])
    files = {"TENFOLD_TLS_CERT": cert, "TENFOLD_TLS_KEY": key, "TENFOLD_TLS_CA": folder / "ca.pem"}
    return {**{name: str(path) for name, path in files.items()}, "TENFOLD_TLS": "always"}


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-") as folder:
        tls = replace(TLS, env={**TLS.env, **certificates(Path(folder))})
        for subject in (ENTRY, replace(ENCRYPTED, sides=(PLAIN, tls))):
            for row in rows_of_cases(subject, effort, wish):
                hold(row)
                yield row
        if wish.only in "REST step" and wish.takes(harness.TENFOLD):
            row = rest_row(effort)
            hold(row)
            yield row


def rest_row(effort: Effort) -> dict[str, Any]:
    """A step over REST, at three clusters that take turns."""
    from tenfold.cli.local import LocalCluster

    environments = {"open": _OPEN, "the same user": {}, "a token": _TOKEN}
    rounds: dict[str, dict[int, dict[str, float]]] = {name: {} for name in environments}
    with ExitStack() as stack:
        steps = {}
        for name, environment in environments.items():
            cluster = stack.enter_context(LocalCluster(ps=1, workers=1, environment=environment))
            rest = Rest(cluster.control_url, environment.get("TENFOLD_TOKEN"))
            stack.callback(rest.close)
            steps[name] = opened(rest)
            assert steps[name]()["outputs"][0]["data"] == [21.0, 42.0]
        for number in range(effort.rounds):
            for name, step in steps.items():
                repeat(step, effort.seconds / 5)
                rounds[name][number] = repeat(step, effort.seconds)
    sides = {name: replace(harness.TENFOLD, name=name, env=environment) for name, environment in environments.items()}
    return harness.row_of(Case("REST step", CLUSTER, harness.not_a_program), rounds, sides, {}, "equal", 0.0)


def opened(rest: Rest) -> Any:
    """A step in a session of its own."""
    from google.protobuf import json_format

    import tenfold as tf

    graph, init, product = build_graph(tf)
    definition = json_format.MessageToDict(graph.as_graph_def(), preserving_proto_field_name=True)
    rest.ask("GET", "/v1/clusters/default/spec?complete=true&wait=60s")
    wanted = {"cluster": "default", "job": "worker", "index": 0, "graph_def": definition}
    path = f"/v1/sessions/{rest.ask('POST', '/v1/sessions', wanted)['name']}/steps"
    rest.ask("POST", path, {"targets": [init.name]})
    return functools.partial(rest.ask, "POST", path, {"outputs": [{"name": product.name}]})


def hold(row: dict[str, Any]) -> None:
    """Adds how each side compares with its other: round by round, the median of that, and best round against best
    round, which other load on the machine disturbs least. The verdict is by the better of the two."""
    for name, (other, limit) in PAIRS.items():
        with_it, without = (row["figures"].get(each) for each in (name, other))
        if with_it is None or without is None:
            continue
        rounds = statistics.median(a / b for a, b in zip(with_it["rounds_us"], without["rounds_us"], strict=False))
        best = with_it["best_us"] / without["best_us"]
        text = f"{rounds:.3f}x the time of {other}, {best:.3f}x by the best rounds"
        if limit is not None:
            text = f"{'met' if min(rounds, best) <= limit else 'missed'}: {text}, of ≤ {limit:g}x"
        row.setdefault("times", {})[name] = {"rounds": round(rounds, 4), "best": round(best, 4)}
        row["verdicts"][name] = text


SUBJECT = replace(SUBJECT, sides=(*ENTRY.sides, *ENCRYPTED.sides), rows=rows)

if __name__ == "__main__":
    sys.exit(harness.main(SUBJECT))
