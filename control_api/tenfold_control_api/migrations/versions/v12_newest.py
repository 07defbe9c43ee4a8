"""The newest values of a task have a table of their own: lists read thousands of them, and no curve."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "12"
down_revision = "11"

#: Rows that are read at once: each holds up to 64 curves.
_ROWS = 200
_KEY = ("run", "job", "task_index")


def upgrade(op: Operations) -> None:
    newest = op.create_table(
        "tenfold_newest",
        sa.Column("run", sa.String(32), primary_key=True),
        sa.Column("job", sa.String(63), primary_key=True),
        sa.Column("task_index", sa.Integer, primary_key=True),
        sa.Column("updated", sa.Float, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
    )
    assert newest is not None
    db = op.get_bind()
    progress = sa.table("tenfold_progress", *(sa.column(name) for name in (*_KEY, "body")))
    keys = [tuple(row) for row in db.execute(sa.select(*(progress.c[name] for name in _KEY)))]
    for at in range(0, len(keys), _ROWS):
        wanted = sa.tuple_(*(progress.c[name] for name in _KEY)).in_(keys[at : at + _ROWS])
        rows = db.execute(sa.select(progress).where(wanted)).mappings().all()
        db.execute(sa.insert(newest), [{**{name: row[name] for name in _KEY}, **_newest(row["body"])} for row in rows])
    op.drop_column("tenfold_progress", "newest")


def _newest(body: str) -> dict[str, Any]:
    kept = json.loads(body)
    plain = ("updated", "steps", "global_step", "steps_per_second", "examples_per_second")
    newest = {name: kept.get(name) for name in plain}
    newest["values"] = {name: curve["last"] for name, curve in kept["curves"].items()}
    newest["checkpoints"] = kept["checkpoints"][-1:]
    return {"updated": kept["updated"], "body": json.dumps(newest)}
