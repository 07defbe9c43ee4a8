"""Traces of runs and of sessions, each one file over all tasks."""
