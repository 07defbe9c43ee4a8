"""The assertions of `tf.test.TestCase`: arrays, protocol buffers, errors. Mixed into case.py's TestCase.

Tensors, variables and handles are evaluated first. Follows TF 1.15's framework/test_util.py.
"""

from __future__ import annotations

import collections.abc
import contextlib
import re
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import text_format
from google.protobuf.message import Message

from tenfold.graph import IndexedSlices, Tensor
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Iterator


#: A float in the text of a protocol buffer.
_FLOAT = re.compile(r"(?<=: )-?\d+\.\d+(e[+-]?\d+)?(?=\n)|(?<=: )-?\d+e[+-]?\d+(?=\n)")


class Assertions:
    """Mixed into a unittest.TestCase that has `evaluate`. Each raises AssertionError that shows both sides."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def _array(self, value: Any) -> Any:
        """`value` as an array; tensors, variables and handles are evaluated."""
        if isinstance(value, (Tensor, IndexedSlices)) or hasattr(value, "_as_graph_element"):
            value = self.evaluate(value)
        if isinstance(value, np.ndarray):
            return value
        try:
            return np.array(value)
        except ValueError:  # ragged
            return np.array(value, dtype=object)

    def _GetNdArray(self, a: Any) -> Any:
        return self._array(a)

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Same shape, same elements; nan equals nan."""
        one, other = self._array(a), self._array(b)
        self.assertEqual(one.shape, other.shape, f"Shapes differ. {msg or ''}")
        same = one == other
        if one.dtype.kind in "fc" and other.dtype.kind in "fc":
            same = np.logical_or(same, np.logical_and(np.isnan(one), np.isnan(other)))
        if not np.all(same):
            self.fail(f"Arrays differ: {one!r} and {other!r}. {msg or ''}")

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        try:
            self.assertAllEqual(a, b)
        except AssertionError:
            return
        self.fail(f"The two values are equal at all elements. {msg or ''}")

    def assertAllClose(self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None) -> None:
        """Same structure and shapes, and |a - b| <= atol + rtol |b| everywhere."""
        one, other = _plain(a), _plain(b)
        if isinstance(one, collections.abc.Mapping):
            self.assertIsInstance(other, collections.abc.Mapping)
            self.assertEqual(set(one), set(other))
            for key in one:
                self.assertAllClose(one[key], other[key], rtol, atol, msg)
            return
        if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
            try:
                self._all_close(np.array(one), np.array(other), rtol, atol, msg)
            except (ValueError, TypeError):  # ragged, or not all of them arrays
                self.assertEqual(len(one), len(other))
                for mine, theirs in zip(one, other, strict=True):
                    self.assertAllClose(mine, theirs, rtol, atol, msg)
            return
        self._all_close(self._array(one), self._array(other), rtol, atol, msg)

    def _all_close(self, a: Any, b: Any, rtol: float, atol: float, msg: Any) -> None:
        if a.dtype == object or b.dtype == object:
            raise TypeError("not arrays of numbers")
        self.assertEqual(a.shape, b.shape, f"Shapes differ. {msg or ''}")
        if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
            self.fail(f"Not close within rtol {rtol}, atol {atol}: {a!r} and {b!r}. {msg or ''}")

    def assertNotAllClose(self, a: Any, b: Any, **named: Any) -> None:
        try:
            self.assertAllClose(a, b, **named)
        except AssertionError:
            return
        self.fail("The two values are close at all elements.")

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """`assertAllClose` with the tolerance of the narrower of the two types."""
        one, other = self._array(a), self._array(b)
        names = {one.dtype.name, other.dtype.name}
        for name, more_rtol, more_atol in (
            ("float32", float_rtol, float_atol),
            ("complex64", float_rtol, float_atol),
            ("float16", half_rtol, half_atol),
            ("bfloat16", bfloat16_rtol, bfloat16_atol),
        ):
            if name in names:
                rtol, atol = max(rtol, more_rtol), max(atol, more_atol)
        self.assertAllClose(one, other, rtol, atol, msg)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Every element is between the bounds; the bounds are included unless they are open."""
        values = self._array(target)
        above = values > lower_bound if open_lower_bound else values >= lower_bound
        below = values < upper_bound if open_upper_bound else values <= upper_bound
        if not np.all(above & below):
            self.fail(f"{values!r} leaves the range {lower_bound} to {upper_bound}")

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Every element is one of `expected_set`."""
        other = set(np.unique(self._array(target)).tolist()) - set(expected_set)
        if other:
            self.fail(f"{len(other)} unique element(s) are not in the set {expected_set}: {sorted(other)}")

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertArrayNear(self, farray1: Any, farray2: Any, err: float, msg: Any = None) -> None:
        self.assertEqual(len(farray1), len(farray2), msg)
        for one, other in zip(farray1, farray2, strict=True):
            self.assertNear(float(one), float(other), err, msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        self.assertLess(float(np.linalg.norm(np.asarray(ndarray1) - np.asarray(ndarray2))), err, msg)

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:
        """Numbers, or arrays of one element each."""
        near = np.all((np.equal(f1, f2)) | (np.abs(np.subtract(f1, f2)) <= err))
        self.assertTrue(near, f"{f1} is further than {err} from {f2}. {msg or ''}")

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: Any = None) -> None:
        self.assertAllEqual(np_array.shape, tf_tensor.get_shape().as_list(), msg=msg)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        self.assertEqual(dtypes.as_dtype(self._array(target).dtype), dtypes.as_dtype(expected_dtype))

    def assertProtoEquals(self, expected_message_maybe_ascii: Any, message: Any, msg: Any = None) -> None:
        """Equal messages, given as a message or its text; floats are compared to six digits."""
        expected = expected_message_maybe_ascii
        if not isinstance(expected, Message):
            parsed = type(message)()
            text_format.Parse(expected, parsed)
            expected = parsed
        if expected != message:
            # The floats may differ only beyond six digits.
            self.assertMultiLineEqual(_printed(expected), _printed(message), msg)

    def assertProtoEqualsVersion(
        self, expected: str, actual: Any, producer: int | None = None, min_consumer: int = 0, msg: Any = None
    ) -> None:
        from tenfold.graph.graph import GRAPH_DEF_VERSION

        consumer = f"min_consumer: {min_consumer}" if min_consumer else ""
        versions = f"versions {{ producer: {producer or GRAPH_DEF_VERSION} {consumer} }}"
        self.assertProtoEquals(f"{expected}\n{versions}", actual, msg)

    def assertStartsWith(self, actual: str, expected_start: str, msg: Any = None) -> None:
        self.assertTrue(actual.startswith(expected_start), f"{actual!r} does not start with {expected_start!r}")

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        self.assertEqual(0, len(container), msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        self.assertTrue(len(container), msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:
        self.assertTrue(minv <= value <= maxv, msg or f"{value} is not between {minv} and {maxv}")

    def assertItemsEqual(self, expected: Any, actual: Any, msg: Any = None) -> None:
        self.assertCountEqual(expected, actual, msg)

    @contextlib.contextmanager
    def assertRaisesWithPredicateMatch(self, exception_type: Any, expected_err_re_or_predicate: Any) -> Iterator[None]:
        """The block raises such an error, whose text (and whose op's, if it has one) matches."""
        try:
            yield
        except Exception as error:
            if callable(expected_err_re_or_predicate):
                matches = expected_err_re_or_predicate(error)
            else:
                text = error.message if isinstance(error, errors.OpError) else str(error)
                op = error.op if isinstance(error, errors.OpError) else None
                while op is not None:
                    text += f"\nCaused by: {op.name}"
                    op = getattr(op, "_original_op", None)
                matches = re.search(expected_err_re_or_predicate, text)
            if not isinstance(error, exception_type) or not matches:
                raise AssertionError(f"Exception of type {type(error)}: {error}") from error
        else:
            self.fail(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(self, expected_err_re_or_predicate: Any) -> Any:
        return self.assertRaisesWithPredicateMatch(errors.OpError, expected_err_re_or_predicate)


def _printed(message: Message) -> str:
    """`message` as text, with floats rounded to six digits."""
    text = text_format.MessageToString(message)
    return _FLOAT.sub(lambda found: f"{float(found[0]):.6g}", text)


def _plain(value: Any) -> Any:
    """A named tuple as a dictionary, as TensorFlow's assertion compares it."""
    return value._asdict() if hasattr(value, "_asdict") else value
