"""Artifacts are fetched from a store, a folder or a server, whatever happens on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest

from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.host.sdk.artifacts import read_artifacts
from axletree.host.sdk.layout import lay_out
from axletree.host.sdk.store import fetch_artifacts
from axletree.package.sdk.entries import SdkEntry
from support.artifacts import content_of
from support.index_server import Server, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from axletree.report.sdk import Fetched

GROUP = "gfx90a"
MINE = ("base_lib_generic.tar.zst", "rand_lib_gfx900.tar.zst", "rand_lib_gfx90a:xnack+.tar.zst")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Runs 7 and 10, of which the later has nothing of the group."""
    source = tmp_path / "source"
    source.write_bytes(os.urandom(300_000))
    folder = tmp_path / "store"
    folder.mkdir()
    given = {"base": "generic", "rand": "gfx900", "fft": "gfx90a:xnack+"}
    entries = [
        SdkEntry(
            path=f"lib/lib{name}.so",
            artifact="rand" if name == "fft" else name,
            component="lib",
            target=target,
            source=str(source),
            size=300_000,
        )
        for name, target in given.items()
    ]
    lay_out(entries, folder / "7-linux", archives=True)
    lay_out(entries[:2], folder / "10-linux", archives=True)
    (folder / "11-windows").mkdir()
    (folder / "7-linux" / "index.html").write_text("not an artifact")
    return folder


@pytest.fixture
def server(store: Path) -> Iterator[Server]:
    with serve() as found:
        for run in ("7-linux", "10-linux"):
            anchors = ""
            for place in sorted((store / run).glob("*.tar.zst*")):
                found.files[f"/s/{run}/{place.name.replace(':', '%3A').replace('+', '%2B')}"] = place.read_bytes()
                anchors += f'<a href="{place.name.replace(":", "%3A").replace("+", "%2B")}">{place.name}</a>'
            found.files[f"/s/{run}/index.html"] = f"<html>{anchors}</html>".encode()
        found.files["/s/"] = b'<a href="../">up</a><a href="7-linux/">7</a> <a href="/s/10-linux/index.html">10</a>'
        yield found


def bring(store: str | Path, out: Path, *, run: str = "7", group: str = GROUP, **more: object) -> Fetched:
    return fetch_artifacts(str(store), run, group, out, backoff=0.001, **more)  # type: ignore[arg-type]


def names(fetched: Fetched) -> list[str]:
    return [file.filename for file in fetched.files]


