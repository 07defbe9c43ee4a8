"""Optimizers of workers that train copies of their own and meet at times: elastic and plain averages, summed gradients.

A custom getter makes the worker's copy of each trainable variable, and what is shared, on the parameter server; the
optimizer applies gradients to the copy, and every some steps moves both. Each has a hook that starts the copies from
what is shared. Follows TensorFlow 1.15's contrib/opt/python/training (elastic_average_optimizer.py,
model_average_optimizer.py, agn_optimizer.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.opt.wrappers import _by_name
from tenfold.graph.collections import GraphKeys
from tenfold.graph.default_scopes import colocate_with, control_dependencies, device, name_scope
from tenfold.graph.default_stack import get_default_graph
from tenfold.ops import array, control_flow, math, state_ops
from tenfold.ops.accumulators import ConditionalAccumulator
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.nn_losses import l2_loss
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.variable_scope import get_variable
from tenfold.ops.variables import (
    Variable,
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    trainable_variables,
)
from tenfold.train.optimizer import Optimizer
from tenfold.train.saver import Saver
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LOCAL_VARIABLE_NAME = "local_center_variable"
GLOBAL_VARIABLE_NAME = "global_center_variable"
GRAD_VARIABLE_NAME = "grad_variable"


class _Copies:
    """Base of the getters: a trainable variable is a local one of the worker; `_beside` makes what belongs to it."""

    def __init__(self, worker_device: Any) -> None:
        self._worker_device = worker_device

    def __call__(self, getter: Any, name: str, trainable: Any, collections: Any, *args: Any, **kwargs: Any) -> Any:
        if not trainable:
            given = {**kwargs, "trainable": trainable, "collections": collections}
            if GraphKeys.LOCAL_VARIABLES not in (collections or ()):
                return getter(name, *args, **given)
            with device(self._worker_device):
                return getter(name, *args, **given)
        keys = [GraphKeys.LOCAL_VARIABLES]
        with device(self._worker_device):
            copy = getter(name, *args, trainable=True, collections=keys, **kwargs)
        if kwargs.get("reuse") is not True:
            self._beside(copy, getter, name, args, kwargs)
        return copy

    def _beside(self, copy: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        raise NotImplementedError

    def _shared(self, getter: Any, name: str, args: Any, kwargs: Any) -> Any:
        """The variable that all workers share, where the device scopes of the model put it."""
        return getter(
            f"{GLOBAL_VARIABLE_NAME}/{name}", *args, trainable=False, collections=[GraphKeys.GLOBAL_VARIABLES], **kwargs
        )

    def _own(self, getter: Any, name: str, args: Any, kwargs: Any) -> Any:
        """One more variable of the worker."""
        with device(self._worker_device):
            return getter(name, *args, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES], **kwargs)


def _parts(variable: Any) -> list[Any]:
    return list(variable) if hasattr(variable, "as_tensor") else [variable]


class ElasticAverageCustomGetter(_Copies):
    """Getter for ElasticAverageOptimizer: the copy, the shared center, and the worker's copy of that."""

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self._local_map: dict[Any, Any] = {}
        self._global_map: dict[Any, Any] = {}

    def _beside(self, copy: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        shared = self._shared(getter, name, args, kwargs)
        center = self._own(getter, f"{LOCAL_VARIABLE_NAME}/{name}", args, kwargs)
        for part, shared_part, center_part in zip(_parts(copy), _parts(shared), _parts(center), strict=True):
            self._local_map[part], self._global_map[part] = center_part, shared_part


class ModelAverageCustomGetter(_Copies):
    """Getter for ModelAverageOptimizer: the copy, and the shared average, which starts from the copy's value."""

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self._local_2_global: dict[Any, Any] = {}

    def _beside(self, copy: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        self._local_2_global[copy] = Variable(
            name=f"{GLOBAL_VARIABLE_NAME}/{name}",
            initial_value=copy.initialized_value(),
            trainable=False,
            collections=[GraphKeys.GLOBAL_VARIABLES],
        )


class AGNCustomGetter(_Copies):
    """Getter for AGNOptimizer: the copy, the shared variable, and the sum of the worker's gradients."""

    def __init__(self, worker_device: Any) -> None:
        super().__init__(worker_device)
        self._global_map: dict[Any, Any] = {}
        self._grad_map: dict[Any, Any] = {}

    def _beside(self, copy: Any, getter: Any, name: str, args: Any, kwargs: Any) -> None:
        shared = self._shared(getter, name, args, kwargs)
        total = self._own(getter, f"{GRAD_VARIABLE_NAME}/{name}", args, kwargs)
        for part, shared_part, total_part in zip(_parts(copy), _parts(shared), _parts(total), strict=True):
            self._global_map[part], self._grad_map[part] = shared_part, total_part


class _Periodic(Optimizer):
    """Base of the optimizers: counts the worker's steps, and runs something every `period` of them."""

    def __init__(self, opt: Any, period: int, use_locking: bool, name: str) -> None:
        super().__init__(use_locking, name)
        self._opt = opt
        self._period = period
        self._local_step = get_variable(
            "local_step", initializer=0, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES]
        )
        self._opt._prepare()

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Of the optimizer inside."""
        return self._opt.compute_gradients(*args, **kwargs)

    def _every_period(self, after: Sequence[Any], meet: Callable[[], Any]) -> Any:
        with control_dependencies(after):
            counted = state_ops.assign_add(self._local_step, 1, name="local_step_update")
        with control_dependencies([counted]):
            due = math.equal(math.mod(self._local_step, self._period), 0)
            return cond(due, meet, control_flow.no_op)

    def _applied_locally(self, grads_and_vars: Any) -> Any:
        """The gradients applied to the copies; variables that the optimizer makes for that are local, too."""
        before = {each.op.name for each in global_variables()}
        applied = self._opt.apply_gradients(grads_and_vars)
        graph = get_default_graph()
        held = graph.get_collection_ref(GraphKeys.GLOBAL_VARIABLES)
        for each in [each for each in held if each.op.name not in before]:
            graph.add_to_collection(GraphKeys.LOCAL_VARIABLES, each)
            held[:] = [other for other in held if other is not each]
        return applied


def _counted(global_step: Any) -> list[Any]:
    if global_step is None:
        return []
    with colocate_with(global_step):
        return [state_ops.assign_add(global_step, 1)]


def _on(var: Any) -> Any:
    return device(var.device)


class ElasticAverageOptimizer(_Periodic):
    """Elastic averaging SGD: every `communication_period` steps a copy and the shared center pull at each other.

    `moving_rate` (default 0.9 / period / workers) is how far; `rho` (default the moving rate over the learning rate)
    holds the copy near the center in between. `synchronous` makes workers wait for each other at the start. The global
    step counts the meetings.
    """

    BETA = 0.9

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        ea_custom_getter: ElasticAverageCustomGetter,
        communication_period: int = 10,
        moving_rate: float | None = None,
        rho: float | None = None,
        use_locking: bool = True,
        synchronous: bool = False,
        name: str = "ElasticAverageOptimizer",
    ) -> None:
        super().__init__(opt, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._local_map = ea_custom_getter._local_map
        self._global_map = ea_custom_getter._global_map
        self._synchronous = synchronous
        rate = self.BETA / communication_period / num_worker if moving_rate is None else moving_rate
        self._moving_rate = rate
        self._rho = rate / opt._learning_rate if rho is None else rho

    def compute_gradients(self, loss: Any, var_list: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Of the loss plus `rho` times half the squared distance of the copies from the center."""
        var_list = var_list or trainable_variables()
        distance = [math.subtract(var, self._local_map[var]) for var in var_list]
        penalty = self._rho * math.add_n([l2_loss(each) for each in distance])
        return self._opt.compute_gradients(loss + penalty, var_list, *args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients to the copies, and every period moves copies and center."""
        pairs = list(grads_and_vars)
        applied = self._applied_locally(pairs)

        def meet() -> Any:
            copies = [var for gradient, var in pairs if gradient is not None]
            centers = [self._local_map[var] for var in copies]
            shared = [self._global_map[var] for var in copies]
            fetched = [center.assign(var) for center, var in zip(centers, shared, strict=True)]
            updates = []
            with control_dependencies(fetched):
                differences = []
                for var, center in zip(copies, centers, strict=True):
                    with _on(var):
                        differences.append(math.subtract(var, center))
                for var, difference in zip(copies, differences, strict=True):
                    with _on(var):
                        updates.append(state_ops.assign_sub(var, math.multiply(self._moving_rate, difference)))
                for var, difference in zip(shared, differences, strict=True):
                    with _on(var):
                        updates.append(state_ops.assign_add(var, math.multiply(self._moving_rate, difference)))
                updates += _counted(global_step)
            return control_flow.group(*updates)

        return self._every_period([applied], meet)

    def get_init_op(self, task_index: int) -> Any:
        """Sets the copies to the shared values; with `synchronous` it then waits for the other workers."""
        copies = trainable_variables()
        shared = [self._global_map[var] for var in copies]
        centers = [self._local_map[var] for var in copies]
        if not copies:
            raise ValueError(
                "The lists of local_variables, global_center_variables, local_center_variables should not be empty  "
            )
        sets = [
            state_ops.assign(each, value)
            for var, center, value in zip(copies, centers, shared, strict=True)
            for each in (var, center)
        ]
        started = control_flow.group(*sets)
        return self._met([started], task_index) if self._synchronous else started

    def _met(self, after: Sequence[Any], task_index: int) -> Any:
        """Done once each worker has got here: each puts a token into the queues of all others."""
        queues = [
            FIFOQueue(self._num_worker, [dtypes.bool_], shapes=[[]], shared_name=f"variable_init_sync_queue{place}")
            for place in range(self._num_worker)
        ]
        token = array.constant(False)
        with control_dependencies(after):
            sent = [queue.enqueue(token) for place, queue in enumerate(queues) if place != task_index]
        return control_flow.group(*sent, queues[task_index].dequeue_many(len(queues) - 1))

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """The hook that runs `get_init_op` when a session was made."""
        return _StartHook(lambda: self.get_init_op(task_index), is_chief)

    def swapping_saver(self, var_list: Any = None, name: str = "swapping_saver", **kwargs: Any) -> Saver:
        """A Saver that saves the shared values under the names of the copies. Raises RuntimeError without copies."""
        if not self._global_map:
            raise RuntimeError(
                "global_center_variable is empty, please make sure this is called after model created and "
                "ElasticAverageCustomGetter is used when declaring you model"
            )
        by_name = {var.op.name: shared for var, shared in self._global_map.items()}

        def other(var: Any) -> Any:
            return [other(part) for part in var] if isinstance(var, list) else by_name.get(var.op.name, var)

        named = _by_name(trainable_variables() if var_list is None else var_list)
        return Saver({key: other(var) for key, var in named.items()}, name=name, **kwargs)


class ModelAverageOptimizer(_Periodic):
    """Every `interval_steps` steps each worker's copies become the average of all workers' copies.

    Workers wait for each other there; the chief puts the average together. The global step counts the meetings.
    """

    def __init__(
        self,
        opt: Any,
        num_worker: int,
        is_chief: bool,
        ma_custom_getter: ModelAverageCustomGetter,
        interval_steps: int = 100,
        use_locking: bool = True,
        name: str = "ModelAverageOptimizer",
    ) -> None:
        super().__init__(opt, interval_steps, use_locking, name)
        self._num_worker = num_worker
        self._is_chief = is_chief
        self._local_2_global = ma_custom_getter._local_2_global
        self._chief_init_op: Any = None

    def _from_shared(self, variables: Sequence[Any]) -> Any:
        if not variables:
            raise ValueError("The list of local_variables should not be empty")
        sets = []
        for var in variables:
            with _on(var):
                sets.append(state_ops.assign(var, self._local_2_global[var].read_value()))
        return control_flow.group(*sets)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients to the copies, and every interval averages. Raises ValueError without a global step."""
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required")
        applied = self._opt.apply_gradients(pairs)
        accumulators: list[tuple[Any, str]] = []

        def meet() -> Any:
            copies = [var for gradient, var in pairs if gradient is not None]
            shared = [self._local_2_global[var] for var in copies]
            with colocate_with(global_step):
                queue = FIFOQueue(-1, [dtypes.bool_], shapes=[[]], shared_name="sync_queue")
            given, averages = [], []
            with name_scope(None, f"{self._name}/global"):
                for var, average in zip(copies, shared, strict=True):
                    with _on(average):
                        accumulator = ConditionalAccumulator(
                            var.dtype.base_dtype, shape=var.get_shape(), shared_name=f"{average.name}/var_accum"
                        )
                        given.append(accumulator.apply_grad(array.identity(var), local_step=global_step))
                        averages.append(accumulator.take_grad(self._num_worker))
                    accumulators.append((accumulator, average.device))
            if self._is_chief:
                with control_dependencies(given):
                    updates = []
                    for value, average in zip(averages, shared, strict=True):
                        with _on(average):
                            updates.append(state_ops.assign(average, value))
                    with device(global_step.device):
                        updates.append(state_ops.assign_add(global_step, 1))
                with control_dependencies(updates), device(global_step.device):
                    met = queue.enqueue_many(array.fill([self._num_worker - 1], array.constant(False)))
            else:
                with control_dependencies(given), device(global_step.device):
                    met = queue.dequeue()
            with control_dependencies([met]):
                return self._from_shared(copies)

        update = self._every_period([applied], meet)
        starts = []
        for accumulator, where in accumulators:
            with device(where):
                starts.append(accumulator.set_global_step(global_step, name="SetGlobalStep"))
        self._chief_init_op = control_flow.group(*starts)
        return update

    def get_init_op(self) -> Any:
        """Sets the copies to the shared values."""
        return self._from_shared(trainable_variables())

    def make_session_run_hook(self) -> SessionRunHook:
        """The hook that makes the worker's initializers before its session."""
        return _StartHook(self.get_init_op, self._is_chief, runs=False)


class AGNOptimizer(_Periodic):
    """Accumulated gradient normalization: every period the mean of a copy's gradients is applied to what is shared.

    In between, the copy trains by itself; then it takes the shared values. The global step counts the meetings.
    """

    def __init__(
        self,
        optimizer: Any,
        num_worker: int,
        custom_getter: AGNCustomGetter,
        communication_period: int = 10,
        use_locking: bool = True,
        name: str = "AGNOptimizer",
    ) -> None:
        super().__init__(optimizer, communication_period, use_locking, name)
        self._num_worker = num_worker
        self._global_map = custom_getter._global_map
        self._grad_map = custom_getter._grad_map

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the gradients to the copies and sums them, and every period applies their mean to what is shared."""
        pairs = [(gradient, var) for gradient, var in grads_and_vars if gradient is not None]
        copies = [var for _, var in pairs]
        totals, shared = [self._grad_map[var] for var in copies], [self._global_map[var] for var in copies]
        updates = [self._applied_locally(pairs)]
        updates += [state_ops.assign_add(total, gradient) for (gradient, _), total in zip(pairs, totals, strict=True)]

        def meet() -> Any:
            means = [state_ops.assign(total, total / self._period) for total in totals]
            with control_dependencies(means):
                applied = self._opt.apply_gradients(list(zip(totals, shared, strict=True)))
            with control_dependencies([applied]):
                done = _counted(global_step)
                done += [state_ops.assign(var, value.read_value()) for var, value in zip(copies, shared, strict=True)]
                done += [state_ops.assign(total, array.zeros_like(total)) for total in totals]
            return control_flow.group(*done)

        return self._every_period(updates, meet)

    def get_init_op(self, task_index: int) -> Any:
        """Sets the copies to the shared values, and the sums to zero."""
        copies = trainable_variables()
        if not copies:
            raise ValueError(
                "The lists of local_variables, global_center_variables,grad_center_variables should not be empty"
            )
        sets = [state_ops.assign(var, self._global_map[var]) for var in copies]
        totals = [self._grad_map[var] for var in copies]
        return control_flow.group(*sets, *[state_ops.assign(each, array.zeros_like(each)) for each in totals])

    def make_session_run_hook(self, is_chief: bool, task_index: int) -> SessionRunHook:
        """The hook that runs `get_init_op` when a session was made."""
        return _StartHook(lambda: self.get_init_op(task_index), is_chief)


class _StartHook(SessionRunHook):
    """Starts the copies from what is shared, when a session was made; the ops are made before the graph is final."""

    def __init__(self, make: Callable[[], Any], is_chief: bool, *, runs: bool = True) -> None:
        self._make, self._is_chief, self._runs = make, is_chief, runs
        self._variable_init_op: Any = None
        self._local_init_op: Any = None
        self._global_init_op: Any = None

    def begin(self) -> None:
        self._local_init_op = local_variables_initializer()
        self._global_init_op = global_variables_initializer() if self._is_chief else None
        self._variable_init_op = self._make()

    def after_create_session(self, session: Any, coord: Any) -> None:
        if self._runs:
            session.run(self._variable_init_op)
