"""`SessionManager`: makes a session ready to train: restores, initialises, or waits until the chief has done so.

Follows TF 1.15's training/session_manager.py; used by monitored_session.py and supervisor.py. Waits start short and
grow to `recovery_wait_secs`, where TensorFlow always sleeps that long.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging
from tenfold.graph import get_default_graph
from tenfold.session.session import Session
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tenfold.graph.graph import Graph
    from tenfold.session.base_session import BaseSession
    from tenfold.train.incremental_saver import IncrementalSaver
    from tenfold_protos.config_pb2 import ConfigProto, RunOptions

#: Seconds of the first wait; each further one is half as long again.
_FIRST_WAIT_SECS = 0.1


class SessionManager:
    """Creates sessions with the same ops each time. Raises ValueError for a readiness op without a local init op."""

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: RunOptions | None = None,
    ) -> None:
        if ready_for_local_init_op is not None and local_init_op is None:
            raise ValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{ready_for_local_init_op}]"
            )
        self._local_init_op, self._ready_op = local_init_op, ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = get_default_graph() if graph is None else graph
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Session], Any] | None = None,
        incr_saver: IncrementalSaver | None = None,
    ) -> Session:
        """A session whose variables were restored, or else initialised by `init_op` and `init_fn`. Blocks.

        With `incr_saver` (DeepRec's) the increments that follow the newest checkpoint of `checkpoint_dir` are restored,
        too; DataLossError where one of them is missing or damaged. Those who wait for a session with the same one wait
        for the last increment.

        Raises RuntimeError if that leaves the model not ready, ValueError for two sources of a checkpoint.
        """
        sess, restored = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config,
            incr_saver,
        )  # fmt: skip
        with _closed_on_error(sess):
            if not restored:
                if init_op is None and not init_fn and self._local_init_op is None:
                    raise RuntimeError("Model is not initialized and no init_op or init_fn or local_init_op was given")
                if init_op is not None:
                    sess.run(init_op, feed_dict=init_feed_dict)
                if init_fn:
                    init_fn(sess)
            if incr_saver is not None:
                incr_saver.end_recovery(sess)
            name = getattr(init_op, "name", init_op)
            ready, message = self._try_run_local_init_op(sess)
            if not ready:
                raise RuntimeError(
                    f"Init operations did not make model ready for local_init.  Init op: {name}, init fn: {init_fn}, "
                    f"error: {message}"
                )
            ready, message = self._model_ready(sess)
            if not ready:
                raise RuntimeError(
                    f"Init operations did not make model ready.  Init op: {name}, init fn: {init_fn}, "
                    f"local_init_op: {self._local_init_op}, error: {message}"
                )
        return sess

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: ConfigProto | None = None,
        incr_saver: IncrementalSaver | None = None,
    ) -> tuple[Session, bool]:
        """A session, and whether a checkpoint made its model ready; `incr_saver` as in `prepare_session`. Blocks."""
        sess, restored = self._restore_checkpoint(
            master, saver, checkpoint_dir, checkpoint_filename_with_path, wait_for_checkpoint, max_wait_secs, config,
            incr_saver,
        )  # fmt: skip
        with _closed_on_error(sess):
            if restored and incr_saver is not None:
                incr_saver.end_recovery(sess)
            source = checkpoint_dir or checkpoint_filename_with_path
            ready, message = self._try_run_local_init_op(sess)
            if not restored:
                return sess, False
            if not ready:
                logging.info("Restoring model from %s did not make model ready for local init: %s", source, message)
                return sess, False
            ready, message = self._model_ready(sess)
            if not ready:
                logging.info("Restoring model from %s did not make model ready: %s", source, message)
                return sess, False
        logging.info("Restored model from %s", source)
        return sess, True

    def wait_for_session(
        self,
        master: str,
        config: ConfigProto | None = None,
        max_wait_secs: float | None = float("inf"),
        incr_saver: IncrementalSaver | None = None,
    ) -> Session:
        """A session, once the chief has made the model ready, with `incr_saver` (Tenfold's) by all increments, too.

        Blocks. DeadlineExceededError after `max_wait_secs`.
        """
        limit = float("inf") if max_wait_secs is None else max_wait_secs
        for _ in self._waits(limit):
            sess = Session(master, graph=self._graph, config=config)
            message = ready_message = None
            with _closed_on_error(sess):
                ready, message = self._try_run_local_init_op(sess)
                if ready:
                    ready, ready_message = self._model_ready(sess)
                    if ready and incr_saver is not None and not incr_saver.is_recovered(sess):
                        ready, ready_message = False, "The chief has not restored the last increment yet"
                    if ready:
                        return sess
            _close_quietly(sess)
            logging.info(
                "Waiting for model to be ready.  Ready_for_local_init_op:  %s, ready: %s", message, ready_message
            )
        raise errors.DeadlineExceededError(None, None, f"Session was not ready after waiting {limit:g} secs.")

    def _waits(self, limit: float) -> Iterator[None]:
        """One round at once, then another after each wait, as long as a wait still ends before `limit` seconds."""
        deadline = time.monotonic() + limit
        wait = min(_FIRST_WAIT_SECS, self._recovery_wait_secs)
        while True:
            yield
            if time.monotonic() + wait > deadline:
                return
            time.sleep(wait)
            wait = min(1.5 * wait, self._recovery_wait_secs)

    def _restore_checkpoint(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: str | None,
        checkpoint_filename_with_path: str | None,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: ConfigProto | None,
        incr_saver: IncrementalSaver | None = None,
    ) -> tuple[Session, bool]:
        """A session, and whether a checkpoint was restored in it."""
        from tenfold.train.checkpoint_chain import increments_after
        from tenfold.train.checkpoint_management import get_checkpoint_state

        if checkpoint_dir and checkpoint_filename_with_path:
            raise ValueError("Can not provide both checkpoint_dir and checkpoint_filename_with_path.")
        sess = Session(master, graph=self._graph, config=config)
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return sess, False
        with _closed_on_error(sess):
            if checkpoint_filename_with_path:
                if incr_saver is not None:
                    incr_saver.begin_recovery(sess)
                saver.restore(sess, checkpoint_filename_with_path)
                return sess, True
            for _ in self._waits(max_wait_secs if wait_for_checkpoint else -1):
                state = get_checkpoint_state(checkpoint_dir)
                if state is not None and state.model_checkpoint_path:
                    if incr_saver is not None and checkpoint_dir:
                        # a broken chain is refused before anything is restored
                        increments_after(state.model_checkpoint_path, checkpoint_dir)
                        incr_saver.begin_recovery(sess)
                    saver.restore(sess, state.model_checkpoint_path)
                    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
                    if incr_saver is not None and checkpoint_dir:
                        incr_saver.recover_incr_checkpoints(sess, checkpoint_dir)
                    return sess, True
                if wait_for_checkpoint:
                    logging.info("Waiting for checkpoint to be available.")
        return sess, False

    def _model_ready(self, sess: Session) -> tuple[bool, str | None]:
        return _ready(self._ready_op, sess, "Model not ready")

    def _model_ready_for_local_init(self, sess: Session) -> tuple[bool, str | None]:
        return _ready(self._ready_for_local_init_op, sess, "Model not ready for local init")

    def _try_run_local_init_op(self, sess: Session) -> tuple[bool, str | None]:
        if self._local_init_op is None:
            return True, None
        ready, message = self._model_ready_for_local_init(sess)
        if not ready:
            return False, message
        logging.info("Running local_init_op.")
        sess.run(self._local_init_op, options=self._local_init_run_options)
        logging.info("Done running local_init_op.")
        return True, None


@contextlib.contextmanager
def _closed_on_error(sess: Session) -> Iterator[None]:
    """Closes the session if the block raises: the caller never gets it, and cannot close it."""
    try:
        yield
    except BaseException:
        _close_quietly(sess)
        raise


def _close_quietly(sess: Session) -> None:
    with contextlib.suppress(Exception):
        sess.close()


def _ready(op: Any, sess: BaseSession, what: str) -> tuple[bool, str | None]:
    """Whether `op` (the names of what is not initialised, or anything that fails while that is so) says "ready"."""
    if op is None:
        return True, None
    try:
        value = sess.run(op)
    except errors.FailedPreconditionError as error:
        if "uninitialized" not in str(error):
            logging.warning("%s : error [%s]", what, error)
            raise
        return False, str(error)
    if value is None or value.dtype == np.int32 or value.size == 0:
        # the ready ops of very old programs return an int32
        return True, None
    names = ", ".join(name.decode() for name in value)
    return False, f"Variables not initialized: {names}"
