"""`TFExampleDecoder`: takes items such as images and boxes out of serialized `tf.train.Example`s.

A handler for each item makes it of the features it names. Follows TensorFlow 1.15's
contrib/slim/python/slim/data/tfexample_decoder.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tenfold.contrib.slim.data.data_decoder import DataDecoder
from tenfold.graph import sparse_tensor
from tenfold.namespaces import namespace
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.functional import map_fn
from tenfold.ops.io import decode_raw
from tenfold.ops.parsing import FixedLenFeature, parse_single_example
from tenfold.ops.reductions import reduce_prod
from tenfold.ops.sparse import sparse_reshape, sparse_tensor_to_dense
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class ItemHandler(ABC):
    """Makes an item of the features `keys`."""

    def __init__(self, keys: Any) -> None:
        self._keys = list(keys) if isinstance(keys, (tuple, list)) else [keys]

    @property
    def keys(self) -> list[str]:
        """The names of the features."""
        return self._keys

    @abstractmethod
    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        """The item."""


class ItemHandlerCallback(ItemHandler):
    """Makes the item by a function of {feature: tensor}."""

    def __init__(self, keys: Any, func: Callable[[Any], Any]) -> None:
        super().__init__(keys)
        self._func = func

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._func(keys_to_tensors)


class BoundingBox(ItemHandler):
    """Boxes (number, 4) of the features `prefix` + each of four keys."""

    def __init__(self, keys: Sequence[str] | None = None, prefix: str = "") -> None:
        if keys is None:
            keys = ["ymin", "xmin", "ymax", "xmax"]
        elif len(keys) != 4:
            raise ValueError(f"BoundingBox expects 4 keys but got {len(keys)}")
        super().__init__([prefix + key for key in keys])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        sides = [keys_to_tensors[key] for key in self._keys]
        sides = [side.values if isinstance(side, sparse_tensor.SparseTensor) else side for side in sides]
        return array.transpose(array.concat([array.expand_dims(side, 0) for side in sides], 0))


class Tensor(ItemHandler):
    """A feature as it is, dense, in the shape that is given or that other features say.

    Raises ValueError for both `shape_keys` and `shape`.
    """

    def __init__(self, tensor_key: str, shape_keys: Any = None, shape: Any = None, default_value: Any = 0) -> None:
        if shape_keys and shape is not None:
            raise ValueError("Cannot specify both shape_keys and shape parameters.")
        self._shape_keys = [shape_keys] if shape_keys and not isinstance(shape_keys, list) else shape_keys
        self._tensor_key = tensor_key
        self._shape = shape
        self._default_value = default_value
        super().__init__([tensor_key, *(self._shape_keys or ())])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        tensor = keys_to_tensors[self._tensor_key]
        shape = self._shape
        if self._shape_keys:
            sizes = [_dense(keys_to_tensors[key]) for key in self._shape_keys]
            shape = array.reshape(array.stack(sizes), [-1])
        if isinstance(tensor, sparse_tensor.SparseTensor):
            if shape is not None:
                tensor = sparse_reshape(tensor, shape)
            return sparse_tensor_to_dense(tensor, self._default_value)
        return tensor if shape is None else array.reshape(tensor, shape)


def _dense(value: Any) -> Any:
    return sparse_tensor_to_dense(value) if isinstance(value, sparse_tensor.SparseTensor) else value


class LookupTensor(Tensor):
    """`Tensor`, with each element looked up in a table."""

    def __init__(
        self, tensor_key: str, table: Any, shape_keys: Any = None, shape: Any = None, default_value: Any = ""
    ) -> None:
        self._table = table
        super().__init__(tensor_key, shape_keys, shape, default_value)

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        return self._table.lookup(super().tensors_to_item(keys_to_tensors))


class BackupHandler(ItemHandler):
    """The item of `handler`, or that of `backup` where the first is empty. Raises ValueError for no handlers."""

    def __init__(self, handler: Any, backup: Any) -> None:
        for name, each in (("Primary", handler), ("Backup", backup)):
            if not isinstance(each, ItemHandler):
                raise ValueError(f"{name} handler is of type {type(each)} instead of ItemHandler")
        self._handler, self._backup = handler, backup
        super().__init__(handler.keys + backup.keys)

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        item = self._handler.tensors_to_item(keys_to_tensors)
        return cond(
            math.equal(reduce_prod(array.shape(item)), 0),
            lambda: self._backup.tensors_to_item(keys_to_tensors),
            lambda: item,
        )


class SparseTensor(ItemHandler):
    """A sparse tensor of two features: the last index of each element, and its value; dense if `densify`."""

    def __init__(
        self,
        indices_key: str | None = None,
        values_key: str | None = None,
        shape_key: str | None = None,
        shape: Any = None,
        densify: bool = False,
        default_value: Any = 0,
    ) -> None:
        self._indices_key, self._values_key = indices_key or "indices", values_key or "values"
        self._shape_key, self._shape = shape_key, shape
        self._densify, self._default_value = densify, default_value
        super().__init__([self._indices_key, self._values_key, *([shape_key] if shape_key else [])])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        indices, values = keys_to_tensors[self._indices_key], keys_to_tensors[self._values_key]
        given = self._shape or indices.dense_shape
        shape = _dense(keys_to_tensors[self._shape_key]) if self._shape_key else given
        rank = array.shape(indices.indices)[1]
        leading = slicing.slice(indices.indices, [0, 0], array.stack([-1, rank - 1]))
        last = array.reshape(math.cast(indices.values, dtypes.int64), [-1, 1])
        tensor = sparse_tensor.SparseTensor(array.concat([leading, last], 1), values.values, shape)
        return sparse_tensor_to_dense(tensor, self._default_value) if self._densify else tensor


class Image(ItemHandler):
    """An image: encoded bytes of one feature, in the format that another one names; "raw" is not encoded."""

    def __init__(
        self,
        image_key: str | None = None,
        format_key: str | None = None,
        shape: Any = None,
        channels: int | None = 3,
        dtype: Any = dtypes.uint8,
        repeated: bool = False,
        dct_method: str = "",
    ) -> None:
        self._image_key, self._format_key = image_key or "image/encoded", format_key or "image/format"
        self._shape, self._channels, self._dtype = shape, channels, dtype
        self._repeated, self._dct_method = repeated, dct_method
        super().__init__([self._image_key, self._format_key])

    def tensors_to_item(self, keys_to_tensors: Mapping[str, Any]) -> Any:
        encoded, kind = keys_to_tensors[self._image_key], keys_to_tensors[self._format_key]
        if self._repeated:
            return map_fn(lambda each: self._decode(each, kind), encoded, dtype=self._dtype)
        return self._decode(encoded, kind)

    def _decode(self, encoded: Any, kind: Any) -> Any:
        images: Any = namespace("image")

        def of_any_format() -> Any:
            return math.cast(images.decode_image(encoded, channels=self._channels), self._dtype)

        def of_jpeg() -> Any:
            found = images.decode_jpeg(encoded, channels=self._channels, dct_method=self._dct_method)
            return math.cast(found, self._dtype)

        def of_encoded() -> Any:
            return cond(images.is_jpeg(encoded), of_jpeg, of_any_format, name="cond_jpeg")

        raw = math.logical_or(math.equal(kind, "raw"), math.equal(kind, "RAW"))
        image = cond(raw, lambda: decode_raw(encoded, out_type=self._dtype), of_encoded)
        image.set_shape([None, None, self._channels])
        return image if self._shape is None else array.reshape(image, self._shape)


class TFExampleDecoder(DataDecoder):
    """Decodes a serialized Example: `keys_to_features` as for `tf.parse_example`, `items_to_handlers` by item."""

    def __init__(self, keys_to_features: Mapping[str, Any], items_to_handlers: Mapping[str, ItemHandler]) -> None:
        self._keys_to_features = keys_to_features
        self._items_to_handlers = items_to_handlers

    def list_items(self) -> list[str]:
        """The names of the items."""
        return list(self._items_to_handlers)

    def decode(self, data: Any, items: Any = None) -> list[Any]:
        """The tensors of the items (default: all) of one serialized Example, a scalar string."""
        example = parse_single_example(data, self._keys_to_features)
        for key in sorted(self._keys_to_features):
            feature = self._keys_to_features[key]
            if isinstance(feature, FixedLenFeature):
                example[key] = array.reshape(example[key], feature.shape)
        handlers = [self._items_to_handlers[item] for item in items or self._items_to_handlers]
        return [handler.tensors_to_item({key: example[key] for key in handler.keys}) for handler in handlers]
