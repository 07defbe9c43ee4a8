"""What starts the tasks of a run: on this machine, over ssh, in a Slurm job, on Ray, on Kubernetes.

    interface.py        Launcher and TaskProcesses, which an engine implements; what it is given, how it refuses
    registry.py         the launchers that there are: ours, and entry points `tenfold.launchers` of others
    local.py            processes of this machine
    ssh.py, slurm.py, … an engine each: how an agent is started there
    kubernetes*.py      an engine without agents: pods, whose first process is pod_process.py
    agent.py            the process on a host that starts tasks there, and tells of them
    agent_protocol.py   what the two ends say to each other
    agent_pipe.py       our end of one agent
    agent_processes.py  the tasks of a run over all agents
    working_dir.py      how the working directory comes to the hosts
    hosts.py, placing.py  a list of hosts as users write it; which task goes to which

A launcher starts, watches and stops. What happens next in a run is decided by runs/machine.py, wherever it runs.
"""

from tenfold.launchers.interface import Launcher, LaunchRefusedError, LaunchRequest, Resources, TaskProcesses

__all__ = ["LaunchRefusedError", "LaunchRequest", "Launcher", "Resources", "TaskProcesses"]
