"""Stages in an image: what they see, what they make, and what is said where that can't be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.inside import logs, project, root_archive
from support.ordinary import NOBODY, ordinary_user
from support.tiny import Tiny
from support.tiny import pythons as pythons_here


@pytest.fixture(scope="session")
def archive() -> Path:
    """A Debian 11 with a compiler, as an archive that is made once."""
    return root_archive()


@pytest.fixture(scope="module", autouse=True)
def allowed(tmp_path_factory: pytest.TempPathFactory) -> None:
    script = (
        "import sys; from pathlib import Path; from axletree.host.sandbox import run_isolated\n"
        "run_isolated(lambda granted: print(granted.paths) or 0, network=False, store=Path(sys.argv[1]))"
    )
    place = str(tmp_path_factory.mktemp("allowed"))
    said = subprocess.run([sys.executable, "-c", script, place], capture_output=True, text=True, check=False).stdout
    if said != "True\n":
        pytest.skip("this system does not allow mount namespaces")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Tiny:
    """Locked and built; not to be changed."""
    tiny = project(tmp_path_factory.mktemp("inside"), archive)
    locked = tiny.call("lock", str(tiny.recipe))
    assert locked.returncode == 0, locked.stderr
    tiny.built()
    return tiny


def test_wheels_of_an_old_image_run_on_more_systems(base: Tiny) -> None:
    """The image's C library decides: symbols of the host's newer one are not in its wheel."""
    (old,), (new,) = ([path.name for path in (base.out / place).glob("*.whl")] for place in ("bullseye", "host"))
    assert int(old.split("manylinux_2_")[1].split("_")[0]) <= 31
    assert int(new.split("manylinux_2_")[1].split("_")[0]) >= int(old.split("manylinux_2_")[1].split("_")[0])


def test_the_test_ran_in_the_image(base: Tiny) -> None:
    said = {line for text in logs(base, "inside.made()") for line in text.splitlines() if line.startswith("(")}
    assert "(10, 31, True) 11.11" in {line.strip() for line in said}, said
    assert len(said) == 2


def test_nothing_runs_again_and_the_image_is_not_in_the_work(base: Tiny) -> None:
    again = base.built()
    assert again.counts["ran"] == 0
    assert not any((base.store / "work").iterdir())


def test_another_store_gets_the_same_wheels(base: Tiny, tmp_path: Path, archive: Path) -> None:
    other = project(tmp_path / "a-path-of-another-length", archive)
    (other.folder / "tiny").mkdir(exist_ok=True)
    for lock in (base.folder / "tiny").iterdir():
        (other.folder / "tiny" / lock.name).write_bytes(lock.read_bytes())
    other.built("-v", "*bullseye*", "--package", "inside")
    name = next((base.out / "bullseye").glob("*.whl")).name
    assert (other.out / "bullseye" / name).read_bytes() == (base.out / "bullseye" / name).read_bytes()


@pytest.fixture
def broken(base: Tiny, tmp_path: Path, archive: Path) -> Tiny:
    """A project of the test's own, in the store that has the image."""
    tiny = project(tmp_path, archive)
    (tiny.folder / "tiny").mkdir()
    for lock in (base.folder / "tiny").iterdir():
        (tiny.folder / "tiny" / lock.name).write_bytes(lock.read_bytes())
    return Tiny(folder=tiny.folder, store=base.store, home=tiny.home, versions=tiny.versions)


def test_programs_see_the_image_and_their_changes_are_discarded(broken: Tiny) -> None:
    broken.change(
        '"c++ -g', '"cat /etc/debian_version; rm -r /usr/share/doc; touch /usr/new; ls /work || true",\n  "c++ -g'
    )
    broken.built("-v", "*bullseye*")
    assert any(text for text in logs(broken, "rm -r /usr/share/doc") if "11.11" in text)
    (image,) = (broken.store / "images").glob("*/root")
    assert (image / "usr/share/doc").is_dir()
    assert not (image / "usr/new").exists()


