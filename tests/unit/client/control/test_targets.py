"""What a tenfold:// target says."""

from __future__ import annotations

import pytest

from tenfold.control.targets import ControlTarget
from tenfold_core import errors


@pytest.mark.parametrize(
    ("target", "parsed"),
    [
        ("tenfold://h:80/default", ControlTarget("http://h:80", "default", None, None)),
        ("tenfold://[::1]:80/a%2Eb/", ControlTarget("http://[::1]:80", "a.b", None, None)),
        ("tenfold://h:80/default/worker/12", ControlTarget("http://h:80", "default", "worker", 12)),
        ("tenfold:///default/ps/0", ControlTarget("http://localhost:8080", "default", "ps", 0)),
    ],
)
def test_the_forms(target: str, parsed: ControlTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TENFOLD_CONTROL", raising=False)

    assert ControlTarget.parse(target) == parsed


def test_the_environment_names_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_CONTROL", "https://control.example")

    assert ControlTarget.parse("tenfold:///c").url == "https://control.example"


@pytest.mark.parametrize(
    "target",
    [
        *("tenfold://", "tenfold://h:80", "tenfold://h/default", "tenfold://h:80/default/worker"),
        *("tenfold://h:80/default/worker/x", "tenfold://h:80/a b", "tenfold://h:80/default/worker/1/2"),
    ],
)
def test_another_form_is_refused(target: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match='it is "tenfold://host:port/cluster" or'):
        ControlTarget.parse(target)
