"""Chains of increments on one task: restored as they were saved, compacted, and refused where a link is broken."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from click.testing import CliRunner

import tenfold as tf
from tenfold.cli.main import cli
from tenfold.train.checkpoint_chain import increments_after
from tenfold.train.incremental_saver import SUB_INCR_CKPT_DIR, IncrementalSaver, _get_incremental_saver
from tenfold_core.checkpoint import BundleReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHANCE = 5


class Program:
    """A table that filters and evicts, two ordinary ones, Adagrad on all; a session; savers."""

    def __init__(self, folder: Path, parts: int = 1, **saver: Any) -> None:
        self.folder = str(folder)
        os.makedirs(folder, exist_ok=True)
        with tf.Graph().as_default() as graph:
            option = tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(2), evict_option=tf.GlobalStepEvict(6))
            divide = tf.fixed_size_partitioner(parts) if parts > 1 else None
            table = tf.get_embedding_variable("v", 4, partitioner=divide, ev_option=option)
            self.tables = list(table) if parts > 1 else [table]
            with tf.variable_scope("o", use_resource=True):
                wide = tf.get_variable("w", [50, 4], partitioner=divide)
            plain = tf.get_variable("p", [50, 4], initializer=tf.ones_initializer())
            self.ids = tf.placeholder(tf.int64, [None])
            step = tf.train.get_or_create_global_step()
            places = self.ids % 50
            looked_up = [tf.nn.embedding_lookup(each, places, "div") for each in (wide, plain)]
            loss = tf.reduce_sum(tf.nn.embedding_lookup(table, self.ids) * looked_up[0] + looked_up[1])
            self.train = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)
            self.saver = tf.train.Saver(incremental_save_restore=True, **saver)
            made = _get_incremental_saver(True, self.saver)
            assert made is not None
            self.increments = made
            ordinary = [each for each in tf.global_variables() if not hasattr(each, "export")]
            self.kept = {each.op.name: each for each in ordinary}
            self.kept |= {each.op.name: each.export() for each in tf.global_variables() if hasattr(each, "export")}
            self.waiting = [each.get_frequency(tf.range(100, dtype=tf.int64)) for each in self.tables]
            self.init = tf.global_variables_initializer()
        self.step = step
        self.session = tf.Session(graph=graph)

    def state(self) -> dict[str, Any]:
        """By name, and of tables by key, in as many parts as it may."""
        found: dict[str, Any] = {}
        for name, value in self.session.run(self.kept).items():
            whole = name.replace("/part_0", "").replace("/part_1", "").replace("/part_2", "")
            if hasattr(value, "keys"):
                rows = zip(value.keys.tolist(), value.values.tolist(), value.versions.tolist(), strict=True)
                found.setdefault(whole, {}).update({key: (row, version) for key, row, version in rows})
            else:
                found.setdefault(whole, []).extend(np.asarray(value).reshape(-1).tolist())
        found["frequencies"] = np.sum(self.session.run(self.waiting), axis=0).tolist()
        return found

    def save(self) -> str:
        saved = self.saver.save(self.session, self.path("model.ckpt"), global_step=self.step)
        assert saved is not None
        return saved

    def increment(self) -> str:
        saved = self.increments.incremental_save(
            self.session, self.path(SUB_INCR_CKPT_DIR, "incremental_model.ckpt"), global_step=self.step
        )
        assert saved is not None
        return saved

    def path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def steps(self, chance: np.random.Generator, count: int = 3) -> None:
        for _ in range(count):
            self.session.run(self.train, {self.ids: chance.integers(0, 100, 6)})

    def recover(self) -> list[str]:
        latest = tf.train.latest_checkpoint(self.folder)
        self.saver.restore(self.session, latest)
        return self.increments.recover_incr_checkpoints(self.session, self.folder)


def cases(quick: list[tuple[Any, bool]], parts: list[Any]) -> Any:
    """By numbers of parts, and whether increments have rows of ordinary variables: `quick` ones, and all others."""
    others = [case for case in itertools.product(parts, (False, True)) if case not in quick]
    given = [*quick, *(pytest.param(*case, marks=pytest.mark.thorough) for case in others)]
    return pytest.mark.parametrize(("parts", "by_rows"), given)


@contextlib.contextmanager
def program(folder: Path, **options: Any) -> Iterator[Program]:
    made = Program(folder, **options)
    with made.session:
        yield made


def trained(folder: Path, **options: Any) -> tuple[list[str], list[dict[str, Any]]]:
    """A whole checkpoint and three increments, and the state at each of them."""
    chance = np.random.default_rng(CHANCE)
    states = []
    with program(folder, **options) as one:
        one.session.run(one.init)
        one.steps(chance, 8)
        prefixes = [one.save()]
        states.append(one.state())
        for _ in range(3):
            one.steps(chance)
            prefixes.append(one.increment())
            states.append(one.state())
        assert one.increments.last_incr_checkpoints == prefixes[1:]
    return prefixes, states


@cases([((1, 1), False), ((2, 3), True)], [(1, 1), (2, 2), (2, 3), (3, 1), (1, 2)])
def test_restored_as_it_was_saved(tmp_path: Path, parts: tuple[int, int], by_rows: bool) -> None:
    prefixes, states = trained(tmp_path, parts=parts[0], incremental_include_normal_var=by_rows)
    assert states[-1] != states[0]
    keys = [states[i]["v"].keys() for i in range(4)]
    assert any(before - after for before, after in itertools.pairwise(keys)), "something was evicted"

    with program(tmp_path, parts=parts[1], incremental_include_normal_var=by_rows) as other:
        assert other.recover() == prefixes[1:]
        assert other.state() == states[-1]
        # and the chain goes on
        other.steps(np.random.default_rng(1))
        with BundleReader(other.increment()) as reader:
            names = reader.names()
            rows = sum(reader.read(name).size for name in names if name.endswith("-sparse_incr_keys") and "Ada" in name)
        assert rows < 60
        expected = other.state()
    with program(tmp_path, parts=parts[0], incremental_include_normal_var=by_rows) as again:
        assert len(again.recover()) == 4
        assert again.state() == expected
        for prefix, state in zip(prefixes[1:], states[1:], strict=True):
            if prefix == prefixes[1]:
                again.saver.restore(again.session, prefixes[0])
                assert again.state() == states[0]
            again.increments.incremental_restore(again.session, prefixes[0], prefix)
            assert again.state() == state, "the state at each cut"


@cases([(2, True)], [1, 2])
def test_a_chain_is_compacted(tmp_path: Path, parts: int, by_rows: bool) -> None:
    options = {"parts": parts, "incremental_include_normal_var": by_rows}
    prefixes, states = trained(tmp_path, **options)
    with program(tmp_path, **options) as one:
        one.recover()
        (tmp_path / "saved").mkdir()
        whole = one.saver.save(one.session, str(tmp_path / "saved" / "whole"), write_state=False)

    told = CliRunner().invoke(cli, ["compact", str(tmp_path)])

    assert told.exit_code == 0, told.output
    path = prefixes[0].removesuffix("-8") + "-17"
    assert told.output == f"{path}: {prefixes[0]} and 3 increments\n"
    assert tf.train.latest_checkpoint(str(tmp_path)) == path
    assert os.path.exists(path + ".meta")
    with program(tmp_path, **options) as other:
        assert other.recover() == [], "what it replaces is skipped"
        assert other.state() == states[-1]
    assert whole is not None
    with BundleReader(whole) as saved, BundleReader(path) as made:
        assert saved.names() == made.names()
        for name in saved.names():
            mine, other_one = saved.read(name), made.read(name)
            table, _, kind = name.rpartition("-")
            if kind in ("keys", "values", "versions", "freqs") or kind.endswith("_filtered"):
                keys = f"{table}-keys_filtered" if kind.endswith("_filtered") else f"{table}-keys"
                mine, other_one = mine[np.argsort(saved.read(keys))], other_one[np.argsort(made.read(keys))]
            np.testing.assert_array_equal(mine, other_one, err_msg=name)
    assert CliRunner().invoke(cli, ["compact", str(tmp_path)]).output == f"Error: no increment follows {path}\n"
    assert "has no checkpoint" in CliRunner().invoke(cli, ["compact", str(tmp_path / "none")]).output


def test_a_new_chain_begins_with_a_whole_checkpoint(tmp_path: Path) -> None:
    prefixes, _ = trained(tmp_path)
    chance = np.random.default_rng(2)
    with program(tmp_path) as one:
        one.recover()
        one.steps(chance, 1)
        full = one.save()
        assert os.path.exists(prefixes[1] + ".index"), "until another chain has begun"
        expected = one.state()
        with program(tmp_path) as other:
            assert other.recover() == [], "those before the whole checkpoint are no part of it"
            assert other.state() == expected
        one.steps(chance, 1)
        new = one.increment()
        assert increments_after(full, str(tmp_path)) == [new]
        assert not any(os.path.exists(prefix + ".index") for prefix in prefixes[1:])
        with pytest.raises(ValueError, match="is there already, and later increments follow it"):
            one.increment()


@cases([(1, False), (2, True)], [1, 2])
def test_the_first_of_a_chain_follows_the_end_of_the_one_before_too(tmp_path: Path, parts: int, by_rows: bool) -> None:
    """Who has read that one needs no whole checkpoint, whatever has changed between the two saves."""
    options: dict[str, Any] = {"parts": parts, "incremental_include_normal_var": by_rows}
    chance = np.random.default_rng(CHANCE)
    with program(tmp_path, **options) as one, program(tmp_path / "other", **options) as other:
        one.session.run(one.init)
        one.steps(chance, 8)
        whole = one.save()
        for _ in range(2):
            one.steps(chance)
            last = one.increment()
        other.saver.restore(other.session, whole)
        for prefix in one.increments.last_incr_checkpoints:
            other.increments.incremental_restore(other.session, whole, prefix)
        assert other.state() == one.state()
        # rows that change before the whole checkpoint only, and ids that go with it
        one.steps(chance, 4)
        second = one.save()
        one.steps(chance, 1)
        first = one.increment()

        other.increments.incremental_restore(other.session, whole, first)
        assert other.state() == one.state()
        other.saver.restore(other.session, second)
        other.increments.incremental_restore(other.session, second, first)
        assert other.state() == one.state()
    with BundleReader(first) as reader:
        said = [reader.read(name).item().decode() for name in ("_incremental/previous", "_incremental/also")]
        names = {name for name in reader.names() if name.startswith("_incremental")}
    assert [os.path.basename(name) for name in said] == [os.path.basename(name) for name in (second, last)]
    assert "_incremental/since" not in names


def test_a_chain_after_a_restore_follows_no_other(tmp_path: Path) -> None:
    """The tables are not what the end of the chain before has."""
    chance = np.random.default_rng(CHANCE)
    with program(tmp_path) as one:
        one.session.run(one.init)
        one.steps(chance)
        whole = one.save()
        one.steps(chance)
        one.increment()
        one.saver.restore(one.session, whole)
        one.steps(chance)
        second = one.save()
        one.steps(chance)
        first = one.increment()
        assert increments_after(second, str(tmp_path)) == [first]
    with BundleReader(first) as reader:
        assert reader.read("_incremental/also").item() == b""


def test_a_save_that_fails_loses_nothing(tmp_path: Path) -> None:
    chance = np.random.default_rng(3)
    with program(tmp_path, incremental_include_normal_var=True) as one:
        one.session.run(one.init)
        one.steps(chance)
        full = one.save()
        one.steps(chance)
        first = one.increment()
        one.steps(chance)
        os.makedirs(one.path(SUB_INCR_CKPT_DIR, "incremental_model.ckpt-9.index", "in_the_way"))
        with pytest.raises(tf.errors.OpError):
            one.increment()
        assert increments_after(full, str(tmp_path)) == [first]
        one.steps(chance)
        second = one.increment()
        expected = one.state()
    with program(tmp_path, incremental_include_normal_var=True) as other:
        assert other.recover() == [first, second]
        assert other.state() == expected


def refusal(folder: Path) -> str:
    with program(folder) as one:
        with pytest.raises(tf.errors.DataLossError) as told:
            one.recover()
        return told.value.message


def test_broken_links_are_named(tmp_path: Path) -> None:
    prefixes, _ = trained(tmp_path / "whole")
    full, first, second, _ = (os.path.basename(each) for each in prefixes)

    def copy(name: str) -> Path:
        shutil.copytree(tmp_path / "whole", tmp_path / name)
        state = tmp_path / name / "checkpoint"
        state.write_text(state.read_text().replace("/whole/", f"/{name}/"))
        state = tmp_path / name / SUB_INCR_CKPT_DIR / "checkpoint"
        state.write_text(state.read_text().replace("/whole/", f"/{name}/"))
        return tmp_path / name

    missing = copy("missing")
    os.unlink(missing / SUB_INCR_CKPT_DIR / f"{second}.index")
    assert f"The increment {missing}/{SUB_INCR_CKPT_DIR}/{second} is missing" in refusal(missing)
    assert "lists it, 2 of 3" in refusal(missing)

    halved = copy("halved")
    os.unlink(halved / SUB_INCR_CKPT_DIR / f"{first}.data-00000-of-00001")
    assert f"{first} is not whole: " in refusal(halved)

    cut = copy("cut")
    state = cut / SUB_INCR_CKPT_DIR / "checkpoint"
    state.write_text("".join(line for line in state.read_text().splitlines(True) if f'{second}"' not in line))
    assert f"follows {cut}/{SUB_INCR_CKPT_DIR}/{second}, but what is before it is {cut}/" in refusal(cut)

    rewritten = copy("rewritten")
    with program(tmp_path / "other") as one:
        one.session.run(one.init)
        one.saver.save(one.session, str(rewritten / full))
    assert f"{full}.index has " in refusal(rewritten)
    assert "it was written again, or damaged" in refusal(rewritten)

    older = copy("older")
    for file in ("index", "data-00000-of-00001"):
        os.rename(older / f"{full}.{file}", older / f"model.ckpt-3.{file}")
    tf.train.update_checkpoint_state(str(older), str(older / "model.ckpt-3"))
    assert f"follows {older}/{full}, but what is before it is {older}/model.ckpt-3" in refusal(older)

    damaged = copy("damaged")
    (damaged / SUB_INCR_CKPT_DIR / "checkpoint").write_text("no list")
    assert f"{SUB_INCR_CKPT_DIR}/checkpoint, the list of the increments that follow" in refusal(damaged)
    told = CliRunner().invoke(cli, ["compact", str(damaged)])
    assert told.exit_code == 1
    assert "cannot be read" in told.output


def test_a_session_with_a_broken_chain_restores_nothing(tmp_path: Path) -> None:
    """The chief's session says what is missing, before it has changed a variable."""
    folder = str(tmp_path)

    def train(steps: int) -> list[float]:
        with tf.Graph().as_default():
            value = tf.get_variable("value", [], initializer=tf.zeros_initializer())
            step = tf.train.get_or_create_global_step()
            add = tf.group(tf.assign_add(value, 1.0), tf.assign_add(step, 1))
            restored: list[str] = []
            given = tf.train.Saver(sharded=True, incremental_save_restore=True)
            restore = given.restore
            given.restore = lambda sess, path: (restored.append(path), restore(sess, path))[1]  # type: ignore[method-assign]
            scaffold = tf.train.Scaffold(saver=given, incremental_save_restore=True)
            options = {"save_summaries_steps": None, "log_step_count_steps": None, "save_checkpoint_secs": 3600}
            try:
                with tf.train.MonitoredTrainingSession(
                    checkpoint_dir=folder, scaffold=scaffold, save_incremental_checkpoint_secs=1e-9, **options
                ) as session:
                    found = [float(session.run(value))]
                    for _ in range(steps):
                        session.run(add)
                    return [*found, float(session.run(value))]
            except tf.errors.DataLossError:
                assert restored == []
                raise

    assert train(3)[0] == 0
    # as if it had been killed after its last increment: without the whole checkpoint of the end
    for file in [name for name in os.listdir(folder) if name.startswith("model.ckpt-3")]:
        os.unlink(tmp_path / file)
    tf.train.update_checkpoint_state(folder, str(tmp_path / "model.ckpt-0"))
    state = (tmp_path / SUB_INCR_CKPT_DIR / "checkpoint").read_text()
    assert "ckpt-3" in state
    os.rename(tmp_path / SUB_INCR_CKPT_DIR / "incremental_model.ckpt-2.index", tmp_path / "away")
    with pytest.raises(tf.errors.DataLossError, match=r"incremental_model.ckpt-2 is missing"):
        train(1)
    os.rename(tmp_path / "away", tmp_path / SUB_INCR_CKPT_DIR / "incremental_model.ckpt-2.index")
    assert train(1) == [3.0, 4.0]