def test_from_a_folder_what_the_group_needs(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = bring(store, out)
    assert names(done) == [MINE[0], MINE[2]]
    assert {file.state for file in done.files} == {"fetched"}
    assert sorted(os.listdir(out)) == sorted([*names(done), *(f"{name}.sha256sum" for name in names(done))])  # noqa: PTH208
    assert names(bring(store, out, targets=("gfx900",))) == list(MINE)
    assert len(read_artifacts(out, cache=tmp_path / "cache")) == 3


def test_from_a_server_the_same(store: Path, server: Server, tmp_path: Path) -> None:
    here, there = bring(store, tmp_path / "here"), bring(f"{server.address}/s", tmp_path / "there")
    assert names(here) == names(there)
    assert [file.sha256 for file in here.files] == [file.sha256 for file in there.files]
    assert sorted(os.listdir(tmp_path / "here")) == sorted(os.listdir(tmp_path / "there"))  # noqa: PTH208
    read = [read_artifacts(tmp_path / name, cache=tmp_path / "cache") for name in ("here", "there")]
    assert content_of(read[0]) == content_of(read[1])


def test_the_index_of_the_group_comes_first(server: Server, tmp_path: Path) -> None:
    server.files["/s/7-linux/index-gfx90a.html"] = b'<a href="rand_lib_gfx90a%3Axnack%2B.tar.zst">x</a>'
    assert names(bring(f"{server.address}/s/", tmp_path / "out")) == [MINE[2]]


def test_the_latest_run_is_the_highest_that_has_the_group(store: Path, server: Server, tmp_path: Path) -> None:
    for place in (str(store), f"{server.address}/s"):
        notes: list[str] = []
        assert bring(place, tmp_path / "a", run="latest", note=notes.append).run_id == "7"
        assert notes[0] == "the newest run with gfx90a is 7"
        assert bring(place, tmp_path / "b", run="latest", group="gfx900").run_id == "10"
        assert bring(place, tmp_path / "c", run="latest", group="generic").run_id == "10"
        with pytest.raises(HostError, match="no files for group gfx1100 in any of the last 2 runs for linux"):
            bring(place, tmp_path / "d", run="latest", group="gfx1100")


def test_a_bucket_that_lists_its_keys(server: Server, tmp_path: Path) -> None:
    pages = [path for path in server.files if path.endswith((".html", "/"))]
    keys = sorted(path.removeprefix("/") for path in server.files if path not in pages)
    for page in pages:
        del server.files[page]

    def listing(names: list[str], *, folders: bool = False, following: str = "") -> bytes:
        form = (
            "<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>" if folders else "<Contents><Key>{}</Key></Contents>"
        )
        token = f"<NextContinuationToken>{following}</NextContinuationToken>" if following else ""
        text = "".join(form.format(unquote(name).replace("&", "&amp;")) for name in names)
        return f'<?xml version="1.0"?><ListBucketResult xmlns="x"><Prefix>s/</Prefix>{text}{token}</...>'.encode()

    ask = "/?list-type=2&delimiter=%2F&prefix=s%2F"
    server.files[ask] = listing(["s/7-linux/", "s/10-linux/"], folders=True)
    for run in ("7", "10"):
        of = [key for key in keys if key.startswith(f"s/{run}-linux/")]
        server.files[f"{ask}{run}-linux%2F"] = listing(of[:2], following="a+b")
        server.files[f"{ask}{run}-linux%2F&continuation-token=a%2Bb"] = listing(of[2:])
    done = bring(f"{server.address}/s", tmp_path / "out", run="latest")
    assert (done.run_id, names(done)) == ("7", [MINE[0], MINE[2]])
    with pytest.raises(HostError, match="has no run 8-linux"):
        bring(f"{server.address}/s", tmp_path / "out", run="8")


def test_a_store_that_lets_nobody_in_says_so(server: Server, tmp_path: Path) -> None:
    server.statuses += [403] * 4
    with pytest.raises(
        HostError, match=r"answered with HTTP status 403 .*\n  hint: set the credentials in the URL or in ~/\.netrc"
    ):
        bring(f"{server.address}/s", tmp_path / "out")


def test_what_is_there_and_right_is_not_fetched_again(server: Server, tmp_path: Path) -> None:
    out = tmp_path / "out"
    bring(f"{server.address}/s", out)
    (out / MINE[0]).write_bytes(b"spoilt")
    (out / "mine.txt").write_text("untouched")
    server.requests.clear()
    done = bring(f"{server.address}/s", out)
    assert {file.filename: file.state for file in done.files} == {MINE[0]: "fetched", MINE[2]: "there"}
    assert [path for _, path, _ in server.requests if path.endswith(".zst")] == [f"/s/7-linux/{MINE[0]}"]
    assert (out / "mine.txt").read_text() == "untouched"


def test_a_checksum_is_replaced_at_once(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    bring(f"{server.address}/s", out)
    side = out / f"{MINE[0]}.sha256sum"
    before = side.read_text()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(side))

    monkeypatch.setattr("axletree.host.files.os.fsync", full)
    with pytest.raises(HostError, match="the file cannot be written: No space left on device"):
        bring(f"{server.address}/s", out)
    assert side.read_text() == before
    assert [path.name for path in out.iterdir() if path.name.endswith(".axletree-part")] == []


def test_cut_downloads_go_on_and_a_busy_server_is_asked_again(server: Server, tmp_path: Path) -> None:
    server.files["/s/7-linux/index.html"] = f'<a href="{MINE[0]}">x</a>'.encode()
    server.statuses += [404, 500, 503]  # the group's index is not there; index.html twice busy
    done = bring(f"{server.address}/s", tmp_path / "out", group="generic")
    assert names(done) == [MINE[0]]
    server.requests.clear()
    shutil.rmtree(tmp_path / "out")
    page, side = f"/s/7-linux/{MINE[0]}", f"/s/7-linux/{MINE[0]}.sha256sum"
    server.files["/s/7-linux/index-generic.html"] = server.files["/s/7-linux/index.html"]
    digest = hashlib.sha256(server.files[page]).hexdigest()
    server.files["/s/7-linux/index-generic.html"] = f'<a href="{MINE[0]}#sha256={digest}">x</a>'.encode()
    server.cut_after += [10_000, 100_000, 50_000]
    server.cut_after[0] = len(server.files["/s/7-linux/index-generic.html"])  # the page comes whole
    bring(f"{server.address}/s", tmp_path / "out", group="generic")
    asked = [headers.get("range") for _, path, headers in server.requests if path == page]
    assert asked == [None, "bytes=100000-", "bytes=150000-"]
    assert side not in [path for _, path, _ in server.requests]


def test_redirects_are_followed(server: Server, tmp_path: Path) -> None:
    for name in (MINE[0], f"{MINE[0]}.sha256sum"):
        server.files[f"/elsewhere/{name}"] = server.files.pop(f"/s/7-linux/{name}")
        server.redirects[f"/s/7-linux/{name}"] = f"/elsewhere/{name}"
    server.redirects["/old/7-linux/index.html"] = "/s/7-linux/index.html"
    assert names(bring(f"{server.address}/old", tmp_path / "out")) == [MINE[0], MINE[2]]


def test_what_is_not_what_its_checksum_says_is_refused_and_the_rest_kept(
    store: Path, server: Server, tmp_path: Path
) -> None:
    server.files[f"/s/7-linux/{MINE[0]}"] = b"another"
    (store / "7-linux" / MINE[0]).write_bytes(b"another")
    for name, place in (("a", str(store)), ("b", f"{server.address}/s")):
        with pytest.raises(
            IntegrityError, match=r"does not match its checksum\n    expected sha256 .*\n    got sha256"
        ):
            bring(place, tmp_path / name)
        assert sorted(place.name for place in (tmp_path / name).glob("*.zst")) == [MINE[2]]


def test_without_a_checksum_nothing_is_taken(store: Path, server: Server, tmp_path: Path) -> None:
    del server.files[f"/s/7-linux/{MINE[0]}.sha256sum"]
    (store / "7-linux" / f"{MINE[0]}.sha256sum").unlink()
    for place in (str(store), f"{server.address}/s"):
        with pytest.raises(IntegrityError, match=r"base_lib_generic\.tar\.zst has no checksum file"):
            bring(place, tmp_path / "out")


def test_what_is_not_there_is_said(store: Path, server: Server, tmp_path: Path) -> None:
    for place in (str(store), f"{server.address}/s"):
        with pytest.raises(HostError, match="has no run 8-linux"):
            bring(place, tmp_path / "out", run="8")
        with pytest.raises(
            HostError,
            match=r"in run 7-linux\n  hint: choose a group that the run has files for: generic, gfx900, gfx90a:x",
        ):
            bring(place, tmp_path / "out", group="gfx1100")
        for run in ("../7", "", "7/..", "-x"):
            with pytest.raises(UsageError, match="not a valid run id"):
                bring(place, tmp_path / "out", run=run)
    with pytest.raises(HostError, match="cannot be read"):
        bring(tmp_path / "none", tmp_path / "out", run="latest")
    with pytest.raises(HostError, match=r"no response from 127\.0\.0\.1"):
        bring("http://127.0.0.1:9/s", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_credentials_go_to_their_host_alone_and_are_never_shown(server: Server, tmp_path: Path) -> None:
    address = server.address.replace("http://", "http://me:s3cret@")
    notes: list[str] = []
    bring(f"{address}/s", tmp_path / "out", run="latest", note=notes.append)
    assert all(headers.get("authorization", "").startswith("Basic ") for _, _, headers in server.requests)
    server.files[f"/s/7-linux/{MINE[0]}"] = b"another"
    shown = ["\n".join(notes)]
    with pytest.raises(IntegrityError) as caught:
        bring(f"{address}/s", tmp_path / "new")
    shown.append(str(caught.value))
    for files in ({"/s/": b""}, {"/s/7-linux/index.html": b'<a href="base_lib_gfx90a.tar.zst">x</a>'}):
        server.files = files
        with pytest.raises((HostError, IntegrityError)) as told:
            bring(f"{address}/s", tmp_path / "new")
        shown.append(str(told.value))
    with serve() as other:
        other.files = {"/f/base_lib_gfx90a.tar.zst": b"x", "/f/base_lib_gfx90a.tar.zst.sha256sum": b"0" * 64}
        link = f'<a href="{other.address}/f/base_lib_gfx90a.tar.zst?sig=s3cret">x</a>'
        server.files = {"/s/7-linux/index.html": link.encode()}
        with pytest.raises((HostError, IntegrityError)) as away:
            bring(f"{address}/s", tmp_path / "new")
        shown.append(str(away.value))
        assert other.requests
        assert all("authorization" not in headers for _, _, headers in other.requests)
    assert not [text for text in shown if "s3cret" in text]
