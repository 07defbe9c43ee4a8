"""Every bound can be set from the environment: each field of each class of settings, and docs/cli.md names each."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import Any

import pytest

from tenfold_control_api import service_settings as control
from tenfold_core import env_settings, errors
from tenfold_kernels.fusion import compiler as fusion
from tenfold_link import link_settings as link
from tenfold_services import limits as task
from tenfold_services.http2 import http2_settings as http2
from tenfold_services.master import limits as master
from tenfold_services.tunnel import relay as tunnel

#: Reader of an environment, prefix, names of fields that have another.
CLASSES: dict[type, tuple[Any, str, Any]] = {
    task.Limits: (task.Limits.from_environment, task.Limits.prefix, task.Limits.names),
    master.MasterLimits: (master.MasterLimits.from_environment, master.MasterLimits.prefix, {}),
    http2.Http2Settings: (lambda env: http2.Http2Settings.from_environment(16_384, env), http2.PREFIX, {}),
    link.LinkSettings: (link.LinkSettings.from_environment, link.PREFIX, link.NAMES),
    fusion.FusionOptions: (fusion.FusionOptions.from_environment, fusion.PREFIX, fusion.NAMES),
    tunnel.TunnelSettings: (tunnel.TunnelSettings.from_environment, tunnel.TunnelSettings.prefix, {}),
    control.Settings: (control.Settings.from_environment, control.PREFIX, control.NAMES),
}
FIELDS = [
    (kind, field, variable)
    for kind, (_, prefix, names) in CLASSES.items()
    for field, variable in env_settings.variables(kind, prefix, names).items()
]
#: Fields whose values are words.
WORDS = {
    **{"mode": "off", "shared_memory": "off", "cache_folder": "/tmp/cache"},
    **{"files": "/tmp", "token_file": "t", "tls_cert": "c", "tls_key": "k", "tls_ca": "a"},
    **{"tls": "always", "advertise": "http://h:1"},
    **{
        "database": "d.db",
        "token": "secret",
        "runs_folder": "runs",
        "models_folder": "models",
        "trainings_folder": "trainings",
        "tensorboard_url": "http://tb:6006",
    },
}


def other_value(kind: Any, field: str, default: Any) -> tuple[str, Any]:
    """A text for the variable, and what it means."""
    if field in WORDS:
        text = WORDS[field]
        return text, {"shared_memory": False, "cache_folder": Path(text, "fused")}.get(field, text)
    if field in ("allowed_hosts", "run_environment"):
        return "a, b", ("a", "b")
    if field == "webhooks":
        return "http://a/x, https://b", ("http://a/x", "https://b")
    hint = typing.get_type_hints(kind, localns={"Path": Path})[field]
    value = hint(default + 1) if field != "heartbeat" else 1.0
    return str(value), value


@pytest.mark.parametrize(("kind", "field", "variable"), FIELDS, ids=[variable for *_, variable in FIELDS])
def test_each_field_is_set_by_its_variable(kind: Any, field: str, variable: str) -> None:
    read, *_ = CLASSES[kind]
    default = read({})
    text, value = other_value(kind, field, getattr(default, field))

    changed = read({variable: text})

    assert getattr(changed, field) == value
    assert dataclasses.replace(changed, **{field: getattr(default, field)}) == default
    if field != "cache_folder":
        assert read({variable: ""}) == default


def test_an_empty_cache_folder_is_none() -> None:
    assert fusion.FusionOptions.from_environment({"TENFOLD_CACHE_DIR": ""}).cache_folder is None


def test_no_two_fields_share_a_variable() -> None:
    variables = [variable for *_, variable in FIELDS]

    assert len(set(variables)) == len(variables)


def test_every_variable_is_documented() -> None:
    text = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")

    assert not [variable for *_, variable in FIELDS if f"`{variable}`" not in text]


@pytest.mark.parametrize(
    ("variable", "text", "allowed"),
    [
        ("TENFOLD_TASK_SESSIONS", "0", "a number, 1 or more"),
        ("TENFOLD_TASK_SESSIONS", "many", "a number, 1 or more"),
        ("TENFOLD_TASK_SETUP_SECONDS", "0", "a number above 0"),
        ("TENFOLD_TASK_SETUP_SECONDS", "inf", "a number above 0"),
        ("TENFOLD_TENSOR_BYTES", "-1", "a number of bytes, 0 or more"),
    ],
)
def test_a_wrong_value_names_the_variable(variable: str, text: str, allowed: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"{variable} is '{text}'; it may be {allowed}"):
        task.Limits.from_environment({variable: text})


def test_settings_that_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="must be above 0 and below lease_ttl"):
        control.Settings.from_environment({"TENFOLD_CONTROL_HEARTBEAT": "60"})
    with pytest.raises(ValueError, match="TENFOLD_CONTROL_MAX_TASKS is 'x'"):
        control.Settings.from_environment({"TENFOLD_CONTROL_MAX_TASKS": "x"})
