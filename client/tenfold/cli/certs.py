"""`tenfold certs new`: an authority of a cluster's own, and certificates of it for tasks, services and people."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import click

from tenfold.cli.group import Group
from tenfold.cli.tokens import role_option


@click.group(cls=Group)
def certs() -> None:
    """Make the certificates by which tasks know each other over a network, and encrypt what they say."""


@certs.command()
@click.argument("name")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    envvar="TENFOLD_CERTS_NEW_HOST",
    metavar="HOST",
    help="A name or address by which it is dialled; several times. By default NAME, localhost and 127.0.0.1.",
)
@role_option("register", "TENFOLD_CERTS_NEW_ROLE")
@click.option(
    "--folder",
    type=click.Path(file_okay=False),
    default="certs",
    show_default=True,
    envvar="TENFOLD_CERTS_NEW_FOLDER",
    help="Where the authority is (ca.pem, ca-key.pem), which is made if there is none, and where NAME's files go.",
)
@click.option(
    "--days",
    type=click.IntRange(min=1),
    default=365,
    show_default=True,
    envvar="TENFOLD_CERTS_NEW_DAYS",
    help="How long it is good.",
)
def new(name: str, hosts: tuple[str, ...], role: object, folder: str, days: int) -> None:
    """Make a certificate for NAME, and say how it is used.

    NAME-key.pem and ca-key.pem are secrets: the latter stays where certificates are made.
    """
    from tenfold_core import errors
    from tenfold_core.access.roles import Role

    try:
        from tenfold_core.access.issue import authority, issue
    except ImportError as error:
        text = f"making certificates needs a package more: pip install 'tenfold[tls]' ({error})"
        raise click.ClickException(text) from None
    assert isinstance(role, Role)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) or name in ("ca", "ca-key"):
        raise click.UsageError(f"NAME {name!r} has to be letters, digits, dots, dashes, and neither ca nor ca-key")
    where = Path(folder)
    try:
        issuer, key, fresh = authority(where)
        made = issue(where, name, hosts or (name, "localhost", "127.0.0.1"), role, timedelta(days=days), (issuer, key))
    except (OSError, ValueError, errors.OpError) as error:
        raise click.ClickException(f"no certificate can be made in {folder}: {error}") from None
    if fresh:
        click.echo(f"made the authority {where / 'ca.pem'}", err=True)
    click.echo(f"export TENFOLD_TLS_CERT={made[0]} TENFOLD_TLS_KEY={made[1]} TENFOLD_TLS_CA={where / 'ca.pem'}")
