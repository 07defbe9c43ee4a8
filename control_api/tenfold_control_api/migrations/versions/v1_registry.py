"""Clusters, tasks, leases, sessions, and answers under an Idempotency-Key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlalchemy as sa

if TYPE_CHECKING:
    from alembic.operations import Operations

revision = "1"
down_revision = None


def upgrade(op: Operations) -> None:
    op.create_table(
        "tenfold_meta",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "tenfold_clusters",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("uid", sa.String(32), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("version", sa.BigInteger, nullable=False),
        sa.Column("jobs", sa.Text, nullable=False),
    )
    op.create_table(
        "tenfold_tasks",
        sa.Column("cluster", sa.String(63), sa.ForeignKey("tenfold_clusters.name"), primary_key=True),
        sa.Column("job", sa.String(63), primary_key=True),
        sa.Column("task_index", sa.Integer, primary_key=True),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("since", sa.Float, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("address", sa.String(300)),
        sa.Column("incarnation", sa.String(64)),
        sa.Column("devices", sa.Text, nullable=False),
        sa.Column("lease_id", sa.String(32)),
        sa.Column("exit_code", sa.Integer),
    )
    op.create_table(
        "tenfold_leases",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("cluster", sa.String(63), sa.ForeignKey("tenfold_clusters.name"), nullable=False),
        sa.Column("job", sa.String(63), nullable=False),
        sa.Column("task_index", sa.Integer, nullable=False),
        sa.Column("incarnation", sa.String(64), nullable=False),
        sa.Column("ttl", sa.Float, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("outcome", sa.String(16)),
        sa.Column("reason", sa.Text),
        sa.Column("exit_code", sa.Integer),
        sa.Column("ended", sa.Float),
        sa.Column("renewals", sa.BigInteger, nullable=False),
    )
    op.create_index("tenfold_leases_state", "tenfold_leases", ["state", "ended"])
    op.create_table(
        "tenfold_sessions",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("cluster", sa.String(63), nullable=False),
        sa.Column("job", sa.String(63), nullable=False),
        sa.Column("task_index", sa.Integer, nullable=False),
        sa.Column("incarnation", sa.String(64), nullable=False),
        sa.Column("target", sa.String(320), nullable=False),
        sa.Column("handle", sa.String(256), nullable=False),
        sa.Column("graph_version", sa.BigInteger, nullable=False),
        sa.Column("created", sa.Float, nullable=False),
    )
    op.create_table(
        "tenfold_answers",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("created", sa.Float, nullable=False),
        sa.Column("status", sa.Integer),
        sa.Column("headers", sa.Text),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("tenfold_answers_created", "tenfold_answers", ["created"])
