"""Transformers, written from ops as programs of 2018 and 2019 write them: an encoder that labels each token, BERT-tiny
with its two losses, and a small GPT-2 that draws text with its past kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, bias, cross_entropy, weight
from models.recurrent import sentences

if TYPE_CHECKING:
    from models import TF, Wrap

#: Of the encoder.
SENTENCES, TOKENS, WORDS, LAYERS, WIDTH, HEADS = 16, 64, 1000, 2, 128, 4
#: Of BERT-tiny: google's smallest, on sequences of 128 of which 20 tokens are masked.
BERT_SENTENCES, BERT_TOKENS, BERT_WORDS, MASKED = 8, 128, 30522, 20
#: Of the GPT-2: texts that are drawn at once, tokens of each, and those it may see.
DRAWN, TURNS, GPT_LAYERS, GPT_WIDTH, GPT_HEADS, GPT_WORDS = 4, 32, 4, 256, 8, 5000


@dataclass(frozen=True)
class Size:
    """Of a stack of layers."""

    width: int
    heads: int

    @property
    def head(self) -> int:
        return self.width // self.heads


class Layers:
    """Makes the layers of one net. Shapes: B sentences, T tokens, W width, H heads, D width of a head."""

    def __init__(self, tf: TF, choose: np.random.Generator, size: Size) -> None:
        self._tf, self._choose, self._size = tf, choose, size

    def dense(self, x: Any, name: str, rows: int, columns: int) -> Any:
        """[…, rows] → [N, columns]."""
        tf = self._tf
        w = weight(tf, self._choose, f"{name}/kernel", [rows, columns], 0.02)
        return tf.nn.bias_add(tf.matmul(tf.reshape(x, [-1, rows]), w), bias(tf, f"{name}/bias", columns))

    def norm(self, x: Any, name: str) -> Any:
        """Over the last axis, by its moments."""
        tf, width = self._tf, self._size.width
        mean, variance = tf.nn.moments(x, [-1], keepdims=True)
        scale, offset = bias(tf, f"{name}/gamma", width, 1.0), bias(tf, f"{name}/beta", width)
        return (x - mean) * tf.rsqrt(variance + 1e-5) * scale + offset

    def gelu(self, x: Any) -> Any:
        tf = self._tf
        return 0.5 * x * (1.0 + tf.tanh(np.sqrt(2 / np.pi).astype(np.float32) * (x + 0.044715 * tf.pow(x, 3))))

    def split(self, x: Any, sentences: int, tokens: Any) -> Any:
        """[B T, W] → [B, H, T, D]."""
        tf, size = self._tf, self._size
        return tf.transpose(tf.reshape(x, [sentences, tokens, size.heads, size.head]), [0, 2, 1, 3])

    def attention(self, x: Any, name: str, sentences: int, tokens: int, hidden_BHTT: Any = None) -> Any:
        """Each token looks at all: [B T, W] → [B T, W]. `hidden` is added to the scores."""
        tf, size = self._tf, self._size
        query, key, value = (
            self.split(self.dense(x, f"{name}/{what}", size.width, size.width), sentences, tokens)
            for what in ("query", "key", "value")
        )
        scores = tf.matmul(query, key, transpose_b=True) * size.head**-0.5
        if hidden_BHTT is not None:
            scores += hidden_BHTT
        seen = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
        return self.dense(seen, f"{name}/output", size.width, size.width)

    def encode(self, x: Any, name: str, sentences: int, tokens: int, hidden_BHTT: Any = None) -> Any:
        """One layer, normalized after each part as in BERT."""
        width = self._size.width
        x = self.norm(x + self.attention(x, f"{name}/attention", sentences, tokens, hidden_BHTT), f"{name}/norm0")
        inner = self.gelu(self.dense(x, f"{name}/inner", width, 4 * width))
        return self.norm(x + self.dense(inner, f"{name}/outer", 4 * width, width), f"{name}/norm1")


def encoder(tf: TF, wrap: Wrap = same) -> Model:
    """2 layers of 128, 4 heads, 16 × 64 tokens of 1,000 words, Adam."""
    choose = np.random.default_rng(12)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.int32, [SENTENCES, TOKENS], name="x")
    t = tf.placeholder(tf.int32, [SENTENCES, TOKENS], name="t")
    layers = Layers(tf, choose, Size(WIDTH, HEADS))
    words = weight(tf, choose, "words", [WORDS, WIDTH], 0.02)
    places = weight(tf, choose, "places", [TOKENS, WIDTH], 0.02)
    y = tf.reshape(tf.nn.embedding_lookup(words, x) + places, [-1, WIDTH])
    for number in range(LAYERS):
        y = layers.encode(y, f"layer{number}", SENTENCES, TOKENS)
    logits = layers.dense(y, "logits", WIDTH, WORDS)
    loss = cross_entropy(tf, tf.reshape(t, [-1]), logits)
    train = wrap(tf.train.AdamOptimizer(0.001)).minimize(loss, global_step=step)
    text = sentences(choose, SENTENCES, TOKENS + 1, WORDS)
    return Model(loss, train, [{x: each[:, :-1], t: each[:, 1:]} for each in text])


def bert_batches(choose: np.random.Generator) -> list[tuple[Any, ...]]:
    """Tokens int32 [B, T], their lengths' mask float32 [B, T], masked places int32 [B, M], the words that stood there
    int32 [B, M], whether one sentence follows the other int32 [B].
    """
    found = []
    for text in sentences(choose, BERT_SENTENCES, BERT_TOKENS, BERT_WORDS):
        lengths = choose.integers(BERT_TOKENS // 2, BERT_TOKENS + 1, BERT_SENTENCES)
        seen = (np.arange(BERT_TOKENS) < lengths[:, None]).astype(np.float32)
        places = np.stack([choose.choice(BERT_TOKENS // 2, MASKED, replace=False) for _ in range(BERT_SENTENCES)])
        right = np.take_along_axis(text, places, 1)
        masked = text.copy()
        np.put_along_axis(masked, places, 103, 1)
        follows = choose.integers(2, size=BERT_SENTENCES).astype(np.int32)
        found.append((masked, seen, places.astype(np.int32), right, follows))
    return found


def bert_tiny(tf: TF, wrap: Wrap = same) -> Model:
    """2 layers of 128, 2 heads, 8 × 128 tokens of 30,522 words: masked words and the next sentence, Adam."""
    choose = np.random.default_rng(13)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.int32, [BERT_SENTENCES, BERT_TOKENS], name="input_ids")
    seen = tf.placeholder(tf.float32, [BERT_SENTENCES, BERT_TOKENS], name="input_mask")
    places = tf.placeholder(tf.int32, [BERT_SENTENCES, MASKED], name="masked_lm_positions")
    right = tf.placeholder(tf.int32, [BERT_SENTENCES, MASKED], name="masked_lm_ids")
    follows = tf.placeholder(tf.int32, [BERT_SENTENCES], name="next_sentence_labels")
    layers = Layers(tf, choose, Size(WIDTH, 2))
    words = weight(tf, choose, "word_embeddings", [BERT_WORDS, WIDTH], 0.02)
    positions = weight(tf, choose, "position_embeddings", [512, WIDTH], 0.02)
    y = tf.nn.embedding_lookup(words, x) + positions[:BERT_TOKENS]
    y = layers.norm(tf.reshape(y, [-1, WIDTH]), "norm")
    hidden = (1.0 - tf.reshape(seen, [BERT_SENTENCES, 1, 1, BERT_TOKENS])) * -10000.0
    for number in range(LAYERS):
        y = layers.encode(y, f"layer{number}", BERT_SENTENCES, BERT_TOKENS, hidden)
    flat = tf.reshape(places + np.arange(BERT_SENTENCES, dtype=np.int32)[:, None] * BERT_TOKENS, [-1])
    guessed = layers.norm(layers.gelu(layers.dense(tf.gather(y, flat), "transform", WIDTH, WIDTH)), "transform/norm")
    logits = tf.matmul(guessed, words, transpose_b=True) + bias(tf, "output_bias", BERT_WORDS)
    first = tf.reshape(y, [BERT_SENTENCES, BERT_TOKENS, WIDTH])[:, 0]
    pooled = tf.tanh(layers.dense(first, "pooler", WIDTH, WIDTH))
    loss = cross_entropy(tf, tf.reshape(right, [-1]), logits)
    loss += cross_entropy(tf, follows, layers.dense(pooled, "next", WIDTH, 2))
    train = wrap(tf.train.AdamOptimizer(0.0001)).minimize(loss, global_step=step)
    keys = (x, seen, places, right, follows)
    return Model(loss, train, [dict(zip(keys, each, strict=True)) for each in bert_batches(choose)])


def gpt2_sampling(tf: TF, wrap: Wrap = same) -> Model:
    """4 layers of 256, 8 heads: 32 turns of a while loop whose past grows by a token, the likeliest word is taken. Its
    loss, which nothing trains, is the mean of the words that were taken.
    """
    choose = np.random.default_rng(14)
    start = tf.placeholder(tf.int32, [DRAWN, 1], name="context")
    size = Size(GPT_WIDTH, GPT_HEADS)
    words = weight(tf, choose, "wte", [GPT_WORDS, GPT_WIDTH], 0.2)
    places = weight(tf, choose, "wpe", [TURNS + 1, GPT_WIDTH], 0.1)
    made: dict[str, Any] = {}

    def kept(name: str, shape: list[int] | None, value: float) -> Any:
        """A weight of that name, made once, outside the loop."""
        if name not in made:
            made[name] = (
                weight(tf, choose, name, shape, value) if isinstance(shape, list) else bias(tf, name, GPT_WIDTH, value)
            )
        return made[name]

    for number in range(GPT_LAYERS):
        for what, columns in (("attn", 3 * GPT_WIDTH), ("proj", GPT_WIDTH), ("fc", 4 * GPT_WIDTH)):
            kept(f"h{number}/{what}", [GPT_WIDTH, columns], 0.05)
        kept(f"h{number}/out", [4 * GPT_WIDTH, GPT_WIDTH], 0.05)
        for what in ("ln_1", "ln_2"):
            kept(f"h{number}/{what}/g", None, 1.0)
            kept(f"h{number}/{what}/b", None, 0.0)

    def norm(x: Any, name: str) -> Any:
        mean = tf.reduce_mean(x, axis=-1, keepdims=True)
        variance = tf.reduce_mean(tf.square(x - mean), axis=-1, keepdims=True)
        return (x - mean) * tf.rsqrt(variance + 1e-5) * made[f"{name}/g"] + made[f"{name}/b"]

    gelu = Layers(tf, choose, size).gelu

    def turn(number: Any, past_LKBHTD: Any, words_B1: Any, total: Any) -> Any:
        x = tf.reshape(tf.gather(words, words_B1), [DRAWN, GPT_WIDTH]) + tf.gather(places, number)
        presents = []
        for layer in range(GPT_LAYERS):
            three = tf.matmul(norm(x, f"h{layer}/ln_1"), made[f"h{layer}/attn"])
            query, key, value = tf.split(tf.reshape(three, [DRAWN, 3, size.heads, 1, size.head]), 3, 1)
            query, key, value = (tf.squeeze(each, [1]) for each in (query, key, value))
            key = tf.concat([past_LKBHTD[layer, 0], key], 2)
            value = tf.concat([past_LKBHTD[layer, 1], value], 2)
            presents.append(tf.stack([key, value]))
            chances = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) * size.head**-0.5)
            x += tf.matmul(tf.reshape(tf.matmul(chances, value), [DRAWN, GPT_WIDTH]), made[f"h{layer}/proj"])
            inner = gelu(tf.matmul(norm(x, f"h{layer}/ln_2"), made[f"h{layer}/fc"]))
            x += tf.matmul(inner, made[f"h{layer}/out"])
        logits = tf.matmul(x, words, transpose_b=True)
        taken = tf.cast(tf.expand_dims(tf.argmax(logits, 1), 1), tf.int32)
        return number + 1, tf.stack(presents), taken, total + tf.reduce_mean(tf.cast(taken, tf.float32))

    empty = tf.zeros([GPT_LAYERS, 2, DRAWN, size.heads, 0, size.head])
    any_length = tf.TensorShape([GPT_LAYERS, 2, DRAWN, size.heads, None, size.head])
    *_, total = tf.while_loop(
        lambda number, *_: number < TURNS,
        turn,
        (tf.constant(0), empty, start, tf.constant(0.0)),
        shape_invariants=(tf.TensorShape([]), any_length, tf.TensorShape([DRAWN, 1]), tf.TensorShape([])),
        back_prop=False,
    )
    starts = choose.integers(GPT_WORDS, size=[BATCHES, DRAWN, 1]).astype(np.int32)
    return Model(total / TURNS, None, [{start: each} for each in starts])
