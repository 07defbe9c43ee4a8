"""`tf.contrib.learn.preprocessing`: words and categories as numbers."""

from tenfold.contrib.learn.preprocessing.categorical import CategoricalProcessor
from tenfold.contrib.learn.preprocessing.categorical_vocabulary import CategoricalVocabulary
from tenfold.contrib.learn.preprocessing.text import ByteProcessor, VocabularyProcessor, tokenizer

__all__ = ["ByteProcessor", "CategoricalProcessor", "CategoricalVocabulary", "VocabularyProcessor", "tokenizer"]
