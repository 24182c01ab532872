"""``axletree lock``: writes all locks or none, keeps what fits, and says what it did."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from packaging.pylock import Pylock, is_valid_pylock_path

import axletree
from axletree.app.lock import lock_recipe
from axletree.app.lock_changes import LockedFile, PartlyLockedError
from axletree.app.lock_context import LockContext
from axletree.app.planning import PlanRequest, prepare
from axletree.app.recipes import load_recipe
from axletree.core.errors import HostError, IntegrityError, RecipeError
from axletree.host.indexes import read_indexes
from axletree.host.simple_api import list_files
from axletree.recipe.locks import parse_lock, parse_source
from axletree.recipe.sdists import choose_sdist, explain_absence, version_of
from axletree.recipe.settings import Settings
from axletree.store import Store
from support.envelopes import result_of
from support.index_server import Server, make_wheel, serve, write_wheel
from support.projects import SETUPTOOLS, info, sdist_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.app.lock_changes import LockedFile

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '').strip('dm')}"
RECIPE = f"""
name = "tiny"
version = "1.0"
[source]
pypi = "tiny"
[axes]
python = ["{PYTHON}"]
flavour = ["a", "b"]
[environments.build]
axes = ["python", "flavour"]
requires = ["dep-{{flavour}}", "tool<2"]
[environments.shared]
axes = ["python"]
requires = ["tool"]
[environments.bare]
axes = ["python"]
[stages.build]
action = "build"
axes = ["python", "flavour"]
environment = "build"
[packages.tiny]
from = "build"
local = "{{flavour}}"
"""
SDIST = b"not really an archive"


class Project:
    """A recipe of a test, a folder of wheels, and an index."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.server = server
        self.path = folder / "tiny.toml"
        self.companion = folder / "tiny"
        self.wheels = folder / "wheels"
        self.path.write_text(RECIPE)
        for name, version in [("dep-a", "1.0"), ("dep-b", "1.0"), ("tool", "1.0"), ("tool", "2.0")]:
            write_wheel(self.wheels, name, version)
        server.add_project("tiny", {"tiny-1.0.tar.gz": SDIST, "tiny-0.9.tar.gz": b""})
        index, links = f"{server.address}/simple", str(self.wheels)
        variables = {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": index, "PIP_FIND_LINKS": links}
        self.surroundings = LockContext(
            environ={**os.environ, **variables, "UV_CACHE_DIR": str(folder / "uv")},
            home=folder,
            cwd=folder,
            settings=Settings(),
            store=folder,
        )

    def lock(self, *patterns: str, upgrade: bool = False) -> tuple[LockedFile, ...]:
        return lock_recipe(str(self.path), self.surroundings, patterns=patterns, upgrade=upgrade)

    def pins(self, name: str) -> dict[str, str]:
        path = self.companion / name
        lock = parse_lock(path.read_text(), file=str(path))
        return {wheel.name: wheel.version for wheel in lock.wheels}

    def edit(self, old: str, new: str) -> None:
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve() as server:
        yield Project(tmp_path, server)


def build_lock(flavour: str) -> str:
    return f"pylock.build-py{PYTHON.replace('.', '')}-flavour{flavour}.toml"


SHARED = f"pylock.shared-py{PYTHON.replace('.', '')}.toml"


def test_each_distinct_environment_and_the_source_get_a_lock(project: Project) -> None:
    files = project.lock()
    names = sorted(path.name for path in project.companion.iterdir())
    assert names == sorted([build_lock("a"), build_lock("b"), SHARED, "source.lock.toml"])
    assert project.pins(build_lock("a")) == {"dep-a": "1.0", "tool": "1.0"}
    assert project.pins(SHARED) == {"tool": "2.0"}
    assert {file.outcome for file in files} == {"written"}
    source = parse_source((project.companion / "source.lock.toml").read_text(), file="s")
    assert (source.filename, source.size) == ("tiny-1.0.tar.gz", len(SDIST))
    assert source.sha256 == hashlib.sha256(SDIST).hexdigest()


def test_locks_are_valid_and_hold_no_place(project: Project, tmp_path: Path) -> None:
    project.lock()
    for path in project.companion.iterdir():
        text = path.read_text()
        assert str(tmp_path) not in text
        assert "127.0.0.1" not in text
        if path.name != "source.lock.toml":
            assert is_valid_pylock_path(path)
            Pylock.from_dict(tomllib.loads(text)).validate()


def test_a_second_time_nothing_is_asked_and_nothing_written(project: Project) -> None:
    project.lock()
    before = {path: path.stat().st_mtime_ns for path in project.companion.iterdir()}
    project.server.requests.clear()
    assert {file.outcome for file in project.lock()} == {"unchanged"}
    assert {path: path.stat().st_mtime_ns for path in project.companion.iterdir()} == before
    assert not project.server.requests


def test_only_the_locks_of_chosen_variants_are_written(project: Project) -> None:
    project.lock("*flavourb")
    assert not (project.companion / build_lock("a")).exists()
    assert (project.companion / build_lock("b")).exists()


def test_pins_are_kept_until_an_upgrade(project: Project) -> None:
    project.lock()
    write_wheel(project.wheels, "dep-a", "2.0")
    write_wheel(project.wheels, "tool", "1.5")
    project.edit('"tool<2"', '"tool<2", "dep-b"')
    project.lock()
    assert project.pins(build_lock("a")) == {"dep-a": "1.0", "dep-b": "1.0", "tool": "1.0"}
    project.lock(upgrade=True)
    assert project.pins(build_lock("a")) == {"dep-a": "2.0", "dep-b": "1.0", "tool": "1.5"}


def test_a_broken_lock_is_made_anew(project: Project) -> None:
    project.lock()
    (project.companion / SHARED).write_text("broken")
    (project.companion / "source.lock.toml").write_text("broken")
    outcomes = {file.path.rpartition("/")[2]: file.outcome for file in project.lock()}
    assert outcomes == {
        "source.lock.toml": "written", build_lock("a"): "unchanged", build_lock("b"): "unchanged", SHARED: "written",
    }  # fmt: skip


@pytest.mark.parametrize("name", [build_lock("a"), "source.lock.toml"])
def test_a_lock_that_is_no_text_is_a_fault_of_the_input(project: Project, tmp_path: Path, name: str) -> None:
    project.lock()
    path = project.companion / name
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(RecipeError, match="not UTF-8") as caught:
        prepare(
            PlanRequest(recipe=str(project.path), out=tmp_path / "dist"),
            Store.open(tmp_path / "store"),
            environ=project.surroundings.environ,
        )
    (problem,) = caught.value.problems
    assert problem.file == str(path)
    assert problem.hint == f"create it again: axletree lock {project.path}"


def test_all_that_cannot_be_locked_is_told_at_once_and_nothing_is_written(project: Project) -> None:
    project.edit('version = "1.0"', 'version = "1.1"')
    project.edit('requires = ["tool"]', 'requires = ["absent"]')
    with pytest.raises(RecipeError) as caught:
        project.lock()
    text = str(caught.value)
    where = f"{project.path}:3: version: the package index has neither an sdist nor a wheel of tiny 1.1"
    assert f"{where}; sdists exist for 1.0 (the newest)" in text
    assert '3 | version = "1.1"' in text
    assert "environments.shared" in text
    assert "absent" in text
    assert not project.companion.exists()


def test_the_sdist_of_the_version_is_pinned_and_not_one_that_is_named_alike(project: Project) -> None:
    names = ("tiny-1.0.2-2.tar.gz", "tiny-2.0.tar.gz", "tiny-2-1.0.tar.gz", "tiny_2-1.0.tar.gz")
    project.server.add_project("tiny", {name: name.encode() for name in names})
    project.edit('version = "1.0"', 'version = "2.0"')
    project.lock("*flavoura")
    path = project.companion / "source.lock.toml"
    assert parse_source(path.read_text(), file="s").filename == "tiny-2.0.tar.gz"
    path.write_text(path.read_text().replace("tiny-2.0.tar.gz", "tiny-1.0.2-2.tar.gz"))  # as older locks may have it
    project.lock("*flavoura")
    assert parse_source(path.read_text(), file="s").filename == "tiny-2.0.tar.gz"


def test_a_yanked_sdist_is_taken_for_want_of_another_and_said(project: Project) -> None:
    page = json.loads(project.server.files["/simple/tiny/"])
    page["files"][0]["yanked"] = "it\x1b forgets"
    project.server.files["/simple/tiny/"] = json.dumps(page).encode()
    notes: list[str] = []
    lock_recipe(str(project.path), project.surroundings, patterns=["*flavoura"], note=notes.append)
    assert r"warning: tiny-1.0.tar.gz has been yanked from the index: it\x1b forgets" in notes


def test_a_project_of_wheels_alone_and_one_that_is_not_there_are_told(project: Project) -> None:
    name, data = make_wheel("tiny", "1.0")
    project.server.add_project("tiny", {name: data})
    with pytest.raises(RecipeError, match=f"tiny 1.0 has no sdist on the package index, only {name}; no version"):
        project.lock("*flavoura")
    project.edit('pypi = "tiny"', 'pypi = "tinny"')
    with pytest.raises(
        RecipeError, match=r"tiny.toml:5: source.pypi: the package index does not contain a project 'tinny'"
    ):
        project.lock("*flavoura")


@pytest.mark.proof
@pytest.mark.parametrize(
    ("project", "version", "wanted"),
    [
        ("cffi", "2.0.0", "cffi-2.0.0.tar.gz"),
        ("cffi", "1.0.2.post2", "cffi-1.0.2-2.tar.gz"),
        ("zope.interface", "5.4.0", "zope.interface-5.4.0.tar.gz"),
        ("backports-zstd", "1.0.0", "backports_zstd-1.0.0.tar.gz"),
        ("numpy", "1.19.5", "numpy-1.19.5.zip"),
        ("PyYAML", "5.3", "PyYAML-5.3.tar.gz"),
        ("torch", "2.5.0", "torch 2.5.0 has no sdist on the package index, only 17 wheels; no version"),
        ("pywin32", "306", "wheels; no version has an sdist"),
        ("cffi", "1.99", "neither an sdist nor a wheel of cffi 1.99; sdists exist for 1.17.1, 2.0.0"),
    ],
)
def test_what_real_projects_offer(project: str, version: str, wanted: str) -> None:
    """Through the package index that this machine is set up with."""
    settings = read_indexes(Settings(), os.environ, home=Path.home(), cwd=Path.cwd())
    try:
        files = list_files(project, settings)
    except HostError as error:
        pytest.skip(f"no package index here: {error}")
    if not any(version_of(file.filename, project) for file in files):
        pytest.skip(f"the package index here has no {project}")
    found = choose_sdist(project, version, files)
    said = found.filename if found is not None else explain_absence(project, version, files).message
    assert said == wanted or (found is None and wanted in said)


def test_an_interpreter_that_is_missing_is_named(project: Project) -> None:
    project.edit(f'python = ["{PYTHON}"]', 'python = ["3.97"]')
    with pytest.raises(HostError, match=r"CPython 3\.97 is not"):
        project.lock()


def test_environments_are_locked_where_the_repository_cannot_be_reached(project: Project) -> None:
    project.edit('pypi = "tiny"', 'git = "https://host.invalid/tiny"\nref = "main"')
    with pytest.raises(PartlyLockedError, match=r"https://host.invalid/tiny: git fetch failed") as caught:
        project.lock()
    (problem,) = caught.value.problems
    assert f"run `axletree lock {project.path} --source`" in (problem.hint or "")
    assert caught.value.locked.missing == ("source.lock.toml",)
    assert {file.outcome for file in caught.value.locked.files} == {"written"}
    assert sorted(path.name for path in project.companion.iterdir()) == sorted(
        [build_lock("a"), build_lock("b"), SHARED]
    )


def test_the_others_are_locked_where_an_interpreter_is_missing(project: Project) -> None:
    project.edit(f'python = ["{PYTHON}"]', f'python = ["{PYTHON}", "3.97"]')
    with pytest.raises(PartlyLockedError, match=r"CPython 3\.97 is not") as caught:
        project.lock()
    assert len(caught.value.problems) == 1, "one Python is one problem, whatever it is for"
    assert set(caught.value.locked.missing) == {
        name.replace(PYTHON.replace(".", ""), "397") for name in (build_lock("a"), build_lock("b"), SHARED)
    }
    assert (project.companion / "source.lock.toml").exists()
    assert project.pins(SHARED) == {"tool": "2.0"}


def test_a_lock_that_fits_needs_no_interpreter(project: Project) -> None:
    project.lock()
    project.edit(f'python = ["{PYTHON}"]', 'python = ["3.97"]')
    (project.companion / SHARED).unlink()
    for flavour in ("a", "b"):
        old = project.companion / build_lock(flavour)
        text = old.read_text().replace(f'python = "{PYTHON}"', 'python = "3.97"')
        old.rename(project.companion / old.name.replace(PYTHON.replace(".", ""), "397")).write_text(text)
    with pytest.raises(PartlyLockedError) as caught:
        project.lock()
    assert caught.value.locked.missing == (SHARED.replace(PYTHON.replace(".", ""), "397"),)
    assert {file.outcome for file in caught.value.locked.files} == {"unchanged"}
    with pytest.raises(PartlyLockedError) as caught:
        project.lock(upgrade=True)
    assert len(caught.value.locked.missing) == 3


def test_a_wrong_recipe_is_not_locked_in_part(project: Project) -> None:
    project.edit('pypi = "tiny"', 'git = "https://host.invalid/tiny"\nref = "main"')
    project.edit('requires = ["tool"]', 'requires = ["absent"]')
    with pytest.raises(RecipeError) as caught:
        project.lock()
    assert {"absent" in str(caught.value), "host.invalid" in str(caught.value)} == {True}
    assert not project.companion.exists()


def test_the_source_alone_is_locked(project: Project) -> None:
    project.edit('requires = ["tool"]', 'requires = ["absent"]')
    files = lock_recipe(str(project.path), project.surroundings, only_source=True)
    assert [Path(file.path).name for file in files] == ["source.lock.toml"]
    assert [path.name for path in project.companion.iterdir()] == ["source.lock.toml"]


@pytest.mark.parametrize("name", ["kiwisolver", "torch-scatter"])
def test_a_shipped_recipe_is_locked_in_a_folder_of_the_user(
    name: str, project: Project, isolated_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own folder is one of an installed package."""
    own = isolated_home / ".local/share/axletree/locks" / name
    loaded = load_recipe(name)
    shipped = {path.name: path.read_bytes() for path in loaded.places.companion.iterdir() if path.is_file()}
    lock = parse_source((loaded.places.companion / "source.lock.toml").read_text(), file="s")
    assert loaded.places.locks == own
    assert loaded.places.find("source.lock.toml") == loaded.places.companion / "source.lock.toml"
    stem, metadata = f"{name}-{lock.version}", {"PKG-INFO": info(name, lock.version)}
    another = sdist_bytes(stem, {"pyproject.toml": SETUPTOOLS["pyproject.toml"], **metadata})
    project.server.add_project(lock.location, {lock.filename or "": another})
    _, file = lock_recipe(name, project.surroundings, only_source=True)
    assert (file.outcome, file.path) == ("unchanged", str(loaded.places.companion / "source.lock.toml"))
    assert not own.exists()
    defaults, file = lock_recipe(name, project.surroundings, only_source=True, upgrade=True)
    assert (defaults.outcome, defaults.path) == ("written", str(own / "defaults.lock.toml"))
    assert (file.outcome, file.path) == ("written", str(own / "source.lock.toml"))
    assert load_recipe(name).places.find("source.lock.toml") == own / "source.lock.toml"
    by_path = load_recipe(loaded.path)
    assert by_path.places.find("source.lock.toml") == loaded.places.companion / "source.lock.toml", (
        "a path has its own locks"
    )
    assert {path.name: path.read_bytes() for path in loaded.places.companion.iterdir() if path.is_file()} == shipped
    monkeypatch.setattr(axletree, "__file__", str(isolated_home / "package" / "__init__.py"))
    installed = isolated_home / "package" / "_recipes" / f"{name}.toml"
    installed.parent.mkdir(parents=True)
    installed.write_bytes(loaded.path.read_bytes())
    for asked in (name, installed):
        assert load_recipe(asked).places.locks == own, "no file of a package is written to"


def offline(project: Project, **changes: object) -> LockContext:
    settings = Settings(offline=True)
    return msgspec.structs.replace(project.surroundings, settings=settings, **changes)


def test_offline_what_the_caches_have_is_locked(project: Project) -> None:
    name, data = make_wheel("far", "1.0")
    project.server.add_project("far", {name: data})
    project.edit('requires = ["tool"]', 'requires = ["tool", "far"]')
    with pytest.raises(PartlyLockedError) as caught:
        lock_recipe(str(project.path), offline(project))
    said = str(caught.value)
    assert "tiny 1.0 is not in any folder or index on this machine, and --offline is set" in said
    assert "environments.shared: the requirements cannot be resolved with --offline" in said
    assert "far" in said
    assert set(caught.value.locked.missing) == {"source.lock.toml", SHARED}
    assert project.pins(build_lock("a")) == {"dep-a": "1.0", "tool": "1.0"}
    project.lock()
    locks = {path.name: path.read_bytes() for path in project.companion.iterdir()}
    project.server.requests.clear()
    (project.companion / SHARED).unlink()
    lock_recipe(str(project.path), offline(project))
    assert {path.name: path.read_bytes() for path in project.companion.iterdir()} == locks, "uv's cache has it now"
    assert not project.server.requests


def test_offline_a_ref_is_what_it_was_when_it_was_last_asked_for(project: Project, tmp_path: Path) -> None:
    there = tmp_path / "repository"
    there.mkdir()
    for arguments in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "c"]):
        who = ["-c", "user.name=t", "-c", "user.email=t@t.example"]
        subprocess.run(["git", "-C", str(there), *who, *arguments], check=True)
    project.edit('pypi = "tiny"', f'git = "{there.as_uri()}"\nref = "main"')
    path = project.companion / "source.lock.toml"
    with pytest.raises(HostError, match=r"main of \S+ is not in the cache, and cannot be downloaded with --offline"):
        lock_recipe(str(project.path), offline(project), only_source=True)
    lock_recipe(str(project.path), project.surroundings, only_source=True)
    before = path.read_bytes()
    path.unlink()
    there.rename(tmp_path / "gone")
    lock_recipe(str(project.path), offline(project), only_source=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("kind", ["url", "wheel"])
def test_offline_an_address_is_named_that_would_have_to_be_read(project: Project, kind: str) -> None:
    address = f"{project.server.address}/files/tiny-1.0-py3-none-any.whl"
    project.edit('pypi = "tiny"', f'{kind} = "{address}"\nsha256 = "{"0" * 64}"')
    with pytest.raises(HostError, match=r"cannot download with --offline: http://127\.0\.0\.1"):
        lock_recipe(str(project.path), offline(project), only_source=True)
    assert not project.server.requests


def test_the_digest_of_an_address_is_checked(project: Project) -> None:
    address = f"{project.server.address}/files/tiny-1.0.tar.gz"
    project.edit('pypi = "tiny"', f'url = "{address}"\nsha256 = "{hashlib.sha256(SDIST).hexdigest()}"')
    project.lock()
    source = parse_source((project.companion / "source.lock.toml").read_text(), file="s")
    assert (source.kind, source.filename, source.size) == ("url", "tiny-1.0.tar.gz", len(SDIST))
    project.server.files["/files/tiny-1.0.tar.gz"] = b"another"
    with pytest.raises(IntegrityError, match="the recipe expects"):
        project.lock(upgrade=True)


@pytest.mark.parametrize(("kind", "end"), [("url", "files/"), ("wheel", "files/tiny-1.0.zip"), ("wheel", "tiny.whl")])
def test_an_address_that_names_no_such_file_is_refused(project: Project, kind: str, end: str) -> None:
    address = f"{project.server.address}/{end}"
    project.edit('pypi = "tiny"', f'{kind} = "{address}"\nsha256 = "{"0" * 64}"')
    with pytest.raises(RecipeError, match=f"tiny.toml:5: source.{kind}: the URL does not end with"):
        project.lock("*flavoura")


def test_a_git_source_is_pinned_to_its_commit(project: Project, tmp_path: Path) -> None:
    there = tmp_path / "repository"
    there.mkdir()
    for arguments in (["init", "-q", "-b", "main"], ["commit", "-q", "--allow-empty", "-m", "c"]):
        who = ["-c", "user.name=t", "-c", "user.email=t@t.example"]
        subprocess.run(["git", "-C", str(there), *who, *arguments], check=True)
    project.edit('pypi = "tiny"', f'git = "{there.as_uri()}"\nref = "main"')
    project.lock("*flavoura")
    source = parse_source((project.companion / "source.lock.toml").read_text(), file="s")
    asked = subprocess.run(["git", "-C", str(there), "rev-parse", "main"], capture_output=True, text=True, check=True)
    assert source.commit == asked.stdout.strip()
    assert source.ref == "main"


@pytest.mark.parametrize("kind", ["git", "path"])
def test_a_source_of_another_version_is_refused(kind: str, project: Project, tmp_path: Path) -> None:
    there = tmp_path / "repository"
    there.mkdir()
    (there / "pyproject.toml").write_text('[project]\nname = "tiny"\nversion = "2.0"\n')
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "c"]):
        who = ["-c", "user.name=t", "-c", "user.email=t@t.example"]
        subprocess.run(["git", "-C", str(there), *who, *arguments], check=True)
    source = f'git = "{there.as_uri()}"\nref = "main"' if kind == "git" else f'path = "{there}"'
    project.edit('pypi = "tiny"', source)
    says = r"tiny.toml:3: version: the recipe sets 1.0, but the source's pyproject.toml reports Version: 2.0"
    with pytest.raises(RecipeError, match=says) as caught:
        project.lock()
    assert len(caught.value.problems) == 1
    assert not project.companion.exists()
    project.edit("local = ", "relabel = true\nlocal = ")
    project.lock()


def test_a_folder_has_no_lock(project: Project) -> None:
    project.edit('pypi = "tiny"', 'path = "."')
    assert {file.packages for file in project.lock("*flavoura")} == {1, 2}
    assert not (project.companion / "source.lock.toml").exists()


def test_an_unwritable_folder_is_one_error(project: Project) -> None:
    project.companion.write_text("a file where the folder would be")
    with pytest.raises(HostError, match="cannot write"):
        project.lock()


def test_the_command_prints_what_it_wrote(project: Project, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "axletree.cli.main", "lock", "tiny.toml"]
    given = [f"--find-links={project.wheels}", f"--index-url={project.server.address}/simple"]
    environ = {**project.surroundings.environ, "AXLETREE_STORE": str(tmp_path / "store"), "COLUMNS": "200"}
    done = subprocess.run([*command, *given], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ)
    assert f"written  tiny/{build_lock('a')}" in done.stdout
    assert "2 wheels" in done.stdout
    assert "4 locks, 4 written" in done.stdout
    again = subprocess.run([*command, "--json"], capture_output=True, text=True, check=True, cwd=tmp_path, env=environ)
    assert {file["outcome"] for file in result_of(again.stdout)["files"]} == {"unchanged"}


def test_the_shipped_locks_fit_their_recipe() -> None:
    loaded = load_recipe("torch-scatter")
    for path in sorted(loaded.places.companion.glob("pylock.*.toml")):
        lock = parse_lock(path.read_text(), file=str(path))
        assert "torch==2.13.0+cpu" in lock.requires
        assert ("torch", "2.13.0+cpu") in {(wheel.name, wheel.version) for wheel in lock.wheels}
        Pylock.from_dict(tomllib.loads(path.read_text())).validate()


def test_wheels_of_tests_are_made_the_same_each_time() -> None:
    assert make_wheel("tiny-one", "1.0") == make_wheel("tiny-one", "1.0")
