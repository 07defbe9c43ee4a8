"""How a model trains: `compile`, `fit`, `evaluate` and `predict`, over arrays, in the session of keras/backend.py.

A step's loss is the mean of the examples' losses and what the layers add. Follows TensorFlow 1.15's
keras/engine/training.py and training_arrays.py.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from tenfold.graph.default_scopes import name_scope
from tenfold.keras import arrays, backend, losses, metrics, optimizers
from tenfold.keras.base_layer import VARIABLES_KEY, Layer, calls_of
from tenfold.keras.history import History
from tenfold.ops import array, math
from tenfold.ops.control_flow import group


@dataclass(slots=True)
class _Compiled:
    """What `compile` was given, and the operations that it made."""

    optimizer: Any
    metrics: list[metrics.Metric]
    #: One for each output.
    targets: list[Any]
    loss: Any
    results: list[Any]
    reset: Any
    #: Made when it is first needed.
    step: Any = None


class Trainer(Layer):
    """What models have besides layers. `inputs` and `outputs` are lists of tensors."""

    inputs: list[Any]
    outputs: list[Any]
    _made: _Compiled | None = None
    _asked: dict[str, Any] | None = None

    def compile(self, optimizer: Any = "sgd", loss: Any = None, metrics: Any = None, **kwargs: Any) -> None:
        """Says how to train: `optimizer`, `loss` and `metrics` may be names. Raises ValueError for what is not here."""
        for argument, value in kwargs.items():
            if value is not None:
                raise ValueError(f"compile: {argument} is not part of Tenfold")
        self.optimizer = optimizers.get(optimizer)
        self._asked, self._made = {"loss": loss, "metrics": list(metrics or [])}, None
        if self.outputs:
            self._compiled()

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: int = 1,
        callbacks: Any = None,
        validation_split: float = 0.0,
        validation_data: Any = None,
        shuffle: bool = True,
        initial_epoch: int = 0,
        **kwargs: Any,
    ) -> History:
        """Trains on arrays for some epochs; `validation_split` of the last examples, or `validation_data`, (x, y), is
        evaluated after each. Raises ValueError for what is not here, such as callbacks and datasets.
        """
        refused = {"callbacks": callbacks, **kwargs}
        for argument, value in refused.items():
            if value is not None:
                raise ValueError(f"fit: {argument} is not part of Tenfold: use hooks and tf.Session")
        made, given = self._ready(x, y)
        held: list[Any] = []
        if validation_data is not None:
            held = self._arrays(*validation_data[:2])
        elif validation_split:
            given, held = arrays.split(given, validation_split)
        size = batch_size or 32
        history = History({"batch_size": size, "epochs": epochs, "samples": len(given[0]), "verbose": verbose})
        if verbose:
            held_text = f", validate on {len(held[0])} samples" if held else ""
            print(f"Train on {len(given[0])} samples{held_text}")
        for epoch in range(initial_epoch, epochs):
            began = time.monotonic()
            logs = self._epoch(made, given, size, shuffle=shuffle, trains=True)
            if held:
                logs |= {f"val_{name}": value for name, value in self._epoch(made, held, size).items()}
            history.add(epoch, logs)
            if verbose:
                shown = "".join(f" - {name}: {value:.4f}" for name, value in logs.items())
                done = f"{len(given[0])}/{len(given[0])}"
                print(f"Epoch {epoch + 1}/{epochs}\n{done} - {time.monotonic() - began:.0f}s{shown}")
        self.history = history
        return history

    def evaluate(self, x: Any = None, y: Any = None, batch_size: int | None = None, verbose: int = 1) -> Any:
        """The loss, or a list of the loss and the metrics, over all examples."""
        made, given = self._ready(x, y)
        found = list(self._epoch(made, given, batch_size or 32).values())
        return found if len(found) > 1 else found[0]

    def predict(self, x: Any, batch_size: int | None = None, verbose: int = 0) -> Any:
        """The outputs for all examples: an array, or a list of some."""
        self._build_on(x)
        session = self._session()
        given = self._arrays(x)
        parts = [session.run(self.outputs, self._feeds(each)) for each in arrays.batches(given, batch_size or 32)]
        joined = [np.concatenate(each) for each in zip(*parts, strict=True)]
        return joined if len(joined) > 1 else joined[0]

    def train_on_batch(self, x: Any, y: Any) -> Any:
        """One step on these examples; the loss, or a list of the loss and the metrics."""
        made, given = self._ready(x, y)
        found = list(self._epoch(made, given, len(given[0]), trains=True).values())
        return found if len(found) > 1 else found[0]

    @property
    def metrics_names(self) -> list[str]:
        """What `evaluate` gives."""
        return ["loss", *(each.name for each in (self._compiled().metrics if self._asked else []))]

    # -- steps -------------------------------------------------------------------------------------------------------

    def _epoch(
        self, made: _Compiled, given: list[Any], size: int, *, shuffle: bool = False, trains: bool = False
    ) -> dict[str, float]:
        """One pass over the examples: the mean loss, and the metrics."""
        session = self._session()
        session.run(made.reset)
        total, results = 0.0, [0.0] * len(made.metrics)
        wanted = [made.loss, *made.results, *([made.step] if trains else [])]
        for batch in arrays.batches(given, size, shuffle):
            feeds = self._feeds(batch)
            if trains:
                feeds[backend.learning_phase()] = True
            found = session.run(wanted, feeds)
            total += float(found[0]) * len(batch[0])
            results = [float(value) for value in found[1 : 1 + len(results)]]
        names = [each.name for each in made.metrics]
        return {"loss": total / max(len(given[0]), 1), **dict(zip(names, results, strict=True))}

    def _ready(self, x: Any, y: Any) -> tuple[_Compiled, list[Any]]:
        """The operations of a step, and the arrays for it. Raises RuntimeError for a model that is not compiled."""
        self._build_on(x)
        made = self._compiled()
        with self.outputs[0].graph.as_default():
            if made.step is None:
                with name_scope("training/"):
                    updates = [made.optimizer.get_updates(made.loss, self.trainable_weights), *self.updates]
                made.step = group(*(each for update in updates for each in np.ravel(update)))
        return made, self._arrays(x, y)

    def _compiled(self) -> _Compiled:
        if self._made is not None:
            return self._made
        if self._asked is None:
            raise RuntimeError("You must compile your model before training/testing. Use `model.compile(…)`.")
        with self.outputs[0].graph.as_default():
            targets = [array.placeholder(each.dtype, each.shape.as_list()) for each in self.outputs]
            asked = self._asked["loss"]
            each_loss = asked if isinstance(asked, (list, tuple)) else [asked] * len(targets)
            with name_scope("loss/"):
                terms = [
                    math.reduce_mean(losses.get(loss)(target, output))
                    for loss, target, output in zip(each_loss, targets, self.outputs, strict=True)
                ]
                loss = math.add_n([*terms, *self.losses])
            found = [metrics.get(each) for each in self._asked["metrics"]]
            results = [each(targets[0], self.outputs[0]) for each in found]
            reset = group(*(each.reset_op for each in found))
        self._made = _Compiled(self.optimizer, found, targets, loss, results, reset)
        return self._made

    def _session(self) -> Any:
        """The session, in which every variable of the model has a value."""
        session = backend.get_session()
        made = self._made
        own = [] if made is None else [weight for each in made.metrics for weight in each.weights]
        steps = [] if made is None or made.step is None else made.optimizer.weights
        others = session.graph.get_collection_ref(VARIABLES_KEY)
        backend.initialize(session, [*self.weights, *others, *own, *steps])
        return session

    # -- arrays ------------------------------------------------------------------------------------------------------

    def _arrays(self, x: Any, y: Any = None) -> list[Any]:
        given = arrays.in_order(x, self.input_names, "input")
        if y is not None and self._made is not None:
            given += arrays.in_order(y, [each.op.name for each in self.outputs], "target")
        if len({len(each) for each in given}) > 1:
            raise ValueError("Input arrays should have as many samples as target arrays")
        return given

    @property
    def input_names(self) -> list[str]:
        """What dictionaries of arrays have as keys."""
        calls = calls_of(self.inputs[0].graph)
        return [calls[id(each)].layer.name if id(each) in calls else each.op.name for each in self.inputs]

    def _feeds(self, batch: list[Any]) -> dict[Any, Any]:
        places = [*self.inputs, *(self._made.targets if self._made is not None else [])]
        return dict(zip(places, batch, strict=False))

    def _build_on(self, x: Any) -> None:
        """Makes the outputs of a model that gets its inputs only now."""
