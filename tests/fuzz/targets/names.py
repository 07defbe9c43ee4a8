"""Names and addresses that others choose: byte 0 picks the reader. TF_CONFIG is JSON of the environment."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from fuzz.harness import Fault, refusals
from fuzz.messages import changed_bytes
from tenfold.distribute.cluster_resolver.tf_config import TFConfigClusterResolver
from tenfold_core import address, cluster_spec, device, node_names, rendezvous_key
from tenfold_protos.cluster_pb2 import ClusterDef

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator


def _tf_config(text: str) -> None:
    if "\0" in text or not text:
        return  # no variable holds it
    try:
        os.environ["TF_CONFIG"] = text
    except UnicodeEncodeError:
        return
    resolver = TFConfigClusterResolver()
    for ask in (resolver.cluster_spec, lambda: resolver.task_type, lambda: resolver.task_id):
        with refusals(ValueError, TypeError):
            ask()
    with refusals(ValueError, TypeError, RuntimeError):
        resolver.master()


def _cluster(text: str) -> None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    with refusals(ValueError, TypeError):
        spec = cluster_spec.ClusterSpec(value)
        if cluster_spec.ClusterSpec(spec.as_cluster_def()) != spec or not spec == spec.as_dict():
            raise Fault(f"{spec} is not what it says itself")
    if isinstance(value, dict):
        with refusals():
            cluster_spec.addresses_of(value)


def _cluster_def(text: str) -> None:
    with refusals(ValueError):
        definition = ClusterDef()
        for number, job in enumerate(text.split(",")):
            definition.job.add(name=job).tasks[number - 1] = job
        cluster_spec.addresses_of(definition)
        cluster_spec.ClusterSpec(definition)


def _address(text: str) -> None:
    with refusals():
        host, port = address.split_named_address(text, "a task")
        address.bind_address(host, port)
        if not 0 <= port <= 65535:
            raise Fault(f"port {port}")


def _device(text: str) -> None:
    with refusals(ValueError):
        spec = device.DeviceSpec.from_string(text)
        # a number of any type of device, "/device:*:0", is nothing that a specification says, in TensorFlow neither
        told = spec.device_type is not None or spec.device_index is None
        if told and device.DeviceSpec.from_string(spec.to_string()) != spec:
            raise Fault(f"{spec} is not what it says itself")
        device.merge(text, "/cpu:0")
        device.is_compatible(text, device.full_name("a", 0))
        with refusals(ValueError):
            device.task_of(text)


def _key(text: str) -> None:
    with refusals():
        key = rendezvous_key.parse_key(text)
        again = rendezvous_key.make_key(key.send_device, key.send_incarnation, key.recv_device, key.tensor_name)
        rendezvous_key.parse_key(again)


def _tensor(text: str) -> None:
    name = node_names.parse_tensor_name(text)
    if node_names.parse_tensor_name(str(name)) != name:
        raise Fault(f"{name} is not what it says itself")
    node_names.is_valid_node_name(text)
    node_names.suggestion(text, ["abc", "a/b", text[:5]])


_READERS: tuple[Callable[[str], Any], ...] = (_tf_config, _cluster, _cluster_def, _address, _device, _key, _tensor)


def one_input(data: bytes) -> None:
    if data:
        _READERS[data[0] % len(_READERS)](data[1:].decode("utf-8", "surrogateescape"))


def mutated(data: bytes, chance: random.Random) -> bytes:
    return (data[:1] or b"\0") + changed_bytes(data[1:], chance)


def seeds() -> Iterator[bytes]:
    cluster = {"ps": ["a:1"], "worker": {"0": "b:2", "3": "[::1]:3"}, "chief": ["c:4"]}
    config = {"cluster": cluster, "task": {"type": "ps", "index": 0}, "rpc_layer": "grpc", "session_master": "x:1"}
    yield b"\0" + json.dumps(config).encode()
    yield b"\0" + json.dumps({"cluster": {"ps": ["a:1", "b:2"]}, "task": {"type": "ps", "index": "1"}}).encode()
    yield b"\0" + json.dumps({"cluster": ["a:1"], "task": 7}).encode()
    yield b"\1" + json.dumps({"ps": ["a:1", "b:2"], "worker": []}).encode()
    yield b"\2ps,worker:2,[::1]:80"
    for text in ("localhost:80", "[::1]:0", "grpc://a:1", "a:99999", "a:\u0663", ":1"):
        yield b"\3" + text.encode()
    for text in ("/job:ps/replica:0/task:0/device:CPU:0", "/cpu:0", "/task:*/gpu:*", "/job:x/device:*:*", "cpu:1"):
        yield b"\4" + text.encode()
    key = rendezvous_key.make_key("/job:a/replica:0/task:0/device:CPU:0", -1, "/job:b", "edge_1", "0:0")
    yield b"\5" + key.encode()
    yield b"\6a/b:12"
    yield b"\6^a:b:999999999"
