# Written by `make stubs` from the table of tf.strings in namespaces.py.

from tenfold.ops.generated_ops import string_to_hash_bucket_strong as to_hash_bucket_strong
from tenfold.ops.generated_ops import unicode_transcode
from tenfold.ops.generated_ops import unsorted_segment_join
from tenfold.ops.string import as_string
from tenfold.ops.string import format
from tenfold.ops.string import length
from tenfold.ops.string import lower
from tenfold.ops.string import reduce_join
from tenfold.ops.string import regex_full_match
from tenfold.ops.string import regex_replace
from tenfold.ops.string import string_join as join
from tenfold.ops.string import string_strip as strip
from tenfold.ops.string import string_to_hash_bucket as to_hash_bucket
from tenfold.ops.string import string_to_hash_bucket_fast as to_hash_bucket_fast
from tenfold.ops.string import string_to_number as to_number
from tenfold.ops.string import substr
from tenfold.ops.string import upper
from tenfold.ops.string_split import split

__all__ = [
    "as_string",
    "format",
    "join",
    "length",
    "lower",
    "reduce_join",
    "regex_full_match",
    "regex_replace",
    "split",
    "strip",
    "substr",
    "to_hash_bucket",
    "to_hash_bucket_fast",
    "to_hash_bucket_strong",
    "to_number",
    "unicode_transcode",
    "unsorted_segment_join",
    "upper",
]
