"""How far the programs of runs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "4"
down_revision = "3"


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_progress",
        sa.Column("run", sa.String(32), primary_key=True),
        sa.Column("job", sa.String(63), primary_key=True),
        sa.Column("task_index", sa.Integer, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
    )
