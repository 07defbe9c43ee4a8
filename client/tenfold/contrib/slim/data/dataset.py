"""`Dataset`: what a data set of records is made of. Follows TensorFlow 1.15's contrib/slim (dataset.py)."""

from __future__ import annotations

from typing import Any


class Dataset:
    """Files, the class that reads them, the decoder of a record, the number of examples; other keywords as given."""

    def __init__(
        self,
        data_sources: Any,
        reader: Any,
        decoder: Any,
        num_samples: int,
        items_to_descriptions: Any,
        **kwargs: Any,
    ) -> None:
        self.data_sources = data_sources
        self.reader = reader
        self.decoder = decoder
        self.num_samples = num_samples
        self.items_to_descriptions = items_to_descriptions
        self.__dict__.update(kwargs)
