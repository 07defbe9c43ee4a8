"""The README tells the truth: every snippet in it runs, in the order in which a reader meets them.

The snippets are taken from README.md, and from docs/compose.md, as they stand; only the ports change, so that the test
disturbs no other. The two `make` commands, which would start this test again, are asked for their recipe, and .ci/run
runs them in earnest. The compose snippet is run where TENFOLD_TEST_DOCKER=1 says that there is an engine to spare;
elsewhere its file is read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from support.ports import free_ports
from support.typed_pages import run, terminal, with_ports
from tenfold.launchers.interface import checked_options
from tenfold.launchers.registry import launcher
from tenfold_control_api.service_settings import PREFIX
from tenfold_control_api.service_settings import Settings as ControlSettings
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.env_settings import variables

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMPOSE = (ROOT / "docs/compose.md").read_text(encoding="utf-8")
#: The compose file as YAML gives it: nested maps.
Compose = dict[str, Any]


def snippets(heading: str) -> list[tuple[str, str]]:
    """(language, text) of every fenced block under a heading of the README."""
    sections = re.split(r"^## ", README, flags=re.MULTILINE)
    (section,) = [each for each in sections if each.startswith(heading + "\n")]
    return re.findall(r"^```(\w+)\n(.*?)^```", section, flags=re.MULTILINE | re.DOTALL)


def ports_for(*names: str) -> dict[str, str]:
    """A free port for each port that the README names."""
    return dict(zip(names, map(str, free_ports(len(names))), strict=True))


def test_every_snippet_has_a_test() -> None:
    tested = {
        *("Two commands", "A program", "Your TensorFlow program, unchanged", "Many machines"),
        *("A service that keeps your runs", "REST"),
    }
    found = {heading for heading in re.findall(r"^## (.*)$", README, flags=re.MULTILINE) if snippets(heading)}

    assert found == tested


def test_relative_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)

    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_the_two_commands_have_a_recipe() -> None:
    ((_, script),) = snippets("Two commands")
    commands = [line.split("#")[0].split() for line in script.splitlines()]
    assert commands == [["make", "demo"], ["make", "test"]]

    recipes = [run([*command, "--dry-run"]) for command in commands]

    assert "tenfold demo" in recipes[0]
    assert "pytest" in recipes[1]
    assert all(" ".join(command) in (ROOT / ".ci/run").read_text() for command in commands)


def test_a_program() -> None:
    ((language, program),) = snippets("A program")
    assert language == "python"

    assert run([sys.executable, "-W", "error", "-"], program) == "loss 0.000\n"


def test_a_tensorflow_program_unchanged(tmp_path: Path) -> None:
    ((_, script),) = snippets("Your TensorFlow program, unchanged")
    trainer = (ROOT / "tests/process/guide/trainer.py").read_text()
    assert "import tensorflow as tf" in trainer
    (tmp_path / "trainer.py").write_text(trainer)

    written = run(["bash", "-euc", script.replace("trainer.py", f"trainer.py --log_dir={tmp_path}")], cwd=tmp_path)

    assert all(f"worker/{index}" in written for index in range(2))


def test_many_machines_begin_with_this_one() -> None:
    ((_, text),) = snippets("Many machines")
    here, *engines = text.strip().splitlines()

    assert "worker 0: global step 2" in run(["bash", "-euc", here])
    for line in engines:  # the same program on each, by its real engine: tests/launchers/test_runs.py
        _, _, on, name, *options = shlex.split(line)
        given = dict(options[at + 1].split("=", 1) for at, word in enumerate(options) if word == "-o")
        assert (on, line.partition(" --workers")[2]) == ("--on", here.partition(" --workers")[2])
        assert checked_options(launcher(name), given) == given


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_rest_with_curl(tmp_path: Path) -> None:
    (_, up), _ = snippets("A service that keeps your runs")
    ((_, requests),) = snippets("REST")
    ports = ports_for("8080")

    with terminal(with_ports(f"exec {up}", ports), signal.SIGINT) as cluster:
        # pasted at once, as a reader does, before anything listens
        output = run(["bash", "-euc", with_ports(requests, ports)], cwd=tmp_path)

    assert "worker/1  ready" in output
    jobs = json.loads(output[output.index('{"') :])
    assert [job["state"] for job in jobs["jobs"]] == ["ready", "ready"]
    assert cluster.process.returncode == 130


@pytest.mark.thorough
def test_a_service_that_keeps_runs() -> None:
    (_, up), (_, script) = snippets("A service that keeps your runs")
    ports = ports_for("8080")

    with terminal(with_ports(f"exec {up}", ports), signal.SIGINT):
        # its first line waits for the cluster
        output = run(["bash", "-euc", with_ports(script, ports)])

    assert all(f"worker/{index} worker {index}: global step" in output for index in range(2))
    assert re.search(r"^run-\w+ +SUCCEEDED .* python examples/", output, re.MULTILINE)


class TestCompose:
    @pytest.fixture
    def compose(self) -> Compose:
        return yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))

    def test_the_command_names_a_service_of_the_file(self, compose: Compose) -> None:
        (script,) = re.findall(r"^```sh\n(.*?)^```", COMPOSE, flags=re.MULTILINE | re.DOTALL)
        command = script.split()

        assert command[:3] == ["docker", "compose", "up"]
        assert command[command.index("--exit-code-from") + 1] in compose["services"]

    def test_roles_and_health(self, compose: Compose) -> None:
        services = compose["services"]

        assert set(services) == {"control", "ps", "worker", "client"}
        assert {name: service["deploy"]["replicas"] for name, service in services.items() if "deploy" in service} == {
            "ps": 2,
            "worker": 2,
        }
        assert all("healthcheck" in services[name] for name in ("control", "ps", "worker"))
        assert {each["image"] for each in services.values()} == {services["control"]["image"]}
        assert services["control"]["environment"]["TENFOLD_JOBS"] == "ps=2,worker=2"

    def test_the_dashboard_is_on_loopback_and_answers_known_names_only(self, compose: Compose) -> None:
        control = compose["services"]["control"]
        names = control["environment"]["TENFOLD_CONTROL_ALLOWED_HOSTS"].split(",")

        assert control["ports"] == ["127.0.0.1:8080:8080"]
        # the browser's, and those by which the containers ask
        asked = {urlsplit(each["environment"]["TENFOLD_CONTROL"]).hostname for each in self._askers(compose)}
        assert set(names) == {"localhost", "127.0.0.1", *asked}

    def test_a_token_is_asked_everywhere(self, compose: Compose) -> None:
        for service in compose["services"].values():
            assert "TENFOLD_INSECURE" not in service["environment"]
            folder = service["environment"]["TENFOLD_TOKEN_FILE"].rpartition("/")[0]
            assert any(f"secrets:{folder}" in volume for volume in service["volumes"])
        script = compose["services"]["control"]["command"][0]
        assert "tenfold token new" in script
        assert script.split()[-3:] == ["exec", "tenfold", "control"]

    @staticmethod
    def _askers(compose: Compose) -> list[Compose]:
        return [each for each in compose["services"].values() if "TENFOLD_CONTROL" in each["environment"]]

    def test_what_the_image_is_made_of_reaches_the_build(self) -> None:
        copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
        let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()

        assert [name for line in copied for name in line.split() if f"!{name}" not in let_in] == []

    def test_every_package_is_in_the_image(self) -> None:
        copied = re.findall(r"^COPY (.+) \S+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        packages = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

        assert {each.partition("/")[0] for each in packages} <= {name for line in copied for name in line.split()}

    def test_only_what_exists_is_asked_for(self, compose: Compose) -> None:
        from tenfold.cli.main import cli

        for service in compose["services"].values():
            if service.get("entrypoint", ["sh"])[0] == "python":
                assert (ROOT / service["entrypoint"][1]).exists()
                continue
            # a script ends in the command
            command = cli.commands[service["command"][0].split()[-1]]
            known = {variable for option in command.params for variable in [getattr(option, "envvar", None)]}
            known |= set(variables(AccessSettings, AccessSettings.prefix).values())
            if command.name == "control":
                known |= set(variables(ControlSettings, PREFIX).values())
            assert set(service["environment"]) <= known

    @pytest.mark.skipif(
        os.environ.get("TENFOLD_TEST_DOCKER") != "1", reason="builds an image: TENFOLD_TEST_DOCKER=1 asks for it"
    )
    @pytest.mark.timeout(1200)
    def test_compose_trains(self) -> None:
        (script,) = re.findall(r"^```sh\n(.*?)^```", COMPOSE, flags=re.MULTILINE | re.DOTALL)
        command = script.split()
        if subprocess.run(["docker", "compose", "version"], capture_output=True).returncode != 0:
            command[:2] = ["docker-compose"]
        try:
            output = run(command, timeout=1100)
        finally:
            subprocess.run([*command[: command.index("up")], "down", "--volumes"], cwd=ROOT, check=True, timeout=120)

        assert float(re.findall(r"accuracy (0\.\d+)", output)[-1]) >= 0.95
