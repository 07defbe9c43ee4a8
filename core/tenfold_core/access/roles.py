"""What a caller may do, in one order: each role may do what those before it may. Used wherever a caller is accepted."""

from __future__ import annotations

from enum import IntEnum


class Role(IntEnum):
    """A caller's role. The control service's routes and a task's methods each name the least one that they need."""

    #: Nobody: what everybody may do.
    NONE = 0
    #: To look: states, logs, events, devices.
    READ = 1
    #: To run graphs of the ops that compute alone: no files, no functions of the program.
    RUN_UNTRUSTED = 2
    #: To run any graph, and to submit programs: that is, to run code.
    RUN = 3
    #: To be a task of the cluster: to register, and to call the workers of other tasks.
    REGISTER = 4
    #: To take tasks and clusters away.
    ADMIN = 5

    @property
    def word(self) -> str:
        """As it is written in token files and messages."""
        return self.name.lower().replace("_", ":")


def role_named(word: str) -> Role:
    """Raises ValueError naming the roles that there are."""
    for role in Role:
        if role.word == word and role is not Role.NONE:
            return role
    raise ValueError(f"{word!r} is no role; there are {', '.join(role.word for role in Role if role)}")
