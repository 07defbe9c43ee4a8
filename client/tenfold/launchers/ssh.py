"""Tasks on hosts that OpenSSH reaches: one agent a host, at the other end of `ssh HOST`.

It is OpenSSH's own client, with its configuration, keys and known hosts; nothing is asked (BatchMode). A connection
that dies, as one does whose host is gone, ends the agent there and with it the tasks.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from tenfold.launchers.agent_pipe import AgentPipe
from tenfold.launchers.agent_processes import AgentProcesses, AgentSpec
from tenfold.launchers.hosts import Host, read_file, read_list
from tenfold.launchers.interface import LaunchRefusedError, checked_options, choice
from tenfold.launchers.placing import Place, place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenfold.launchers.interface import LaunchRequest
    from tenfold.launchers.working_dir import RsyncTarget

#: Seconds for ssh to say what its configuration has of a host.
_ASK_S = 10.0
#: ssh's own: nothing is asked, an end that is gone is noticed after 15 s, and before ours says so.
_OPTIONS = (
    *("-T", "-x", "-oBatchMode=yes", "-oConnectTimeout=15"),
    *("-oServerAliveInterval=5", "-oServerAliveCountMax=3", "-oLogLevel=ERROR"),
)


class SshLauncher:
    """See Launcher."""

    name: ClassVar[str] = "ssh"
    summary: ClassVar[str] = "hosts of a list, by OpenSSH"
    options: ClassVar[Mapping[str, str]] = {
        "hosts": "the hosts: n1,n2 or n[1-4]",
        "hosts_file": "a file with a host a line: NAME [slots=NUMBER] [address=NAME]",
        "place": "spread (default): one host after the other; pack: a host's slots filled before the next one's",
        "sync": "no (default): the working directory is shared; yes: it is sent to each host, by rsync if both have it",
        "folder": "its path there (default: the same as here; with sync=yes a folder for the time of the run)",
        "scratch": "a folder there for temporary files: TMPDIR is one below it, for the time of the run",
        "python": "the interpreter there that has Tenfold (default: the path of this one)",
        "config": "a configuration of OpenSSH in place of ~/.ssh/config",
    }

    def missing(self) -> str | None:
        return None if shutil.which("ssh") else "there is no `ssh` here: install OpenSSH's client"

    def open(self, request: LaunchRequest, echo: Callable[[str, str], None]) -> AgentProcesses:
        if (why := self.missing()) is not None:
            raise LaunchRefusedError(why)
        options = checked_options(self, request.options)
        how: Place = "pack" if choice(self, options, "place", ("spread", "pack")) == "pack" else "spread"
        sync = choice(self, options, "sync", ("no", "yes")) == "yes"
        hosts = _hosts(options)
        of_name = {host.name: host for host in hosts}
        specs = [
            AgentSpec(
                host.name,
                partial(AgentPipe, command(host, options)),
                address(host, options),
                rsync_target(host, options),
            )
            for host in hosts
        ]

        def place_on(names: Sequence[str]) -> Mapping[str, str]:
            return place(request.jobs, [of_name[name] for name in names], how)

        return AgentProcesses(request, echo, specs, place_on, sync=sync)


def command(host: Host, options: Mapping[str, str]) -> list[str]:
    """What starts the agent on the host."""
    agent = shlex.join([options.get("python", sys.executable), "-P", "-m", "tenfold.launchers.agent"])
    return ["ssh", *_config(options), *_OPTIONS, "--", host.name, f"exec {agent}"]


def rsync_target(host: Host, options: Mapping[str, str]) -> RsyncTarget:
    """By what rsync reaches the host."""
    user, at, name = host.name.rpartition("@")
    shown = f"{user}{at}[{name}]" if ":" in name else host.name
    return shown, ["ssh", *_config(options), *_OPTIONS]


def address(host: Host, options: Mapping[str, str]) -> str:
    """What tasks reach the host by: what its line says, else the HostName that ssh itself would dial."""
    if host.address is not None:
        return host.address
    asked = subprocess.run(
        ["ssh", *_config(options), "-G", "--", host.name], capture_output=True, text=True, check=False, timeout=_ASK_S
    )
    if asked.returncode:
        said = asked.stderr.strip().splitlines() or ["no answer"]
        raise LaunchRefusedError(f"ssh: {host.name}: {said[-1]}")
    found = dict(line.split(" ", 1) for line in asked.stdout.splitlines() if " " in line)
    return found.get("hostname", host.name)


def _config(options: Mapping[str, str]) -> list[str]:
    return ["-F", os.path.abspath(options["config"])] if "config" in options else []


def _hosts(options: Mapping[str, str]) -> list[Host]:
    if ("hosts" in options) == ("hosts_file" in options):
        raise LaunchRefusedError("ssh: give the hosts, as -o hosts=n1,n2 or as -o hosts_file=FILE")
    try:
        return read_list(options["hosts"]) if "hosts" in options else read_file(options["hosts_file"])
    except (OSError, ValueError) as error:
        raise LaunchRefusedError(f"ssh: {error}") from None
