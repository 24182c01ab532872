"""What is kept of a folder whose build was killed."""

from __future__ import annotations

import io
import itertools
import os
import tarfile
import time
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import StageError
from axletree.core.records import Grant, LocalFacts
from axletree.execute import editable
from axletree.execute.context import ActionContext
from axletree.execute.editable import CONFIGURING, Outdated, Project
from axletree.execute.killed import begin, has_ninja, remove_written, was_stopped
from axletree.execute.process import Log
from axletree.execute.workspace import open_workplace
from axletree.plan.actions.compile import CompileParameters
from axletree.store.store import Store
from support.faults import KILLED, ends_at
from support.requests import request_of
from support.store import write_files

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.core.values import Digest


def context_of(store: Store, work: Path, source: Digest, settings: str = "one") -> ActionContext[CompileParameters]:
    parameters = CompileParameters(directory=".", options={"OF": settings})
    local = LocalFacts(workspace="lib")
    request = request_of("lib", parameters, inputs={"source": source}, grant=Grant(jobs=1), local=local)
    work.mkdir(exist_ok=True)
    return ActionContext(
        request=request,
        store=store,
        work=work,
        log=Log(io.BytesIO()),
        progress=lambda *_, **__: None,
        parameters=parameters,
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def test_opening_a_workspace_loses_nothing_at_any_kill(store: Store, tmp_path: Path) -> None:
    one = store.ingest(write_files(tmp_path / "1", {"a.c": b"1", "b.c": b"b"}))
    other = store.ingest(write_files(tmp_path / "2", {"a.c": b"2", "c.c": b"c"}))
    with open_workplace(context_of(store, store.work / "x", one)) as place:
        assert place.state is not None
        (place.state / "a.o").write_text("object")
        (place.root / "source" / "made.o").write_text("object")
    for at in itertools.count(1):
        wanted = other if at % 2 else one

        def opened(wanted: Digest = wanted) -> None:
            with open_workplace(context_of(store, store.work / "x", wanted)):
                pass

        code = ends_at(store.workspaces, at, opened)
        with open_workplace(context_of(store, store.work / "x", wanted)) as place:
            assert place.state is not None
            assert (place.state / "a.o").read_text() == "object"
            assert (place.root / "source" / "made.o").read_text() == "object"
            assert (place.root / "source" / "a.c").read_bytes() == (b"2" if at % 2 else b"1")
        if code != KILLED:
            break
    assert at > 10


def test_other_settings_empty_it_even_if_that_is_killed(store: Store, tmp_path: Path) -> None:
    """Half of a folder must not pass for the whole of it when the old settings are back."""
    source = store.ingest(write_files(tmp_path / "1", {"a.c": b"1"}))
    for at in (1, 2, 3, 4):
        with open_workplace(context_of(store, store.work / "x", source)) as place:
            assert place.state is not None
            for name in ("a.o", "a.d"):
                (place.state / name).write_text("made")

        def opened() -> None:
            with open_workplace(context_of(store, store.work / "x", source, "two")):
                pass

        assert ends_at(store.workspaces, at, opened) == KILLED
        with open_workplace(context_of(store, store.work / "x", source)) as place:
            assert place.state is not None
            assert sorted(path.name for path in place.state.iterdir()) in ([], ["a.d", "a.o"])


def test_a_machine_that_stopped_leaves_nothing_to_trust(store: Store, tmp_path: Path) -> None:
    source = store.ingest(write_files(tmp_path / "1", {"a.c": b"1"}))
    with open_workplace(context_of(store, store.work / "x", source)) as place:
        assert place.state is not None
        (place.state / ".ninja_log").write_text("# ninja log v5\n")
        (place.state / "a.o").write_text("")
    (place.root / "running").write_text("another start of the machine")
    with open_workplace(context_of(store, store.work / "x", source)) as place:
        assert place.state is not None
        assert list(place.state.iterdir()) == []


def test_what_was_written_goes_whatever_its_time_says(tmp_path: Path) -> None:
    folder, mark = tmp_path / "build", tmp_path / "running"
    folder.mkdir()
    (folder / "old.o").write_text("old")
    time.sleep(0.05)  # beyond the grain of the clock of a file system
    begin(mark)
    assert not was_stopped(mark)
    (folder / "new.o").write_text("half")
    (folder / "link").symlink_to("old.o")
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.add(folder / "old.o", "unpacked")
    with tarfile.open(tmp_path / "a.tar") as tar:
        tar.extractall(folder, filter="data")
    os.utime(folder / "unpacked", (1, 1))
    left = remove_written(folder, mark, ours=lambda _: False)
    assert [path.name for path in folder.iterdir()] == ["old.o"]
    assert (left.removed, left.objects, left.kept) == (3, 1, 1)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("ninja", [True, False])
def test_an_editable_tree_keeps_what_is_the_users(ninja: bool, inside: bool, store: Store, tmp_path: Path) -> None:  # noqa: FBT001
    project = project_of(store, tmp_path, inside=inside)
    (project.build / "old.o").write_text("old")
    if ninja:
        (project.build / ".ninja_log").write_text("")
    assert has_ninja(project.build) == ninja
    time.sleep(0.05)
    mark = project.scratch / "running"
    begin(mark)
    (project.build / "new.o").write_text("half")
    editable.mend(project, mark)
    assert (project.build / "old.o").exists()
    assert (project.build / "new.o").exists() == (ninja or not inside)


def test_a_build_folder_is_removed_once_whatever_is_killed_afterwards(store: Store, tmp_path: Path) -> None:
    project = project_of(store, tmp_path, inside=True)
    (project.build / "old.o").write_text("old")
    (project.scratch / CONFIGURING).write_text("afresh")
    with pytest.raises(StageError):  # no cmake: as good as a kill while it configures
        editable.bring_up_to_date(project, Outdated(afresh=True, configure=True))
    assert not project.build.exists()
    assert (project.scratch / CONFIGURING).read_text() == "configure"


def project_of(store: Store, folder: Path, *, inside: bool) -> Project:
    source = store.ingest(write_files(folder / "1", {"a.c": b"1"}))
    context = context_of(store, folder / "work", source)
    scratch = folder / "tree" / ".axletree"
    build = (scratch if inside else folder / "tree") / "build"
    build.mkdir(parents=True)
    scratch.mkdir(exist_ok=True)
    env = {"PATH": str(folder)}
    return Project(
        context=context, source=folder / "tree", build=build, venv=None, env=env, way="cmake", scratch=scratch
    )
