"""The table of answers under Idempotency-Keys: whose a key is, what is kept, and what is given up for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event, insert, select, update
from sqlalchemy.exc import OperationalError

from support.small_database import small_database
from tenfold_control_api.answer_store import AnswerStore, StoredAnswer
from tenfold_control_api.problems import ApiError
from tenfold_control_api.schema import answers
from tenfold_control_api.service_settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tenfold_control_api.database import Database


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Database]:
    async with small_database(tmp_path) as opened:
        yield opened


class Clock:
    now = 100.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def store(engine: Database, owner: str = "me", **settings: int) -> AnswerStore:
    return AnswerStore(engine, owner, Clock(), Settings(**settings))  # type: ignore[arg-type]


async def rows(engine: Database) -> dict[str, Any]:
    async with engine.connect() as db:
        return {row["key"]: dict(row) for row in (await db.execute(select(answers))).mappings()}


async def answer(kept: AnswerStore, key: str, size: int, caller: str = "ann") -> None:
    """An answer of this many bytes in all: the headers' list takes two."""
    await kept.begin(key, "print", caller)
    await kept.finish(key, caller, 200, [], b"x" * (size - 2))


async def test_a_key_is_of_who_comes_first_until_it_is_dropped(engine: Database) -> None:
    kept = store(engine)

    assert await kept.begin("key", "print", "ann") is None
    assert await kept.begin("key", "other", "ann") == StoredAnswer("print", "me", 101.0, None, [], None)
    assert (await rows(engine))["key"]["principal"] == "ann"
    await kept.drop("key", "ann")

    assert await kept.get("key") is None
    assert await kept.begin("key", "other", "ann") is None


async def test_an_answer_is_kept_with_its_headers(engine: Database) -> None:
    kept = store(engine)
    await kept.begin("key", "print", "ann")
    await kept.finish("key", "ann", 201, [("x-name", "käse")], b"body")
    await kept.begin("none", "print", "ann")
    await kept.finish("none", "ann", 202, [], None)

    assert await kept.get("key") == StoredAnswer("print", "me", 101.0, 201, [("x-name", "käse")], b"body")
    assert await kept.get("none") == StoredAnswer("print", "me", 102.0, 202, [], None)
    found = await rows(engine)
    assert (found["key"]["state"], found["none"]["size"]) == ("done", 2)
    assert found["key"]["size"] == len(found["key"]["headers"]) + 4


async def test_a_further_key_is_refused_but_a_known_one_is_found(engine: Database) -> None:
    kept = store(engine, max_keys_per_caller=1)
    await kept.begin("key", "print", "ann")

    with pytest.raises(ApiError, match="1 Idempotency-Keys of this caller are remembered"):
        await kept.begin("other", "print", "ann")
    assert await kept.begin("key", "print", "ann") is not None
    assert await kept.begin("other", "print", "bob") is None
    await kept.drop("key", "ann")
    assert await kept.begin("third", "print", "ann") is None


async def test_a_key_that_was_there_already_is_not_counted_again(engine: Database) -> None:
    kept, other = store(engine, max_keys_per_caller=2), store(engine, "other")
    await other.begin("theirs", "print", "ann")
    assert await kept.begin("theirs", "print", "ann") is not None
    assert await kept.begin("one", "print", "ann") is None
    assert await kept.begin("two", "print", "ann") is None


async def test_it_starts_by_counting_what_is_there(engine: Database) -> None:
    other = store(engine, "other")
    await answer(other, "one", 30)
    await other.begin("two", "print", "ann")

    kept = store(engine, max_keys_per_caller=2, max_stored_answers_per_caller=40)
    await kept.start()

    with pytest.raises(ApiError):
        await kept.begin("three", "print", "ann")
    await kept.finish("two", "ann", 200, [], b"x" * 9)
    assert (await rows(engine))["one"]["body"] is None


async def test_keys_of_before_they_had_callers_are_known_after_a_start(engine: Database) -> None:
    kept = store(engine)
    async with engine.begin() as db:
        values = {"fingerprint": "print", "state": "done", "status": 200, "owner": "old", "created": 1.0}
        await db.execute(insert(answers).values(key="old", principal=None, **values))
        await db.execute(insert(answers).values(key="new", principal="ann", **values))

    assert await kept.former("old") is None
    await kept.start()
    assert await kept.former("old") == StoredAnswer("print", "old", 1.0, 200, [], None)
    assert await kept.former("new") is None
    assert await kept.former("none") is None


