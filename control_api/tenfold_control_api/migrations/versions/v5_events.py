"""Events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "5"
down_revision = "4"


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_events",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("time", sa.Float, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("object", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("cluster", sa.String(63)),
        sa.Column("run", sa.String(32)),
        sa.Column("data", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_index("tenfold_events_time", "tenfold_events", ["time"])
