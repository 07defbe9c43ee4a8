"""Whose sessions, runs, answers and events are, who registered a task, and what answers take."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "9"
down_revision = "8"

_LONGEST = 300


def upgrade(op: Operations) -> None:
    for table, column in (
        ("tenfold_tasks", "registrar"),
        ("tenfold_sessions", "owner"),
        ("tenfold_answers", "principal"),
        ("tenfold_runs", "submitter"),
        ("tenfold_events", "owner"),
    ):
        op.add_column(table, sa.Column(column, sa.String(_LONGEST)))
    op.add_column("tenfold_tasks", sa.Column("own_lease", sa.Integer, nullable=False, server_default="0"))
    op.add_column("tenfold_answers", sa.Column("size", sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("tenfold_answers_principal", "tenfold_answers", ["principal", "created"])
    op.execute("UPDATE tenfold_answers SET size = COALESCE(LENGTH(body), 0) + COALESCE(LENGTH(headers), 0)")