async def test_a_key_is_taken_over_once_and_only_while_it_runs(engine: Database) -> None:
    dead, kept, late = store(engine, "dead"), store(engine), store(engine, "late")
    await dead.begin("key", "print", "ann")

    assert not await kept.take_over("key", "another")
    assert await kept.take_over("key", "dead")
    assert not await late.take_over("key", "dead")
    assert await kept.get("key") == StoredAnswer("print", "me", 102.0, None, [], None)

    await kept.finish("key", "ann", 200, [], b"")
    assert not await late.take_over("key", "me")


async def test_the_oldest_answers_of_a_caller_make_room_for_its_newest(engine: Database) -> None:
    kept = store(engine, max_stored_answers_per_caller=80, max_stored_answers=1000)
    await answer(kept, "bobs", 80, "bob")
    for number in range(4):
        await answer(kept, str(number), 20)
    assert all(row["body"] is not None for row in (await rows(engine)).values())

    await answer(kept, "4", 20)

    found = await rows(engine)
    assert [key for key in "01234" if found[key]["body"] is None] == ["0", "1"]
    assert (found["0"]["status"], found["0"]["state"], found["0"]["headers"], found["0"]["size"]) == (
        *(200, "done"),
        *(None, 0),
    )
    assert found["bobs"]["body"] is not None
    await answer(kept, "5", 20)
    assert (await rows(engine))["2"]["body"] is not None
    await answer(kept, "6", 20)
    assert (await rows(engine))["2"]["body"] is None


async def test_answers_of_who_has_most_make_room_for_others(engine: Database) -> None:
    kept = store(engine, max_stored_answers_per_caller=80, max_stored_answers=100)
    for number in range(3):
        await answer(kept, f"ann {number}", 20)
    await answer(kept, "bob 0", 40, "bob")
    await answer(kept, "bob 1", 2, "bob")

    gone = [key for key, row in (await rows(engine)).items() if row["body"] is None]

    assert gone == ["ann 0"]


async def test_what_another_service_gave_up_is_counted_anew(engine: Database) -> None:
    kept = store(engine, max_stored_answers_per_caller=80)
    await answer(kept, "one", 60)
    async with engine.begin() as db:
        await db.execute(update(answers).values(body=None, headers=None, size=0))

    await kept.begin("two", "print", "ann")
    async with engine.begin() as db:
        await db.execute(update(answers).where(answers.c.key == "two").values(size=0))
    kept._budget.add("ann", size=100)
    await kept._trim("ann")

    assert kept._budget.excess("ann") is None


async def test_an_answer_stands_where_none_can_be_given_up(
    engine: Database, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store(engine, max_stored_answers_per_caller=20)

    async def broken(_: str) -> None:
        raise OperationalError("", {}, Exception("disk full"))

    monkeypatch.setattr(kept, "_trim", broken)
    await answer(kept, "one", 21)

    assert (await rows(engine))["one"]["status"] == 200
    assert "stored answers are above their limit, and none could be given up" in caplog.text


async def test_what_is_old_is_forgotten_but_for_what_is_worked_on(engine: Database) -> None:
    kept = store(engine, max_keys_per_caller=4)
    clock = kept._now
    await kept.begin("running", "print", "ann")
    await store(engine, "dead").begin("left", "print", "ann")
    await answer(kept, "done", 10)
    assert isinstance(clock, Clock)
    clock.now = 199.0
    await kept.begin("young", "print", "ann")
    clock.now = 299.0

    await kept.forget(100.0, ["me"])

    assert sorted(await rows(engine)) == ["running", "young"]
    for key in ("a", "b"):
        assert await kept.begin(key, "print", "ann") is None
    with pytest.raises(ApiError):
        await kept.begin("c", "print", "ann")


async def test_a_statement_is_committed_when_it_returns(engine: Database) -> None:
    begun: list[str] = []
    event.listen(engine.sync_engine, "commit", lambda _: begun.append("commit"))
    kept = store(engine)
    await kept.begin("key", "print", "ann")
    await kept.finish("key", "ann", 200, [], b"")
    await kept.drop("key", "ann")
    assert begun == ["commit"] * 3
