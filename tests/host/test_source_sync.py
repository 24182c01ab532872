"""``axletree source sync`` with real repositories: exact commits, nothing of the user's lost, killed at any moment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from axletree.app.source_sync import RepositoryReport, sync_sources
from axletree.cli.main import main as command_line
from axletree.cli.source import command
from axletree.core.errors import HostError, UsageError
from axletree.host.checkout import sync_lock
from support.envelopes import result_of
from support.repositories import Origin, Project, git

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("origins")
    Project(root).first_release()
    return root


@pytest.fixture
def project(template: Path, tmp_path: Path) -> Project:
    shutil.copytree(template, tmp_path / "origins", symlinks=True)
    return Project(tmp_path / "origins")


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "work"


def sync(project: Project, into: Path, **options: Any) -> dict[str, RepositoryReport]:
    found = sync_sources(str(project.recipe), into=into, environ=dict(os.environ), **options)
    return {report.name: report for report in found}


def states(reports: dict[str, RepositoryReport]) -> dict[str, str]:
    return {name: report.state for name, report in reports.items()}


def said(report: RepositoryReport) -> str:
    return "\n".join(f"{problem.file} {problem.message} {problem.hint}" for problem in report.problems)


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def test_clone_then_current_then_update(project: Project, into: Path) -> None:
    reports = sync(project, into)
    assert states(reports) == {"torch": "cloned", "vision": "cloned"}
    assert (reports["torch"].commit, reports["torch"].submodules) == (project.first, 2)
    assert (into / "torch/third_party/middle/deps/inner/deep").read_text() == "1"
    assert head(into / "torch-vision") == project.pinned
    assert sorted(path.name for path in into.iterdir()) == ["torch", "torch-vision"]
    assert states(sync(project, into)) == {"torch": "current", "vision": "current"}

    project.advance()
    reports = sync(project, into, ref="v2")
    assert states(reports) == {"torch": "updated", "vision": "updated"}
    assert (reports["torch"].before, reports["torch"].commit) == (project.first, project.second)
    assert (into / "torch/third_party/middle/deps/inner/deep").read_text() == "2"
    assert head(into / "torch-vision") == project.moved, "the pin of that ref, not the newest commit"
    assert git(into / "torch", "status", "--porcelain") == ""
    sync(project, into)
    assert (head(into / "torch"), head(into / "torch-vision")) == (project.first, project.pinned)
    assert (into / "torch/third_party/middle/deps/inner/deep").read_text() == "1"


def test_a_missing_tag_is_an_error_that_names_the_nearest(project: Project, into: Path) -> None:
    reports = sync(project, into, ref="v1.0")
    assert states(reports) == {"torch": "failed", "vision": "failed"}
    assert "has no tag, branch or commit 'v1.0'" in said(reports["torch"])
    assert "did you mean v1?" in said(reports["torch"])
    assert "could not be synced" in said(reports["vision"])
    assert not (into / "torch").exists()
    sync(project, into)
    assert sync(project, into, ref="nothing-like-it")["torch"].state == "failed"
    assert head(into / "torch") == project.first


def test_branches_and_whole_commits(project: Project, into: Path) -> None:
    project.advance()
    assert sync(project, into, ref="main")["torch"].commit == project.second
    assert sync(project, into, ref=project.first)["torch"].commit == project.first
    assert sync(project, into, ref="refs/tags/v2")["torch"].commit == project.second
    assert sync(project, into, ref="f" * 40)["torch"].state == "failed"
    assert sync(project, into, ref="v1^")["torch"].state == "refused"


@pytest.mark.parametrize("where", ["", "third_party/middle/deps/inner"])
def test_changed_files_are_refused_wherever_they_are(project: Project, into: Path, where: str) -> None:
    sync(project, into)
    project.advance()
    name = {"": "same", "third_party/middle/deps/inner": "deep"}[where]
    mine = into / "torch" / where / name
    mine.write_text("mine")
    reports = sync(project, into, ref="v2")
    assert states(reports) == {"torch": "refused", "vision": "failed"}
    assert f"{mine.parent} there are uncommitted changes: {name}" in said(reports["torch"])
    assert (mine.read_text(), head(into / "torch")) == ("mine", project.first)
    assert not git(into / "torch", "stash", "list")


def test_commits_that_no_remote_has_are_refused(project: Project, into: Path) -> None:
    sync(project, into)
    project.advance()
    inner = into / "torch/third_party/middle"
    (inner / "code").write_text("mine")
    git(inner, "commit", "-qam", "my work")
    mine = head(inner)
    report = sync(project, into, ref="v2")["torch"]
    assert report.state == "refused"
    assert "my work" in said(report)
    git(inner, "tag", "mine")
    assert sync(project, into, ref="v2")["torch"].state == "updated"
    assert git(inner, "rev-parse", "mine") == mine


def test_untracked_files_in_the_way_are_refused_ignored_ones_too(project: Project, into: Path) -> None:
    sync(project, into)
    project.advance()
    (into / "torch/added").write_text("mine")
    (into / "torch/.git/info/exclude").write_text("added\n")
    (into / "torch/elsewhere").write_text("mine too")
    report = sync(project, into, ref="v2")["torch"]
    assert report.state == "refused"
    assert "would overwrite untracked files: added" in said(report)
    assert "overwrite untracked files: added move" in said(report)
    assert (into / "torch/added").read_text() == "mine"
    (into / "torch/added").unlink()
    assert sync(project, into, ref="v2")["torch"].state == "updated"
    assert (into / "torch/elsewhere").read_text() == "mine too"


def test_a_folder_of_the_users_where_a_file_comes_and_a_file_where_a_folder_comes(project: Project, into: Path) -> None:
    sync(project, into)
    project.main.commit("v2", item="file", folder__item="2")
    (into / "torch/item").mkdir()
    (into / "torch/item/mine").write_text("1")
    (into / "torch/folder").write_text("2")
    report = sync(project, into, ref="v2")["torch"]
    assert "overwrite untracked files: folder, item" in said(report)
    assert (into / "torch/item/mine").read_text() == "1"


def test_a_merge_under_way_is_refused(project: Project, into: Path) -> None:
    sync(project, into)
    (into / "torch/.git/MERGE_HEAD").write_text(project.first)
    assert "a merge is in progress" in said(sync(project, into)["torch"])


def test_a_branch_is_left_and_stays(project: Project, into: Path) -> None:
    sync(project, into)
    git(into / "torch", "switch", "-qc", "work")
    project.advance()
    report = sync(project, into, ref="v2")["torch"]
    assert report.notes == ("switched away from branch work, which is unchanged",)
    assert git(into / "torch", "rev-parse", "work") == project.first


def test_a_moved_tag_is_followed_told_and_its_old_commit_kept(project: Project, into: Path) -> None:
    sync(project, into)
    old = project.first
    moved = project.main.commit("v1", setup="moved")
    report = sync(project, into)["torch"]
    assert report.commit == head(into / "torch") == moved
    assert report.notes == (f"tag v1 has moved: it used to be {old[:12]}",)
    git(into / "torch", "gc", "-q", "--prune=now")
    assert git(into / "torch", "cat-file", "-t", old) == "commit"


def test_a_branch_that_was_pushed_anew_is_no_work_of_the_users(project: Project, into: Path) -> None:
    project.main.commit(setup="tip")
    sync(project, into, ref="main")
    project.main.git("reset", "-q", "--hard", "v1")
    forced = project.main.commit(setup="forced")
    assert sync(project, into, ref="main")["torch"].commit == forced


def test_a_submodule_that_comes_from_elsewhere_now(project: Project, into: Path, tmp_path: Path) -> None:
    sync(project, into)
    other = Origin(tmp_path / "origins/moved-middle")
    other.add_submodule(project.inner, "deps/inner")
    other.commit(code="elsewhere")
    main = project.main
    main.git("config", "--file=.gitmodules", "submodule.third_party/middle.url", "../moved-middle")
    main.move_submodule("third_party/middle", other)
    main.commit("v2")
    assert sync(project, into, ref="v2")["torch"].state == "updated"
    assert (into / "torch/third_party/middle/code").read_text() == "elsewhere"
    assert git(into / "torch/third_party/middle", "config", "remote.origin.url") == other.url


def test_a_submodule_that_goes_and_comes_back(project: Project, into: Path) -> None:
    sync(project, into)
    project.main.git("rm", "-q", "third_party/middle")
    project.main.commit("v2")
    report = sync(project, into, ref="v2")["torch"]
    assert report.notes == ("no longer a submodule, left unchanged: third_party/middle",)
    assert sync(project, into)["torch"].state == "updated"
    assert (into / "torch/third_party/middle/code").read_text() == "1"


def test_others_go_on_after_a_failure(project: Project, into: Path) -> None:
    gone = project.recipe.parent / "gone"
    more = f'[checkouts.audio]\ngit = "{gone.as_uri()}"\nref = "v1"\n[checkouts.data]\ngit = "{project.library.url}"\n'
    project.write_recipe(more=more + 'ref = "main"\n')
    assert states(sync(project, into)) == {"torch": "cloned", "vision": "cloned", "audio": "failed", "data": "cloned"}


def test_what_the_machine_refuses_for_one_keeps_no_other_from_it(project: Project, into: Path) -> None:
    project.write_recipe(more=f'[checkouts.data]\ngit = "{project.library.url}"\nref = "main"\n')
    into.mkdir()
    (into / ".data.axletree-clone").write_text("a file where a folder must be made")
    reports = sync(project, into)
    assert states(reports) == {"torch": "cloned", "vision": "cloned", "data": "failed"}
    assert said(reports["data"]) == f"{into / '.data.axletree-clone'} File exists None"


def test_without_git(project: Project, into: Path) -> None:
    with pytest.raises(HostError, match="git is not installed"):
        list(sync_sources(str(project.recipe), into=into, environ={"PATH": str(into)}))
    assert not into.exists()


def test_a_submodule_that_can_not_be_had_is_named_and_what_came_is_kept(project: Project, into: Path) -> None:
    project.middle.folder.rename(project.middle.folder.with_name("elsewhere"))
    report = sync(project, into)["torch"]
    assert "into submodule path" in said(report)
    assert "third_party/middle" in said(report)
    assert f"run the command again: complete downloads are kept in {into / '.torch.axletree-clone'}" in said(report)
    project.middle.folder.with_name("elsewhere").rename(project.middle.folder)
    assert sync(project, into)["torch"].state == "cloned"


def test_pins_must_be_there_and_name_a_commit(project: Project, into: Path) -> None:
    project.main.commit("v2", ci__vision_dot_txt="--upload-pack=touch /tmp/x\n")
    assert "instead of a commit or tag" in said(sync(project, into, ref="v2")["vision"])
    project.main.git("rm", "-q", "ci/vision.txt")
    project.main.commit("v3")
    assert "the file does not exist in commit" in said(sync(project, into, ref="v3")["vision"])


def test_only_one_of_them(project: Project, into: Path) -> None:
    assert "is not checked out yet" in said(sync(project, into, only=["vision"])["vision"])
    sync(project, into)
    project.advance()
    assert states(sync(project, into, only=["vision"])) == {"vision": "current"}
    assert "does not have v2 yet" in said(sync(project, into, only=["vision"], ref="v2")["vision"])
    with pytest.raises(UsageError, match="did you mean 'vision'"):
        sync(project, into, only=["visoin"])


def test_what_is_in_the_way_is_left_alone(project: Project, into: Path) -> None:
    (into / "torch").mkdir(parents=True)
    (into / "torch/notes").write_text("mine")
    assert "it is not a git repository" in said(sync(project, into)["torch"])
    shutil.rmtree(into / "torch")
    git(into, "clone", "-q", f"{project.inner.url}", "torch")
    git(into / "torch", "remote", "set-url", "origin", "https://me:secret@host.example/x")
    text = said(sync(project, into)["torch"])
    assert "is a clone of a different repository" in text
    assert "secret" not in text


def test_a_fork_with_upstream_as_a_remote(project: Project, into: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    git(tmp_path, "clone", "-q", "--bare", project.main.url, str(fork))
    project.advance()
    into.mkdir()
    git(into, "clone", "-q", fork.as_uri(), "torch")
    git(into / "torch", "remote", "add", "upstream", project.main.url)
    assert sync(project, into, ref="v2")["torch"].commit == project.second
    assert git(into / "torch", "rev-parse", "upstream/main") == project.second


def test_no_hook_runs(project: Project, into: Path, tmp_path: Path) -> None:
    sync(project, into)
    project.advance()
    hook = into / "torch/.git/hooks/post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    assert sync(project, into, ref="v2")["torch"].state == "updated"
    assert not (tmp_path / "ran").exists()


def test_a_dry_run_changes_nothing(project: Project, into: Path) -> None:
    assert states(sync(project, into, dry_run=True)) == {"torch": "would clone", "vision": "unknown"}
    assert not into.exists()
    sync(project, into)
    project.advance()
    reports = sync(project, into, ref="v2", dry_run=True)
    assert states(reports) == {"torch": "would update", "vision": "unknown"}
    assert reports["torch"].commit == project.second
    assert head(into / "torch") == project.first
    (into / "torch/same").write_text("mine")
    assert sync(project, into, ref="v2", dry_run=True)["torch"].state == "refused"


def test_two_at_a_time_are_one_too_many(into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("axletree.host.checkout._PATIENCE", 0.0)
    with sync_lock(into), pytest.raises(HostError, match="another sync is already running"), sync_lock(into):
        pass


def test_the_command(project: Project, into: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = CliRunner().invoke(command, ["sync", str(project.recipe), "--into", str(into)], standalone_mode=False)
    assert (result.return_value, result.exception) == (0, None)
    assert "torch       cloned  v1 " in result.stdout
    (into / "torch/same").write_text("mine")
    arguments = ["source", "sync", str(project.recipe), "--into", str(into), "--json"]
    with pytest.raises(SystemExit) as ended:
        command_line(arguments)
    assert ended.value.code == 1
    content = result_of(capsys.readouterr().out)
    assert [entry["state"] for entry in content["repositories"]] == ["refused", "failed"]
    assert content["repositories"][1]["pin"] == "ci/vision.txt"


def _killed(project: Project, into: Path, come: Callable[[], bool], *arguments: str) -> bool:
    """Start a sync and kill it once it has come somewhere; whether it was still at work then."""
    argv = [sys.executable, "-m", "axletree", "source", "sync", str(project.recipe), "--into", str(into), *arguments]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        while (alive := running.poll() is None) and not come():
            time.sleep(0.001)
        running.kill()
    return alive


def _holds(path: Path, text: str) -> bool:
    """Whether a file has a text; git may be about to write it anew."""
    try:
        return path.read_text() == text
    except OSError:
        return False


def test_killed_clones_and_updates_are_finished_by_the_next(project: Project, into: Path) -> None:
    project.main.commit("v1", **{f"f__{n}": str(n) * 2000 for n in range(300)})
    clone = into / ".torch.axletree-clone"
    moments: list[Callable[[], bool]] = [
        (clone / ".git/HEAD").exists,
        lambda: any((clone / ".git/objects/pack").glob("*")),
        (clone / ".git/index.lock").exists,
        (clone / "f/7").exists,
    ]
    killed = [_killed(project, into, come) for come in moments]
    assert any(killed)
    assert sync(project, into)["torch"].good
    project.advance()
    project.main.commit("v2", **{f"f__{n}": f"{n}!" * 2000 for n in range(100, 400)})
    torch = into / "torch"
    moments = [
        (torch / ".git/refs/tags/v2").exists,
        (torch / ".git/index.lock").exists,
        (torch / "f/399").exists,
        lambda: _holds(torch / "third_party/middle/code", "2"),
    ]
    killed.clear()
    for come in moments:
        killed.append(_killed(project, into, come, "--ref", "v2"))
        assert git(torch, "rev-parse", "--verify", "HEAD")
    assert any(killed)
    reports = sync(project, into, ref="v2")
    assert all(report.good for report in reports.values()), reports
    assert git(torch, "status", "--porcelain") == ""
    assert (torch / "third_party/middle/deps/inner/deep").read_text() == "2"
    assert sorted(path.name for path in into.iterdir()) == ["torch", "torch-vision"]


def _half_done(project: Project, into: Path) -> None:
    """What a checkout leaves that is killed between two files: some written, one to its half, the lock there."""
    sync(project, into)
    project.main.commit("v2", big="new" * 5000, setup="2", **{f"n__{n}": str(n) for n in range(5)})
    torch = into / "torch"
    git(torch, "fetch", "-q", "origin", "tag", "v2")
    git(torch, "update-ref", "refs/axletree/wanted", "v2^{commit}")
    (torch / ".git/index.lock").write_text("")
    (torch / "setup").write_text("2")
    (torch / "big").write_text("new" * 700)
    (torch / "same").unlink()


def test_an_update_that_was_killed_between_two_files(project: Project, into: Path) -> None:
    _half_done(project, into)
    report = sync(project, into)["torch"]
    assert report.state == "updated"
    assert report.notes[0].startswith("finished the interrupted update to ")
    assert head(into / "torch") == project.first
    assert git(into / "torch", "status", "--porcelain") == ""


def test_work_done_after_the_kill_is_not_taken_for_ours(project: Project, into: Path) -> None:
    _half_done(project, into)
    (into / "torch/setup").write_text("mine")
    report = sync(project, into)["torch"]
    assert "there are uncommitted changes: setup" in said(report)
    assert (into / "torch/setup").read_text() == "mine"


def test_untracked_work_after_the_kill_is_kept(project: Project, into: Path) -> None:
    _half_done(project, into)
    (into / "torch/n").mkdir()
    (into / "torch/n/3").write_text("mine")
    report = sync(project, into)["torch"]
    assert report.state == "refused"
    assert (into / "torch/n/3").read_text() == "mine"
