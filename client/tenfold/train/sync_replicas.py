"""`SyncReplicasOptimizer`: gradients of several workers become one update, and workers wait for it.

Each variable has an accumulator on its own task. Workers add gradients there and then wait for a token; a queue runner
on the chief takes the mean of `replicas_to_aggregate` of them, applies it, and gives out a token for each worker, which
carries the new global step. The accumulator drops gradients of an older step, and those of an earlier generation of the
chief (chief_generation.py). Follows TF 1.15's training/sync_replicas_optimizer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import IndexedSlices, control_dependencies, device, name_scope
from tenfold.graph.collections import GraphKeys
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, control_flow, math, state_ops
from tenfold.ops import variables as variables_module
from tenfold.ops.accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.variables import Variable
from tenfold.train.chief_generation import Generation
from tenfold.train.optimizer import Optimizer
from tenfold.train.queue_runner import QueueRunner
from tenfold.train.session_manager import _ready
from tenfold.train.session_run_hook import SessionRunHook
from tenfold_core import dtypes

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable

    from tenfold.session.session import BaseSession
    from tenfold.train.coordinator import Coordinator


class SyncReplicasOptimizer(Optimizer):
    """Wraps `opt`. Every worker builds the same graph and calls `apply_gradients` with the shared `global_step`.

    `total_num_replicas` beyond `replicas_to_aggregate` are backups: the gradients that come last are dropped. Sessions
    need the hook of `make_session_run_hook`. `variable_averages` (an ExponentialMovingAverage) is applied to
    `variables_to_average` after each update.
    """

    def __init__(
        self,
        opt: Optimizer,
        replicas_to_aggregate: int,
        total_num_replicas: int | None = None,
        variable_averages: Any = None,
        variables_to_average: Any = None,
        use_locking: bool = False,
        name: str = "sync_replicas",
    ) -> None:
        super().__init__(use_locking, name)
        total = replicas_to_aggregate if total_num_replicas is None else total_num_replicas
        logging.info("SyncReplicasV2: replicas_to_aggregate=%s; total_num_replicas=%s", replicas_to_aggregate, total)
        self._opt = opt
        self._replicas_to_aggregate, self._total_num_replicas = replicas_to_aggregate, total
        self._variable_averages, self._variables_to_average = variable_averages, variables_to_average
        # a token for each worker, also for those whose gradient came too late
        self._tokens_per_step = max(total, replicas_to_aggregate)
        self._gradients_applied = False
        self._global_step: Any = None
        self._sync_token_queue: FIFOQueue | None = None
        self._chief_queue_runner: QueueRunner | None = None
        self._accumulator_list: list[tuple[Any, str]] = []

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(
        self, grads_and_vars: Iterable[tuple[Any, Any]], global_step: Any = None, name: str | None = None
    ) -> Any:
        """An op that contributes this worker's gradients and waits for the update.

        Raises ValueError without variables or without the global step, which identifies late gradients.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable")
        if global_step is None:
            raise ValueError("Global step is required to check staleness")
        self._global_step = global_step
        local_anchor = control_flow.no_op()
        with device(local_anchor.device):
            self._local_step = Variable(
                0,
                trainable=False,
                collections=[GraphKeys.LOCAL_VARIABLES],
                dtype=global_step.dtype.base_dtype,
                name="sync_rep_local_step",
            )
            self._generation = Generation(global_step)
        self.local_step_init_op = state_ops.assign(self._local_step, self._generation.step())
        self.ready_for_local_init_op = variables_module.report_uninitialized_variables(
            variables_module.global_variables()
        )
        with name_scope(None, self._name):
            contributions, means = [], []
            for grad, var in pairs:
                with device(var.device):
                    contribution, mean = self._accumulate(grad, var)
                contributions += [] if contribution is None else [contribution]
                means.append((mean, var))
            with device(global_step.device), name_scope(""):
                update = self._opt.apply_gradients(means, global_step)
            with device(global_step.device), name_scope(""):
                train_op = self._wait_for_token(contributions, update, global_step)
            self.chief_init_op = self._generation.begin(
                self._accumulator_list,
                self._sync_token_queue,
                lambda step: state_ops.assign(self._local_step, step),
                lambda: control_flow.group(self._give_tokens(self._replicas_to_aggregate)),
            )
        self._gradients_applied = True
        return train_op

    def _accumulate(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """(op that adds the gradient, mean of all workers'); (None, None) without a gradient."""
        if grad is None:
            return None, None
        accumulator: ConditionalAccumulator | SparseConditionalAccumulator
        shared_name = f"{var.name}/grad_accum"
        if isinstance(grad, Tensor):
            accumulator = ConditionalAccumulator(grad.dtype, shape=var.get_shape(), shared_name=shared_name)
            added = accumulator.apply_grad(grad, local_step=self._local_step)
            mean = accumulator.take_grad(self._replicas_to_aggregate)
        elif isinstance(grad, IndexedSlices):
            accumulator = SparseConditionalAccumulator(grad.dtype, shape=(), shared_name=shared_name)
            added = accumulator.apply_indexed_slices_grad(grad, local_step=self._local_step)
            mean = accumulator.take_indexed_slices_grad(self._replicas_to_aggregate)
        else:
            raise ValueError(f"Unknown grad type! {type(grad).__name__} for the variable {var.name}")
        self._accumulator_list.append((accumulator, var.device))
        return added, mean

    def _wait_for_token(self, contributions: list[Any], update: Any, global_step: Any) -> Any:
        """The worker's train op; and the chief's queue runner, which updates and gives out tokens."""
        tokens = FIFOQueue(-1, global_step.dtype.base_dtype, shapes=(), name="sync_token_q", shared_name="sync_token_q")
        self._sync_token_queue = tokens
        # a queue runner needs a queue that it can close
        dummy = FIFOQueue(1, dtypes.int32, shapes=(), name="dummy_queue", shared_name="dummy_queue")
        with control_dependencies(contributions):
            token = tokens.dequeue()
        train_op = state_ops.assign(self._local_step, token)
        with control_dependencies([update]):
            given = tokens.enqueue_many((array.fill([self._tokens_per_step], self._generation.step()),))
        if self._variable_averages is not None:
            with control_dependencies([given]), name_scope(""):
                given = self._variable_averages.apply(self._variables_to_average)
        self._chief_queue_runner = _UpdateRunner(dummy, [given])
        return train_op

    def get_chief_queue_runner(self) -> QueueRunner:
        """What the chief runs. Raises ValueError before `apply_gradients`."""
        if self._chief_queue_runner is None or not self._gradients_applied:
            raise ValueError("Should be called after apply_gradients().")
        return self._chief_queue_runner

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped optimizer's."""
        return self._opt.get_slot_names(*args, **kwargs)

    def variables(self) -> Any:
        """The wrapped optimizer's."""
        return self._opt.variables()

    def get_init_tokens_op(self, num_tokens: int = -1) -> Any:
        """An op with which the chief fills the token queue at first (-1: `replicas_to_aggregate` tokens).

        It gives what is missing to `num_tokens` where `chief_init_op` has given tokens, which it does where a chief was
        there before. Raises ValueError before `apply_gradients`, or for too few tokens for the first step to end.
        """
        if not self._gradients_applied or self._sync_token_queue is None:
            raise ValueError("get_init_tokens_op() should be called after apply_gradients().")
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate
        elif num_tokens < needed:
            raise ValueError(f"Too few tokens to finish the first step: {num_tokens} (given) vs {needed} (needed)")
        if num_tokens <= 0:
            return control_flow.no_op(name="no_init_tokens")
        later = self._generation.later()
        if later is None:
            return self._give_tokens(num_tokens)
        given = min(num_tokens, self._replicas_to_aggregate)
        with device(self._global_step.device), name_scope(""):
            missing = num_tokens - given * math.cast(later, dtypes.int32)
        return self._give_tokens(missing)

    def _give_tokens(self, count: Any) -> Any:
        assert self._sync_token_queue is not None
        with device(self._global_step.device), name_scope(""):
            return self._sync_token_queue.enqueue_many((array.fill([count], self._generation.step()),))

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """The hook that a worker's monitored session needs; the chief's also runs the updates."""
        return _SyncReplicasOptimizerHook(self, is_chief, num_tokens)


class _UpdateRunner(QueueRunner):
    """The chief's updates. A coordinator does not join its threads: one that waits for gradients ends with the session.

    After the last step no gradients come any more, so that waiting for the thread would take the whole grace period;
    closing the session cancels its step, which has taken no gradients by then.
    """

    def create_threads(
        self, sess: BaseSession, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        threads = super().create_threads(sess, coord, daemon, start)
        if coord is not None:
            coord.unregister_threads(threads)
        return threads


class _SyncReplicasOptimizerHook(SessionRunHook):
    """Sets the steps, gives out the first tokens and starts the chief's queue runner, for each new session.

    At the end the chief adds a token for each worker, so that one whose token another worker took ends as well.
    """

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer, self._is_chief, self._num_tokens = optimizer, is_chief, num_tokens

    def begin(self) -> None:
        optimizer = self._optimizer
        if not optimizer._gradients_applied:
            raise ValueError("SyncReplicasOptimizer.apply_gradient should be called before using the hook.")
        self._ready_for_local_init_op = optimizer.ready_for_local_init_op
        self._queue_runner: QueueRunner | None = None
        self._init_tokens_op: Any = None
        self._last_tokens_op: Any = None
        self._local_init_op = optimizer.local_step_init_op
        if self._is_chief:
            self._local_init_op = optimizer.chief_init_op
            self._queue_runner = optimizer.get_chief_queue_runner()
            self._init_tokens_op = optimizer.get_init_tokens_op(self._num_tokens)
            self._last_tokens_op = optimizer._give_tokens(optimizer._tokens_per_step)

    def after_create_session(self, session: BaseSession, coord: Coordinator) -> None:
        what = "Model is not ready for SyncReplicasOptimizer local init."
        ready, message = _ready(self._ready_for_local_init_op, session, what)
        if not ready:
            raise RuntimeError(
                "Init operations did not make model ready for SyncReplicasOptimizer local_init. "
                f"Init op: {self._local_init_op.name}, error: {message}"
            )
        session.run(self._local_init_op)
        if self._init_tokens_op is not None:
            session.run(self._init_tokens_op)
        if self._queue_runner is not None:
            self._queue_runner.create_threads(session, coord=coord, daemon=True, start=True)

    def end(self, session: BaseSession) -> None:
        if self._last_tokens_op is not None:
            session.run(self._last_tokens_op)
