"""LeftOut: what stands for a part of `tf.contrib` that Tenfold leaves out, once a program has imported it.

TensorFlow has the part, so importing it must not end a program that never uses it; as_tensorflow.py hands one out for
each path that `tenfold.contrib` has a reason for. Any use of it is answered with the reason. Decision 0163.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn


class LeftOut(ModuleType):
    """A module, a function or a class that is not there: reading a name of it, calling it, deriving from it and asking
    for its instances raise AttributeError with `why`.
    """

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name, why)
        self.__path__: list[str] = []  # `from tensorflow.contrib.gan.python import train` imports what is below it
        self.left_out = why

    def _refuse(self) -> NoReturn:
        raise AttributeError(self.left_out)

    def __getattr__(self, name: str) -> Any:
        self._refuse()

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        self._refuse()

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        self._refuse()

    def __instancecheck__(self, instance: Any) -> bool:
        self._refuse()
