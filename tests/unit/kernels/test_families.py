"""Which modules hold a family's kernels, by their names."""

from __future__ import annotations

from tenfold_kernels import families


def test_a_family_has_the_modules_that_begin_with_its_name() -> None:
    on_cpu = families.modules_of("CPU")
    assert on_cpu["audio"] == ("tenfold_kernels.cpu.audio",)
    arrays = on_cpu["array"]
    assert {"tenfold_kernels.cpu.array", "tenfold_kernels.cpu.array_gather"} <= set(arrays)
    assert list(arrays) == sorted(arrays)
    assert "tenfold_kernels.cuda.math" in families.modules_of("GPU")["math"]
    assert not [name for names in on_cpu.values() for name in names if name.rpartition(".")[2].startswith("_")]
    assert families.modules_of("CPU") is on_cpu, "the folder is read once"
    assert list(families.FOLDERS) == ["CPU", "GPU"]
