"""A run: one program as every task of a cluster, from its start to its verdict. Under `tenfold run` and `submit`.

plan.py says what to start and when a run has succeeded, machine.py decides, driver.py starts and ends the processes,
task_logs.py keeps their output, reporter.py tells the control service. run_cluster.py is what a program of a run finds
where it names a cluster.
"""
