"""Services that share the database, who starts a run, and the age of answers by the time that services have run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "6"
down_revision = "5"


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_services",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("host", sa.String(300), nullable=False),
        sa.Column("address", sa.String(300)),
        sa.Column("started", sa.Float, nullable=False),
        sa.Column("beats", sa.BigInteger, nullable=False),
    )
    op.add_column("tenfold_runs", sa.Column("owner", sa.String(32)))
    op.execute("INSERT INTO tenfold_meta (key, value) VALUES ('service_seconds', '0')")
    # it was the wall clock's until now
    op.execute("UPDATE tenfold_answers SET created = 0")
