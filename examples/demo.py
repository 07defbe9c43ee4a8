"""`tenfold demo`: a whole cluster on this machine trains the program of digits.py, and shows what it learned.

`make demo` does the same. It starts a control service, a parameter server and two workers as processes, then one client
process per worker. When the clients are done, this process opens a session of its own, finds the trained variables on
the parameter server, and draws a confusion matrix and some predictions. It ends with the accuracy on held-out images,
and with how to watch a training in the dashboard. For how the training itself is written, read digits.py.
"""

import os
import re
import shutil
import sys
import threading
import time
from pathlib import Path

import digits
import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import tenfold as tf
from tenfold.cli.children import ChildFailedError
from tenfold.cli.local import CLIENT_STAGE, LocalCluster
from tenfold.cli.signals import stop_signals

WORKERS, STEPS, REQUIRED, TIMEOUT_S = 2, 2000, 0.95, 90.0
REPORT = re.compile(r"worker (\d+): step (\d+) loss ([\d.]+)")


def next_steps() -> str:
    """What is printed at the end, when the demo's own cluster is gone."""
    # beside the interpreter: `make demo` leaves no environment active in which `tenfold` alone would be found
    command = Path(sys.executable).with_name("tenfold")
    tenfold = "tenfold" if shutil.which("tenfold") == str(command) else _shown(command)
    program = _shown(Path(digits.__file__))
    return f"""
To watch a training run in the dashboard, http://localhost:8080/, start a cluster and keep it running:
  {tenfold} up --control-port 8080
In another terminal, submit the program that was trained here:
  {tenfold} submit --ps 1 --workers 2 --wait --control http://localhost:8080 -- python {program}"""


def _shown(path: Path) -> Path:
    """Relative to the working directory where it lies below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


class Curve:
    """The losses that the clients printed so far. `add_line` runs on reader threads, the rest on the main thread."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._bar = Progress(
            TextColumn("training"),
            BarColumn(),
            TextColumn("step {task.completed:>4.0f}/{task.total:.0f}  loss {task.fields[loss]:.4f}"),
            TimeElapsedColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("training", total=STEPS, loss=float("nan"))
        self._last_printed = 0
        self.losses: list[float] = []

    def __enter__(self) -> "Curve":
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def add_line(self, name: str, line: str) -> None:
        match = REPORT.match(line)
        if match is None:
            return
        step, loss = int(match[2]), float(match[3])
        with self._lock:
            # The loss of one mini-batch is noisy: show the mean of the newest few.
            self.losses.append(loss)
            shown = float(np.mean(self.losses[-4:]))
            self._bar.update(self._task, completed=min(step, STEPS), loss=shown)
            if not self._console.is_terminal and step >= self._last_printed + STEPS // 10:
                self._last_printed = step
                self._console.print(f"step {step:5}/{STEPS}  loss {shown:.4f}")


def named(cluster: LocalCluster) -> str:
    """The cluster as a session's target."""
    return cluster.control_url.replace("http://", "tenfold://") + "/default"


def train(cluster: LocalCluster) -> None:
    """Runs one client per worker to its end. Raises ChildFailedError if any process ends badly or time runs out."""
    clients = [f"client/{index}" for index in range(WORKERS)]
    for index, name in enumerate(clients):
        program = [str(Path(digits.__file__)), "--cluster", named(cluster), "--task-index", str(index)]
        cluster.children.start(name, [*program, "--steps", str(STEPS)], stage=CLIENT_STAGE)

    deadline = time.monotonic() + TIMEOUT_S
    running = ["control", *(f"{job}/{index}" for job, index in cluster.addresses), *clients]
    while not set(clients).isdisjoint(running):
        ended = cluster.children.wait_for_exit(running, timeout=deadline - time.monotonic())
        if ended is None:
            raise ChildFailedError(f"training took more than {TIMEOUT_S:.0f} s; still running: {', '.join(running)}")
        name, code = ended
        if name not in clients or code != 0:
            raise cluster.children.failure(name)
        running.remove(name)


