"""Runs for other programs: mlflow.py writes MLflow's file store, hparams.py event files for TensorBoard's HParams page.

Both take what the control service answers, and need none of those programs to be running. The command is cli/export.py.
"""
