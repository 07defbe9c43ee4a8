"""The exception tree and the canonical codes."""

from __future__ import annotations

import pickle

import pytest

from tenfold_core import errors
from tenfold_protos import error_codes_pb2


@pytest.mark.parametrize("code", range(1, 17))
def test_each_code_has_a_class_and_its_name(code: int) -> None:
    error = errors.from_code(code, "text")
    assert error.code == error.error_code == code
    assert errors.code_name(code) == error_codes_pb2.Code.Name(code)
    assert errors.exception_type_from_error_code(code) is type(error)


def test_a_number_that_is_no_code_is_kept() -> None:
    error = errors.from_code(99, "odd")
    assert isinstance(error, errors.UnknownError)
    assert error.code == 99
    assert errors.code_name(99) == "CODE_99"


def test_the_node_is_read_from_the_message() -> None:
    error = errors.from_code(3, "bad\n\t [[{{node layer/w}}]]")
    assert error.node_name == "layer/w"
    assert errors.from_code(3, "bad").node_name is None


def test_an_error_travels_between_processes() -> None:
    again = pickle.loads(pickle.dumps(errors.AbortedError(None, None, "gone")))
    assert isinstance(again, errors.AbortedError)
    assert again.message == str(again) == "gone"
