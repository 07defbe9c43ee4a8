"""Runs of elementwise ops as one compiled function. The worker decides which nodes (services: compiler/fuse/).

expressions.py   each op as text
runs.py          a run's text, its signature and the function that calls it
loops.py         a loop of scalars, its text and its call
cache.py         compiled runs on disk
compile.py       `python -m`: compiles runs in a process of its own
support.py       what generated text calls
"""