def test_small_variables_of_a_device_are_read_from_an_increment_by_one_op() -> None:
    with tf.Graph().as_default() as graph:
        for number in range(5):
            tf.get_variable(f"v{number}", [2, number], use_resource=bool(number % 2))
        made = _get_incremental_saver(True, tf.train.Saver(sharded=True, incremental_save_restore=True))
    assert made is not None
    reads = [op for op in graph.get_operations() if op.type == "RestoreV2"]
    assert sorted(len(op.outputs) for op in reads) == [5, 5], "of the whole checkpoint, and of an increment"


def test_savers_that_cannot(tmp_path: Path) -> None:
    with tf.Graph().as_default():
        tf.get_variable("x", [2])
        plain = tf.train.Saver()
        with pytest.raises(ValueError, match=r"tf.train.Saver\(incremental_save_restore=True\)"):
            tf.train.Scaffold(saver=plain, incremental_save_restore=True).finalize()
    with tf.Graph().as_default(), tf.Session() as session:
        deferred = IncrementalSaver(defer_build=True)
        with pytest.raises(RuntimeError, match="should be called before save"):
            deferred.incremental_save(session, "x")
        with pytest.raises(ValueError, match="No variables to save"):
            deferred.build()
        assert IncrementalSaver(allow_empty=True).incremental_save(session, "x") is None
        tf.get_variable("x", [2])
        tf.train.get_or_create_global_step()
        hook = tf.train.CheckpointSaverHook(str(tmp_path), save_secs=9, incremental_save_secs=1, saver=tf.train.Saver())
        hook.begin()
        with pytest.raises(ValueError, match="needs a scaffold that is made for increments"):
            hook.after_create_session(session, tf.train.Coordinator())
