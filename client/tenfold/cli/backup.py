"""`tenfold backup` and `tenfold restore`: a control service's database as one file. The work is tenfold_control_api's.

Commands of their own and no subcommands of `control`, whose options stand in a table of their own in tenfold.toml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenfold_core.user_folders import default_database

if TYPE_CHECKING:
    from collections.abc import Callable

_database = click.option(
    "--database",
    default=default_database,
    show_default="~/.local/state/tenfold/control.db",
    envvar="TENFOLD_DATABASE",
    show_envvar=True,
    help="File of an SQLite database, or a PostgreSQL URL.",
)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False))
@_database
def backup(file: str, database: str) -> None:
    """Write a control service's database into FILE, also while it works.

    Clusters, tasks, leases, sessions, runs and their progress, events. The output of the runs' tasks is not included:
    copy the folder of the runs.
    """
    api = _api()
    manifest = _run(database, lambda: api.write_backup(database, file))
    click.echo(f"{file}: {sum(manifest.rows.values())} rows of {len(manifest.rows)} tables, {_version(manifest)}")


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@_database
@click.option("--force", is_flag=True, help="Also into a database that holds something, which is lost.")
def restore(file: str, database: str, force: bool) -> None:
    """Fill a control service's database from FILE, of either kind. Stop the services that use it first."""
    api = _api()
    manifest = _run(database, lambda: api.restore(database, file, force=force))
    click.echo(f"restored {sum(manifest.rows.values())} rows of {len(manifest.rows)} tables, {_version(manifest)}")


def _version(manifest: Any) -> str:
    return f"schema version {manifest.schema_version}"


def _api() -> Any:
    try:
        from tenfold_control_api import backup
    except ImportError as error:
        raise click.ClickException(
            f"the control service needs more packages: pip install 'tenfold[control]' ({error})"
        ) from None
    return backup


def _run(database: str, work: Callable[[], Any]) -> Any:
    from tenfold_control_api.backup import BackupError
    from tenfold_control_api.database import DatabaseError, shown

    try:
        return work()
    except BackupError as error:
        raise click.ClickException(str(error)) from None
    except DatabaseError as error:
        raise click.ClickException(f"the database {shown(database)!r} cannot be used: {error}") from None
