"""`DatasetDataProvider`: the items of a data set's records, read by several readers.

Follows TensorFlow 1.15's contrib/slim/python/slim/data/dataset_data_provider.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.contrib.slim.data.data_provider import DataProvider
from tenfold.contrib.slim.data.parallel_reader import parallel_read

if TYPE_CHECKING:
    from tenfold.contrib.slim.data.dataset import Dataset


class DatasetDataProvider(DataProvider):
    """Provides one example; queue runners read ahead. The item `record_key` is the record's place in its file.

    Raises ValueError if the data set has an item of that name.
    """

    def __init__(
        self,
        dataset: Dataset,
        num_readers: int = 1,
        reader_kwargs: Any = None,
        shuffle: bool = True,
        num_epochs: int | None = None,
        common_queue_capacity: int = 256,
        common_queue_min: int = 128,
        record_key: str = "record_key",
        seed: int | None = None,
        scope: Any = None,
    ) -> None:
        key, data = parallel_read(
            dataset.data_sources,
            reader_class=dataset.reader,
            num_epochs=num_epochs,
            num_readers=num_readers,
            reader_kwargs=reader_kwargs,
            shuffle=shuffle,
            capacity=common_queue_capacity,
            min_after_dequeue=common_queue_min,
            seed=seed,
            scope=scope,
        )
        items = dataset.decoder.list_items()
        tensors = dict(zip(items, dataset.decoder.decode(data, items), strict=True))
        if record_key in tensors:
            raise ValueError(
                f"The item name used for `record_key` cannot also be used for a dataset item: {record_key}"
            )
        tensors[record_key] = key
        super().__init__(items_to_tensors=tensors, num_samples=dataset.num_samples)
