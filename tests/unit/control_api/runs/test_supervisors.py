"""What a supervisor gets of the service's environment, and what its reports may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from tenfold_control_api.runs.models import RunTaskReport
from tenfold_control_api.runs.supervisors import LocalSupervisors

if TYPE_CHECKING:
    from pathlib import Path


class NoTokens:
    def for_programs(self, folder: Path) -> None:
        return None


@pytest.mark.parametrize("engines", [True, False])
def test_how_an_engine_is_reached_is_told_to_those_that_use_one(
    engines: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("SLURM_CONF", "RAY_ADDRESS", "KUBECONFIG", "SSH_AUTH_SOCK")
    for name in (*names, "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "there")
    tokens: Any = NoTokens()
    packages: Any = None
    made = LocalSupervisors(
        tmp_path, packages=packages, tokens=tokens, certificates={}, end_with_service=False, on_end=lambda run: None
    )

    found = made._environment(engines=engines)

    assert sorted(name for name in names if name in found) == (sorted(names) if engines else [])
    assert "AWS_SECRET_ACCESS_KEY" not in found


def test_a_tasks_page_is_a_web_address() -> None:
    given = {"job": "worker", "index": 0, "state": "running"}

    assert RunTaskReport(**given, page="http://ray:8265/#/actors/1").page == "http://ray:8265/#/actors/1"
    for wrong in ("javascript:alert(1)", "http://a b", "ray:8265", ""):
        with pytest.raises(ValidationError):
            RunTaskReport(**given, page=wrong)
