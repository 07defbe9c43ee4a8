"""`tf.contrib.learn.monitors`: what watched a training before there were hooks.

monitor_base.py has the base classes, and `replace_monitors_with_hooks`, which makes a hook of monitors. Follows
TensorFlow 1.15's `contrib/learn/python/learn/monitors.py`.
"""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from tenfold import logging, summary
from tenfold.contrib.learn.monitor_base import (
    BaseMonitor,
    EveryN,
    RunHookAdapterForMonitors,
    replace_monitors_with_hooks,
)
from tenfold.contrib.learn.validation_monitor import ValidationMonitor
from tenfold.graph import get_collection
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_stack import get_default_graph
from tenfold.session import observing
from tenfold.train.hooks import NanLossDuringTrainingError as _CoreNanError
from tenfold_protos.event_pb2 import SessionLog
from tenfold_protos.summary_pb2 import Summary

__all__ = [
    "BaseMonitor",
    "CaptureVariable",
    "CheckpointSaver",
    "EveryN",
    "GraphDump",
    "LoggingTrainable",
    "NanLoss",
    "NanLossDuringTrainingError",
    "PrintTensor",
    "RunHookAdapterForMonitors",
    "StepCounter",
    "StopAtStep",
    "SummarySaver",
    "ValidationMonitor",
    "get_default_monitors",
    "replace_monitors_with_hooks",
]


class NanLossDuringTrainingError(_CoreNanError):
    """The loss is not a number."""


