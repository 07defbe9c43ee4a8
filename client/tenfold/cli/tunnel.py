"""`tenfold tunnel`: TensorFlow's clients and servers reach Tenfold tasks on another host, and are reached by them.

The tunnel itself is tenfold_services.tunnel. This file parses options, refuses what would be open to others, and
prints in one line where the tunnel listens.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from tenfold.cli.log_options import log_options
from tenfold.cli.signals import StopSignalError, stop_signals
from tenfold.cli.tokens import token_option
from tenfold_core.address import split_address
from tenfold_core.loopback import is_loopback

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tenfold_core.access.credentials import AccessSettings, ShownToken


@click.command()
@click.option(
    "--listen",
    required=True,
    metavar="HOST:PORT",
    envvar="TENFOLD_TUNNEL_LISTEN",
    help="Where it listens; port 0 takes a free one.",
)
@click.option("--to", required=True, metavar="HOST:PORT", envvar="TENFOLD_TUNNEL_TO", help="Where it leads.")
@click.option(
    "--reverse",
    is_flag=True,
    envvar="TENFOLD_TUNNEL_REVERSE",
    help="TLS at --listen, in the clear to --to: for a TensorFlow server, whom Tenfold tasks are to reach.",
)
@click.option(
    "--tls-cert",
    metavar="FILE",
    envvar="TENFOLD_TLS_CERT",
    help="The certificate that it shows, as PEM (`tenfold certs new`).",
)
@click.option("--tls-key", metavar="FILE", envvar="TENFOLD_TLS_KEY", help="The certificate's key.")
@click.option("--tls-ca", metavar="FILE", envvar="TENFOLD_TLS_CA", help="The authorities whose certificates count.")
@token_option
@log_options
def tunnel(
    listen: str,
    to: str,
    reverse: bool,
    tls_cert: str | None,
    tls_key: str | None,
    tls_ca: str | None,
    token: ShownToken,
) -> None:
    """Carry TensorFlow's plaintext gRPC between hosts: in the clear on loopback, over TLS between the hosts.

    On a client's machine it listens on loopback, accepts only connections of the same user, and connects to a Tenfold
    task, to which it presents a certificate, or a token with each request, or both:

    \b
      tenfold tunnel --listen 127.0.0.1:2222 --to trainer:2222 --tls-ca ca.pem --token-file token
      tf.Session("grpc://127.0.0.1:2222")

    On a TensorFlow server's machine it listens with TLS, for peers that present a certificate with the role register,
    and connects to the server on loopback:

    \b
      tenfold tunnel --reverse --listen 0.0.0.0:3222 --to 127.0.0.1:2222 --tls-cert … --tls-key … --tls-ca …
    """
    from tenfold_core import errors

    access = replace(token.settings, tls_cert=tls_cert, tls_key=tls_key, tls_ca=tls_ca, tls="always")
    try:
        _check(listen, to, reverse, access)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    try:
        _run(listen, to, reverse, access, token)
    except errors.OpError as error:
        raise click.ClickException(error.message) from None


def _check(listen: str, to: str, reverse: bool, access: AccessSettings) -> None:
    """Raises ValueError for a tunnel that would be open to others, or could show nothing."""
    plain, name = (to, "--to") if reverse else (listen, "--listen")
    split_address(listen, least_port=0)
    split_address(to)
    if not is_loopback(split_address(plain, least_port=0)[0]):
        way = "a tunnel in reverse goes on" if reverse else "a tunnel listens"
        other = "" if reverse else "; with TLS there, and TensorFlow at --to, it is --reverse"
        text = f"{name} {plain} is not on loopback: {way} in the clear, which is for this machine alone{other}"
        raise ValueError(text)
    certificate = access.tls_cert is not None and access.tls_key is not None
    if access.tls_ca is None:
        raise ValueError("a tunnel speaks TLS: whose certificates count? Give --tls-ca (TENFOLD_TLS_CA)")
    if (access.tls_cert is None) != (access.tls_key is None):
        raise ValueError("--tls-cert and --tls-key go together (TENFOLD_TLS_CERT, TENFOLD_TLS_KEY)")
    if reverse and not certificate:
        raise ValueError("a tunnel in reverse is a server of TLS: give it --tls-cert and --tls-key")
    if not reverse and not certificate and access.token is None and access.token_file is None:
        raise ValueError(
            "what does the tunnel show to be accepted? Give --tls-cert and --tls-key, or --token-file "
            "(TENFOLD_TOKEN_FILE)"
        )


def _run(listen: str, to: str, reverse: bool, access: AccessSettings, token: ShownToken) -> None:
    """Serves until a stop signal. Raises ClickException where it cannot listen, InvalidArgumentError for files that
    cannot be used, and SystemExit with the signal's code."""
    from tenfold_core.port_users import taken
    from tenfold_services.tunnel.relay import TunnelSettings
    from tenfold_services.tunnel.tunnel import BackgroundTunnel, Tunnel

    shows_token = not reverse and (access.token is not None or access.token_file is not None)
    tunnel = Tunnel(
        listen,
        to,
        _context(access, reverse),
        reverse=reverse,
        token=token if shows_token else None,
        settings=TunnelSettings.from_environment(),
    )
    host, wanted = split_address(listen, least_port=0)
    running = BackgroundTunnel(tunnel)
    with stop_signals() as stop:
        try:
            port = running.start()
            here, there = (" with TLS", "") if reverse else ("", " over TLS")
            click.echo(f"tunnel listening on {host}:{port}{here}, to {to}{there}")
            stop.wait()
        except OSError as error:
            hint = "Another port: --listen HOST:PORT, where port 0 takes a free one."
            raise click.ClickException(f"cannot listen on {listen}: {taken(error, wanted)}. {hint}") from None
        except StopSignalError:
            raise SystemExit(stop.exit_code) from None
        finally:
            running.stop()


def _context(access: AccessSettings, reverse: bool) -> Callable[[], ssl.SSLContext]:
    """What gives the TLS of the next connection; the files may change under way. Raises InvalidArgumentError now for
    files that cannot be used."""
    from tenfold_core.access.tls import trusting

    if access.tls_cert is None:
        trusting(access.tls_ca)
        return lambda: trusting(access.tls_ca)
    certificates = access.credentials().certificates
    assert certificates is not None
    return certificates.server_context if reverse else certificates.client_context
