"""The `tenfold` command: control, task, up, status, ping.

One file per command; main.py joins them, task_settings.py turns flags, environment and TF_CONFIG into frozen settings.
Anything heavier than click is imported inside a command, so that `tenfold --help` answers at once.
"""
