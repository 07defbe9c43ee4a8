"""Sweeps: many runs of one program, each with a setting of its parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "13"
down_revision = "12"


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_sweeps",
        sa.Column("name", sa.String(50), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("definition", sa.Text, nullable=False),
        sa.Column("points", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("ended", sa.Float),
        sa.Column("trials", sa.Text, nullable=False),
        sa.Column("stop", sa.Text),
        sa.Column("owner", sa.String(32)),
        sa.Column("submitter", sa.String(300)),
    )
    op.create_index("tenfold_sweeps_state", "tenfold_sweeps", ["state"])
    op.create_index("tenfold_sweeps_created", "tenfold_sweeps", ["created", "name"])
