"""What a program says of GPUs, and is told of them: ConfigProto, tf.test, tf.config, device_lib."""

from __future__ import annotations

import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from support.gpu_programs import with_gpus
from tenfold import config as tf_config
from tenfold.compat.python import context, device_lib, test_util
from tenfold.session import inprocess

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def two_gpus(simulated: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if not simulated:
        pytest.skip("counts the simulator's GPUs")
    monkeypatch.setattr(tf_config, "_visible", None)
    monkeypatch.setattr(tf_config, "_growth", {})
    with with_gpus(2), tf.Graph().as_default():
        yield


def devices(**config: Any) -> list[str]:
    with tf.Session(config=tf.ConfigProto(**config)) as session:
        return [each.name.rpartition("device:")[2] for each in session.list_devices()]


def test_a_session_has_the_gpus_that_its_config_says() -> None:
    assert sorted(devices()) == ["CPU:0", "GPU:0", "GPU:1"]
    assert sorted(devices(device_count={"GPU": 1})) == ["CPU:0", "GPU:0"]
    assert devices(device_count={"GPU": 0}) == ["CPU:0"]
    assert sorted(devices(device_count={"CPU": 2, "GPU": 1})) == ["CPU:0", "CPU:1", "GPU:0"]


def test_a_gpu_of_another_session_is_not_there() -> None:
    with tf.device("/gpu:0"):
        x = tf.negative(1.0, name="x")
    none = tf.ConfigProto(device_count={"GPU": 0})
    with tf.Session(config=none) as session, pytest.raises(tf.errors.InvalidArgumentError) as caught:
        session.run(x)
    assert " on /device:GPU:0: the tasks of this cluster have CPU:0 only." in caught.value.message
    with tf.Session() as session:
        assert session.run(x) == -1


def test_visible_gpus_and_their_memory() -> None:
    options = tf.GPUOptions(visible_device_list="1", per_process_gpu_memory_fraction=0.25, allow_growth=True)
    with tf.Session(config=tf.ConfigProto(gpu_options=options)) as session:
        found = {each.name.rpartition("device:")[2]: each.memory_limit_bytes for each in session.list_devices()}
        with tf.device("/gpu:0"):
            assert session.run(tf.negative(2.0)) == -2
    assert found["GPU:0"] == 1 << 28
    assert set(found) == {"CPU:0", "GPU:0"}
    with pytest.raises(tf.errors.AlreadyExistsError, match="mapped to multiple CUDA devices"):
        devices()


def test_a_list_of_gpus_that_are_not_there() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="invalid GPU id '5' but visible device count is 2"):
        devices(gpu_options=tf.GPUOptions(visible_device_list="5"))
    assert len(devices()) == 3


def test_what_a_program_is_told() -> None:
    assert tf.test.is_gpu_available()
    assert tf.test.is_gpu_available(cuda_only=True, min_cuda_compute_capability=(9, 0))
    assert not tf.test.is_gpu_available(min_cuda_compute_capability=(99, 0))
    assert tf.test.gpu_device_name() == "/device:GPU:0"
    assert tf.test.is_built_with_cuda()
    assert context.num_gpus() == context.context().num_gpus() == 2
    listed = {each.name: each for each in device_lib.list_local_devices()}
    assert sorted(listed) == ["/device:CPU:0", "/device:GPU:0", "/device:GPU:1"]
    assert "simulated GPU 1" in listed["/device:GPU:1"].physical_device_desc


def test_it_is_told_without_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_session(config: Any = None) -> Any:
        raise AssertionError("no session is opened for that")

    monkeypatch.setattr(inprocess, "shared_server", no_session)
    assert tf.test.gpu_device_name() == "/device:GPU:0"
    assert len(tf.config.experimental.list_physical_devices("GPU")) == 2


def test_physical_devices_and_the_growth_of_memory() -> None:
    config = tf.config.experimental
    cpu, first, second = config.list_physical_devices()
    assert [first.name, second.name] == ["/physical_device:GPU:0", "/physical_device:GPU:1"]
    assert config.list_physical_devices("GPU") == [first, second]
    assert [each.name for each in config.list_logical_devices("GPU")] == ["/device:GPU:0", "/device:GPU:1"]
    assert config.get_memory_growth(second)
    config.set_memory_growth(second, False)
    assert not config.get_memory_growth(second)
    config.set_memory_growth(second, True)
    with pytest.raises(ValueError, match="non-GPU devices"):
        config.set_memory_growth(cpu, True)
    config.set_visible_devices(second, "GPU")
    assert config.get_visible_devices() == [cpu, second]
    assert config.get_visible_devices("GPU") == [second]
    config.set_visible_devices([first, second], "GPU")
    with pytest.raises(ValueError, match="there is no device"):
        config.set_visible_devices("GPU:7")
    with pytest.raises(ValueError, match="one device here"):
        config.set_virtual_device_configuration(first, [None, None])


class UsesGpu(test_util.TensorFlowTestCase):
    """Run by the test below."""

    __test__ = False

    @test_util.run_gpu_only
    def runTest(self) -> None:
        with self.test_session(use_gpu=True) as session, test_util.use_gpu():
            x = tf.negative([1.0], name="on_gpu")
            self.assertAllEqual(session.run(x), [-1.0])
            assert x.device == "/device:GPU:0"
        with test_util.force_cpu():
            assert tf.negative([1.0]).device == "/device:CPU:0"


def run_case() -> unittest.TestResult:
    """On a thread of its own, which has no default graph."""
    result = unittest.TestResult()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(UsesGpu().run, result).result()
    return result


def test_tests_that_need_a_gpu_run_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run_case()
    assert (result.testsRun, result.errors, result.failures, result.skipped) == (1, [], [], [])
    assert test_util.IsGoogleCudaEnabled()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert [why for _, why in run_case().skipped] == ["there is no GPU"]
