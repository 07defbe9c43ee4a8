"""Submitted runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "3"
down_revision = "2"


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_runs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("submission_id", sa.String(63), nullable=False, unique=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("launcher", sa.String(16), nullable=False),
        sa.Column("submission", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("started", sa.Float),
        sa.Column("ended", sa.Float),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("tasks", sa.Text, nullable=False),
        sa.Column("supervisor", sa.Text),
        sa.Column("stop", sa.Text),
        sa.Column("reports", sa.BigInteger, nullable=False),
    )
    op.create_index("tenfold_runs_state", "tenfold_runs", ["state"])
    op.create_index("tenfold_runs_created", "tenfold_runs", ["created", "id"])
