"""An S3 server on loopback (moto, in a process of its own), and what programs need to reach it.

It speaks S3's protocol over HTTP, so the real client, s3fs, is on the other end; what lies there is looked at by
another, boto3. Keys are not checked.
"""

from __future__ import annotations

import contextlib
import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx

from tenfold_core import url_files

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET = "training"
_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


def why_not() -> str | None:
    """Why there is no such server here; None where there is one."""
    missing = [name for name in ("s3fs", "moto", "flask", "boto3") if importlib.util.find_spec(name) is None]
    return f"not installed: {', '.join(missing)} (make engines)" if missing else None


class S3Server:
    """A server with an empty bucket."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        port = self._process.stdout.readline().strip()
        if not port:
            self.close()
            raise RuntimeError("moto's server does not start")
        self.url = f"http://127.0.0.1:{port}"
        #: For the environment of who uses it.
        self.variables = {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": "/nonexistent",
            "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
        }

    def _client(self) -> Any:
        import boto3

        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            region_name="us-east-1",
        )

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Key → bytes."""
        client = self._client()
        with contextlib.closing(client):
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
            keys = [row["Key"] for page in pages for row in page.get("Contents", ())]
            return {key: client.get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in keys}

    def uploads(self) -> int:
        """Multipart uploads that were begun, and neither ended nor given up."""
        client = self._client()
        with contextlib.closing(client):
            return len(client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", ()))

    def clear(self) -> None:
        """An empty bucket again."""
        httpx.post(f"{self.url}/moto-api/reset", timeout=30, trust_env=False).raise_for_status()
        client = self._client()
        with contextlib.closing(client):
            client.create_bucket(Bucket=BUCKET)

    def close(self) -> None:
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate(timeout=20)


@contextlib.contextmanager
def forgotten_file_systems() -> Iterator[None]:
    """What fsspec has made with the environment of before is not used again, now and afterwards."""
    import fsspec

    def forget() -> None:
        url_files._file_system.cache_clear()
        for name in ("s3", "s3a"):
            fsspec.get_filesystem_class(name).clear_instance_cache()

    forget()
    try:
        yield
    finally:
        forget()
