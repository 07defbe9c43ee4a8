from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result
from cryptography import x509

from tenfold.cli.main import cli
from tenfold_core.access.credentials import AccessSettings

if TYPE_CHECKING:
    from pathlib import Path


def certs(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["certs", "new", *arguments, "--folder", str(folder)])


def variables(result: Result) -> dict[str, str]:
    return dict(word.split("=", 1) for word in result.stdout.split()[1:])  # type: ignore[misc]


def test_two_certificates_of_one_authority(tmp_path: Path) -> None:
    first = certs(tmp_path / "new", "ps-0", "--host", "ps-0.example", "--host", "10.0.0.7")
    second = certs(tmp_path / "new", "worker-0", "--role", "run")

    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    assert ("made the authority" in first.stderr, "made the authority" in second.stderr) == (True, False)
    for result in (first, second):
        assert AccessSettings.from_environment(variables(result)).credentials().certificates is not None
    found = x509.load_pem_x509_certificate((tmp_path / "new" / "ps-0.pem").read_bytes())
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["ps-0.example"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]
    assert (
        "OU=run"
        in x509.load_pem_x509_certificate((tmp_path / "new" / "worker-0.pem").read_bytes()).subject.rfc4514_string()
    )


def test_keys_are_their_owners_alone(tmp_path: Path) -> None:
    certs(tmp_path, "a")

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"a.pem": 0o644, "a-key.pem": 0o600, "ca.pem": 0o644, "ca-key.pem": 0o600}


@pytest.mark.parametrize("name", ["../a", "ca", ""])
def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path, name: str) -> None:
    result = certs(tmp_path, name)

    assert result.exit_code == 2
    assert "has to be letters, digits" in result.output


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("not a certificate")

    result = certs(tmp_path, "a")

    assert result.exit_code == 1
    assert "no certificate can be made" in result.output
    assert (tmp_path / "ca.pem").read_text() == "not a certificate"
