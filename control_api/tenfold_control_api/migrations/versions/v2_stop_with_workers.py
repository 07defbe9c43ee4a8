"""Whether parameter servers end with the workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "2"
down_revision = "1"


def upgrade(op: Operations) -> None:
    op.add_column("tenfold_clusters", sa.Column("stop_with_workers", sa.Integer, nullable=False, server_default="0"))
