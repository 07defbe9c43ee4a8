"""Values of parameters as text: numbers, truth values, and anything else; reading undoes writing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenfold_core.parameter_values import read_value, write_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0.1", 0.1), ("1e-3", 0.001), (".5", 0.5), ("-2", -2), ("+3", 3), ("true", True), ("False", False)),
        *(("1e999", "1e999"), ("nan", "nan"), ("1_000", "1_000"), ("adam", "adam"), ("", ""), ("2..4", "2..4")),
        *(("\uff11", "\uff11"), ("1" * 16, float("1" * 16)), ("0x10", "0x10")),
    ],
)
def test_what_a_text_is(text: str, value: Any) -> None:
    found = read_value(text)

    assert (found, type(found)) == (value, type(value))


@given(st.booleans() | st.integers(-(10**14), 10**14) | st.floats(allow_nan=False, allow_infinity=False))
def test_reading_undoes_writing(value: bool | int | float) -> None:
    found = read_value(write_value(value))

    assert (found, type(found)) == (value, type(value))
