"""Why tests of TensorFlow's API fail on Tenfold's client, where their errors do not say it. Read by api_report.py."""

from __future__ import annotations

from files import Exclusion

_DATA = "tensorflow/python/data"
_CONTROL_FLOW = "tensorflow/python/kernel_tests/control_flow_ops_py_test.py"

EXPLAINED: tuple[Exclusion, ...] = (
    Exclusion(
        _CONTROL_FLOW,
        "ControlFlowTest.testSwitchDeadBranch",
        "a dead tensor is refused in the words of a server, which a session without a target is here too",
    ),
    Exclusion(
        _CONTROL_FLOW,
        "ControlFlowTest.testWhileGrad_ColocateGradients",
        "with colocate_gradients_with_ops a loop keeps a value on the device that makes it, not on that which uses it",
    ),
    Exclusion(
        f"{_DATA}/kernel_tests/from_generator_test.py",
        "*DestructorCalled",
        "a generator is let go with its iterator, not as soon as take() has had enough",
    ),
    Exclusion(
        f"{_DATA}/kernel_tests/map_test.py",
        "*CaptureUninitializedVariableError*",
        "adding to a variable that has no value is a FailedPreconditionError, as in TensorFlow 2, not a NotFoundError",
    ),
    Exclusion(
        f"{_DATA}/kernel_tests/map_test.py",
        "*CreateVariableInsideFunctionWithGetter",
        "waits for an error where a variable that a function of the oldest kind makes can be assigned here",
    ),
    Exclusion(
        f"{_DATA}/kernel_tests/map_test.py",
        "*RefVariablesWithMultipleDevices",
        "a reference variable that is made inside a dataset's function stays in it and has no initial value",
    ),
    Exclusion(
        f"{_DATA}/kernel_tests/window_test.py",
        "WindowTest.testWindowIgnoreErrors",
        "an element that cannot be had fails a dataset of windows also where no window takes it",
    ),
    Exclusion(
        f"{_DATA}/experimental/kernel_tests/stats_dataset_ops_test.py",
        "FeatureStatsDatasetTest.testFeaturesStats",
        "the statistics of parsing have no thread utilization",
    ),
)
