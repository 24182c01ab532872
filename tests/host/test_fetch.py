"""Downloads from a server that cuts, lies and refuses."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import HostError, IntegrityError
from axletree.host.fetch import ATTEMPTS, download
from support.index_server import Server, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


DATA = random.Random(7).randbytes(3_000_000)
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve() as running:
        running.files["/f.whl"] = DATA
        yield running


class Fetcher:
    """Downloads into one folder; keeps what progress was reported."""

    def __init__(self, folder: Path) -> None:
        self.dest = folder / "out" / "f.whl"
        self.partials = folder / "partial"
        self.partial = self.partials / f"{DIGEST}.partial"
        self.reported: list[tuple[int, int | None]] = []

    def __call__(self, url: str, *, size: int | None = len(DATA), sha256: str = DIGEST, offline: bool = False) -> None:
        download(
            url,
            self.dest,
            sha256=sha256,
            size=size,
            partial_folder=self.partials,
            progress=lambda done, total: self.reported.append((done, total)),
            offline=offline,
            backoff=0.0,
        )

    def has_nothing(self) -> bool:
        return not self.dest.exists() and not self.partial.exists()


@pytest.fixture
def fetch(tmp_path: Path) -> Fetcher:
    return Fetcher(tmp_path)


def ranges(server: Server) -> list[str | None]:
    return [headers.get("range") for _, _, headers in server.requests]


def test_a_file_arrives_whole_and_progress_ends_at_its_size(server: Server, fetch: Fetcher) -> None:
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA
    assert fetch.reported[-1] == (len(DATA), len(DATA))
    assert fetch.reported == sorted(fetch.reported)
    assert not fetch.partial.exists()


def test_without_a_known_size_the_server_tells_it(server: Server, fetch: Fetcher) -> None:
    fetch(f"{server.address}/f.whl", size=None)
    assert fetch.reported[-1] == (len(DATA), len(DATA))


def test_a_cut_connection_is_resumed_where_it_was_cut(server: Server, fetch: Fetcher) -> None:
    server.cut_after = [1_000_000, 500_000]
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA
    first, second, third = ranges(server)
    assert first is None
    assert second is not None
    assert third is not None
    starts = [int(text.removeprefix("bytes=").removesuffix("-")) for text in (second, third)]
    assert 0 < starts[0] <= 1_000_000
    assert starts[0] < starts[1] <= 1_500_000


def test_a_later_call_goes_on_from_what_an_earlier_one_left(server: Server, fetch: Fetcher) -> None:
    fetch.partials.mkdir()
    fetch.partial.write_bytes(DATA[:2_000_000])
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA
    assert ranges(server) == ["bytes=2000000-"]


def test_a_server_without_ranges_starts_anew(server: Server, fetch: Fetcher) -> None:
    server.ranges = False
    server.cut_after = [1_000_000]
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA
    assert len(server.requests) == 2


@pytest.mark.parametrize("left", [b"x" * 1_000_000, b"x" * len(DATA), b"x" * (len(DATA) + 1)])
def test_a_wrong_leftover_is_replaced(server: Server, fetch: Fetcher, left: bytes) -> None:
    fetch.partials.mkdir()
    fetch.partial.write_bytes(left)
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA


def test_a_range_that_starts_elsewhere_is_not_believed(server: Server, fetch: Fetcher) -> None:
    server.shift_range = 10
    server.cut_after = [1_000_000]
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA


def test_a_moment_of_overload_is_waited_out(server: Server, fetch: Fetcher) -> None:
    server.statuses = [503, 429, 500]
    fetch(f"{server.address}/f.whl")
    assert fetch.dest.read_bytes() == DATA


def test_a_download_that_is_cut_off_again_and_again_is_no_silence(server: Server, fetch: Fetcher) -> None:
    server.cut_after = [0] * (ATTEMPTS + 3)
    with pytest.raises(HostError) as caught:
        fetch(f"{server.address}/f.whl")
    assert "was cut off" in str(caught.value)
    assert "no response" not in str(caught.value)
    assert "proxy" not in str(caught.value)


def test_overload_without_end_is_one_error(server: Server, fetch: Fetcher) -> None:
    server.statuses = [503] * (ATTEMPTS + 3)
    with pytest.raises(
        HostError, match=r"127\.0\.0\.1 answered with HTTP status 503 .*\n  hint: the server is overloaded .* try again"
    ):
        fetch(f"{server.address}/f.whl")
    assert len(server.requests) == ATTEMPTS
    assert fetch.has_nothing()


def test_other_content_is_an_error_with_both_digests_and_nothing_stays(server: Server, fetch: Fetcher) -> None:
    server.files["/f.whl"] = DATA[:-1] + b"x"
    actual = hashlib.sha256(server.files["/f.whl"]).hexdigest()
    with pytest.raises(IntegrityError) as caught:
        fetch(f"{server.address}/f.whl")
    assert DIGEST in str(caught.value)
    assert actual in str(caught.value)
    assert fetch.has_nothing()


def test_more_than_the_locked_size_is_refused_on_the_way(server: Server, fetch: Fetcher) -> None:
    with pytest.raises(IntegrityError, match="larger than the expected 1000 bytes"):
        fetch(f"{server.address}/f.whl", size=1000)
    assert fetch.has_nothing()


def test_a_file_that_is_gone_is_not_asked_for_again(server: Server, fetch: Fetcher) -> None:
    with pytest.raises(HostError, match="status 404"):
        fetch(f"{server.address}/gone.whl")
    assert len(server.requests) == 1


def test_redirects_are_followed(server: Server, fetch: Fetcher) -> None:
    server.redirects["/old.whl"] = "/f.whl"
    fetch(f"{server.address}/old.whl")
    assert fetch.dest.read_bytes() == DATA


def test_credentials_are_sent_to_their_host_and_shown_nowhere(server: Server, fetch: Fetcher) -> None:
    address = server.address.replace("//", "//me:secret@")
    with pytest.raises(HostError) as caught:
        fetch(f"{address}/gone.whl")
    assert "authorization" in server.requests[0][2]
    assert "secret" not in str(caught.value)
    with serve() as other:
        other.files["/f.whl"] = DATA
        server.redirects["/away.whl"] = f"{other.address.replace('127.0.0.1', 'localhost')}/f.whl"
        fetch(f"{address}/away.whl")
        assert "authorization" not in other.requests[0][2]


def test_no_network_is_one_clear_error(fetch: Fetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serve() as stopped:
        address = stopped.address
    with pytest.raises(HostError) as caught:
        fetch(f"{address}/f.whl")
    (problem,) = caught.value.problems
    assert problem.message.startswith("no response from 127.0.0.1")
    assert "\n" not in problem.message
    assert caught.value.exit_code == 3


def test_offline_names_what_it_would_fetch(fetch: Fetcher) -> None:
    with pytest.raises(HostError, match=r"https://h.example/f.whl \(3.00 MB\)"):
        fetch("https://h.example/f.whl", offline=True)


@pytest.mark.parametrize("form", ["path", "address"])
def test_local_files_are_copied_also_offline(fetch: Fetcher, tmp_path: Path, form: str) -> None:
    source = tmp_path / "a b.whl"
    source.write_bytes(DATA)
    fetch(str(source) if form == "path" else source.as_uri(), offline=True)
    assert fetch.dest.read_bytes() == DATA
    assert not fetch.dest.samefile(source)
    assert fetch.reported[-1] == (len(DATA), len(DATA))


def test_a_local_file_with_other_content_is_an_error(fetch: Fetcher, tmp_path: Path) -> None:
    source = tmp_path / "f.whl"
    source.write_bytes(b"other")
    with pytest.raises(IntegrityError, match="expected sha256"):
        fetch(str(source))
    assert fetch.has_nothing()
    assert source.read_bytes() == b"other"


def test_a_missing_local_file_is_an_error(fetch: Fetcher, tmp_path: Path) -> None:
    with pytest.raises(HostError, match=r"cannot read .*missing\.whl"):
        fetch(str(tmp_path / "missing.whl"))


def test_a_file_that_cannot_fit_is_not_begun(server: Server, fetch: Fetcher) -> None:
    with pytest.raises(HostError, match="not enough disk space"):
        fetch(f"{server.address}/f.whl", size=1 << 60)
    assert not server.requests


def test_a_full_disk_is_named(server: Server, fetch: Fetcher) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    fetch.partials.mkdir()
    fetch.partial.symlink_to("/dev/full")
    with pytest.raises(HostError, match=r"not enough disk space for f\.whl: it needs 3\.00 MB"):
        fetch(f"{server.address}/f.whl")
    assert not fetch.dest.exists()
