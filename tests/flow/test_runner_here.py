"""Stages that run in an image because the whole job does: the same wheels, and a proof that it is that image."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from support.debian_root import debian_root, run_in_root
from support.inputs import CACHE
from support.inside import PACKAGES
from support.tiny import Tiny, need_pythons, pythons, wheel_digests

SUITE = "bookworm"
EXTENSION = """\
#include <Python.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "inside", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_inside() { return PyModule_Create(&module); }
"""
RECIPE = """\
name = "inside"
version = "1.0"
summary = "An extension module."
[source]
path = "src"
[axes]
python = ["PYTHON"]
[images.bookworm]
from = "tar:ROOT"
[environments.build]
requires = []
[environments.test]
requires = []
[stages.ext]
action = "run"
axes = ["python"]
environment = "build"
image = "bookworm"
tools = ["c++"]
commands = [
  "include=$(python -c 'import sysconfig; print(sysconfig.get_path(\\"include\\"))')",
  "suffix=$(python -c 'import sysconfig; print(sysconfig.get_config_var(\\"EXT_SUFFIX\\"))')",
  "c++ -g -O1 $CXXFLAGS -shared -fPIC -I$include inside.cpp -o $AXLETREE_OUT/inside$suffix",
]
[packages.inside]
from = "ext"
[tests.there]
packages = ["inside"]
image = "bookworm"
installers = ["uv"]
imports = ["inside"]
"""
PACKAGE = """\
set -e
mkdir -p /tmp/deb/DEBIAN
printf 'Package: libfoo-dev\\nVersion: 1.2\\nArchitecture: all\\nMaintainer: x <x@y.z>\\nDescription: x\\n' \\
  >/tmp/deb/DEBIAN/control
dpkg-deb --build /tmp/deb /tmp/foo.deb >/dev/null
dpkg -i /tmp/foo.deb >/dev/null
echo x >/usr/local/lib/libbar.a
echo changed >>"$(readlink -f /usr/bin/c++)"
"""
"""Installs a package, puts a file beside it, and changes the compiler."""
CLONE = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return debian_root(SUITE, PACKAGES[SUITE])


@pytest.fixture(scope="session")
def archive(root: Path) -> Path:
    """The same without what no stage reads."""
    path = CACHE / f"here-{root.parent.name}.tar"
    with FileLock(f"{path}.lock"):
        if not path.exists():
            part = path.with_suffix(".part")
            left_out = ("dev/*", "usr/share/doc/*", "usr/share/locale/*", "usr/share/man/*", "var/lib/apt/lists/*")
            excluded = [f"--exclude=./{each}" for each in (*left_out, "var/cache/*", "usr/share/perl/*")]
            subprocess.run(["tar", "-C", root, *excluded, "-cf", part, "."], check=True)
            part.replace(path)
    return path


def project(folder: Path, archive: Path) -> Tiny:
    tiny = Tiny(folder=folder / "project", store=folder / "store", home=folder / "home", versions=need_pythons(1))
    tiny.source.mkdir(parents=True)
    tiny.home.mkdir()
    (tiny.source / "inside.cpp").write_text(EXTENSION)
    tiny.recipe.write_text(RECIPE.replace("PYTHON", tiny.versions[0]).replace("ROOT", str(archive)))
    return tiny


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Tiny:
    """Locked, and built by the default runner."""
    tiny = project(tmp_path_factory.mktemp("here"), archive)
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    run = tiny.build()
    if "does not allow namespaces" in str(run.events):
        pytest.skip("this system does not allow mount namespaces")
    assert run.code == 0, run.why()
    return tiny


@pytest.fixture
def changed(base: Tiny, tmp_path: Path) -> Tiny:
    """The project with another command, so that its stage runs again; in the store that has all else."""
    tiny = Tiny(folder=tmp_path / "project", store=base.store, home=tmp_path / "home", versions=base.versions)
    shutil.copytree(base.folder, tiny.folder)
    tiny.home.mkdir()
    tiny.change("-O1", f"-O1 -DNAME={tmp_path.name}")
    return tiny


def inside(tiny: Tiny, root: Path, *args: str, first: str = "") -> subprocess.CompletedProcess[str]:
    """Call Axletree in a system, where it and the Pythons of this machine lie at their own paths."""
    found = {CLONE, tiny.folder.parent, tiny.home.parent, tiny.store.parent, Path(sys.base_prefix)}
    found |= {Path(each.path).parents[1] for each in pythons().values()}
    variables = [f"{name}={value}" for name, value in tiny.variables().items()]
    command = ["env", "-i", *variables, *tiny.program, *args]
    shown = {place: str(place) for place in found if not place.is_relative_to("/usr")}
    return run_in_root(root, "sh", "-c", f'{first}\nexec "$@"', "sh", *command, shown=shown)


def unproved(tiny: Tiny) -> dict[str, tuple[str, ...]]:
    """Stage -> why its image is not proved, of the records in the store that have the project's own command."""
    records = [json.loads(path.read_text()) for path in (tiny.store / "results").rglob("*.json")]
    own = tiny.home.parent.name
    return {each["stage"]: tuple(each["unproved"]) for each in records if f"-DNAME={own}" in json.dumps(each)}


