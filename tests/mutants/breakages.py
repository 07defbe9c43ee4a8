"""Each promise of docs/promises.md, broken on purpose: what is taken out of the code, and the test that turns red.

`python tests/mutants/promises.py` (`make promises`) does it, one after another, in a scratch tree. docs/promises.md has
the same list below each promise; tests/unit/house/test_promises.py keeps the two the same, and every place true.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Breakage:
    """`old` stands once in `path`, and becomes `new`; then `test`, quick and run by `make test`, fails."""

    promise: str
    what: str
    path: str
    old: str
    new: str
    test: str

    @property
    def line(self) -> str:
        """As docs/promises.md has it."""
        return f"- {self.what} (`{self.path}`): `{self.test.replace('::', ':')}`"


_STEP_STATE = "services/tenfold_services/master/step_state.py"
_TEST_STEP_STATE = "tests/unit/services/master/test_step_state.py"
_ATOMIC = "core/tenfold_core/checkpoint/files.py"
_TEST_CHECKPOINT = "tests/unit/core/test_checkpoint.py"
_ACCUMULATORS = "kernels/tenfold_kernels/resources/accumulators.py"
_TEST_ACCUMULATORS = "tests/unit/kernels/resources/test_accumulators.py"
_GATE = "core/tenfold_core/access/gate.py"
_TEST_GATE = "tests/unit/core/access/test_gate.py"
_RENDEZVOUS = "services/tenfold_services/worker/rendezvous.py"
_TEST_RENDEZVOUS = "tests/unit/services/worker/test_rendezvous.py"

BREAKAGES = (
    # P1 No silent hang
    Breakage(
        "P1",
        "the deadline of a step passes, and nothing comes of it",
        _STEP_STATE,
        "return self.interrupt(late(seconds, self.pending))",
        "return []",
        f"{_TEST_STEP_STATE}::test_the_deadline_names_what_is_pending_and_nothing_replaces_it",
    ),
    Breakage(
        "P1",
        "the master waits forever for a part that does not stop",
        _STEP_STATE,
        "return [*(Cancel(other) for other in self.pending), ArmGrace()]",
        "return [*(Cancel(other) for other in self.pending)]",
        f"{_TEST_STEP_STATE}::test_the_first_error_cancels_the_others_and_waits_for_them",
    ),
    Breakage(
        "P1",
        "a step that waits for a lost task's tensor does not end",
        "services/tenfold_services/worker/lost_producers.py",
        "            run.cancel(errors.from_code(error.code, error.message))",
        "            pass",
        "tests/unit/services/worker/test_lost_producers.py::test_a_run_that_waits_ends_at_once",
    ),
    Breakage(
        "P1",
        "receivers of an aborted step continue to wait",
        _RENDEZVOUS,
        "        for done in waiting:\n            done(None, False, error)\n",
        "",
        f"{_TEST_RENDEZVOUS}::test_abort_wakes_everybody_and_stays",
    ),
    # P2 At most once
    Breakage(
        "P2",
        "a step that was asked for before is run again",
        "services/tenfold_services/master/request_ids.py",
        "        if earlier is not None:",
        "        if False:",
        "tests/unit/services/master/test_request_ids.py::test_the_second_request_gets_the_first_answer",
    ),
    Breakage(
        "P2",
        "a RunGraph or RecvTensor that comes twice is taken twice",
        "services/tenfold_services/rpc/worker_service.py",
        "        if request_id in self._known:",
        "        if False:",
        "tests/unit/services/rpc/test_worker_service.py::test_a_number_that_came_before_is_refused",
    ),
    Breakage(
        "P2",
        "the control service works on two requests with one Idempotency-Key at once",
        "control_api/tenfold_control_api/idempotency.py",
        "        while (running := self._running.get(key)) is not None:",
        "        while (running := None) is not None:",
        "tests/control/test_idempotency.py::test_two_at_once_are_one_step",
    ),
    Breakage(
        "P2",
        "the control service does not keep the answer to a key",
        "control_api/tenfold_control_api/idempotency.py",
        "            if row.status is not None:",
        "            if False:",
        "tests/control/test_idempotency.py::test_a_step_is_run_once",
    ),
    # P3 The newest checkpoint loads
    Breakage(
        "P3",
        "a file gets its name before its bytes are on the disk",
        _ATOMIC,
        "            os.fsync(self.out.fileno())\n",
        "",
        f"{_TEST_CHECKPOINT}::test_an_atomic_file_is_on_the_disk_before_its_name_and_its_folder_after_it",
    ),
    Breakage(
        "P3",
        "the folder with the new name is not brought to the disk",
        _ATOMIC,
        "                if sync:",
        "                if False:",
        f"{_TEST_CHECKPOINT}::test_an_atomic_file_is_on_the_disk_before_its_name_and_its_folder_after_it",
    ),
    Breakage(
        "P3",
        "a checkpoint is written under its own name",
        _ATOMIC,
        'self._temporary = f"{path}.tempstate{secrets.randbits(64)}"',
        "self._temporary = path",
        f"{_TEST_CHECKPOINT}::test_atomic_files_leave_nothing_behind",
    ),
    Breakage(
        "P3",
        "checksums of tensors are not compared",
        "core/tenfold_core/checkpoint/bundle_reader.py",
        "        if stored != crc:",
        "        if False:",
        f"{_TEST_CHECKPOINT}::test_a_flipped_bit_of_a_value_is_told_with_file_tensor_and_offset",
    ),
    # P4 A lost task is noticed and named
    Breakage(
        "P4",
        "a lease without renewals never ends",
        "control_api/tenfold_control_api/leases.py",
        "        while self._heap and self._heap[0][0] <= now:",
        "        while False:",
        "tests/unit/control_api/test_leases.py::test_a_lease_expires_after_its_time_to_live",
    ),
    Breakage(
        "P4",
        "an error does not say from which task it comes",
        _STEP_STATE,
        'return errors.from_code(error.code, f"From {task}:\\n{error.message}", error.node_def, error.op)',
        "return error",
        f"{_TEST_STEP_STATE}::test_the_task_is_named_once",
    ),
    Breakage(
        "P4",
        "a task that failed counts as finished",
        "control_api/tenfold_control_api/cluster.py",
        "        if state is TaskState.FINISHED and exit_code:",
        "        if False:",
        "tests/unit/control_api/test_cluster.py::test_a_task_that_failed_has_not_finished",
    ),
    # P5 Synchronous training is exact
    Breakage(
        "P5",
        "a gradient of an earlier step counts",
        _ACCUMULATORS,
        "            if self._closed or local_step < self._global_step:",
        "            if self._closed:",
        f"{_TEST_ACCUMULATORS}::test_stale_gradients_are_dropped_and_a_take_moves_the_step_on",
    ),
    Breakage(
        "P5",
        "gradients from before the chief's restart are accepted before the next generation has begun",
        _ACCUMULATORS,
        "            if self._closed or local_step < self._global_step:",
        "            if local_step < self._global_step:",
        f"{_TEST_ACCUMULATORS}::test_nothing_is_accepted_until_the_life_has_begun",
    ),
    Breakage(
        "P5",
        "a take leaves its gradients to the next one",
        _ACCUMULATORS,
        "        outputs = self._reduced()\n        self._count = 0\n",
        "        outputs = self._reduced()\n",
        f"{_TEST_ACCUMULATORS}::test_stale_gradients_are_dropped_and_a_take_moves_the_step_on",
    ),
    # P6 The control service forgets nothing
    Breakage(
        "P6",
        "a commit returns before it is on the disk",
        "control_api/tenfold_control_api/database.py",
        '"synchronous=FULL"',
        '"synchronous=OFF"',
        "tests/control/test_durability.py::test_a_commit_is_on_the_disk_when_it_returns",
    ),
    Breakage(
        "P6",
        "two services write to one file",
        "control_api/tenfold_control_api/database.py",
        "            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)",
        "            pass",
        "tests/control/test_durability.py::test_a_second_process_on_the_file_is_refused",
    ),
    # P7 Nothing leaks
    Breakage(
        "P7",
        "steps that nobody cleans up are kept",
        _RENDEZVOUS,
        "            if rendezvous.idle or (partial is not None and partial.ended_as_idle(now)):\n",
        "            if partial is not None and partial.ended_as_idle(now):\n",
        f"{_TEST_RENDEZVOUS}::test_steps_that_nobody_cleans_up_are_forgotten_unless_somebody_waits",
    ),
    Breakage(
        "P7",
        "the descriptor of a link's shared memory stays open",
        "link/tenfold_link/memory/arena.py",
        "            os.close(self.take_descriptor())",
        "            self.take_descriptor()",
        "tests/unit/link/memory/test_arena.py::test_descriptors_go_with_the_arena",
    ),
    Breakage(
        "P7",
        "the numbers of steps that are over are kept for ever",
        _RENDEZVOUS,
        "            self._finished.popitem(last=False)",
        "            break",
        f"{_TEST_RENDEZVOUS}::test_the_memory_of_finished_steps_is_bounded",
    ),
    # P8 Nothing runs without permission
    Breakage(
        "P8",
        "any user of the machine is taken for the task's own",
        _GATE,
        "Role.ADMIN if user in (os.geteuid(), 0) else Role.NONE",
        "Role.ADMIN",
        f"{_TEST_GATE}::test_others_and_those_whom_nobody_knows_are_not",
    ),
    Breakage(
        "P8",
        "a token is good for ever",
        _GATE,
        "        if token.expires is not None and token.expires <= self._wall():",
        "        if False:",
        f"{_TEST_GATE}::test_an_expired_token_says_so",
    ),
    Breakage(
        "P8",
        "every role may do everything over gRPC",
        _GATE,
        "        if role >= needed:",
        "        if role:",
        f"{_TEST_GATE}::test_a_refusal_says_what_was_wanted_and_what_would_do",
    ),
    Breakage(
        "P8",
        "the control service does not ask what a caller may do",
        "control_api/tenfold_control_api/middleware.py",
        "            if (error := self._entry.refusal(caller, needs.role, what)) is not None:",
        "            if (error := None) is not None:",
        "tests/control/test_who_is_let_in.py::test_every_route_by",
    ),
    # P9 No update of a replaced incarnation
    Breakage(
        "P9",
        "a process that was replaced gets a session again",
        "services/tenfold_services/worker/sessions.py",
        "        if (master, incarnation) in self._former:",
        "        if False:",
        "tests/process/test_replaced_workers.py::test_no_update_of_a_replaced_worker_is_applied",
    ),
    Breakage(
        "P9",
        "its sessions stay open",
        "services/tenfold_services/worker/sessions.py",
        "        for session in stale:\n            self.remove(session.handle)\n",
        "",
        "tests/cluster/test_worker_service.py::test_a_master_that_restarted_loses_its_old_sessions",
    ),
    Breakage(
        "P9",
        "its replacement does not wait for what it still computes",
        "services/tenfold_services/worker/worker.py",
        "            await self._outlive(computing, session_handle, master_task)\n",
        "",
        "tests/cluster/test_worker_service.py::test_a_replacement_waits_for_what_the_former_life_computes",
    ),
    Breakage(
        "P9",
        "only a life that has a session open is remembered",
        "services/tenfold_services/worker/sessions.py",
        "            self._former[master, before] = None",
        "            pass",
        "tests/unit/services/worker/test_sessions.py::test_a_former_life_is_refused_by_name_and_the_newest_is_not",
    ),
    # P10 A step ends within 15 s of the last fault
    Breakage(
        "P10",
        "a link's peer that says nothing is never given up",
        "link/tenfold_link/aio/link.py",
        "            self._silent(now - self._pinged_at)",
        "            pass",
        "tests/cluster/test_link.py::test_a_peer_that_says_nothing_is_asked_and_given_up",
    ),
    Breakage(
        "P10",
        "silence over gRPC counts as a sign of life",
        "services/tenfold_services/rpc/peer_life.py",
        "            raise errors.deadline_exceeded(error.message) from None",
        "            return",
        "tests/unit/services/rpc/test_peer_life.py::test_silence_on_both_is_no_sign_of_life",
    ),
    Breakage(
        "P10",
        "calls continue to wait when their link has ended",
        "link/tenfold_link/aio/link.py",
        "                call.set_exception(self._ended(reason))\n        self._serving",
        "                pass\n        self._serving",
        "tests/chaos/test_steps_end.py::test_steps_end_within_15_seconds_of_the_last_fault",
    ),
    Breakage(
        "P10",
        "a task's requests continue when its link has ended",
        "link/tenfold_link/aio/link.py",
        "        self._serving.end()\n",
        "",
        "tests/cluster/test_link.py::test_the_end_of_one_end_fails_calls_in_both_directions",
    ),
)
