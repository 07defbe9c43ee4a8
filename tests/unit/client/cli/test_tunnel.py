"""`tenfold tunnel` before it listens: what it says of itself, and what it refuses. What it does: tests/cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from support.certs import access
from tenfold.cli.main import cli

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TOKEN", "TOKEN_FILE", "TLS_CERT", "TLS_KEY", "TLS_CA"):
        monkeypatch.delenv(f"TENFOLD_{name}", raising=False)


def tenfold(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["tunnel", *arguments], terminal_width=100)


def test_help() -> None:
    text = tenfold("--help").output

    assert text[: text.index("Options:")] == (
        "Usage: cli tunnel [OPTIONS]\n"
        "\n"
        "  Carry TensorFlow's plaintext gRPC between hosts: in the clear on loopback, over TLS between the\n"
        "  hosts.\n"
        "\n"
        "  On a client's machine it listens on loopback, accepts only connections of the same user, and\n"
        "  connects to a Tenfold task, to which it presents a certificate, or a token with each request, or\n"
        "  both:\n"
        "\n"
        "    tenfold tunnel --listen 127.0.0.1:2222 --to trainer:2222 --tls-ca ca.pem --token-file token\n"
        '    tf.Session("grpc://127.0.0.1:2222")\n'
        "\n"
        "  On a TensorFlow server's machine it listens with TLS, for peers that present a certificate with\n"
        "  the role register, and connects to the server on loopback:\n"
        "\n"
        "    tenfold tunnel --reverse --listen 0.0.0.0:3222 --to 127.0.0.1:2222 --tls-cert … --tls-key … --tls-ca …\n"
        "\n"
    )
    for variable in ("TUNNEL_LISTEN", "TUNNEL_TO", "TUNNEL_REVERSE", "TLS_CERT", "TLS_KEY", "TLS_CA", "TOKEN_FILE"):
        assert f"TENFOLD_{variable}" in text


ALL = ("--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--listen", "0.0.0.0:1", "--to", "far:1", *ALL), "--listen 0.0.0.0:1 is not on loopback"),
        (("--listen", ":1", "--to", "far:1", *ALL), "':1' is not HOST:PORT"),
        (("--listen", "127.0.0.1:0", "--to", "far:0", *ALL), "'far:0' is not HOST:PORT with a port from 1"),
        (("--listen", "127.0.0.1:0", "--to", "far:1"), "whose certificates count? Give --tls-ca (TENFOLD_TLS_CA)"),
        (("--listen", "127.0.0.1:0", "--to", "far:1", "--tls-ca", "a"), "what does the tunnel show to be accepted?"),
        (
            ("--listen", "127.0.0.1:0", "--to", "far:1", "--tls-ca", "a", "--tls-key", "k"),
            "--tls-cert and --tls-key go together",
        ),
        (
            ("--reverse", "--listen", "0.0.0.0:1", "--to", "far:1", *ALL),
            "--to far:1 is not on loopback: a tunnel in reverse goes on in the clear",
        ),
        (
            ("--reverse", "--listen", "0.0.0.0:1", "--to", "127.0.0.1:1", "--tls-ca", "a"),
            "a tunnel in reverse is a server of TLS: give it --tls-cert and --tls-key",
        ),
        (("--to", "far:1", *ALL), "Missing option '--listen'"),
    ],
)
def test_what_would_be_open_or_could_show_nothing_is_refused(options: tuple[str, ...], text: str) -> None:
    result = tenfold(*options)

    assert result.exit_code == 2
    assert text in " ".join(result.output.split())


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    where = ("--listen", "127.0.0.1:0", "--to", "far:1")
    missing, other = tmp_path / "missing.pem", access(tmp_path)
    (tmp_path / "tokens").write_text("tenfold-a-token\n")

    no_ca = tenfold(*where, "--tls-ca", str(missing), "--token-file", str(tmp_path / "tokens"))
    no_token = tenfold(*where, "--tls-ca", str(other.tls_ca), "--token-file", str(missing))
    no_cert = tenfold(*where, "--tls-cert", str(missing), "--tls-key", "k", "--tls-ca", str(other.tls_ca))

    assert [each.exit_code for each in (no_ca, no_token, no_cert)] == [1, 2, 1]
    assert f"{missing}, cannot be used" in no_ca.output
    assert f"the token file {missing} cannot be read" in no_token.output
    assert str(missing) in no_cert.output
