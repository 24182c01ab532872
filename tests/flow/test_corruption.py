"""One wrong byte anywhere in the store: found by who needs it, set aside, made again, and the wheels are the same."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from support.envelopes import result_of
from support.faulty import BOUND, PYTHON, make_project, pylock
from support.index_server import make_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.faulty import Project

VARIANT = f"[py{PYTHON.replace('.', '')}]"
HELPER, HELPER_DATA = make_wheel("helper", "1.0")
TESTS = (f"test:smoke:uv{VARIANT}",)
INDEX = (f"index:.{VARIANT}", *TESTS)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, str]]:
    """A project that was built once, and its wheels. Every test here damages it and mends it again."""
    folder = tmp_path_factory.mktemp("corruption")
    (folder / "links").mkdir()
    (folder / "links" / HELPER).write_bytes(HELPER_DATA)
    recipe = BOUND.replace("[environments.plain]", '[environments.plain]\nrequires = ["helper"]')
    files = {f"small/pylock.plain-py{PYTHON.replace('.', '')}.toml": pylock({HELPER: HELPER_DATA}, requires=["helper"])}
    project = make_project(folder / "project", recipe, files=files, AXLETREE_FIND_LINKS=str(folder / "links"))
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
    return project, project.wheels()


def flip(path: Path) -> None:
    """Change one bit in the middle of a file; its size and its name stay."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)
    path.chmod(0o444)


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def wheel_of(project: Project, stage: str) -> Path:
    return next(path for name, path in project.contents_of(stage).items() if name.endswith(".whl"))


Damage = tuple["Callable[[Project], Path]", "Callable[[Path], None]", tuple[str, ...], "set[str]"]

DAMAGES: dict[str, Damage] = {
    # What is damaged; how; whose results are dropped so that they need it again; what must run again then.
    "source": (lambda p: p.contents_of("fetch")["bind.cpp"], flip, (f"bind{VARIANT}",), {f"bind{VARIANT}"}),
    "intermediate": (
        lambda p: p.contents_of("lib")["lib/libsmall.so"],
        flip,
        (f"bind{VARIANT}",),
        {"lib", f"bind{VARIANT}"},
    ),
    "intermediate of pack": (
        lambda p: p.contents_of("lib")["lib/libsmall.so"],
        flip,
        ("pack:libsmall",),
        {"lib", "pack:libsmall"},
    ),
    "wheel for audit": (
        lambda p: wheel_of(p, "pack:libsmall"),
        flip,
        ("audit:libsmall",),
        {"pack:libsmall", "audit:libsmall"},
    ),
    "wheel for index": (lambda p: wheel_of(p, "pack:libsmall"), flip, INDEX, {"pack:libsmall", *INDEX}),
    "wheel for test": (lambda p: wheel_of(p, f"pack:small{VARIANT}"), flip, TESTS, {f"pack:small{VARIANT}", *TESTS}),
    "wheel for publishing": (lambda p: wheel_of(p, "pack:libsmall"), flip, (), {"pack:libsmall"}),
    "listing": (lambda p: p.blob(p.tree_of("lib")), flip, (), {"lib"}),
    "short listing": (lambda p: p.blob(p.tree_of("lib")), shorten, (), {"lib"}),
    "record": (lambda p: p.records()["pack:libsmall"], shorten, (), {"pack:libsmall"}),
    "gone": (lambda p: p.contents_of("lib")["lib/libsmall.so"], lambda path: path.unlink(), (), {"lib"}),
    "environment": (
        lambda p: p.contents_of(f"environment:plain{VARIANT}")[HELPER],
        flip,
        (f"bind{VARIANT}",),
        {f"environment:plain{VARIANT}", f"bind{VARIANT}"},
    ),
}


def damage(project: Project, name: str) -> tuple[Path, set[str]]:
    """Damage something, and drop what would keep the next build from looking at it."""
    find, how, dropped, again = DAMAGES[name]
    path = find(project)
    how(path)
    for stage in dropped:
        project.records()[stage].unlink()
    shutil.rmtree(project.out)
    shutil.rmtree(project.store / "environments")
    return path, again


@pytest.mark.parametrize("name", DAMAGES)
def test_the_next_build_mends_it(name: str, built: tuple[Project, dict[str, str]]) -> None:
    project, wheels = built
    before = {path.name for path in (project.store / "quarantine").iterdir()}
    path, again = damage(project, name)
    ended = project.build("--json")
    assert ended.code == 0, ended.out + ended.err
    assert project.wheels() == wheels
    done = {
        event["stage"] for event in ended.events if event["event"] == "stage-finished" and event["status"] == "done"
    }
    assert done - {"fetch"} == again - {"fetch"}
    assert path.exists()
    if DAMAGES[name][1] is flip or name == "short listing":
        set_aside = {path.name for path in (project.store / "quarantine").iterdir()} - before
        assert [each.partition(".")[0] for each in set_aside] == [path.parent.name + path.name]
    assert project.sound()


@pytest.mark.parametrize("name", [name for name in DAMAGES if " for " not in name and " of " not in name])
def test_verify_finds_it_at_rest(name: str, built: tuple[Project, dict[str, str]]) -> None:
    project, wheels = built
    assert project.run("store", "verify").code == 0
    path, _ = damage(project, name)
    ended = project.run("store", "verify", "--json")
    assert ended.code == 1
    report = result_of(ended.out)
    digest = path.parent.name + path.name
    assert report["corrupt"] == ([digest] if path.suffix != ".json" and name != "gone" else [])
    assert report["incomplete"]
    assert project.run("store", "verify").code == 0
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
    assert project.wheels() == wheels


def test_one_wrong_byte_in_each_of_several_blobs(built: tuple[Project, dict[str, str]]) -> None:
    """Each round of a build may find one more."""
    project, wheels = built
    for path in (project.contents_of("lib")["lib/libsmall.so"], wheel_of(project, "pack:libsmall")):
        flip(path)
    damage(project, "source")
    ended = project.build()
    assert ended.code == 0, ended.out + ended.err
    assert project.wheels() == wheels


def test_verify_says_what_it_did(built: tuple[Project, dict[str, str]], golden: Callable[[str, str], None]) -> None:
    project, _ = built
    damage(project, "intermediate")
    ended = project.run("store", "verify")
    golden("flow/verify.txt", project.plain(ended.out).replace(str(ended.out.split()[1]), "<n>", 1))
    assert ended.code == 1
    assert project.build().code == 0
