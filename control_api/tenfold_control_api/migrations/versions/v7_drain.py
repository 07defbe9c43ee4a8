"""Tasks that are being drained."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "7"
down_revision = "6"


def upgrade(op: Operations) -> None:
    op.add_column("tenfold_tasks", sa.Column("drain", sa.Text))
