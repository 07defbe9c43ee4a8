"""Which version of its cluster wrote a task's row: a service that shares the database reads what is new to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "10"
down_revision = "9"


def upgrade(op: Operations) -> None:
    for table, column in (
        ("tenfold_clusters", "marked"),
        ("tenfold_clusters", "marked_since"),
        ("tenfold_tasks", "version"),
    ):
        op.add_column(table, sa.Column(column, sa.BigInteger, nullable=False, server_default="0"))
    op.create_index("tenfold_tasks_version", "tenfold_tasks", ["cluster", "version"])
