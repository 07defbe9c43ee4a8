"""The event files of a run, read by TensorBoard itself: by its package, and by `tenfold tensorboard` over HTTP."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest
from click.testing import CliRunner

from support.task_processes import CLI, PATIENCE
from tenfold.cli.children import Children
from tenfold.cli.main import cli
from tenfold.control import ControlClient

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("tensorboard") is None,
        reason="tensorboard is not installed (pip install -e '.[dev]')",
    ),
    pytest.mark.timeout(240),
]

TRAINER = """
import json, os
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable("w", initializer=tf.ones([4]))
    loss = tf.reduce_sum(tf.square(w), name="loss")
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    tf.summary.scalar("loss_summary", loss)
    tf.summary.histogram("weights", w)
    tf.summary.image("picture", tf.reshape(tf.linspace(0.0, 1.0, 48), [1, 4, 4, 3]))
with tf.train.MonitoredTrainingSession(
    server.target, checkpoint_dir="train", save_summaries_steps=1, hooks=[tf.train.StopAtStepHook(last_step=4)]
) as session:
    while not session.should_stop():
        session.run(train)
"""

#: Reads a folder by TensorBoard's own reader. In a process of its own: what TensorBoard warns of is not ours.
READER = """
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"images": 0, "scalars": 0, "histograms": 0})
events.Reload()
(tag,) = events.Tags()["images"]
picture = events.Images(tag)[0]
print(json.dumps({
    "tags": events.Tags(),
    "loss": [(each.step, each.value) for each in events.Scalars("loss_summary")],
    "weights": [(each.step, each.histogram_value.num) for each in events.Histograms("weights")],
    "picture": [picture.width, picture.height, picture.encoded_image_string[:4].hex()],
    "devices": {node.name: node.device for node in events.Graph().node},
}))
"""


@pytest.fixture(scope="module")
def children() -> Iterator[Children]:
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TENFOLD_") and name != "TENFOLD_CACHE_DIR"]:
            patch.delenv(name)
        with Children() as started:
            yield started


@pytest.fixture(scope="module")
def url(children: Children, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("control")
    children.start("control", [*CLI, "control", "--port", "0", "--database", str(folder / "c.db"), "--allow-runs"])
    return str(children.wait_for_line("control", r"listening on (http://\S+)", PATIENCE)[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("work")


@pytest.fixture(scope="module")
def run(url: str, folder: Path) -> str:
    """A run that has succeeded, and wrote into `folder`/train."""
    (folder / "trainer.py").write_text(TRAINER)
    with ControlClient(url) as client:
        made = client.submit_run(["python", "trainer.py"], jobs={"ps": 1, "worker": 1}, working_dir=str(folder))
        ended = client.wait_for_run(made.name)
        assert ended.state == "SUCCEEDED", ended.reason
    return made.name


def test_its_package_reads_scalars_histograms_images_and_the_graph_with_devices(run: str, folder: Path) -> None:
    program = [sys.executable, "-W", "ignore", "-c", READER, str(folder / "train")]
    found = json.loads(subprocess.run(program, check=True, capture_output=True, timeout=PATIENCE).stdout)

    assert {"loss_summary"} <= set(found["tags"]["scalars"])
    assert [step for step, _ in found["loss"]] == [1, 2, 3, 4]
    assert found["loss"][0][1] > found["loss"][-1][1] > 0
    assert {num for _, num in found["weights"]} == {4.0}
    assert found["picture"] == [4, 4, b"\x89PNG".hex()]
    assert found["devices"]["w"] == "/job:ps/task:0"
    assert found["devices"]["loss"] == "/job:worker"


def test_the_command_starts_it_on_the_folder_of_the_run(run: str, url: str, folder: Path, children: Children) -> None:
    own = ["--port", "0", "--host", "127.0.0.1", "--load_fast=false"]
    children.start("tensorboard", [*CLI, "tensorboard", "--control", url, run, "--", *own])
    served = children.wait_for_line("tensorboard", r"(http://127\.0\.0\.1:\d+)", PATIENCE)[1]

    with httpx.Client(base_url=served, trust_env=False, timeout=PATIENCE) as client:
        logdir = client.get("/data/logdir").json()
    assert logdir == {"logdir": str(folder / "train")}


def test_without_tensorboard_the_command_says_what_to_install(
    run: str, url: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    result = CliRunner().invoke(cli, ["tensorboard", "--control", url, run])

    assert result.exit_code == 1
    assert f"TensorBoard is not installed for {sys.executable}: pip install tensorboard." in result.output
    assert str(folder / "train") in result.output


def test_a_run_that_there_is_not(url: str) -> None:
    result = CliRunner().invoke(cli, ["tensorboard", "--control", url, "none"])

    assert (result.exit_code, "none" in result.output) == (1, True)
