"""Policy gradients on a pole that must not fall: a step is an episode of 20 moves, a small run each, and one update.

The pole is simulated in NumPy; a move is drawn by a seeded generator from the probabilities that the net gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import dense

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import TF, Wrap

MOVES = 20


def _moved(state: Any, right: bool) -> Any:
    """The next state of cart and pole, float64 [4]: place, speed, angle, angular speed; 20 ms later."""
    place, speed, angle, turning = state
    push = ((10.0 if right else -10.0) + 0.05 * turning**2 * np.sin(angle)) / 1.1
    faster = (9.8 * np.sin(angle) - np.cos(angle) * push) / (0.5 * (4 / 3 - 0.1 * np.cos(angle) ** 2 / 1.1))
    pushed = push - 0.05 * faster * np.cos(angle) / 1.1
    return np.array([place + 0.02 * speed, speed + 0.02 * pushed, angle + 0.02 * turning, turning + 0.02 * faster])


def policy(tf: TF, wrap: Wrap = same) -> Model:
    choose = np.random.default_rng(11)
    step = tf.train.get_or_create_global_step()
    seen = tf.placeholder(tf.float32, [None, 4], name="seen")
    moves = tf.placeholder(tf.int32, [None], name="moves")
    gains = tf.placeholder(tf.float32, [None], name="gains")
    logits = dense(tf, choose, tf.nn.tanh(dense(tf, choose, seen, "layer0", 4, 32)), "layer1", 32, 2)
    chances = tf.nn.softmax(logits)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=moves, logits=logits)
    loss = tf.reduce_mean(losses * gains)
    train = wrap(tf.train.AdamOptimizer(0.01)).minimize(loss, global_step=step)

    def play(run: Callable[..., Any], number: int) -> Any:
        states, taken, gained = episode(lambda state: run(chances, {seen: state})[0, 1], number)
        return run([loss, train], {seen: states, moves: taken, gains: gained})[0]

    return Model(loss, train, (), play)


def episode(chance: Callable[[Any], float], number: int) -> tuple[Any, Any, Any]:
    """MOVES moves of the pole, drawn by a generator seeded with `number`: states float32 [M, 4], moves int32 [M], and
    gains float32 [M]. `chance` gives how likely the right move is in a state, float32 [1, 4].
    """
    draw = np.random.default_rng(number)
    state = draw.uniform(-0.05, 0.05, 4)
    states, taken, rewards = [], [], []
    for _ in range(MOVES):
        states.append(state.astype(np.float32))
        move = int(draw.random() < chance(states[-1][None]))
        state = _moved(state, move == 1)
        taken.append(move)
        rewards.append(1.0 - abs(state[2]))
    later = np.cumsum(rewards[::-1])[::-1]
    spread = np.float32(later.std() + 1e-6)
    return np.stack(states), np.int32(taken), (later - later.mean()).astype(np.float32) / spread
