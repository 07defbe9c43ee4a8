"""Gradient rows of files and checkpoints; the op definitions are in tenfold_core/opdefs/io.py.

Nothing read from or written to a file has a gradient.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "DecodeCSV",
    "DecodeRaw",
    "FixedLengthRecordReaderV2",
    "GenerateVocabRemapping",
    "IdentityReaderV2",
    "LoadAndRemapMatrix",
    "MatchingFiles",
    "MergeV2Checkpoints",
    "ParseExample",
    "ParseExampleV2",
    "ParseSingleExample",
    "ReadFile",
    "ReaderNumRecordsProducedV2",
    "ReaderNumWorkUnitsCompletedV2",
    "ReaderReadUpToV2",
    "ReaderReadV2",
    "ReaderResetV2",
    "ReaderRestoreStateV2",
    "ReaderSerializeStateV2",
    "Restore",
    "RestoreSlice",
    "RestoreV2",
    "Save",
    "SaveSlices",
    "SaveV2",
    "ShardedFilename",
    "ShardedFilespec",
    "TFRecordReaderV2",
    "TextLineReaderV2",
    "WholeFileReaderV2",
    "WriteFile",
    why="reads or writes files",
)
not_differentiable(
    "DecodePaddedRaw",
    "FixedLengthRecordReader",
    "IdentityReader",
    "LMDBReader",
    "ParseSequenceExample",
    "ParseSequenceExampleV2",
    "ParseSingleSequenceExample",
    "ParseTensor",
    "ReaderNumRecordsProduced",
    "ReaderNumWorkUnitsCompleted",
    "ReaderRead",
    "ReaderReadUpTo",
    "ReaderReset",
    "ReaderRestoreState",
    "ReaderSerializeState",
    "SerializeTensor",
    "TFRecordReader",
    "TextLineReader",
    "WholeFileReader",
    why="the value comes from a file or goes into one",
)
