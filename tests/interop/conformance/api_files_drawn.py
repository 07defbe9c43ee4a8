"""Twenty test files of TensorFlow 1.15 that were in no list, for its API on Tenfold's client. Read by api_files.py.

Drawn: all such files were put in an order by a seed, and these are the first that test public behaviour in graph mode.
Passed over were those of eager execution, of ragged tensors, of internal modules, of operations that are not here, of
a library built for the test, of classes without a public name, and one that wants 2^31 elements.
"""

from __future__ import annotations

from files import Exclusion

_P = "tensorflow/python"
_K = f"{_P}/kernel_tests"

#: Folder → stems of its test files.
_FILES = {
    _K: (
        "sparse_concat_op gather_op dense_update_ops_no_tsan extract_image_patches_grad extract_volume_patches_op "
        "stage_op basic_gpu nth_element_op depthtospace_op softsign_op"
    ),
    f"{_K}/random": "random_crop multinomial_op",
    f"{_K}/distributions": "kullback_leibler student_t",
    f"{_K}/signal": "fft_ops",
    f"{_P}/framework": "smart_cond",
    f"{_P}/ops": "sort_ops control_flow_ops init_ops special_math_ops",
}

FILES = tuple(f"{folder}/{stem}_test.py" for folder, stems in _FILES.items() for stem in stems.split())

_EAGER = "gradients of eager execution"
_FUNCTION = "functions of TensorFlow 2"
_PRIVATE = "a function or a class of TensorFlow's own modules, without a public name"

#: File → reason → tests that are no public behaviour of graph mode.
_OUT: dict[str, dict[str, tuple[str, ...]]] = {
    f"{_P}/framework/smart_cond": {_PRIVATE: ("SmartCaseTest.*",)},
    f"{_P}/ops/control_flow_ops": {
        _EAGER: ("IndexedCaseTest.testCase_gradient*",),
        _FUNCTION: ("AssertTest.testAssertInFunction",),
        _PRIVATE: ("ContextTest.testControlContextImportScope",),
    },
    f"{_K}/distributions/student_t": {_EAGER: ("StudentTTest.testFullyReparameterized",)},
}

EXCLUDED = tuple(
    Exclusion(f"{path}_test.py", test, why)
    for path, reasons in _OUT.items()
    for why, tests in reasons.items()
    for test in tests
)
