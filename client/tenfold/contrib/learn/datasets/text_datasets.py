"""Texts to classify: DBpedia, from local files. Follows TensorFlow 1.15's `datasets/text_datasets.py`."""

from __future__ import annotations

import os

import numpy as np

from tenfold import gfile
from tenfold.contrib.learn.datasets.base import Datasets, load_csv_without_header

_SOURCE = "dbpedia_csv.tar.gz of the text classification data sets of Zhang, Zhao and LeCun"


def load_dbpedia(size: str = "small", test_with_fake_data: bool = False, data_dir: str = "dbpedia_data") -> Datasets:
    """Class, title and abstract of articles, from `dbpedia_csv` below `data_dir`. Raises FileNotFoundError.

    `size` "small" reads `train_small.csv` and `test_small.csv`, which `base.shrink_csv` makes.
    """
    folder = os.path.join(data_dir, "dbpedia_csv")
    suffix = "_small" if size == "small" else ""
    paths = [os.path.join(folder, f"{part}{suffix}.csv") for part in ("train", "test")]
    for path in paths:
        if not gfile.Exists(path):
            raise FileNotFoundError(
                f"{path} is missing. Tenfold downloads no data sets: unpack {_SOURCE} in {data_dir}"
                + (", and make the small files with datasets.base.shrink_csv" if suffix else "")
            )
    train, test = (load_csv_without_header(path, np.int32, np.str_, target_column=0) for path in paths)
    return Datasets(train=train, validation=None, test=test)
