"""What programs record unasked as tasks of real runs: flags of absl and argparse, HParams, seed, versions, commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from support.run_programs import Service, tenfold
from support.task_processes import CLI, PATIENCE
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

ABSL = """
from absl import app, flags

FLAGS = flags.FLAGS
flags.DEFINE_float("lr", 0.1, "rate")
flags.DEFINE_string("job_name", "worker", "which job")


def main(argv):
    import tenfold as tf

    tf.set_random_seed(7)
    x = tf.constant(FLAGS.lr, name="x")
    with tf.Session() as session:
        print(session.run(x))


app.run(main)
"""
ARGPARSE = """
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--db_password", default="hunter2")
    args = parser.parse_args()
    import tenfold as tf

    tf.set_random_seed(7)
    with tf.Session() as session:
        print(session.run(tf.constant(args.lr, name="x")))


main()
"""
HPARAMS = """
import sys

import tenfold as tf

params = tf.contrib.training.HParams(lr=0.1, layers=[3, 4]).parse(sys.argv[1].removeprefix("--"))
tf.set_random_seed(7)
with tf.Session() as session:
    print(session.run(tf.constant(params.lr, name="x")))
"""
RECORDED = {
    "absl": (ABSL, {"lr": 0.5}),
    "argparse": (ARGPARSE, {"lr": 0.5, "db_password": "(not recorded)"}),
    "hparams": (HPARAMS, {"lr": 0.5, "layers": "[3, 4]"}),
}


def repository(folder: Path, text: str) -> str:
    """The program in a Git repository of its own, changed since its commit, which is returned."""
    (folder / "trainer.py").write_text("# first\n")
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **identity}
    for words in (["init", "-q", "-b", "wide"], ["add", "trainer.py"], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, env=environment, check=True)
    (folder / "trainer.py").write_text(text)
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "kind", [each if each == "argparse" else pytest.param(each, marks=pytest.mark.thorough) for each in RECORDED]
)
def test_a_submitted_program_records_its_parameters_by_itself(
    service: Service, api: httpx.Client, tmp_path: Path, kind: str
) -> None:
    text, parameters = RECORDED[kind]
    work = tmp_path / "work"
    work.mkdir()
    commit = repository(work, text)
    body = {"entrypoint": ["python", "trainer.py", "--lr=0.5"], "working_dir": str(work), "jobs": {"worker": 1}}

    name = api.post("/v1/runs", json={**body, "tags": ["first"], "parameters": {"given": 1}}).json()["name"]
    run: dict[str, Any] = api.get(f"/v1/runs/{name}", params={"ended": "true", "wait": "60s"}).json()

    assert (run["state"], run["tags"]) == ("SUCCEEDED", ["first"]), run
    assert run["parameters"] == {**parameters, "given": 1}
    assert run["seed"] == 7
    assert set(run["versions"]) == {"python", "tenfold", "numpy"}
    source = run["source"]
    assert (source["commit"], source["branch"], source["dirty"]) == (commit, "wide", True)
    diff = api.get(f"/v1/runs/{name}/diff").text
    assert "-# first" in diff
    assert len(diff.encode()) == source["diff_bytes"]
    kept = json.loads((service.runs / name / "experiment.json").read_text())
    assert kept["given"] == {"tags": ["first"], "parameters": {"given": 1}}
    assert kept["recorded"]["parameters"] == parameters


@pytest.mark.thorough
def test_a_run_by_hand_is_called_what_its_command_line_says_and_edited_later(
    service: Service, api: httpx.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "trainer.py").write_text(ARGPARSE)
    options = ["--workers=1", "--ps=0", "--name=wide", "--tag=a", "--tag=b", "--notes=slow", "--param=extra=2"]
    command = [sys.executable, *CLI, "run", *options, f"--control={service.url}", "trainer.py", "--lr=0.5"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, check=False)
    (run,) = api.get("/v1/runs").json()["runs"]
    edited = tenfold("edit", f"--control={service.url}", run["name"], "--untag=a", "--tag=c", "--param=lr=0.7")
    shown = tenfold("runs", f"--control={service.url}", run["name"])
    listed = tenfold("runs", f"--control={service.url}", "--filter=tag=c and lr>0.6", "--sort=lr")
    others = tenfold("runs", f"--control={service.url}", "--filter", "lr<0.6")
    malformed = tenfold("runs", f"--control={service.url}", "--filter", "lr<0.6 tag=c")
    with ControlClient(service.url) as client:
        again = client.run(run["name"])

    assert done.returncode == 0, done.stderr
    assert (run["display_name"], run["tags"], run["notes"]) == ("wide", ["a", "b"], "slow")
    assert run["parameters"] == {"lr": 0.5, "db_password": "(not recorded)", "extra": 2}
    assert edited.exit_code == 0, edited.output
    assert (again.tags, again.parameters["lr"]) == (("b", "c"), 0.7)
    assert "tags      b, c" in shown.output
    assert "lr=0.7" in shown.output
    assert run["name"] in listed.output
    assert "  0.7  " in listed.output
    assert run["name"] not in others.output
    assert malformed.output.splitlines()[-3:] == [
        *("  lr<0.6 tag=c", "         ^", "What to do: docs/how-to/by-symptom.md#invalid-filter")
    ]
    kept = json.loads((tmp_path / "state" / "tenfold" / "runs" / run["name"] / "experiment.json").read_text())
    assert (kept["given"]["display_name"], kept["recorded"]["parameters"]["lr"]) == ("wide", 0.5)


@pytest.mark.thorough
def test_a_program_without_a_launcher_records_what_argparse_parses(
    service: Service, api: httpx.Client, tmp_path: Path
) -> None:
    program = ARGPARSE.replace("import argparse", "import argparse\nimport tenfold")
    (tmp_path / "trainer.py").write_text(program)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TENFOLD_")}

    done = subprocess.run(
        [sys.executable, "trainer.py", "--lr=0.5"],
        cwd=tmp_path,
        env={**environment, "TENFOLD_CONTROL": service.url},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    (run,) = api.get("/v1/runs").json()["runs"]

    assert done.returncode == 0, done.stderr
    assert run["parameters"] == {"lr": 0.5, "db_password": "(not recorded)"}
    assert run["seed"] == 7
