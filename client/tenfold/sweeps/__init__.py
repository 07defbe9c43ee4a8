"""Sweeps: one program run with many settings of its parameters, the worst stopped early.

space.py says which settings, machine.py decides what starts and stops, median.py which is worst; driver.py does it,
through a control service. The command is cli/sweep.py.
"""