def evaluate(cluster: LocalCluster) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
    """Predicts the held-out images with the variables that the clients left on the parameter server."""
    _, images, _, labels = digits.load()
    model = digits.Model(tf.control.cluster_spec(named(cluster)), task_index=0)
    with tf.Session(named(cluster)) as sess:
        return images, labels, sess.run(model.predictions, feed_dict={model.images: images})


def confusion_table(labels: NDArray[np.int64], predictions: NDArray[np.int64]) -> Table:
    """How often each digit (row) was taken for each digit (column)."""
    counts = np.zeros((digits.CLASSES, digits.CLASSES), dtype=int)
    np.add.at(counts, (labels, predictions), 1)
    table = Table(title="held-out images: digit (rows) and prediction (columns)", title_justify="left")
    table.add_column("", style="bold")
    for digit in range(digits.CLASSES):
        table.add_column(str(digit), justify="right")
    for digit, row in enumerate(counts):
        cells = [f"[green]{n}[/]" if j == digit else f"[red]{n}[/]" if n else "[dim]·[/]" for j, n in enumerate(row)]
        table.add_row(str(digit), *cells)
    return table


def drawn(
    images: NDArray[np.float32], labels: NDArray[np.int64], predictions: NDArray[np.int64], count: int = 6
) -> str:
    """Some images as text, the wrongly predicted ones first, with what they are and what they were taken for."""
    order = np.argsort(predictions == labels, kind="stable")
    chosen = np.concatenate([order[:2], order[len(order) // 2 : len(order) // 2 + count - 2]])
    shades = " .:-=+*#%@"
    lines = []
    for row in range(8):
        pixels = (images[chosen].reshape(-1, 8, 8)[:, row, :] * (len(shades) - 1)).round().astype(int)
        lines.append("   ".join("".join(shades[p] * 2 for p in image) for image in pixels))
    verdicts = [
        f"{predictions[i]}" if predictions[i] == labels[i] else f"read {predictions[i]}, is {labels[i]}" for i in chosen
    ]
    lines.append("   ".join(f"{verdict:^16}" for verdict in verdicts))
    return "\n".join(lines)


def main() -> None:
    console = Console(highlight=False)
    curve = Curve(console)
    console.print(f"Starting a control service, 1 parameter server and {WORKERS} workers on this machine")
    with stop_signals():
        try:
            with LocalCluster(ps=1, workers=WORKERS, echo=curve.add_line) as cluster:
                console.print(f"  {'control service':18} {cluster.control_url}")
                for (job, index), address in cluster.addresses.items():
                    console.print(f"  {f'/job:{job}/task:{index}':18} grpc://{address}")
                console.print(f"  {'dashboard':18} {cluster.control_url}/")
                console.print(f"Training on handwritten digits with {WORKERS} clients, asynchronously")
                with curve:
                    train(cluster)
                # this session is no training, and its control service is gone before the last report
                os.environ["TENFOLD_REPORT"] = "0"
                images, labels, predictions = evaluate(cluster)
        except (ChildFailedError, tf.errors.OpError) as error:
            sys.exit(f"The demo failed: {error}")
        except KeyboardInterrupt:
            sys.exit("Stopped.")

    console.print(f"\nloss fell from {curve.losses[0]:.3f} to {float(np.mean(curve.losses[-4:])):.3f}\n")
    console.print(confusion_table(labels, predictions))
    console.print("\nsome predictions\n")
    print(drawn(images, labels, predictions))
    accuracy = float(np.mean(predictions == labels))
    print(f"\naccuracy {accuracy:.3f}")
    if accuracy < REQUIRED:
        sys.exit(f"The demo failed: the accuracy should be at least {REQUIRED}.")
    print(next_steps())


if __name__ == "__main__":
    main()
