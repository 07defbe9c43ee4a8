"""Candidate sampling: draws classes for losses over very many classes.

The samplers give (sampled classes, expected counts of the true classes, expected counts of the sampled ones). Exported
by ops/nn.py and ops/random.py; sampled_losses.py uses them. Follows TF 1.15's ops/candidate_sampling_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tenfold.graph.op_builder import apply_op
from tenfold.named import named
from tenfold.ops.random_seed import get_seed

if TYPE_CHECKING:
    from collections.abc import Sequence


def _sampled(op_type: str, name: str | None, seed: int | None, **arguments: Any) -> Any:
    first, second = get_seed(seed)
    return apply_op(op_type, name, seed=first, seed2=second, **arguments)


class _Sampler(Protocol):
    def __call__(
        self,
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any: ...


def _sampler(made: str, op_type: str, doc: str) -> _Sampler:
    def sample(
        true_classes: Any,
        num_true: int,
        num_sampled: int,
        unique: bool,
        range_max: int,
        seed: int | None = None,
        name: str | None = None,
    ) -> Any:
        drawn = {"num_sampled": num_sampled, "unique": unique, "range_max": range_max}
        return _sampled(op_type, name, seed, true_classes=true_classes, num_true=num_true, **drawn)

    return named(sample, made, doc)


uniform_candidate_sampler = _sampler(
    "uniform_candidate_sampler",
    "UniformCandidateSampler",
    "Classes in [0, range_max), all equally likely; with `unique` no class twice in a batch.",
)
log_uniform_candidate_sampler = _sampler(
    "log_uniform_candidate_sampler",
    "LogUniformCandidateSampler",
    "Classes with a log-uniform (Zipfian) distribution: for vocabularies sorted by falling frequency.",
)
learned_unigram_candidate_sampler = _sampler(
    "learned_unigram_candidate_sampler",
    "LearnedUnigramCandidateSampler",
    "Classes with the frequencies of the true classes of all steps so far.",
)


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """Classes with the frequencies in `vocab_file` or `unigrams`, raised to the power `distortion`."""
    return _sampled(
        "FixedUnigramCandidateSampler",
        name,
        seed,
        true_classes=true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
        range_max=range_max,
        vocab_file=vocab_file,
        distortion=distortion,
        num_reserved_ids=num_reserved_ids,
        num_shards=num_shards,
        shard=shard,
        unigrams=list(unigrams),
    )


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Any:
    """All classes in [0, num_sampled), for comparison with the full loss."""
    return _sampled(
        "AllCandidateSampler",
        name,
        seed,
        true_classes=true_classes,
        num_true=num_true,
        num_sampled=num_sampled,
        unique=unique,
    )


def compute_accidental_hits(
    true_classes: Any, sampled_candidates: Any, num_true: int, seed: int | None = None, name: str | None = None
) -> Any:
    """Where a sampled class is a true one: (rows, columns, weights), the weights being the lowest float."""
    return _sampled(
        "ComputeAccidentalHits",
        name,
        seed,
        true_classes=true_classes,
        sampled_candidates=sampled_candidates,
        num_true=num_true,
    )
