"""What two releases come to, and what is said where they come to nothing."""

from __future__ import annotations

from importlib import metadata

import pytest

from tenfold_core import errors, protocol
from tenfold_core.protocol import SILENT, Agreed, Speaks

AGREE = (
    (protocol.agree_on_links, protocol.links),
    (protocol.agree_on_calls, protocol.calls),
    (protocol.agree_on_rest, protocol.rest),
)


@pytest.mark.parametrize(("agree", "ours"), AGREE)
def test_the_newest_version_and_the_abilities_that_both_have(agree: object, ours: object) -> None:
    assert callable(agree)
    assert callable(ours)
    here = ours()

    assert agree(SILENT, "it") == Agreed(1, frozenset())
    assert agree(here, "it") == Agreed(here.newest, here.can)
    assert agree(Speaks(1, here.newest + 5, frozenset({"trace", "fly"})), "it") == Agreed(
        here.newest, here.can & {"trace", "fly"}
    )


@pytest.mark.parametrize(("agree", "ours"), AGREE)
def test_no_version_in_common_names_both_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch, agree: object, ours: object
) -> None:
    assert callable(agree)
    assert callable(ours)
    monkeypatch.setattr(protocol, "_MINE", {name: Speaks(2, 3, each.can) for name, each in protocol._MINE.items()})
    release = protocol.release()

    with pytest.raises(errors.FailedPreconditionError) as newer:
        agree(Speaks(4, 6, frozenset(), "9.1.0"), "/job:ps/task:0")
    with pytest.raises(errors.FailedPreconditionError) as older:
        agree(SILENT, "/job:ps/task:0")

    assert "/job:ps/task:0 (Tenfold 9.1.0) speaks versions 4 to 6 of " in newer.value.message
    assert f"and this process (Tenfold {release}) versions 2 to 3: " in newer.value.message
    assert newer.value.message.endswith("bring this process up to date (pip install tenfold==9.1.0).")
    assert "/job:ps/task:0 (an older Tenfold) speaks version 1 of " in older.value.message
    assert older.value.message.endswith(f"bring /job:ps/task:0 up to date (pip install tenfold=={release}).")


@pytest.mark.parametrize(("agree", "ours"), AGREE)
def test_this_release_speaks_version_1_says_which_it_is_and_traces(agree: object, ours: object) -> None:
    """Another number here is a decision: docs/decisions/0085-versions-on-the-wire.md."""
    assert callable(ours)
    protocol.release.cache_clear()
    can = frozenset({"bundles", "streams", "trace"} if ours is protocol.links else {"trace"})

    assert ours() == Speaks(1, 1, can, metadata.version("tenfold"))


@pytest.mark.parametrize(("agree", "ours"), AGREE)
def test_a_peer_whose_oldest_version_is_newer_than_its_newest_is_the_one_to_mend(agree: object, ours: object) -> None:
    assert callable(agree)
    assert callable(ours)
    here = ours()

    with pytest.raises(protocol.VersionError, match=rf"bring it up to date \(pip install tenfold=={here.release}\)"):
        agree(protocol.announced(here.newest + 1, here.newest, (), "9.1.0"), "it")


@pytest.mark.parametrize(
    "speaks", [SILENT, Speaks(1, 4, frozenset({"trace", "b-2"}), "1.2.0rc1+local"), Speaks(2, 2, frozenset(), "0.1.0")]
)
def test_what_is_told_is_read_back(speaks: Speaks) -> None:
    assert protocol.parse(speaks.text()) == speaks
    assert protocol.parse(speaks.text().encode()) == speaks


@pytest.mark.parametrize("silent", [None, "", b""])
def test_who_says_nothing_is_the_first_release(silent: str | bytes | None) -> None:
    assert protocol.parse(silent) is SILENT


@pytest.mark.parametrize(
    "text", ["1", "2-1", "1-2;", "x-y", "1-1; release", "1-1; can=<script>", "1-1; a=" + 2000 * "b"]
)
def test_what_is_no_such_text(text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"tenfold-protocol is .*OLDEST-NEWEST"):
        protocol.parse(text)


def test_what_a_peer_says_is_bounded() -> None:
    said = protocol.announced(0, 0, (str(number) for number in range(10_000)), "9" * 10_000)

    assert (said.oldest, said.newest) == (1, 1)
    assert len(said.can) <= 64
    assert len(said.release) <= 1024


def test_a_text_may_be_as_long_as_the_limit_and_no_longer() -> None:
    text = "1-1; a="
    text += "b" * (1024 - len(text))

    assert protocol.parse(text).newest == 1
    with pytest.raises(errors.InvalidArgumentError):
        protocol.parse(text + "b")