class StopAtStep(BaseMonitor):
    """Ends training after so many steps, or at a step. Raises ValueError unless just one of the two is given."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        super().__init__()
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step
        #: What was told of it to who reports on the training.
        self._told: int | None = None

    @property
    def run_on_all_workers(self) -> bool:
        return True

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        if self._last_step is None:
            self._last_step = step + (self._num_steps or 0) - 1
        if observing.observer is not None and self._last_step != self._told:
            self._told = self._last_step
            observing.observer.note_stop(self._last_step)
        return []

    def step_end(self, step: int, output: Any) -> bool:
        super().step_end(step, output)
        return self._last_step is not None and step >= self._last_step


class PrintTensor(EveryN):
    """Logs tensors, by their names or as a dictionary from a tag to a name."""

    def __init__(self, tensor_names: Any, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._tensor_names = tensor_names if isinstance(tensor_names, dict) else {name: name for name in tensor_names}

    def every_n_step_begin(self, step: int) -> list[Any]:
        return list(self._tensor_names.values())

    def every_n_step_end(self, step: int, outputs: Any) -> None:
        logging.info("Step %d: %s", step, _listed(self._tensor_names, outputs))


class LoggingTrainable(EveryN):
    """Logs the trainable variables of a scope."""

    def __init__(self, scope: str | None = None, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._scope = scope
        self._names: dict[str, str] = {}

    def every_n_step_begin(self, step: int) -> list[Any]:
        found = get_collection(GraphKeys.TRAINABLE_VARIABLES, scope=self._scope)
        self._names = {variable.name: variable.value().name for variable in found}
        return list(self._names.values())

    def every_n_step_end(self, step: int, outputs: Any) -> None:
        logging.info("Logging Trainable: Step %d: %s", step, _listed(self._names, outputs))


class SummarySaver(EveryN):
    """Writes summaries to event files."""

    def __init__(
        self,
        summary_op: Any,
        save_steps: int = 100,
        output_dir: str | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
    ) -> None:
        super().__init__(every_n_steps=save_steps)
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        if summary_writer is None and output_dir:
            self._summary_writer = summary.FileWriter(output_dir)
        self._scaffold = scaffold

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        if self._summary_writer is None:
            self._summary_writer = summary.FileWriter(estimator.model_dir)

    def every_n_step_begin(self, step: int) -> list[Any]:
        if self._summary_op is None and self._scaffold is not None:
            self._summary_op = self._scaffold.summary_op
        return [] if self._summary_op is None else [self._summary_op]

    def every_n_step_end(self, step: int, outputs: Any) -> None:
        if self._summary_op is not None and self._summary_writer:
            self._summary_writer.add_summary(_output(outputs, self._summary_op), step)

    def end(self, session: Any = None) -> None:
        super().end(session)
        if self._summary_writer:
            self._summary_writer.flush()


class CaptureVariable(EveryN):
    """Keeps the values of a variable: step → value."""

    def __init__(self, var_name: str, every_n: int = 100, first_n: int = 1) -> None:
        super().__init__(every_n, first_n)
        self._var_name = var_name
        #: One value for each step that counts, as long as the monitor lives.
        self._values: dict[int, Any] = {}

    @property
    def values(self) -> dict[int, Any]:
        """Step → value."""
        return self._values

    def every_n_step_begin(self, step: int) -> list[Any]:
        return [self._var_name]

    def every_n_step_end(self, step: int, outputs: Any) -> None:
        self._values[step] = _output(outputs, self._var_name)


class GraphDump(BaseMonitor):
    """Keeps the values of all tensors of the graph, to compare two trainings."""

    IGNORE_OPS = ("Const", "Assign", "Identity", "Placeholder", "RandomUniform", "Cast", "RestoreSlice")

    def __init__(self, ignore_ops: Any = None) -> None:
        super().__init__()
        self._ignore_ops = ignore_ops or GraphDump.IGNORE_OPS
        self._data: dict[int, Any] = {}
        self._tensors: list[Any] = []

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        operations = [op for op in get_default_graph().get_operations() if op.type not in self._ignore_ops]
        self._tensors = [op.outputs[0] for op in operations if op.outputs]

    def step_begin(self, step: int) -> list[Any]:
        super().step_begin(step)
        return self._tensors

    def step_end(self, step: int, output: Any) -> bool:
        super().step_end(step, output)
        self._data[step] = output
        return False

    @property
    def data(self) -> dict[int, Any]:
        """Step → values by name."""
        return self._data

    def compare(self, other_dump: GraphDump, step: int, atol: float = 1e-06) -> tuple[list[Any], dict[Any, Any]]:
        """The names whose values agree, and the others with the difference. Raises ValueError for a missing one."""
        matched, differing = [], {}
        other = other_dump.data.get(step, {})
        for key, value in self.data.get(step, {}).items():
            if not isinstance(key, str):
                continue
            if key not in other:
                raise ValueError(f"{key} missing at step {step}.")
            if np.allclose(value, other[key], atol=atol) if isinstance(value, np.ndarray) else value == other[key]:
                matched.append(key)
            else:
                differing[key] = value - other[key] if isinstance(value, np.ndarray) else (value, other[key])
        return matched, differing


class CheckpointSaver(BaseMonitor):
    """Saves checkpoints. Raises ValueError unless just one of the two periods is given."""

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
    ) -> None:
        super().__init__()
        if save_steps is None and save_secs is None:
            raise ValueError("Either save_steps or save_secs should be provided")
        if save_steps is not None and save_secs is not None:
            raise ValueError("Can not provide both save_steps and save_secs.")
        self._saver = saver
        self._summary_writer = summary.FileWriterCache.get(checkpoint_dir)
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._scaffold = scaffold
        self._save_secs, self._save_steps = save_secs, save_steps
        self._saved: tuple[int | None, float] | None = None
        self._last_begin_step: int | None = None

    def begin(self, max_steps: int | None = None) -> None:
        super().begin(max_steps)
        self._saved = self._last_begin_step = None

    def step_begin(self, step: int) -> list[Any]:
        self._last_begin_step = step
        return super().step_begin(step)

    def post_step(self, step: int, session: Any) -> None:
        if self._saved is None:
            self._save(step, session)
            return
        at, when = self._saved
        by_steps = self._save_steps is not None and step >= (at or 0) + self._save_steps
        if by_steps or (self._save_secs is not None and time.monotonic() >= when + self._save_secs):
            self._save(step, session)

    def end(self, session: Any = None) -> None:
        super().end(session)
        self._save(self._last_begin_step, session)

    def _save(self, step: int | None, session: Any) -> None:
        if self._saved is not None and step == self._saved[0]:
            return
        logging.info("Saving checkpoints for %s into %s.", step, self._save_path)
        self._saved = (step, time.monotonic())
        saver = self._scaffold.saver if self._saver is None else self._saver
        saver.save(session, self._save_path, global_step=step)
        entry = SessionLog(status=SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(entry, step)


class StepCounter(EveryN):
    """Writes steps per second to event files."""

    def __init__(self, every_n_steps: int = 100, output_dir: str | None = None, summary_writer: Any = None) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._reported: tuple[int, float] | None = None
        self._summary_writer = summary_writer
        if summary_writer is None and output_dir:
            self._summary_writer = summary.FileWriterCache.get(output_dir)

    def set_estimator(self, estimator: Any) -> None:
        super().set_estimator(estimator)
        if self._summary_writer is None:
            self._summary_writer = summary.FileWriterCache.get(estimator.model_dir)

    def every_n_step_end(self, step: int, outputs: Any) -> None:
        now = time.monotonic()
        if self._reported is not None and self._summary_writer:
            before, when = self._reported
            rate = (step - before) / max(now - when, 1e-9)
            value = Summary.Value(tag="global_step/sec", simple_value=rate)
            self._summary_writer.add_summary(Summary(value=[value]), step)
        self._reported = (step, now)


class NanLoss(EveryN):
    """Ends training, or fails, if the loss is not a number."""

    def __init__(self, loss_tensor: Any, every_n_steps: int = 100, fail_on_nan_loss: bool = True) -> None:
        super().__init__(every_n_steps=every_n_steps)
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss

    def every_n_step_begin(self, step: int) -> list[Any]:
        return [self._loss_tensor]

    def every_n_step_end(self, step: int, outputs: Any) -> bool:
        if not np.isnan(_output(outputs, self._loss_tensor)):
            return False
        message = "Model diverged with loss = NaN."
        if self._fail_on_nan_loss:
            logging.error(message)
            raise NanLossDuringTrainingError(message)
        logging.warning(message)
        return True


def get_default_monitors(
    loss_op: Any = None,
    summary_op: Any = None,
    save_summary_steps: int = 100,
    output_dir: str | None = None,
    summary_writer: Any = None,
) -> list[Any]:
    """A monitor that logs the loss, and one that writes summaries."""
    found: list[Any] = []
    if loss_op is not None:
        found.append(PrintTensor({"loss": loss_op.name}))
    if summary_op is not None:
        found.append(SummarySaver(summary_op, save_summary_steps, output_dir, summary_writer))
    return found


def _output(outputs: Any, request: Any) -> Any:
    return outputs[request] if request in outputs else outputs[request.name]


def _listed(names: dict[str, str], outputs: Any) -> str:
    return ", ".join(f"{tag} = {outputs[name]}" for tag, name in names.items() if name in outputs)


def __getattr__(name: str) -> Any:
    if name == "ExportMonitor":
        raise AttributeError(
            "tf.contrib.learn.monitors.ExportMonitor is not part of Tenfold: it made session bundles, which nothing "
            "reads any more; use Estimator.export_savedmodel, or an ExportStrategy of an Experiment"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
