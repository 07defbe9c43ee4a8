"""`tenfold doctor`: what may be wrong with this machine, with a control service, and between the tasks of a cluster.

`finding.py` is what a check says, `machine.py` looks at this machine, `cluster.py` at the service and the tasks;
`command.py` prints it.
"""
