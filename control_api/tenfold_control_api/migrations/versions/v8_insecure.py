"""Tasks that accept anyone who reaches their port."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "8"
down_revision = "7"


def upgrade(op: Operations) -> None:
    op.add_column("tenfold_tasks", sa.Column("insecure", sa.Integer, nullable=False, server_default="0"))
