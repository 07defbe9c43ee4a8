"""Decides which nodes of a part run as one compiled function. Pure: observed shapes in, a Fusion out.

    nodes.py     which nodes could be fused, and in a loop of which shape
    levels.py    which of them may run as one without waiting for themselves
    run.py       a group's nodes as a FusedRun, which tenfold_kernels/fusion/runs.py compiles
    updates.py   which updates of small variables a GPU makes in one launch
    captures.py  which stretches of the schedule a GPU records
    groups.py    all of it, and the order in which groups and the other nodes run

Shapes are those that one step had; a group checks them at every call and runs its nodes one by one when they are
others. Called by build.py, read by write/codegen.py. Decision 0010.
"""
