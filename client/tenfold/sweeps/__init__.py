"""Sweeps: one program run with many settings of its parameters. space.py says which, command.py what is started.

The control service drives them (tenfold_control_api/sweeps), or a job array does; the commands are cli/sweep.py and
cli/render.py.
"""
