"""Hypothesis' state machines for tests: a short profile that `make test` runs, a long one that is marked `long`.

A machine makes random calls of what is tried and of a model of a few lines, and compares them after each. In a test
file: `TestLeases, TestLeasesLong = short_and_long(LeaseMachine)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from unittest import TestCase

    from hypothesis.stateful import RuleBasedStateMachine

_CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
SHORT = settings(max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=_CHECKS)
LONG = settings(max_examples=2000, stateful_step_count=80, deadline=None, suppress_health_check=_CHECKS)


def short_and_long(machine: type[RuleBasedStateMachine]) -> tuple[type[TestCase], type[TestCase]]:
    """The two test cases of a machine."""
    short: Any = type(f"{machine.__name__}Short", (machine,), {}).TestCase  # type: ignore[attr-defined]
    long: Any = type(f"{machine.__name__}Long", (machine,), {}).TestCase  # type: ignore[attr-defined]
    short.settings, long.settings = SHORT, LONG
    return short, pytest.mark.long(long)
