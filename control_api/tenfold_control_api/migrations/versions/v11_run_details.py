"""Names, tags, parameters and sources of runs; the newest values of a task beside its curves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "11"
down_revision = "10"


def upgrade(op: Operations) -> None:
    op.add_column("tenfold_runs", sa.Column("details", sa.Text, nullable=False, server_default="{}"))
    op.add_column("tenfold_progress", sa.Column("newest", sa.Text))
    op.create_table(
        "tenfold_run_diffs",
        sa.Column("run", sa.String(32), primary_key=True),
        sa.Column("diff", sa.Text, nullable=False),
    )
