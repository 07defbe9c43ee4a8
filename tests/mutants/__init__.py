"""Breaks the code on purpose and looks whether a test notices: `make mutants`, `make promises`."""
