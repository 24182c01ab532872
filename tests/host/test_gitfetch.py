"""Git sources: refs, submodules and the cache, with real repositories on this disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from axletree.core.errors import HostError, IntegrityError, UsageError
from axletree.core.values import digest_of
from axletree.host.gitfetch import GitCommit, fetch_git, resolve_ref

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


class Repository:
    """A repository of a test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = folder.as_uri()
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        settings = ("user.name=t", "user.email=t@t.example", "protocol.file.allow=always", "commit.gpgsign=false")
        options = [part for setting in settings for part in ("-c", setting)]
        command = ["git", "-C", str(self.folder), *options, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.folder / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "c", "--allow-empty")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "there" / "project.git")


def fetch(url: str, ref: str, dest: Path, *, submodules: bool = False, offline: bool = False) -> GitCommit:
    return fetch_git(
        url,
        ref,
        dest,
        cache=dest.parent / "cache",
        environ=os.environ,
        submodules=submodules,
        offline=offline,
    )


def test_branches_tags_and_commits(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit(a="1")
    repository.git("tag", "-a", "v1", "-m", "v1")
    second = repository.commit(a="2")
    for number, (ref, commit, text) in enumerate([("v1", first, "1"), ("main", second, "2"), (first, first, "1")]):
        dest = tmp_path / str(number)
        found = fetch(repository.url, ref, dest)
        assert found.commit == commit
        assert found.tree == repository.git("rev-parse", f"{commit}^{{tree}}")
        assert (dest / "a").read_text() == text
        assert [path.name for path in dest.iterdir()] == ["a"]


def test_a_commit_that_the_server_gives_only_with_its_history(repository: Repository, tmp_path: Path) -> None:
    first = repository.commit(a="1")
    repository.commit(a="2")
    repository.git("config", "uploadpack.allowAnySHA1InWant", "false")
    repository.git("config", "uploadpack.allowReachableSHA1InWant", "false")
    fetch(repository.url, "main", tmp_path / "main")
    fetch(repository.url, first, tmp_path / "first")
    assert (tmp_path / "first" / "a").read_text() == "1"


def test_a_known_commit_needs_no_repository_and_no_network(repository: Repository, tmp_path: Path) -> None:
    commit = repository.commit(a="1")
    fetch(repository.url, "main", tmp_path / "one")
    shutil.rmtree(repository.folder)
    fetch(repository.url, commit, tmp_path / "two", offline=True)
    assert (tmp_path / "two" / "a").read_text() == "1"
    fetch(repository.url, "main", tmp_path / "three", offline=True)  # the commit that it was the last time
    assert (tmp_path / "three" / "a").read_text() == "1"
    with pytest.raises(HostError, match=r"^other of .* is not in the cache, and cannot be downloaded with --offline"):
        fetch(repository.url, "other", tmp_path / "four", offline=True)
    assert not (tmp_path / "four").exists()


def test_executable_bits_and_links_are_kept(repository: Repository, tmp_path: Path) -> None:
    (repository.folder / "run").write_text("#!/bin/sh\n")
    (repository.folder / "run").chmod(0o755)
    (repository.folder / "link").symlink_to("run")
    repository.commit()
    fetch(repository.url, "main", tmp_path / "out")
    assert os.access(tmp_path / "out" / "run", os.X_OK)
    assert (tmp_path / "out" / "link").readlink() == Path("run")


def test_submodules_come_recursively_and_relative_addresses_are_resolved(
    repository: Repository, tmp_path: Path
) -> None:
    inner = Repository(tmp_path / "there" / "inner.git")
    inner.commit(c="3")
    middle = Repository(tmp_path / "there" / "middle.git")
    middle.commit(b="2")
    middle.git("submodule", "add", "-q", "../inner.git", "deep/inner")
    middle.commit()
    repository.commit(a="1")
    repository.git("submodule", "add", "-q", middle.url, "third party/middle")
    repository.commit()
    middle.commit(b="later")
    fetch(repository.url, "main", tmp_path / "with", submodules=True)
    out = tmp_path / "with"
    names = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert names == [
        ".gitmodules", "a", "third party/middle/.gitmodules", "third party/middle/b", "third party/middle/deep/inner/c",
    ]  # fmt: skip
    assert (out / "third party" / "middle" / "b").read_text() == "2"
    fetch(repository.url, "main", tmp_path / "without")
    assert not (tmp_path / "without" / "third party" / "middle" / "b").exists()


def test_a_submodule_without_an_address_is_refused(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "there" / "other.git")
    other.commit(b="2")
    repository.commit(a="1")
    repository.git("submodule", "add", "-q", other.url, "sub")
    repository.commit(**{".gitmodules": '[submodule "x"]\n\tpath = elsewhere\n\turl = ./y\n'})
    with pytest.raises(IntegrityError, match="has no URL"):
        fetch(repository.url, "main", tmp_path / "out", submodules=True)
    assert not (tmp_path / "out").exists()


def test_a_repository_of_the_network_gets_no_submodule_of_this_machine(repository: Repository, tmp_path: Path) -> None:
    private = Repository(tmp_path / "there" / "private.git")
    private.commit(key="private")
    repository.commit(a="1")
    repository.git("submodule", "add", "-q", private.url, "sub")
    commit = repository.commit()
    url = "https://git.example/project"
    known = tmp_path / "cache" / f"{digest_of(url.encode())[:24]}.git"  # as if it had been fetched before
    repository.git("clone", "-q", "--bare", repository.url, str(known))
    with pytest.raises(UsageError, match="not allowed: file://"):
        fetch(url, commit, tmp_path / "out", submodules=True, offline=True)
    assert not (tmp_path / "out").exists()
    fetch(url, commit, tmp_path / "out", offline=True)


def test_hooks_and_filters_of_the_machine_do_not_touch_the_files(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text('[filter "f"]\n\tsmudge = tr a-z A-Z\n[core]\n\tautocrlf = true\n')
    repository.commit(**{".gitattributes": "* filter=f\n", "a": "text\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    fetch(repository.url, "main", tmp_path / "out")
    assert (tmp_path / "out" / "a").read_bytes() == b"text\n"


def test_what_is_missing_is_one_error_and_leaves_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.commit(a="1")
    with pytest.raises(HostError, match="no-such-ref"):
        fetch(repository.url, "no-such-ref", tmp_path / "out")
    with pytest.raises(HostError, match="git fetch failed"):
        fetch((tmp_path / "absent").as_uri(), "main", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "there"]


@pytest.mark.parametrize("url", ["ssh://h.example/r", "ext::sh -c true", "--upload-pack=x", "http://h.example/r", "/r"])
def test_only_https_and_repositories_of_this_machine(url: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not allowed"):
        resolve_ref(url, "main", cache=tmp_path, environ=os.environ)


def test_a_ref_that_is_an_option_is_refused(repository: Repository, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a valid git ref"):
        fetch(repository.url, "--upload-pack=touch /tmp/x", tmp_path / "out")


def test_credentials_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught:
        resolve_ref("file://me:secret@localhost/absent", "main", cache=tmp_path, environ=os.environ)
    assert "secret" not in str(caught.value)
