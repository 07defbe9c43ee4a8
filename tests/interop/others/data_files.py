"""Small tables and texts of the forms that public programs read, made up. Used by table.py; data.py has the rest."""

from __future__ import annotations

import json
import random
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: text8.zip's size, by which programs tell that the download was whole.
_TEXT8_BYTES = 31344016
_WORDS = ("the", "of", "and", "one", "in", "a", "to", "zero", "nine", "two")
#: Columns of the census, each with some of its values; the last is the label.
_CENSUS = (
    (17, 90), ("Private", "State-gov", "Self-emp-inc"), (20000, 900000), ("Bachelors", "HS-grad", "11th", "Masters"),
    (1, 16), ("Never-married", "Divorced", "Widowed"), ("Adm-clerical", "Sales", "Tech-support"),
    ("Husband", "Wife", "Own-child"), ("White", "Black"), ("Male", "Female"), (0, 3000), (0, 2000), (10, 60),
    ("United-States", "India", "Mexico"), ("<=50K", ">50K"),
)  # fmt: skip
#: Columns of imports-85.data: values, or (least, most) of a number.
_CARS = (
    (-3, 3), (65, 256), ("audi", "bmw", "mazda", "volvo"), ("gas", "diesel"), ("std", "turbo"), ("two", "four"),
    ("sedan", "wagon", "hatchback"), ("fwd", "rwd"), ("front",), (86.0, 120.0), (141.0, 208.0), (60.0, 72.0),
    (47.0, 59.0), (1488, 4066), ("ohc", "dohc"), ("four", "six"), (61, 326), ("mpfi", "2bbl"), (2.0, 4.0), (2.0, 4.0),
    (7.0, 23.0), (48, 288), (4150, 6600), (13, 49), (16, 54), (5118, 45400),
)  # fmt: skip


def _row(columns: tuple[tuple[object, ...], ...], rng: random.Random) -> list[str]:
    def value(column: tuple[object, ...]) -> object:
        if isinstance(column[0], str):
            return rng.choice(column)
        low, high = column
        return round(rng.uniform(low, high), 2) if isinstance(low, float) else rng.randint(low, high)  # type: ignore[arg-type]

    return [str(value(column)) for column in columns]


def write_iris(folder: Path) -> None:
    """Three kinds of flowers, each around lengths of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(5)
    for name, count in (("iris_training.csv", 120), ("iris_test.csv", 30)):
        kinds = [rng.randrange(3) for _ in range(count)]
        rows = [[f"{rng.gauss(3 + kind, 0.4):.1f}" for _ in range(4)] + [str(kind)] for kind in kinds]
        lines = [f"{count},4,setosa,versicolor,virginica", *(",".join(row) for row in rows)]
        (folder / name).write_text("\n".join(lines) + "\n")


def write_abalone(folder: Path) -> None:
    """Seven lengths and weights of a shell, and its rings."""
    rng = random.Random(6)
    for name, count in (("train", 200), ("test", 50), ("predict", 5)):
        rows = [[f"{rng.uniform(0.1, 0.9):.3f}" for _ in range(7)] + [str(rng.randint(4, 20))] for _ in range(count)]
        (folder / f"abalone_{name}.csv").write_text("".join(",".join(row) + "\n" for row in rows))


def write_census(folder: Path) -> None:
    """Rows of the census as its archive writes them; the first line of the test is a remark."""
    rng = random.Random(7)
    for name, count in (("adult.data", 400), ("adult.test", 100)):
        rows = "".join(", ".join(_row(_CENSUS, rng)) + "\n" for _ in range(count))
        (folder / name).write_text(("|1x3 Cross validator\n" if name.endswith("test") else "") + rows)


def write_clean_census(folder: Path, blank: str = "") -> None:
    """The same without blanks and remarks, as the official models' own program leaves it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_census(folder)
    for name in ("adult.data", "adult.test"):
        lines = (folder / name).read_text().splitlines()
        kept = [line.replace(", ", f",{blank}") for line in lines if not line.startswith("|")]
        (folder / name).write_text("\n".join(kept) + "\n")


def write_blank_census(folder: Path) -> None:
    """The same without remarks alone: programs that know ` Male` want the blanks."""
    write_clean_census(folder, " ")


def write_cars(folder: Path) -> None:
    """Cars and their prices, where `get_file` keeps what it has downloaded; `folder` is the user's."""
    rng = random.Random(8)
    kept = folder / ".keras" / "datasets"
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "imports-85.data").write_text("".join(",".join(_row(_CARS, rng)) + "\n" for _ in range(205)))


def write_articles(folder: Path) -> None:
    """Class, title and abstract of made-up articles."""
    rng = random.Random(9)
    inner = folder / "dbpedia_csv"
    inner.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 280), ("test", 56)):
        texts = [[" ".join(rng.choices(_WORDS, k=size)) for size in (3, 30)] for _ in range(count)]
        text = "".join(f'{i % 14 + 1},"{title}","{abstract}"\n' for i, (title, abstract) in enumerate(texts))
        (inner / f"{name}.csv").write_text(text)
        (inner / f"{name}_small.csv").write_text(text)


def write_small_corpus(folder: Path) -> None:
    """Words and tags of the sentences that lie there, with their numbers."""
    sizes: dict[str, object] = {"pad_word": "<pad>", "pad_tag": "O", "num_oov_buckets": 1}
    words: set[str] = set()
    tags: set[str] = set()
    for part in ("train", "dev", "test"):
        lines = (folder / part / "sentences.txt").read_text(encoding="utf-8").splitlines()
        words.update(word for line in lines for word in line.split())
        tags.update((folder / part / "labels.txt").read_text(encoding="utf-8").split())
        sizes[f"{part}_size"] = len(lines)
    (folder / "words.txt").write_text("\n".join([*sorted(words - {"<pad>"}), "<pad>"]), encoding="utf-8")
    (folder / "tags.txt").write_text("\n".join(sorted(tags)), encoding="utf-8")
    sizes |= {"vocab_size": len(words | {"<pad>"}) + 1, "number_of_tags": len(tags)}
    (folder / "dataset_params.json").write_text(json.dumps(sizes))


def write_text8(folder: Path) -> None:
    """A text of ten words many times over, in an archive of text8.zip's size: zeros before it fill it up.

    It is longer than a program reads before its time is over: at the end of the text word2vec_basic.py fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, rng = folder / "text8.zip", random.Random(10)
    words = [*(f"w{i}" for i in range(60000)), *_WORDS * 100]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("text8", (" ".join(rng.choices(words, k=150000)) + " ") * 16)
    packed = path.read_bytes()
    with open(path, "wb") as file:
        file.seek(_TEXT8_BYTES - len(packed))
        file.write(packed)
