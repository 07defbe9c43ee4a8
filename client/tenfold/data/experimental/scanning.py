"""`tf.data.experimental.scan`: a state that each element changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data.dataset import Dataset
from tenfold.data.mapping import scanned

if TYPE_CHECKING:
    from collections.abc import Callable


def scan(initial_state: Any, scan_func: Callable[..., Any]) -> Callable[[Any], Dataset]:
    """What `scan_func(state, element)` gives: a pair, the next state and the element of the new dataset.

    Raises TypeError if it gives no pair, or a state of another type.
    """
    return lambda dataset: Dataset(scanned(dataset, initial_state, scan_func))
