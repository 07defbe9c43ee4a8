"""Creates the session inside a monitored session, the first time and after a task was lost. Follows TF 1.15.

The chief restores or initialises; workers wait until it has. session_manager.py does both.
"""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

from tenfold.graph import get_default_graph
from tenfold.train.lookups_ahead import look_up_ahead
from tenfold.train.scaffold import Scaffold
from tenfold.train.session_manager import SessionManager

if TYPE_CHECKING:
    from tenfold.session.session import Session
    from tenfold.train.incremental_saver import IncrementalSaver
    from tenfold_protos.config_pb2 import ConfigProto


class SessionCreator(abc.ABC):
    """A factory of sessions."""

    @abc.abstractmethod
    def create_session(self) -> Session:
        """A session that is ready for use. Blocks."""


class _ByManager(SessionCreator):
    def __init__(self, scaffold: Scaffold | None, master: str, config: ConfigProto | None) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master, self._config = master, config
        self._manager: SessionManager | None = None

    def _get_session_manager(self) -> SessionManager:
        """Made once, after the scaffold is complete."""
        if self._manager is None:
            look_up_ahead(get_default_graph(), self._config)
            self._scaffold.finalize()
            self._manager = SessionManager(
                local_init_op=self._scaffold.local_init_op,
                ready_op=self._scaffold.ready_op,
                ready_for_local_init_op=self._scaffold.ready_for_local_init_op,
                graph=get_default_graph(),
            )
        return self._manager

    @property
    def _incr_saver(self) -> IncrementalSaver | None:
        """The scaffold's, which classes that stand in for one need not have."""
        return getattr(self._scaffold, "_incr_saver", None)


class ChiefSessionCreator(_ByManager):
    """Restores the newest checkpoint of `checkpoint_dir`, or that file; initialises where there is none."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._checkpoint_dir, self._checkpoint_filename_with_path = checkpoint_dir, checkpoint_filename_with_path

    def create_session(self) -> Session:
        manager, scaffold = self._get_session_manager(), self._scaffold
        return manager.prepare_session(
            self._master,
            saver=scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=scaffold.init_op,
            init_feed_dict=scaffold.init_feed_dict,
            init_fn=scaffold.init_fn,
            incr_saver=self._incr_saver,
        )


class WorkerSessionCreator(_ByManager):
    """Waits, `max_wait_secs` at most, until the chief has made the model ready."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: ConfigProto | None = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        super().__init__(scaffold, master, config)
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Session:
        manager = self._get_session_manager()
        return manager.wait_for_session(
            self._master,
            config=self._config,
            max_wait_secs=self._max_wait_secs,
            incr_saver=self._incr_saver,
        )
