"""The Helm chart of the control service, rendered by Helm's own library, and checked against the published schemas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from support import postgres
from support.task_processes import PATIENCE
from tenfold.cli.children import Children

helm = pytest.importorskip("helm_python", reason="helm-python-sdk is not installed: make engines")

pytestmark = pytest.mark.thorough

CHART = Path(__file__).resolve().parents[2] / "docs" / "helm" / "tenfold-control"
SECRETS = {"tokens": {"secret": "the-tokens"}, "postgresql": {"secret": "the-password"}}


def rendered(**values: Any) -> dict[str, dict[str, Any]]:
    """ "Kind name" → object."""
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render({**SECRETS, **values}, name="control", namespace="default")
    files = [text for name, text in texts.items() if name.endswith(".yaml")]
    found = [each for text in files for each in yaml.safe_load_all(text) if each]
    return {f"{each['kind']} {each['metadata']['name']}": each for each in found}


def container(found: dict[str, Any]) -> Any:
    return found["spec"]["template"]["spec"]["containers"][0]


def environment(found: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container(found)["env"]}


def test_it_is_a_service_and_a_database() -> None:
    assert set(rendered()) == {
        "ServiceAccount control",
        "Service control",
        "Deployment control",
        "Service control-postgresql",
        "StatefulSet control-postgresql",
        "NetworkPolicy control",
        "NetworkPolicy control-postgresql",
    }


@pytest.mark.parametrize("name", ["Deployment control", "StatefulSet control-postgresql"])
def test_no_container_may_do_much_and_each_says_how_it_is(name: str) -> None:
    found = rendered()[name]
    spec, only = found["spec"]["template"]["spec"], container(found)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert only["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"startupProbe", "livenessProbe", "readinessProbe"} <= set(only)
    assert only["resources"]["limits"]["memory"] == "1Gi"
    assert {each["name"] for each in only["volumeMounts"]} <= {
        *(each["name"] for each in spec["volumes"]),
        *(each["metadata"]["name"] for each in found["spec"].get("volumeClaimTemplates", ())),
    }


def test_the_service_is_configured_as_the_command_reads_it() -> None:
    from tenfold.cli.main import cli
    from tenfold_control_api.service_settings import PREFIX, Settings

    found = rendered(jobs="ps=1,worker=2")
    variables = environment(found["Deployment control"])
    assert variables["TENFOLD_DATABASE"] == "postgresql://tenfold@control-postgresql/tenfold"
    assert variables["PGPASSWORD"] == {"secretKeyRef": {"name": "the-password", "key": "password"}}
    assert variables["TENFOLD_TOKEN_FILE"] == "/run/secrets/tenfold/tokens"
    assert variables["TENFOLD_JOBS"] == "ps=1,worker=2"
    assert "control.default.svc" in variables["TENFOLD_CONTROL_ALLOWED_HOSTS"].split(",")
    options = {getattr(each, "envvar", None) for each in cli.commands["control"].params}
    for name in variables:
        if name.startswith(PREFIX):
            assert name.removeprefix(PREFIX).lower() in Settings.__dataclass_fields__, name
        elif name.startswith("TENFOLD_") and name != "TENFOLD_TOKEN_FILE":
            assert name in options, name
    password = environment(found["StatefulSet control-postgresql"])["POSTGRES_PASSWORD_FILE"]
    assert password == "/run/secrets/postgresql/password"


def test_the_parts_find_each_other() -> None:
    found = rendered()
    for service, workload in (
        ("Service control", "Deployment control"),
        ("Service control-postgresql", "StatefulSet control-postgresql"),
        ("NetworkPolicy control", "Deployment control"),
        ("NetworkPolicy control-postgresql", "StatefulSet control-postgresql"),
    ):
        spec = found[service]["spec"]
        selector = spec.get("selector") or spec["podSelector"]["matchLabels"]
        assert selector.items() <= found[workload]["spec"]["template"]["metadata"]["labels"].items()
        assert found[workload]["spec"]["selector"]["matchLabels"] == selector
    (peer,) = found["NetworkPolicy control-postgresql"]["spec"]["ingress"][0]["from"]
    labels = found["Deployment control"]["spec"]["template"]["metadata"]["labels"]
    assert peer["podSelector"]["matchLabels"].items() <= labels.items()


def test_a_database_of_ones_own() -> None:
    found = rendered(postgresql={"enabled": False}, database={"secret": "mine"}, replicas=2)
    url = environment(found["Deployment control"])["TENFOLD_DATABASE"]
    assert url == {"secretKeyRef": {"name": "mine", "key": "url"}}
    assert "StatefulSet control-postgresql" not in found
    assert found["PodDisruptionBudget control"]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tokens": {"secret": ""}}, "tokens.secret: name the Secret that has the file of tokens"),
        ({"postgresql": {"secret": ""}}, "postgresql.secret: name the Secret that has the password"),
        ({"postgresql": {"enabled": False}}, "database.secret: name the Secret that has the database's URL"),
    ],
)
def test_a_secret_that_is_missing_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(helm.HelmError, match=words):
        rendered(**values)


_MORE = {"replicas": 3, "env": [{"name": "A", "value": "b"}], "imagePullSecrets": [{"name": "r"}]}


@pytest.mark.parametrize("values", [{}, _MORE])
def test_objects_are_what_the_published_schemas_say(values: dict[str, Any]) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed: make engines")
    for found in rendered(**values).values():
        schemas.validate(found, schemas.latest_version(), strict=True)


def test_a_service_with_the_charts_environment_is_ready(tmp_path: Path) -> None:
    """A real one, on a PostgreSQL that wants the password."""
    if why := postgres.why_not():
        pytest.skip(why)
    variables = environment(rendered(jobs="ps=1")["Deployment control"])
    with postgres.PostgresServer() as server, Children() as children:
        folder = server.url().partition("?host=")[2]
        server.sql("CREATE ROLE tenfold LOGIN PASSWORD 'of-the-secret'")
        server.sql("CREATE DATABASE tenfold OWNER tenfold")
        Path(folder, "data", "pg_hba.conf").write_text("local tenfold tenfold scram-sha-256\nlocal all all trust\n")
        server.sql("SELECT pg_reload_conf()")
        (tmp_path / "tokens").write_text("0123456789abcdef0123456789abcdef\n")
        given = {name: text for name, text in variables.items() if isinstance(text, str)}
        given |= {
            "TENFOLD_DATABASE": given["TENFOLD_DATABASE"].replace("control-postgresql", "") + f"?host={folder}",
            "TENFOLD_TOKEN_FILE": str(tmp_path / "tokens"),
            "TENFOLD_CONTROL_ADVERTISE": "",
            "TENFOLD_HTTP_HOST": "127.0.0.1",
            "TENFOLD_HTTP_PORT": "0",
            "HOME": str(tmp_path),
        }
        children.start("wrong", ["-m", "tenfold.cli", "control"], env={**given, "PGPASSWORD": "another"})
        assert children.wait_for_exit(["wrong"], PATIENCE) == ("wrong", 1)
        assert "password authentication failed" in "\n".join(children.last_lines("wrong", 20))
        children.start("control", ["-m", "tenfold.cli", "control"], env={**given, "PGPASSWORD": "of-the-secret"})
        url = children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1]
        only = container(rendered()["Deployment control"])
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            assert httpx.get(url + only[probe]["httpGet"]["path"], trust_env=False, timeout=PATIENCE).status_code == 200


def test_helm_finds_no_fault_in_it() -> None:
    assert helm.lint(str(CHART))["errors"] == []
