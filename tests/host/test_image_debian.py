"""Images of Debian packages: the same packages are the same image, and nothing tells where they came from."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.app.images import _refuse_other, make_image
from axletree.core.errors import HostError, IntegrityError
from axletree.recipe.images import DebianTable, Image
from axletree.store import Store
from support.debian_root import debian_image_twice
from support.images import need
from support.inputs import debian_line

if TYPE_CHECKING:
    from pathlib import Path

    from support.debian_root import TwiceMade

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("debian-image")]


@pytest.fixture(scope="module")
def twice() -> TwiceMade:
    need("mmdebstrap")
    return debian_image_twice("bookworm", ("libbz2-dev",))


def test_the_same_packages_are_the_same_image(twice: TwiceMade) -> None:
    assert twice.first == twice.second


def test_the_lock_lists_each_package_with_its_digest(twice: TwiceMade) -> None:
    debs = {deb.name: deb for deb in twice.first.debs}
    assert {"libbz2-dev", "libc6", "dpkg"} <= debs.keys()
    assert all(re.fullmatch("[0-9a-f]{64}", deb.sha256) and deb.version for deb in debs.values())
    known = (twice.root / "var/lib/dpkg/status").read_text()
    assert len(debs) == known.count("Status: install ok installed")
    with_apt = subprocess.run(
        ["apt-cache", "show", f"libc6={debs['libc6'].version}"], capture_output=True, text=True, check=False
    )
    if with_apt.returncode == 0:  # this machine's own suite has the same version
        assert f"SHA256: {debs['libc6'].sha256}" in with_apt.stdout


def test_the_system_of_the_image_is_known(twice: TwiceMade) -> None:
    assert twice.record.os_release.id == "debian"
    assert twice.record.os_release.version_id == "12"
    assert twice.record.glibc == "2.36"


def test_nothing_in_it_tells_where_the_packages_came_from(twice: TwiceMade) -> None:
    address = debian_line().rpartition(" ")[2].encode()
    for path in twice.root.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.is_relative_to(twice.root / "etc"):
            assert address not in path.read_bytes(), path
    assert not (twice.root / "etc/apt/sources.list").exists()
    assert not (twice.root / "etc/resolv.conf").exists()
    assert not (twice.root / "etc/hostname").exists()
    assert not list((twice.root / "var/lib/apt/lists").glob("*Packages*"))
    assert not (twice.root / "axletree-debs").exists()


def test_programs_of_it_run(twice: TwiceMade) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to enter the image")
    done = subprocess.run(
        ["chroot", twice.root, "/bin/sh", "-c", ". /etc/os-release; echo $ID"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("debian\n", 0), done.stderr


def test_other_packages_than_the_locked_ones_are_named(twice: TwiceMade) -> None:
    locked = msgspec.structs.replace(twice.first, debs=twice.first.debs[1:])
    other = msgspec.structs.replace(twice.first, id="0" * 64)
    name = twice.first.debs[0]
    with pytest.raises(IntegrityError, match=re.escape(f"{name.name} {name.version}")):
        _refuse_other(locked, other)


def test_what_apt_does_not_find_is_one_error(tmp_path: Path) -> None:
    need("mmdebstrap")
    store = Store.open(tmp_path / "store")
    missing = DebianTable(suite="bookworm", packages=("g++",), mirror=f"file://{tmp_path}/no-archive")
    with pytest.raises(HostError) as caught:
        make_image(store, "x", Image(debian=missing), None, folder=tmp_path)
    text = str(caught.value)
    assert "cannot create Debian bookworm with 1 package: mmdebstrap failed with exit code" in text
    assert "set `mirror` to an archive that has them" in text
    assert list(store.images.iterdir()) == []
    assert list(store.scratches.iterdir()) == []


def test_without_mmdebstrap_the_error_names_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    store = Store.open(tmp_path / "store")
    table = DebianTable(suite="bookworm", mirror="file:///none")
    with pytest.raises(HostError, match="apt-get install mmdebstrap"):
        make_image(store, "x", Image(debian=table), None, folder=tmp_path)
