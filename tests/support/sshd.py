"""Hosts for tests of ssh: one sshd each, on an address of loopback of its own, with keys and settings in a folder."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

from support.process_trees import kill_tree
from support.task_processes import PATIENCE
from tenfold.launchers.local import free_ports

_SERVER = shutil.which("sshd") or "/usr/sbin/sshd"


def why_not() -> str | None:
    """Why there can be no such hosts here."""
    if not os.access(_SERVER, os.X_OK) or shutil.which("ssh") is None:
        return "OpenSSH's server is not installed: make engines"
    return None


class SshHosts:
    """Hosts n1 (or node1), n2, … of `config`, a configuration of OpenSSH's client. `kill` ends one as a loss of power
    would."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.config = folder, folder / "config"
        self.names = [f"n{number}" for number in range(1, count + 1)]
        self._servers: dict[str, subprocess.Popen[bytes]] = {}
        #: Where processes on the hosts have their temporary files.
        self.scratch = folder / "tmp"
        self.scratch.mkdir()
        key = folder / "key"
        for file in (key, folder / "host_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        (folder / "authorized_keys").write_text((folder / "key.pub").read_text())
        self._ports = {name: free_ports(1, self.address(name))[0] for name in self.names}
        lines = []
        for name in self.names:
            lines += [f"Host {name} node{name[1:]}", f"  HostName {self.address(name)}", f"  Port {self._ports[name]}"]
        lines += ["Host *", f"  IdentityFile {key}", "  IdentitiesOnly yes", "  StrictHostKeyChecking accept-new"]
        lines += [f"  UserKnownHostsFile {folder / 'known_hosts'}"]
        self.config.write_text("\n".join(lines) + "\n")
        for name in self.names:
            self.start(name)

    def address(self, name: str) -> str:
        return f"127.0.0.{10 + self.names.index(name) + 1}"

    def start(self, name: str) -> None:
        settings = self.folder / f"{name}.sshd"
        settings.write_text(
            f"ListenAddress {self.address(name)}:{self._ports[name]}\nHostKey {self.folder / 'host_key'}\n"
            f"AuthorizedKeysFile {self.folder / 'authorized_keys'}\nPidFile none\nUsePAM no\nStrictModes no\n"
            f"PasswordAuthentication no\nMaxStartups 100\nSetEnv TMPDIR={self.scratch}\n"
        )
        with (self.folder / f"{name}.log").open("ab") as log:
            self._servers[name] = subprocess.Popen([_SERVER, "-D", "-e", "-f", str(settings)], stderr=log)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection((self.address(name), self._ports[name]), 1):
                return
            assert self._servers[name].poll() is None, (self.folder / f"{name}.log").read_text()
        raise AssertionError(f"{name} does not listen")

    def kill(self, name: str) -> None:
        """Kills the server, and all that runs in its sessions, at once."""
        server = self._servers.pop(name)
        kill_tree(server.pid)
        server.wait()

    def close(self) -> None:
        for server in self._servers.values():
            server.terminate()
            server.wait(PATIENCE)
