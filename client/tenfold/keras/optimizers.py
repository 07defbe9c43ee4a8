"""`tf.keras.optimizers`: SGD and Adam, which models train with; they stand on those of tf.train.

Follows TensorFlow 1.15's keras/optimizer_v2: its names of arguments, its defaults, and how it clips gradients.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.keras.named_objects import by_name
from tenfold.left_out import why
from tenfold.ops import clip, math
from tenfold.ops.variables import Variable
from tenfold.train.adam import AdamOptimizer
from tenfold.train.gradient_descent import GradientDescentOptimizer
from tenfold.train.momentum import MomentumOptimizer

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SGD", "Adam", "Optimizer", "get"]


class Optimizer:
    """Base of optimizers: `_made(rate)` gives that of tf.train.

    `decay` divides the rate by one and as much for each step; `clipnorm` bounds the norm of each gradient, `clipvalue`
    its elements.
    """

    def __init__(self, learning_rate: Any, name: str, **kwargs: Any) -> None:
        known = {"lr", "decay", "clipnorm", "clipvalue"}
        for argument in kwargs:
            if argument not in known:
                raise TypeError(f"Unexpected keyword argument passed to optimizer: {argument}")
        self.learning_rate = kwargs.get("lr", learning_rate)
        self.decay, self.clipnorm, self.clipvalue = (kwargs.get(each) for each in ("decay", "clipnorm", "clipvalue"))
        self.name = name
        self._iterations: Any = None
        self._inner: Any = None

    def _made(self, rate: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} does not say how it trains")

    @property
    def iterations(self) -> Any:
        """How many steps there were, an int64 variable."""
        if self._iterations is None:
            self._iterations = Variable(0, name=f"{self.name}/iter", dtype="int64", trainable=False, collections=[])
        return self._iterations

    def get_updates(self, loss: Any, params: Any) -> list[Any]:
        """The operations of a step that makes `loss` smaller."""
        found = self._optimizer.compute_gradients(loss, list(params))
        return [self.apply_gradients((gradient, each) for gradient, each in found if gradient is not None)]

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Any]], name: str | None = None) -> Any:
        """The operation that applies them and counts a step."""
        pairs = [(self._clipped(gradient), variable) for gradient, variable in grads_and_vars]
        return self._optimizer.apply_gradients(pairs, self.iterations, name)

    def minimize(self, loss: Any, var_list: Any, grad_loss: Any = None, name: str | None = None) -> Any:
        """The operation that makes `loss`, a tensor or a function of none, smaller by the variables."""
        loss = loss() if callable(loss) else loss
        variables = list(var_list() if callable(var_list) else var_list)
        pairs = self._optimizer.compute_gradients(loss, variables, grad_loss=grad_loss)
        return self.apply_gradients(((g, v) for g, v in pairs if g is not None), name)

    @property
    def weights(self) -> list[Any]:
        """The variables of the optimizer itself."""
        return [self.iterations, *self._optimizer.variables()]

    @property
    def _optimizer(self) -> Any:
        if self._inner is None:
            rate = self.learning_rate() if callable(self.learning_rate) else self.learning_rate
            if self.decay:
                rate = rate / (1.0 + self.decay * math.cast(self.iterations, "float32"))
            self._inner = self._made(rate)
        return self._inner

    def _clipped(self, gradient: Any) -> Any:
        if self.clipnorm is not None:
            gradient = clip.clip_by_norm(gradient, self.clipnorm)
        return gradient if self.clipvalue is None else clip.clip_by_value(gradient, -self.clipvalue, self.clipvalue)


class SGD(Optimizer):
    """Gradient descent, with momentum."""

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: float = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name, **kwargs)
        self.momentum, self.nesterov = momentum, nesterov

    def _made(self, rate: Any) -> Any:
        if not self.momentum:
            return GradientDescentOptimizer(rate, name=self.name)
        # Keras multiplies the step by the rate before it gathers it, tf.train afterwards: equal while the rate stays
        return MomentumOptimizer(rate, self.momentum, name=self.name, use_nesterov=self.nesterov)


class Adam(Optimizer):
    """Adam. Raises ValueError for `amsgrad`, which is not here."""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-07,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(learning_rate, name, **kwargs)
        if amsgrad:
            raise ValueError("Adam: amsgrad is not part of Tenfold")
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def _made(self, rate: Any) -> Any:
        return AdamOptimizer(rate, self.beta_1, self.beta_2, self.epsilon or 1e-07, name=self.name)


def get(identifier: Any) -> Any:
    """The optimizer of a name; one as it is. Raises ValueError for an unknown name."""
    known = {"sgd": SGD, "adam": Adam, "SGD": SGD, "Adam": Adam}
    found = by_name("optimizer", identifier, known)
    if not isinstance(found, Optimizer):
        raise ValueError(f"A model trains with an optimizer of tf.keras.optimizers, not with {found!r}")
    return found


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(f"tf.keras.optimizers.{name} is not part of Tenfold: {why('keras.optimizers')}")
