"""Runs: programs that the control service starts or hears of, from submission to verdict.

record.py is a run as a value and what may happen to it, store.py its rows, service.py the operations, supervisors.py
what starts the processes, log_files.py what the tasks wrote, models.py the JSON of it.
"""