def test_a_failed_stage_is_looked_at_in_its_image(broken: Tiny) -> None:
    broken.change('"c++ -g', '"false",\n  "c++ -g')
    failed = broken.call("build", str(broken.recipe), "--out", str(broken.out), "-v", "*bullseye*")
    assert failed.returncode == 1
    assert "/axletree/" not in failed.stdout + failed.stderr
    stage = json.loads(broken.call("plan", str(broken.recipe), "--json", "-v", "*bullseye*").stdout)
    (name,) = (each["stage"] for each in stage["result"]["stages"] if each["stage"].startswith("ext"))
    inside = broken.call("shell", f"inside:{name}", "sh", "-c", "cat /etc/debian_version; ls; exit 4")
    assert inside.returncode == 4, inside.stderr
    assert inside.stdout.split() == ["11.11", "inside.cpp"]


def test_tools_that_the_image_lacks_are_named_before_anything_runs(broken: Tiny) -> None:
    broken.change('tools = ["c++"]', 'tools = ["c++", "cmake", "swig"]')
    broken.change("-O1", "-O2")
    failed = broken.call("build", str(broken.recipe), "--out", str(broken.out), "-v", "*bullseye*")
    assert failed.returncode == 3
    assert "image bullseye does not contain cmake, swig" in failed.stderr
    assert "started" not in failed.stderr


def test_an_image_that_is_not_in_the_recipe(broken: Tiny) -> None:
    broken.change('image = ["bullseye", "host"]', 'image = ["bulseye", "host"]')
    failed = broken.call("build", str(broken.recipe), "--out", str(broken.out))
    assert failed.returncode == 2
    assert "the recipe has no image 'bulseye': did you mean 'bullseye'?" in failed.stderr


def test_in_ci_an_image_that_is_not_locked_is_an_error(broken: Tiny) -> None:
    (broken.folder / "tiny" / "images.lock.toml").unlink()
    failed = broken.with_environ(CI="true").call("build", str(broken.recipe), "--out", str(broken.out))
    assert failed.returncode == 2
    assert "images.bullseye" in failed.stderr
    assert "axletree lock" in failed.stderr


def test_an_archive_that_has_changed_is_not_the_locked_image(base: Tiny, tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    subprocess.run(["tar", "-C", tmp_path, "-cf", other, "--files-from=/dev/null"], check=True)
    tiny = project(tmp_path / "new", other)
    (tiny.folder / "tiny").mkdir()
    for lock in (base.folder / "tiny").iterdir():
        text = lock.read_text().replace(base.recipe.read_text().split("tar:")[1].split('"')[0], str(other))
        (tiny.folder / "tiny" / lock.name).write_text(text)
    failed = tiny.with_environ(CI="true").call("build", str(tiny.recipe), "--out", str(tiny.out))
    assert failed.returncode != 0
    assert "images.bullseye" in failed.stderr
    assert not list((tiny.store / "images").iterdir())


def test_dev_says_that_it_does_not_know_images(broken: Tiny) -> None:
    failed = broken.call("dev", str(broken.recipe), "--source", str(broken.source), "--variant", "py*-imagebullseye")
    assert failed.returncode == 2
    assert "cannot use images yet" in failed.stderr


def test_an_ordinary_user_builds_in_an_image_that_root_made(
    base: Tiny, tmp_path_factory: pytest.TempPathFactory, archive: Path
) -> None:
    root = tmp_path_factory.mktemp("ordinary")
    tiny = project(root, archive)
    shutil.copytree(base.folder / "tiny", tiny.folder / "tiny")
    (tiny.store / "images").mkdir(parents=True)
    for path in (root, *root.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    for image in (base.store / "images").iterdir():
        subprocess.run(["cp", "-a", image, tiny.store / "images"], check=True)
    pythons = {Path(sys.base_prefix), *(Path(each.path).parents[1] for each in pythons_here().values())}
    user = ordinary_user([root, Path(__file__).parents[2], *pythons])
    theirs = replace(tiny, prefix=user)
    theirs.built("-v", "*bullseye*", "--package", "inside")
    (wheel,) = (theirs.out / "bullseye").glob("*.whl")
    assert wheel.stat().st_uid == NOBODY
    assert wheel.read_bytes() == (base.out / "bullseye" / wheel.name).read_bytes()
