"""`tf.data.Options` and the groups of options in it: how a dataset is run, not what it gives.

Each option is a property that is checked when it is set; `merge` joins the options of inputs. What they ask for becomes
operations around the dataset (`dataset.py`). Follows TensorFlow 1.15's data/util/options.py and the options of
data/experimental/ops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.data.stats_aggregator import StatsAggregator

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "DistributeOptions",
    "MapVectorizationOptions",
    "OptimizationOptions",
    "Options",
    "StatsOptions",
    "ThreadingOptions",
]


class OptionsBase:
    """A group of options. Setting anything but its options raises AttributeError."""

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in {*self._options, *other._options})

    def __ne__(self, other: object) -> Any:
        return not self == other if isinstance(other, type(self)) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    _options: dict[str, Any]


def _option(name: str, kind: Any, docstring: str, default: Callable[[], Any] = lambda: None) -> Any:
    def get(group: OptionsBase) -> Any:
        if name not in group._options:
            group._options[name] = default()
        return group._options[name]

    def set_(group: OptionsBase, value: Any) -> None:
        if not isinstance(value, kind):
            raise TypeError(f'Property "{name}" must be of type {kind}, got: {value!r} (type: {type(value)!r})')
        group._options[name] = value

    return property(get, set_, None, docstring)


def merge_options(*options_list: Any) -> Any:
    """The options of all. Raises TypeError for different kinds, ValueError for values that contradict each other."""
    if not options_list:
        raise ValueError("At least one options should be provided")
    kind = type(options_list[0])
    for options in options_list:
        if not isinstance(options, kind):
            raise TypeError(f"Incompatible options type: {type(options)!r} vs {kind!r}")
    if not isinstance(options_list[0], OptionsBase):
        raise TypeError("The inputs should inherit from `OptionsBase`")
    default, result = kind(), kind()
    for options in options_list:
        for name in options._options:
            this, that, unset = getattr(result, name), getattr(options, name), getattr(default, name)
            if that == unset:
                continue
            if this == unset:
                setattr(result, name, that)
            elif isinstance(this, OptionsBase):
                setattr(result, name, merge_options(this, that))
            elif this != that:
                raise ValueError(f"Cannot merge incompatible values ({this!r} and {that!r}) of option: {name}")
    return result


class DistributeOptions(OptionsBase):
    """How a dataset is shared among workers; strategies read it."""

    auto_shard = _option("auto_shard", bool, "Whether workers get a shard each; by default True.", lambda: True)
    _make_stateless = _option("_make_stateless", bool, "Whether transformations that keep a state are rewritten.")
    num_devices = _option("num_devices", int, "The number of devices that read from the dataset.")


class MapVectorizationOptions(OptionsBase):
    """Whether functions of elements are turned into functions of batches."""

    enabled = _option("enabled", bool, "Whether they are; by default not.")
    use_choose_fastest = _option("use_choose_fastest", bool, "Whether the faster of the two is found out.")

    def _static_optimizations(self) -> list[str]:
        return ["map_vectorization"] if self.enabled else []

    def _static_optimization_configs(self) -> list[str]:
        return [f"map_vectorization:use_choose_fastest:{'true' if self.use_choose_fastest else 'false'}"]


#: Rewritings that are asked for by name; those of the second row happen unless they are switched off.
_REWRITINGS = (
    *("filter_fusion", "filter_with_random_uniform_fusion", "hoist_random_uniform", "map_and_filter_fusion"),
    *("map_and_batch_fusion", "map_fusion", "map_parallelization", "noop_elimination", "parallel_batch"),
    "shuffle_and_repeat_fusion",
)
_BY_DEFAULT = ("map_and_batch_fusion", "noop_elimination", "shuffle_and_repeat_fusion")


class OptimizationOptions(OptionsBase):
    """Which rewritings of the pipeline are made. The options are those of TensorFlow 1.15."""

    apply_default_optimizations = _option("apply_default_optimizations", bool, "Whether the usual ones are made.")
    autotune = _option("autotune", bool, "Whether the number of parallel calls is found out; by default True.")
    autotune_algorithm = _option("autotune_algorithm", int, "By which algorithm.")
    autotune_buffers = _option("autotune_buffers", bool, "Whether sizes of buffers are found out, too.")
    autotune_cpu_budget = _option("autotune_cpu_budget", int, "How many cores may be used; by default all.")
    filter_fusion = _option("filter_fusion", bool, "Whether filters are joined.")
    filter_with_random_uniform_fusion = _option(
        "filter_with_random_uniform_fusion", bool, "Whether a filter by random numbers becomes a sampling."
    )
    hoist_random_uniform = _option("hoist_random_uniform", bool, "Whether random numbers are taken out of functions.")
    map_and_batch_fusion = _option("map_and_batch_fusion", bool, "Whether map and batch are joined; by default True.")
    map_and_filter_fusion = _option("map_and_filter_fusion", bool, "Whether map and filter are joined.")
    map_fusion = _option("map_fusion", bool, "Whether maps are joined.")
    map_parallelization = _option("map_parallelization", bool, "Whether stateless maps become parallel.")
    map_vectorization = _option(
        "map_vectorization", MapVectorizationOptions, "See MapVectorizationOptions.", MapVectorizationOptions
    )
    noop_elimination = _option("noop_elimination", bool, "Whether what does nothing is left away; by default True.")
    parallel_batch = _option("parallel_batch", bool, "Whether elements are copied into batches in parallel.")
    shuffle_and_repeat_fusion = _option(
        "shuffle_and_repeat_fusion", bool, "Whether shuffle and repeat are joined; by default True."
    )

    def _static_optimizations(self) -> list[str]:
        chosen = {name for name in _REWRITINGS if getattr(self, name)}
        if self.apply_default_optimizations is not False:
            chosen.update(name for name in _BY_DEFAULT if getattr(self, name) is not False)
        if self.map_vectorization is not None:
            chosen.update(self.map_vectorization._static_optimizations())
        if self.autotune is not False and self.autotune_buffers:
            chosen.add("inject_prefetch")
        return sorted(chosen)

    def _static_optimization_configs(self) -> list[str]:
        return [] if self.map_vectorization is None else self.map_vectorization._static_optimization_configs()


class StatsOptions(OptionsBase):
    """Where figures about a pipeline go."""

    aggregator = _option("aggregator", StatsAggregator, "The aggregator that collects them.")
    prefix = _option("prefix", str, "What the names of all figures begin with.", str)
    counter_prefix = _option("counter_prefix", str, "What the names of counters begin with.", str)
    latency_all_edges = _option("latency_all_edges", bool, "Whether each transformation is timed; by default not.")


class ThreadingOptions(OptionsBase):
    """The threads of a pipeline."""

    max_intra_op_parallelism = _option("max_intra_op_parallelism", int, "The most threads of one operation.")
    private_threadpool_size = _option("private_threadpool_size", int, "The size of a pool of the pipeline's own.")


class Options(OptionsBase):
    """`tf.data.Options`, given to `Dataset.with_options`."""

    experimental_deterministic = _option(
        "experimental_deterministic", bool, "Whether the order of elements is always the same; by default True."
    )
    experimental_distribute = _option(
        "experimental_distribute", DistributeOptions, "See DistributeOptions.", DistributeOptions
    )
    experimental_optimization = _option(
        "experimental_optimization", OptimizationOptions, "See OptimizationOptions.", OptimizationOptions
    )
    experimental_slack = _option("experimental_slack", bool, "Whether the last prefetch leaves room for a step.")
    experimental_stats = _option("experimental_stats", StatsOptions, "See StatsOptions.", StatsOptions)
    experimental_threading = _option(
        "experimental_threading", ThreadingOptions, "See ThreadingOptions.", ThreadingOptions
    )
    experimental_stateful_whitelist = _option(
        "experimental_stateful_whitelist", list, "Stateful operations that may be saved, at the program's own risk."
    )

    def _static_optimizations(self) -> list[str]:
        result: list[str] = self.experimental_optimization._static_optimizations()
        asked = {
            "make_sloppy": self.experimental_deterministic is False,
            "latency_all_edges": self.experimental_stats.latency_all_edges,
            "slack": self.experimental_slack,
            "make_stateless": self.experimental_distribute._make_stateless,
        }
        return [*result, *(name for name, wanted in asked.items() if wanted)]

    def _static_optimization_configs(self) -> list[str]:
        result: list[str] = self.experimental_optimization._static_optimization_configs()
        if self.experimental_slack:
            result.append(f"slack:slack_period:{self.experimental_distribute.num_devices or 1}")
        return result

    def merge(self, options: Options) -> Options:
        """These options and `options`. Raises ValueError where the two contradict each other."""
        merged: Options = merge_options(self, options)
        return merged
