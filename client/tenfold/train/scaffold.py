"""`Scaffold`: the ops and the saver that prepare a session, made once and found by collection.

Follows TF 1.15's training/monitored_session.py; used by session_creators.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph import add_to_collection, get_collection, get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, control_flow, resources
from tenfold.ops import variables as variables_module

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.train.incremental_saver import IncrementalSaver


class Scaffold:
    """The ops and the saver that prepare a session; `finalize` fills in those that are None, and finalizes the graph.

    `copy_from_scaffold` supplies those that are not given. Raises TypeError if it is not a Scaffold.
    `incremental_save_restore` (DeepRec's) adds a saver of increments; a `saver` that is given must be made for them, or
    `finalize` raises ValueError.
    """

    def __init__(
        self,
        init_op: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[..., Any] | None = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        local_init_op: Any = None,
        summary_op: Any = None,
        saver: Any = None,
        copy_from_scaffold: Scaffold | None = None,
        incremental_save_restore: bool = False,
    ) -> None:
        if copy_from_scaffold is not None and not isinstance(copy_from_scaffold, Scaffold):
            raise TypeError("copy_from_scaffold is not a Scaffold instance.")

        def either(mine: Any, name: str) -> Any:
            return getattr(copy_from_scaffold, name, None) if mine is None else mine

        self._user_init_fn = either(init_fn, "_user_init_fn")
        self._init_op = either(init_op, "init_op")
        self._init_feed_dict = either(init_feed_dict, "init_feed_dict")
        self._ready_op = either(ready_op, "ready_op")
        self._ready_for_local_init_op = either(ready_for_local_init_op, "ready_for_local_init_op")
        self._local_init_op = either(local_init_op, "local_init_op")
        self._summary_op = either(summary_op, "summary_op")
        self._saver = either(saver, "saver")
        self._incremental_save_restore = incremental_save_restore
        self._incr_saver: IncrementalSaver | None = None

    def finalize(self) -> Scaffold:
        """Creates the missing members in the default graph, and finalizes the graph. A second call does nothing."""
        from tenfold.summary import merge_all
        from tenfold.train.incremental_saver import _get_incremental_saver
        from tenfold.train.saver import get_saver_or_default

        default, keys = self.get_or_default, GraphKeys
        if self._init_op is None:
            self._init_op = default("init_op", keys.INIT_OP, _init_all)
        if self._ready_op is None:
            self._ready_op = default("ready_op", keys.READY_OP, _missing)
        if self._ready_for_local_init_op is None:
            self._ready_for_local_init_op = default(
                "ready_for_local_init_op",
                keys.READY_FOR_LOCAL_INIT_OP,
                lambda: _missing(variables_module.global_variables()),
            )
        if self._local_init_op is None:
            self._local_init_op = default("local_init_op", keys.LOCAL_INIT_OP, self.default_local_init_op)
        if self._summary_op is None:
            self._summary_op = default("summary_op", keys.SUMMARY_OP, merge_all)
        if self._saver is None:
            self._saver = get_saver_or_default(incremental_save_restore=self._incremental_save_restore)
        self._saver.build()
        if self._incremental_save_restore and self._incr_saver is None:
            if not getattr(self._saver, "_incremental", False):
                raise ValueError(
                    "Increments need a saver that was made for them: tf.train.Saver(incremental_save_restore=True)"
                )
            self._incr_saver = _get_incremental_saver(True, self._saver)
        get_default_graph().finalize()
        logging.info("Graph was finalized.")
        return self

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_fn(self) -> Callable[[Any], Any] | None:
        """The user's function, with this scaffold as its first argument."""
        function = self._user_init_fn
        return None if function is None else lambda sess: function(self, sess)

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        feeds: Mapping[Any, Any] | None = self._init_feed_dict
        return feeds

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def local_init_op(self) -> Any:
        return self._local_init_op

    @property
    def summary_op(self) -> Any:
        return self._summary_op

    @property
    def saver(self) -> Any:
        return self._saver

    @staticmethod
    def get_or_default(arg_name: str, collection_key: str, default_constructor: Callable[[], Any]) -> Any:
        """The one item of the collection, or a new one, which is added. Raises RuntimeError if there are several."""
        found = get_collection(collection_key)
        if len(found) > 1:
            raise RuntimeError(
                f'More than one item in the collection "{collection_key}". Please indicate which one to use by passing '
                f"it to the tf.Scaffold constructor as:  tf.Scaffold({arg_name}=item to use)"
            )
        if found:
            return found[0]
        made = default_constructor()
        if made is not None:
            add_to_collection(collection_key, made)
        return made

    @staticmethod
    def default_local_init_op() -> Any:
        """Initialises local variables and lookup tables."""
        tables = get_collection(GraphKeys.TABLE_INITIALIZERS)
        return control_flow.group(variables_module.local_variables_initializer(), *tables)


def _init_all() -> Any:
    made = [variables_module.global_variables_initializer()]
    if resources.shared_resources():
        made.append(resources.initialize_resources(resources.shared_resources()))
    return control_flow.group(*made)


def _missing(variables: Sequence[Any] | None = None) -> Any:
    """The names of the variables and of the shared state that are not there yet."""
    names = variables_module.report_uninitialized_variables(variables)
    if not resources.shared_resources():
        return names
    return array.concat([names, resources.report_uninitialized_resources(resources.shared_resources())], 0)
