"""What the doctor says of answers: names, clocks, versions, pairs. No sockets."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

from tenfold.cli.doctor import cluster
from tenfold.cli.doctor.cluster import Answer, Way, of_tasks, resolved
from tenfold.cli.doctor.finding import Finding, fail
from tenfold_core import protocol
from tenfold_core.access.tokens import TokenSet
from tenfold_core.running_versions import running_versions

if TYPE_CHECKING:
    import pytest

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"
ADDRESSES = {PS: "a:1", WORKER: "b:2"}


def answer(task: str, **changed: Any) -> Answer:
    others = {name: "" for name in ADDRESSES if name != task}
    given = {"versions": running_versions(), "host": "alpha", "offset": 0.0, "within": 0.01, "peers": others}
    return Answer(task, ADDRESSES[task], **{"links": {}, **given, **changed})


def found(monkeypatch: pytest.MonkeyPatch, *answers: Answer | Finding) -> list[Finding]:
    """The findings but for those that are well."""
    said = dict(zip(ADDRESSES, answers, strict=True))
    monkeypatch.setattr(cluster, "ask", lambda task, *_: said[task])
    return of_tasks(ADDRESSES, 1.0, TokenSet)


def test_tasks_that_are_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [(each.level, each.what, each.says) for each in found(monkeypatch, answer(PS), answer(WORKER))] == [
        ("ok", PS, "answers at a:1, on alpha"),
        ("ok", WORKER, "answers at b:2, on alpha"),
        ("ok", "pairs", "each task reaches each other one (2 connections)"),
    ]


def test_a_pair_that_does_not_reach_each_other_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "the name b does not resolve: Name or service not known"

    trouble = [each for each in found(monkeypatch, answer(PS, peers={WORKER: why}), answer(WORKER))]

    assert [(each.level, each.what, each.says) for each in trouble[1:]] == [
        ("fail", f"{PS} → {WORKER}", why),
        ("ok", WORKER, "answers at b:2, on alpha"),
    ]


def test_links_that_come_about_and_one_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "No link to worker 0 at b:2: TCP b:2223: no answer in time."
    blocked = answer(PS, links={WORKER: Way("", why)})

    said = found(monkeypatch, blocked, answer(WORKER, links={PS: Way("tcp:2223", "", 1)}))
    of_one_machine = found(monkeypatch, answer(PS, links={WORKER: Way("unix", "", 1)}), answer(WORKER))

    assert [(each.level, each.what, each.says) for each in said if "→" in each.what or each.what == "links"] == [
        ("warn", f"{PS} → {WORKER}", f"gRPC alone, which is slower: {why}"),
        ("ok", "links", "1 over TCP, to port 2223; version 1 of their protocol"),
    ]
    assert (of_one_machine[-1].what, of_one_machine[-1].says) == (
        "links",
        "1 within a machine; version 1 of their protocol",
    )


def test_an_older_and_a_newer_release_on_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "links", lambda: protocol.Speaks(1, 2))
    older, newer = Way("unix", "", 1, "0.1.0"), Way("", "it speaks versions 3 to 4 of links", 3, "0.9.0")

    said = found(monkeypatch, answer(PS, links={WORKER: older}), answer(WORKER, links={PS: newer}))

    assert [(each.what, each.says, each.remedy) for each in said if each.level == "warn"] == [
        (
            f"{PS} → {WORKER}",
            "links of version 1, and 2 is the newest: Tenfold 0.1.0 is there",
            "install the same on all machines",
        ),
        (
            f"{WORKER} → {PS}",
            "gRPC alone, which is slower: it speaks versions 3 to 4 of links",
            "install the same on all machines",
        ),
    ]


def test_clocks_and_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {**running_versions(), "numpy": "1.0", "tenfold": "9"}

    trouble = [
        (each.level, each.what, each.says)
        for each in found(monkeypatch, answer(PS, offset=-30.0), answer(WORKER, versions=other))
        if each.level != "ok"
    ]

    here = running_versions()
    assert trouble == [
        ("warn", f"clock of {PS}", "30.0 s behind this machine's"),
        ("fail", f"versions of {WORKER}", f"tenfold 9 there, {here['tenfold']} here"),
        ("warn", f"versions of {WORKER}", f"numpy 1.0 there, {here['numpy']} here"),
    ]


def test_a_task_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = fail(WORKER, "b:2 does not answer", "is it running?")

    assert found(monkeypatch, answer(PS, peers={WORKER: "UNAVAILABLE: …"}), silent)[-1] is silent


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        if host == "b":
            raise socket.gaierror(-2, "Name or service not known")
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)

    assert [(each.level, each.what, each.says) for each in resolved(ADDRESSES)] == [
        ("fail", "name b", "does not resolve here: Name or service not known")
    ]
    assert [each.says for each in resolved({PS: "a:1"})] == ["of all tasks resolve here: a"]
