"""`make screenshots`: the pictures of docs/dashboard.md, of real clusters and runs, in docs/images/dashboard-*.png.

Needs what the tests of the dashboard need: Chromium and its driver, and selenium; see support/browser.py.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

import tenfold as tf
from support.browser import Browser, chromium, missing
from tenfold.cli.local import LocalCluster
from tenfold.control import ControlClient

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
LIVE = "document.querySelector('.pulse').innerText === 'live'"

#: A classifier of three clouds of points. Its last argument says at which step worker 1 meets what is not a number.
TRAINER = """
import json, os, sys, time
import numpy as np
import tenfold as tf

config = json.loads(os.environ["TF_CONFIG"])
job, index = config["task"]["type"], config["task"]["index"]
server = tf.train.Server(config["cluster"], job_name=job, task_index=index)
if job == "ps":
    server.join()
last, spoilt = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(index)
centres = np.random.default_rng(7).normal(size=(3, 20))
with tf.device(tf.train.replica_device_setter(cluster=config["cluster"])):
    global_step = tf.train.get_or_create_global_step()
    points = tf.placeholder(tf.float32, [None, 20], name="points")
    labels = tf.placeholder(tf.int32, [None], name="labels")
    hidden = tf.layers.dense(points, 64, activation=tf.nn.relu, name="hidden")
    logits = tf.layers.dense(hidden, 3, name="logits")
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = tf.check_numerics(tf.reduce_mean(entropy), "the loss is not a number", name="loss")
    hits = tf.equal(tf.argmax(logits, 1, output_type=tf.int32), labels)
    accuracy = tf.reduce_mean(tf.cast(hits, tf.float32), name="accuracy")
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=global_step)
    tf.summary.scalar("summaries/loss", loss)
stop, at = tf.train.StopAtStepHook(last_step=last), 0
with tf.train.MonitoredTrainingSession(
    server.target, index == 0, "train", hooks=[stop], save_checkpoint_secs=5, save_summaries_steps=25
) as session:
    while not session.should_stop():
        y = rng.integers(3, size=32)
        x = centres[y] + rng.normal(scale=2.5, size=(32, 20))
        if index == 1 and spoilt and at >= spoilt:
            x[0, 0] = np.nan
        _, value, at, _ = session.run([train, loss, global_step, accuracy], {points: x, labels: y})
        if at % 40 < 2:
            print(f"INFO:step {at} loss {value:.3f}", flush=True)
        time.sleep(0.02)
"""


def fill(cluster: LocalCluster, folder: Path) -> dict[str, str]:
    """Runs and a session for the pictures: what they are for → name."""
    (folder / "trainer.py").write_text(TRAINER)
    with ControlClient(cluster.control_url) as client:

        def submitted(name: str, *arguments: str) -> str:
            (folder / name).mkdir()
            program = ["python", "../trainer.py", *arguments]
            where = str(folder / name)
            return client.submit_run(program, jobs={"ps": 1, "worker": 2}, working_dir=where, submission_id=name).name

        done = submitted("clouds-1", "500", "0")
        client.wait_for_run(done)
        failed = submitted("clouds-2", "5000", "150")
        client.wait_for_run(failed)
        going = submitted("clouds-3", "100000", "0")
        spec = client.wait_for_spec("default", until_complete=True, timeout=60).cluster_spec()
    with tf.Graph().as_default():
        for index, rows in enumerate((40_000, 2_000, 3_000)):
            with tf.device(f"/job:ps/task:{index}"):
                tf.get_variable(f"embedding_{index}", initializer=tf.zeros([rows, 128]))
        with tf.Session("grpc://" + spec.task_address("worker", 0)) as session:
            session.run(tf.global_variables_initializer())
            total = tf.add_n([tf.reduce_sum(each) for each in tf.global_variables()])
            for _ in range(50):
                assert np.isfinite(session.run(total))
    return {"done": done, "failed": failed, "going": going}


def take(browser: Browser, name: str, url: str, ready: str, size: tuple[int, int], dark: bool = False) -> None:
    """One picture once `ready` holds."""
    browser.resize(*size, dark=dark)
    browser.open(url)
    browser.until(f"{LIVE} && {ready}")
    shoot(browser, name)


def shoot(browser: Browser, name: str) -> None:
    """The picture of what the page shows."""
    from PIL import Image

    # two frames later what is there is drawn
    browser.execute_async("requestAnimationFrame(() => requestAnimationFrame(() => done(true)))")
    path = IMAGES / f"dashboard-{name}.png"
    browser.picture(path)
    Image.open(path).convert("RGB").save(path, optimize=True)
    print(f"{path} {path.stat().st_size // 1024} KiB")


def main() -> None:
    if (why := missing()) is not None:
        sys.exit(why)
    with tempfile.TemporaryDirectory() as temporary, LocalCluster(ps=3, workers=2) as cluster:
        folder = Path(temporary)
        runs = fill(cluster, folder)
        url = cluster.control_url + "/#/"
        with chromium(folder / "chromium") as browser:
            curves = "document.querySelectorAll('.plot').length > 5"
            moving = "Number(document.querySelector('[data-plot=loss]').dataset.points) > 8"
            sparks = "document.querySelectorAll('.spark').length === 3"
            going = f"{url}runs/{runs['going']}"
            take(browser, "run", going, f"{curves} && {moving}", (1280, 1060))
            take(browser, "overview", url, sparks, (1280, 620))
            take(browser, "overview-dark", url, sparks, (1280, 620), dark=True)
            browser.open(going)
            browser.press("Trace", ".head")
            browser.until("document.querySelector('#trace canvas')")
            browser.execute("document.querySelector('#trace').scrollIntoView()")
            browser.resize(1280, 760)
            shoot(browser, "trace")
            failure = "document.querySelector('#failures pre')"
            take(browser, "failure", f"{url}runs/{runs['failed']}", failure, (1280, 712), dark=True)
            uneven = "document.querySelector('#variables .notice')"
            take(browser, "tasks", f"{url}clusters/default", uneven, (1280, 760))
            take(browser, "narrow", going, curves, (400, 860))
        with ControlClient(cluster.control_url) as client:
            client.stop_run(runs["going"])
            client.wait_for_run(runs["going"])


if __name__ == "__main__":
    main()
