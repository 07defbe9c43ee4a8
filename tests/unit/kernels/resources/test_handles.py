"""Handles of three kinds: who finds a resource by one, and how long a resource lives that no other kernel can name."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.resources.handles import (
    LocalHandle,
    RefHandle,
    handle_for,
    is_reference,
    kept,
    resource_of,
    shared_resource,
    signature_error,
    signature_text,
)
from tenfold_kernels.resources.state import ResourceHandle, ResourceManager

DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"


class Made:
    """A resource, and how it was called."""

    def __init__(self, name: str) -> None:
        self.name = name


class Other:
    """Another kind of resource."""


def node_of(
    resources: ResourceManager, output: dtypes.DType = dtypes.resource, *, name: str = "n", **attrs: Any
) -> KernelNode:
    return KernelNode(name, "MakeIt", attrs, (), (output,), DEVICE, resources)


KINDS = [dtypes.resource, dtypes.string, dtypes.string.as_ref]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_handle_leads_to_its_resource(kind: dtypes.DType) -> None:
    resources, made = ResourceManager(), Made("a")
    node = node_of(resources, kind)
    handle = handle_for(node, "c", "a", made)

    assert is_reference(node) is (kind is dtypes.string.as_ref)
    assert resource_of(node, handle, Made) is made
    names = handle.value if isinstance(handle, RefHandle) else handle
    assert not names.flags.writeable
    if kind is not dtypes.resource:
        assert names.tolist() == [b"c", b"a"]


@pytest.mark.parametrize("kind", [dtypes.resource, dtypes.string.as_ref], ids=str)
def test_a_handle_of_another_kind_of_resource_says_both(kind: dtypes.DType) -> None:
    node = node_of(ResourceManager(), kind)
    handle = handle_for(node, "c", "a", Made("a"))
    with pytest.raises(errors.InvalidArgumentError, match=r"type 'Made' and you are trying .* using type 'Other'"):
        resource_of(node, handle, Other)


def test_a_handle_says_what_it_names() -> None:
    handle = handle_for(node_of(ResourceManager()), "c", "a", Made("a"))[()]
    assert type(handle) is LocalHandle
    assert handle == LocalHandle(DEVICE, "c", "a", 0, "Made", None), "the resource itself is not compared"
    assert "resource" not in repr(handle)
    again = LocalHandle.of(ResourceHandle(DEVICE, "c", "a", 7, "Made"), resource := Made("b"))
    assert again == LocalHandle(DEVICE, "c", "a", 7, "Made")
    assert again.resource is resource


def test_a_handle_that_travelled_is_looked_up_on_its_own_device() -> None:
    resources = ResourceManager()
    node = node_of(resources)
    made = resources.lookup_or_create("c", "a", Made, lambda: Made("a"))
    assert resource_of(node, ResourceHandle(DEVICE, "c", "a").as_array(), Made) is made
    with pytest.raises(errors.NotFoundError, match="Resource c/b/Made does not exist"):
        resource_of(node, ResourceHandle(DEVICE, "c", "b").as_array(), Made)
    for handle in (ResourceHandle("/device:CPU:1", "c", "a"), LocalHandle("/device:CPU:1", "c", "a", resource=made)):
        with pytest.raises(errors.InvalidArgumentError, match=f"located in device /device:CPU:1 from .*{DEVICE}"):
            resource_of(node, handle.as_array(), Made)
    with pytest.raises(errors.InvalidArgumentError, match="MakeIt needs a resource handle, got int"):
        resource_of(node, np.array(3, object), Made)


def test_a_string_handle_lives_as_long_as_its_array() -> None:
    resources = ResourceManager()
    node = node_of(resources, dtypes.string)
    handle = handle_for(node, "c", "a", made := Made("a"))
    copy = handle.copy()
    assert resource_of(node, copy, Made) is made
    del handle
    gc.collect()
    with pytest.raises(errors.NotFoundError, match=r"Container c does not exist. \(Could not find resource: c/a\)"):
        resource_of(node, copy, Made)


def test_a_string_handle_has_two_parts() -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"2-element vector, but had shape: \[3\]"):
        resource_of(node_of(ResourceManager(), dtypes.string), np.array([b"a", b"b", b"c"], object), Made)
    with pytest.raises(errors.NotFoundError, match="Could not find resource: \ufffd/b"):
        resource_of(node_of(ResourceManager(), dtypes.string), np.array([b"\xff", b"b"], object), Made)


def test_a_resource_with_a_shared_name_is_found_by_the_next_kernel() -> None:
    resources = ResourceManager()
    checked: list[str] = []
    named = {"shared_name": b"s", "container": b"c"}
    one = shared_resource(node_of(resources, **named), Made, Made, lambda made: checked.append(made.name))
    other = shared_resource(node_of(resources, **named), Made, Made, lambda made: checked.append(made.name))
    first = one()[()].resource
    assert first.name == "s"
    assert other()[()].resource is first
    assert one() is one(), "found once"
    assert checked == ["s", "s"]
    assert resources.names("c") == ["s"]
    del one, other
    gc.collect()
    assert resources.names("c") == ["s"], "a kernel that goes takes no shared resource with it"


def test_a_reset_of_the_container_makes_a_new_one() -> None:
    resources = ResourceManager()
    compute = shared_resource(node_of(resources, shared_name=b"s"), Made, Made)
    before = compute()[()].resource
    resources.clear()
    after = compute()[()].resource
    assert after is not before
    assert resources.lookup("", "s", Made) is after


def test_the_node_s_name_serves_where_it_is_to_be_shared() -> None:
    resources = ResourceManager()
    handle = shared_resource(node_of(resources, name="layer/q", use_node_name_sharing=True), Made, Made)()
    assert handle[()].name == "layer/q"
    named = node_of(resources, name="layer/q", use_node_name_sharing=True, shared_name=b"s")
    assert shared_resource(named, Made, Made)()[()].name == "s"


def test_a_private_resource_goes_with_its_kernel() -> None:
    resources = ResourceManager()
    one, other = (shared_resource(node_of(resources, use_node_name_sharing=False), Made, Made) for _ in range(2))
    names = sorted([one()[()].name, other()[()].name])
    assert names == resources.names()
    assert len(set(names)) == 2
    assert all(name.startswith("_") and name.endswith("_n") for name in names)
    del one
    gc.collect()
    assert resources.names() == [other()[()].name]
    resources.clear()
    del other
    gc.collect()


def test_names_of_private_resources_cannot_be_asked_for() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="'_' are private: shared_name '_0_n' of node 'n'"):
        shared_resource(node_of(ResourceManager(), shared_name=b"_0_n"), Made, Made)


def test_a_resource_that_does_not_fit_is_refused_each_time() -> None:
    def check(made: Made) -> None:
        raise errors.InvalidArgumentError(None, None, f"not {made.name}")

    compute = shared_resource(node_of(ResourceManager(), shared_name=b"s"), Made, Made, check)
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match="not s"):
            compute()


def test_what_is_kept_is_read_only_and_in_memory_of_its_own() -> None:
    own = np.ones(3)
    assert kept(own) is own
    assert not own.flags.writeable
    for shared in (own, np.ones(3)[:], np.ones(6)[::2]):
        copy = kept(shared)
        assert not np.shares_memory(copy, shared)
        assert not copy.flags.writeable
        assert copy.tolist() == [1, 1, 1]


def test_signatures_in_errors() -> None:
    ref, types = dtypes.string.as_ref, (dtypes.int32, dtypes.float32.as_ref)
    old = KernelNode("n", "Op", {}, (ref, *types), (dtypes.int32,), DEVICE, ResourceManager())
    new = KernelNode("n", "Op", {}, (dtypes.resource,), (), DEVICE, ResourceManager())
    assert signature_text(old, types, (dtypes.int64,)) == "string_ref,int32,float32_ref->int64"
    assert signature_text(new, (dtypes.int32,), ()) == "resource,int32->"
    error = signature_error(old, "x->y")
    assert isinstance(error, errors.InvalidArgumentError)
    assert error.message == "Signature mismatch, have: string_ref,int32,float32_ref->int32 expected: x->y"