@pytest.fixture(scope="module")
def job(base: Tiny, root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Tiny, str]:
    """The same in a store of its own, built by a job that runs in the image; and what that printed."""
    folder = tmp_path_factory.mktemp("job")
    tiny = Tiny(folder=base.folder, store=folder / "store", home=folder / "home", versions=base.versions)
    tiny.home.mkdir()
    done = inside(tiny, root, "build", str(tiny.recipe), "--out", str(tiny.out), "--runner", "here")
    assert done.returncode == 0, done.stdout
    return tiny, done.stdout


def test_in_the_image_the_same_wheel_is_built_under_the_same_keys(
    base: Tiny, job: tuple[Tiny, str], root: Path
) -> None:
    tiny, said = job
    assert "note: this machine is the image bookworm: 1" in said
    assert "unproved" not in said
    assert wheel_digests(tiny.out) == wheel_digests(base.out)
    again = inside(tiny, root, "build", str(tiny.recipe), "--out", str(tiny.out), "--runner", "namespace")
    assert "nothing to do: 8 stages are in the store" in again.stdout, again.stdout
    assert not list((tiny.store / "images").iterdir())


def test_what_the_image_does_not_have_is_named_with_every_use_of_the_result(
    changed: Tiny, job: tuple[Tiny, str], root: Path
) -> None:
    changed = dataclasses.replace(changed, store=job[0].store)
    words = ["build", str(changed.recipe), "--out", str(changed.out), "--runner", "here"]
    done = inside(changed, root, *words, first=PACKAGE)
    assert done.returncode == 0, done.stdout
    assert "warning: unproved image: Axletree cannot prove that this machine is the image bookworm" in done.stdout
    for line in (
        "  1 additional package: libfoo-dev 1.2\n",
        "  1 additional file: /usr/local/lib/libbar.a\n",
        "  2 programs differ: c++, g++\n",
    ):
        assert line in done.stdout
    again = inside(changed, root, *words)
    said = "unproved image: the stage ran with files that may differ from those of the image bookworm: 1 additional"
    assert "nothing to do" in again.stdout
    assert said in again.stdout
    assert said in (changed.out / "report.html").read_text()


def test_another_machine_is_not_taken_for_the_image(changed: Tiny) -> None:
    run = changed.built("--runner", "here")
    assert "unproved image" in run.stderr
    assert run.stages("done") >= {"ext[A]"}
    (reasons,) = set(unproved(changed).values())
    assert reasons
    ledger = changed.call("ledger", str(changed.recipe), "--out", str(changed.out)).stdout
    assert "unproved image: ext[" in ledger


def test_a_lock_of_an_earlier_version_proves_nothing_until_it_is_made_again(changed: Tiny) -> None:
    lock = changed.folder / "tiny" / "images.lock.toml"
    whole = lock.read_text()
    lock.write_text(whole.partition("[images.inventory]")[0])
    run = changed.built("--runner", "here")
    assert "the lock has no inventory of the image: lock the recipe again" in run.stderr
    assert changed.call("lock", str(changed.recipe)).returncode == 0
    assert lock.read_text() == whole


WITHOUT_MOUNTS = ("setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin")


@pytest.fixture
def refused(changed: Tiny) -> Tiny:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root, whose right to mount can be taken away")
    return dataclasses.replace(changed, prefix=WITHOUT_MOUNTS)


def test_without_namespaces_one_error_has_all_ways_and_other_stages_run(refused: Tiny) -> None:
    refused.add('[stages.plain]\naction = "run"\naxes = []\ncommands = ["sleep 1", "touch $AXLETREE_OUT/x"]\n')
    refused.add('[stages.two]\naction = "run"\naxes = []\nimage = "bookworm"\ncommands = ["true"]\n')
    run = refused.build()
    assert run.code == 3
    assert "plain" in run.stages("done")
    ended = {event["stage"]: event for event in run.events if event["event"] == "stage-finished"}
    errors = [event["message"] for event in ended.values() if event["status"] == "failed"]
    assert len(errors) == 1
    for words in ("does not allow namespaces", "sysctl", "--runner podman", "--runner here"):
        assert words in errors[0]
    told = [event["message"] for event in ended.values() if event.get("refused") and event["status"] == "blocked"]
    assert told == ["this machine cannot run stages in images"]
    assert "inspect it" not in refused.call("build", str(refused.recipe), "--out", str(refused.out)).stdout


def test_without_namespaces_a_job_in_the_image_builds_all_the_same(refused: Tiny) -> None:
    run = refused.built("--runner", "here")
    assert "ext[A]" in run.stages("done")
    (record,) = {name: why for name, why in unproved(refused).items() if name.startswith("ext")}.values()
    assert record
