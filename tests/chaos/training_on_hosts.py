"""Synchronous training of three workers whose tasks are on hosts of a network: tests/process/kill_training.py there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from process.kill_training import STORIES, Heard, Training

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from support.faults.hosts import TasksOnHosts


class TrainingOnHosts(Training):
    """One run of the program as all tasks of `tasks`, whose lines `heard` is told."""

    def __init__(self, tasks: TasksOnHosts, heard: Heard, folder: str, last_step: int) -> None:
        super().__init__(STORIES["any"], tasks.children, heard, folder, last_step, addresses=tasks.addresses)
        self._tasks = tasks

    def start_all(self) -> None:
        for task in self.tasks:
            self.start(task)

    def launch(self, name: str, program: Sequence[str], env: Mapping[str, str]) -> None:
        self._tasks.launch(name, program, env)
