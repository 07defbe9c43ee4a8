"""Op definitions: the names under which release 1.15 keeps what was once tf.contrib.data's.

"Experimental" and the name of an op that is as it was then, but for attributes that came later. Their kernels are those
of the names without Experimental. Loaded by dataset.py; TensorFlow's registry at 2.21 is the source.
"""

from __future__ import annotations

from tenfold_core.opdefs.table import twin

_NAMES = """
AssertNextDataset AutoShardDataset BytesProducedStatsDataset CSVDataset ChooseFastestDataset DatasetCardinality
DatasetToTFRecord DenseToSparseBatchDataset DirectedInterleaveDataset GroupByReducerDataset GroupByWindowDataset
IgnoreErrorsDataset IteratorGetDevice LMDBDataset LatencyStatsDataset MapAndBatchDataset MapDataset MatchingFilesDataset
MaxIntraOpParallelismDataset NonSerializableDataset ParallelInterleaveDataset ParseExampleDataset
PrivateThreadPoolDataset RandomDataset RebatchDataset ScanDataset SetStatsAggregatorDataset SleepDataset
SlidingWindowDataset SqlDataset StatsAggregatorHandle StatsAggregatorSummary TakeWhileDataset ThreadPoolDataset
ThreadPoolHandle UnbatchDataset UniqueDataset
"""
#: Attributes that came after the names were kept.
_LATER = """
cardinality_options drop_remainder metadata num_replicas ragged_keys ragged_split_types ragged_value_types
stop_on_empty_dataset use_default_device
"""

for name in _NAMES.split():
    twin(f"Experimental{name}", name, _LATER.split())
