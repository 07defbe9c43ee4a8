from __future__ import annotations

import gc

import pytest

from tenfold_core import collector


def test_a_section_holds_the_collector_back_and_sections_may_overlap():
    assert gc.isenabled()
    with collector.held_back():
        with collector.held_back():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_on_again_after_an_error():
    with pytest.raises(KeyError), collector.held_back():
        raise KeyError
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector.held_back():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_serves_goes_through_what_is_there_once() -> None:
    before = gc.get_threshold()
    try:
        # as it is in a new process; what another test has run in this one may have set it
        gc.set_threshold(700, 10, 10)
        collector.settle()

        assert gc.get_freeze_count() > 1000
        assert gc.get_threshold()[0] > 700
    finally:
        # what is frozen stays so, as tests/conftest.py has it
        gc.set_threshold(*before)
