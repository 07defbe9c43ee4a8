"""DeviceVariable: a variable whose value is in a GPU's memory."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.reference_counts import ALWAYS_HELD, reference_count, reference_counts_are_exact
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.resources.state import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.cuda._runtime import Runtime
    from tenfold_kernels.resources.quota import Account


def maker(device: str, *, by_value: bool = False) -> Callable[..., DeviceVariable]:
    """Makes variables of that GPU: (name, dtype, shape, account) → an uninitialized one."""
    return partial(DeviceVariable, runtime_of(device), by_value=by_value)


class DeviceVariable(Variable):
    """See Variable. `value` and `buffer` give DeviceArrays; the one stream of the GPU orders who reads and writes them.

    A reader of a resource variable keeps its snapshot, because `buffer(exclusive=True)` copies while one is alive.
    """

    __slots__ = ("_held", "by_value", "runtime")

    def __init__(
        self,
        runtime: Runtime,
        name: str,
        dtype: DType,
        shape: TensorShape,
        account: Account | None = None,
        *,
        by_value: bool = False,
    ) -> None:
        super().__init__(name, dtype, shape, account)
        #: Whether readers hold values, which no later update changes, not the variable: a resource variable.
        self.by_value = by_value
        self.runtime = runtime
        self._held: DeviceArray | None = None

    def _present(self) -> Any:
        return self._held

    @property
    def is_initialized(self) -> bool:
        return self._held is not None

    @property
    def nbytes(self) -> int:
        held = self._held
        return 0 if held is None else held.nbytes

    def check_initialized(self) -> None:
        self._initialized()

    def held(self) -> DeviceArray | None:
        """What holds the value now: another object once the variable has moved."""
        return self._held

    def put_back(self, held: DeviceArray | None) -> None:
        """The value is where it was before a recording that was given up."""
        self._held = held

    def _initialized(self) -> DeviceArray:
        held = self._held
        recording = self.runtime.recording()
        if recording is not None:
            recording.note(self)
        if held is None:
            raise errors.failed_precondition(f"Attempting to use uninitialized value {self.name}")
        return held

    @property
    def value(self) -> Any:
        """The current value; of a reference variable, later updates show in it."""
        held = self._initialized()
        recording = self.runtime.recording()
        if recording is not None:
            return recording.lend(self, held)
        return DeviceArray(self.runtime, held.buffer, held.shape, held.dtype, held.offset)

    def snapshot(self) -> Any:
        with self.lock:
            return self.value

    def is_read(self, held: DeviceArray | None) -> bool:
        """Whether somebody has a value that is where `held` is, what the variable holds or has held. Recordings have
        names of their own for it. The lock is held.
        """
        return held is not None and reference_count(held.buffer) > _OWN_REFERENCES

    def buffer(self, *, exclusive: bool = False, rows: Any = None) -> Any:
        held = self._initialized()
        if not exclusive:
            return held
        recording = self.runtime.recording()
        if recording is not None:
            recording.take(self, held)
        elif self.is_read(held):
            own = self.runtime.empty(held.shape, held.dtype)
            self.runtime.copy(held, own)
            self._held = held = own
        return held

    def assign(self, value: Any, *, validate_shape: bool = True, in_place: bool = True) -> None:
        with self.lock:
            held = self._held
            if validate_shape:
                self._check_shape(value)
            if held is not None and held.shape == value.shape:
                recording = self.runtime.recording()
                if recording is not None:
                    # even what readers hold is where it is for good
                    self.runtime.copy(value, self.buffer(exclusive=not in_place))
                    return
                if in_place or not self.is_read(held):
                    self.runtime.copy(value, held)
                    return
            own = self.runtime.empty(value.shape, value.dtype)
            self.runtime.copy(value, own)
            self.adopt(own)

    def adopt(self, value: Any) -> None:
        with self.lock:
            recording = self.runtime.recording()
            if recording is not None:
                recording.note(self)
            if self.account is not None:
                self.account.resize(value.nbytes)
            self._note_new_shape(self._held, value.shape)
            self._held = value


class _Probe:
    """Holds a buffer as a variable does."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held: Any = DeviceArray(None, _Bytes(), (), None)  # type: ignore[arg-type] # nothing is computed with it

    def count(self) -> int:
        held = self.held
        return reference_count(held.buffer)


class _Bytes:
    nbytes = 0


#: References that a variable without readers holds of its buffer.
_OWN_REFERENCES = _Probe().count() if reference_counts_are_exact() else ALWAYS_HELD
