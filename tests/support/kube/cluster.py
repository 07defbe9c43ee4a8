"""The tests' Kubernetes cluster as one thing, and the configuration by which clients reach it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any

from support import certs
from support.kube.controllers import Controllers
from support.kube.http_api import ApiServer, Request
from support.kube.kubelet import IMAGE, Kubelet, why_not
from support.kube.store import StatusError, Store
from support.task_processes import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["IMAGE", "KubeCluster", "Request", "StatusError", "consecutive_ports", "why_not"]

_KINDS = ("jobs", "pods", "secrets", "services")


class KubeCluster:
    """An API server, two nodes and the controllers. `kubeconfig` is a file for clients."""

    def __init__(self, folder: Path) -> None:
        self.store = Store()
        authority = folder / "authority"
        authority.mkdir()
        certificate = certs.access(authority)
        self.api = ApiServer(self.store, "of-the-tests", certificate)
        self.kubelet = Kubelet(self.store, folder)
        self.controllers = Controllers(self.store)
        self.api.logs = self.kubelet.logs
        self.kubeconfig = folder / "config"
        self.kubeconfig.write_text(json.dumps(configuration(self.api.url, self.api.token, str(certificate.tls_ca))))

    def names(self, resource: str) -> list[str]:
        return [each["metadata"]["name"] for each in self.store.list(resource, None)]

    def wait_for(self, is_so: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Until that is so of the objects; it is asked after each change."""
        with self.store.changed:
            assert self.store.changed.wait_for(is_so, seconds), {kind: self.names(kind) for kind in _KINDS}

    def limit(self, resource: str, count: int) -> None:
        """A quota: so many objects of a kind."""

        def admit(kind: str, found: dict[str, Any]) -> None:
            used = len(self.store.list(resource, None))
            if kind == resource and used >= count:
                raise StatusError(
                    403,
                    "Forbidden",
                    f'{resource} "{found["metadata"]["name"]}" is forbidden: exceeded quota: small, requested: '
                    f"{resource}=1, used: {resource}={used}, limited: {resource}={count}",
                )

        self.store.admission.append(admit)

    def forbid(self, verb: str, resource: str) -> None:
        """The user may not do that."""

        def refuse(request: Request) -> StatusError | None:
            if (request.verb, request.resource) != (verb, resource):
                return None
            message = (
                f'{resource} is forbidden: User "tests" cannot {verb} resource "{resource}" in API group "" in the '
                'namespace "default"'
            )
            return StatusError(403, "Forbidden", message)

        self.api.refusals.append(refuse)

    def be_kind(self) -> None:
        """Nothing is refused any more, and nothing is left."""
        self.store.admission.clear()
        self.api.refusals.clear()

    def close(self) -> None:
        self.controllers.close()
        self.kubelet.close()
        self.api.close()


def configuration(url: str, token: str, authority: str) -> dict[str, Any]:
    """A client's configuration, as `kubectl config view` has it."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "tests",
        "clusters": [{"name": "tests", "cluster": {"server": url, "certificate-authority": authority}}],
        "users": [{"name": "tests", "user": {"token": token}}],
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": "tests", "namespace": "default"}}],
    }


def consecutive_ports(count: int) -> int:
    """The first of so many ports, one after the other, where nothing listens now."""
    for first in range(20_000 + os.getpid() % 1000 * 10, 32_000 - count, count):
        with contextlib.suppress(OSError), contextlib.ExitStack() as held:
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("", port)))
            return first
    raise AssertionError(f"there are no {count} free ports in a row")
