"""The audit log: its lines, and the bound of refusals."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tenfold_core import log_setup
from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role

if TYPE_CHECKING:
    import pytest

CALLER = Caller(Role.RUN, "token ci")


def test_a_line_says_who_did_what(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tenfold.audit")

    audit.done(CALLER, "create session", path="/v1/a\nb")

    (record,) = caplog.records
    assert record.getMessage() == r"create session, done: by token ci (run) path=/v1/a\nb"
    assert record.__dict__["fields"]["caller"] == "token ci"


def test_a_programs_own_log_gets_no_lines_of_actions_but_refusals(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    # of tests that ran commands in this process
    own = [each for each in logging.getLogger().handlers if not isinstance(each, log_setup._Handler)]
    monkeypatch.setattr(logging.getLogger(), "handlers", own)

    audit.done(CALLER, "create session")
    audit.Refusals().note(CALLER, "delete cluster", "role-too-small")

    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_log_that_is_ours_has_actions(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(logging.getLogger(), "handlers", [*logging.getLogger().handlers, log_setup._Handler(None)])

    audit.done(CALLER, "create session")

    assert len(caplog.records) == 1


def test_refusals_are_bounded(caplog: pytest.LogCaptureFixture) -> None:
    now = 100.0
    refusals = audit.Refusals(lambda: now)

    for _ in range(50):
        refusals.note(CALLER, "delete cluster", "role-too-small")
    now += 1
    refusals.note(CALLER, "delete cluster", "role-too-small")

    assert len(caplog.records) == 21
    assert caplog.records[-1].__dict__["fields"]["left_out"] == 30
