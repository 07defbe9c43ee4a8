# Written by `make stubs` from the table of tf.random in namespaces.py.

from tenfold.ops.random import all_candidate_sampler
from tenfold.ops.random import categorical
from tenfold.ops.random import fixed_unigram_candidate_sampler
from tenfold.ops.random import learned_unigram_candidate_sampler
from tenfold.ops.random import log_uniform_candidate_sampler
from tenfold.ops.random import multinomial
from tenfold.ops.random import random_gamma as gamma
from tenfold.ops.random import random_normal as normal
from tenfold.ops.random import random_poisson as poisson
from tenfold.ops.random import random_shuffle as shuffle
from tenfold.ops.random import random_uniform as uniform
from tenfold.ops.random import truncated_normal
from tenfold.ops.random import uniform_candidate_sampler
from tenfold.ops.random_seed import get_seed
from tenfold.ops.random_seed import set_random_seed
from tenfold.ops.random_stateless import stateless_categorical
from tenfold.ops.random_stateless import stateless_multinomial
from tenfold.ops.random_stateless import stateless_random_normal as stateless_normal
from tenfold.ops.random_stateless import stateless_random_uniform as stateless_uniform
from tenfold.ops.random_stateless import stateless_truncated_normal

__all__ = [
    "all_candidate_sampler",
    "categorical",
    "fixed_unigram_candidate_sampler",
    "gamma",
    "get_seed",
    "learned_unigram_candidate_sampler",
    "log_uniform_candidate_sampler",
    "multinomial",
    "normal",
    "poisson",
    "set_random_seed",
    "shuffle",
    "stateless_categorical",
    "stateless_multinomial",
    "stateless_normal",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]
