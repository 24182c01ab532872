"""What an installed SDK tells to install, and lock files that pip and uv take."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.pylock import Pylock

from axletree.package.sdk.selector import default_packages
from axletree_runtime._extras import extras_of
from axletree_runtime._lock import files_of_index
from axletree_runtime._sdk import SdkError
from support.index_server import Server, make_wheel, serve
from support.small_sdk import Site, make_site, sdk_file

if TYPE_CHECKING:
    from collections.abc import Iterator

UV = Path(sys.executable).with_name("uv")
EXTRAS = extras_of(sdk_file().packages, default_packages(sdk_file(), family="gfx94x"))
"""What the builder pins for each extra."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The selector alone: what a host has before anything is chosen."""
    return make_site(tmp_path_factory.mktemp("sdk"), only=[])


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of the SDK, one of another version, and one for a second platform."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, content in wheel_files():
        (folder / name).write_bytes(content)
    return folder


def wheel_files() -> Iterator[tuple[str, bytes]]:
    sdk = sdk_file()
    pins = [f"{dist}==7.1.0; extra == '{extra}'" for extra, dists in EXTRAS.items() for dist in dists]
    yield make_wheel("rocm", "7.1.0", requires=("rocm-sdk-core==7.1.0", *pins))
    yield make_wheel("rocm", "7.0.0")
    for package in sdk.packages:
        yield make_wheel(package.dist, "7.1.0")
    yield make_wheel("rocm-sdk-core", "7.1.0", tag="py3-none-win_amd64")


def answer(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def gpus(*targets: str) -> dict[str, str]:
    return {"ROCM_SDK_FORCE_GFX_ARCH": ",".join(targets)}


@pytest.mark.parametrize(
    ("words", "targets", "expected"),
    [
        ([], ["gfx942"], "rocm[device-gfx942]==7.1.0"),
        (["libraries", "devel"], ["gfx1101"], "rocm[libraries-gfx110x,devel]==7.1.0"),
        (["libraries"], ["gfx941", "gfx942"], "rocm[libraries-gfx94x]==7.1.0"),
        (["libraries"], ["gfx942", "gfx1100"], "rocm[device-gfx942,device-gfx1100]==7.1.0"),
        (["libraries"], [], "rocm[libraries-gfx94x]==7.1.0"),
        (["device"], ["gfx1100"], "rocm[device-gfx1100]==7.1.0"),
        (["devel"], ["gfx1100"], "rocm[devel]==7.1.0"),
        (["device-all"], ["gfx1100"], "rocm[device-all]==7.1.0"),
        (["libraries-gfx94x"], ["gfx1100"], "rocm[libraries-gfx94x]==7.1.0"),
        (["--for", "gfx110x"], ["gfx942"], "rocm[libraries-gfx110x]==7.1.0"),
        (["--for", "gfx1100", "--for", "gfx942"], [], "rocm[device-gfx1100,device-gfx942]==7.1.0"),
        (["--for", "gfx941,gfx942"], [], "rocm[libraries-gfx94x]==7.1.0"),
    ],
)
def test_what_is_for_gpus_stands_for_those_of_the_host(
    site: Site, words: list[str], targets: list[str], expected: str
) -> None:
    done = site.command("select", *words, env=gpus(*targets) if targets else {})
    assert (answer(done), done.stderr) == (expected, "")


def test_the_environment_decides_before_the_gpus(site: Site) -> None:
    done = site.command("select", env={"ROCM_SDK_TARGET_FAMILY": "gfx110x", **gpus("gfx942")})
    assert answer(done) == "rocm[libraries-gfx110x]==7.1.0"


def test_fault_h_an_unknown_family_of_the_environment_is_an_error(site: Site) -> None:
    done = site.command("select", env={"ROCM_SDK_TARGET_FAMILY": "doesnotexist"})
    assert (done.returncode, done.stdout) == (2, "")
    choices = "gfx1100, gfx110x, gfx942, gfx94x"
    assert done.stderr == f"rocm-sdk: ROCM_SDK_TARGET_FAMILY=doesnotexist is not one of {choices}\n"


def test_the_choice_is_explained_on_stderr_and_as_json(site: Site) -> None:
    done = site.command("select", "--explain", env=gpus("gfx1100"))
    assert done.stdout == "rocm[device-gfx1100]==7.1.0\n"
    assert done.stderr.splitlines() == [
        "rocm-sdk: set by ROCM_SDK_FORCE_GFX_ARCH=gfx1100",
        "rocm-sdk: rocm-sdk-device-gfx1100: the smallest package that has code for gfx1100",
    ]
    assert json.loads(answer(site.command("select", "--json", env=gpus("gfx1100")))) == {
        "requirement": "rocm[device-gfx1100]==7.1.0",
        "extras": ["device-gfx1100"],
        "dists": ["rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-sdk-libraries"],
        "family": "gfx1100",
        "targets": ["gfx1100"],
        "by": "detection",
        "reasons": [
            "set by ROCM_SDK_FORCE_GFX_ARCH=gfx1100",
            "rocm-sdk-device-gfx1100: the smallest package that has code for gfx1100",
        ],
    }


@pytest.mark.parametrize("extra", [extra for extra in EXTRAS if extra not in {"libraries", "device"}])
def test_the_distributions_of_an_extra_are_those_that_the_selector_pins(site: Site, extra: str) -> None:
    dists = json.loads(answer(site.command("select", extra, "--json")))["dists"]
    assert set(dists) == {"rocm", "rocm-sdk-core", *EXTRAS[extra]} | (
        {"rocm-sdk-libraries"} if extra == "device-all" else set()  # what the packages for GPUs require
    )


def test_a_requirements_file_with_hashes_is_enough_for_pip_and_uv(site: Site, wheels: Path, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.txt"
    words = ["libraries", "devel", "--for", "gfx942", "--lock", str(lock), "--find-links", str(wheels)]
    assert answer(site.command("select", *words)) == f"{lock}: 5 packages"
    text = lock.read_text()
    assert "rocm[device-gfx942,devel]==7.1.0 \\\n    --hash=sha256:" in text
    assert text.count("--hash=sha256:") == 6  # two wheels of the core
    installed = {"rocm", "rocm_sdk_core", "rocm_sdk_device_gfx942", "rocm_sdk_devel", "rocm_sdk_libraries"}
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--require-hashes", "-r", str(lock)]
    run([*pip, "--target", str(tmp_path / "pip")])
    run([UV, "pip", "install", "-q", "--no-index", "--require-hashes", "-r", lock, "--target", tmp_path / "uv"])
    for client in ("pip", "uv"):
        found = {path.name for path in (tmp_path / client).iterdir()}
        assert installed == {name for name in found if name.startswith("rocm") and "dist-info" not in name}
    lock.write_text(text.replace("sha256:", "sha256:0", 1)[:-2])
    assert subprocess.run([*pip, "--target", str(tmp_path / "no")], capture_output=True, check=False).returncode


def test_a_pylock_file_is_what_pep_751_says_and_enough_for_uv(site: Site, wheels: Path, tmp_path: Path) -> None:
    lock = tmp_path / "locks" / "pylock.gpu.toml"
    lock.parent.mkdir()
    words = ["--for", "gfx1100", "--lock", str(lock), "--find-links", str(wheels)]
    answer(site.command("select", *words))
    locked = Pylock.from_dict(tomllib.loads(lock.read_text()))
    locked.validate()
    dists = ["rocm", "rocm-sdk-core", "rocm-sdk-device-gfx1100", "rocm-sdk-libraries"]
    assert [each.name for each in locked.packages] == dists
    assert all((lock.parent / str(wheel.path)).is_file() for each in locked.packages for wheel in each.wheels or ())
    run([UV, "pip", "install", "-q", "--no-index", "-r", lock, "--target", tmp_path / "uv", "--preview"])
    assert (tmp_path / "uv/rocm_sdk_device_gfx1100").is_dir()


@pytest.fixture
def server() -> Iterator[Server]:
    with serve() as running:
        yield running


def offer(server: Server, *, as_json: bool) -> None:
    projects: dict[str, dict[str, bytes]] = {}
    for name, content in wheel_files():
        projects.setdefault(name.partition("-")[0].replace("_", "-"), {})[name] = content
    for project, files in projects.items():
        server.add_project(project, files, as_json=as_json)


@pytest.mark.parametrize("as_json", [True, False])
def test_an_index_is_locked_by_what_it_tells(site: Site, server: Server, tmp_path: Path, *, as_json: bool) -> None:
    offer(server, as_json=as_json)
    index = f"{server.address}/simple"
    lock = tmp_path / "requirements.txt"
    words = ["--for", "gfx942", "--lock", str(lock)]
    answer(site.command("select", *words, "--index-url", index.replace("http://", "http://user:s3cret%21@")))
    assert all(path.startswith("/simple/") for _, path, _ in server.requests)  # no file is fetched to be hashed
    authorization = server.requests[0][2]["authorization"]
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"user:s3cret!"
    text = lock.read_text()
    assert "s3cret" not in text
    assert f"--index-url {index}\n" in text
    run([sys.executable, "-m", "pip", "install", "-q", "--require-hashes", "-r", lock, "--target", tmp_path / "pip"])
    assert (tmp_path / "pip/rocm_sdk_device_gfx942").is_dir()
    pylock = tmp_path / "pylock.toml"
    answer(site.command("select", "--for", "gfx942", "--lock", str(pylock), "--index-url", index))
    assert f"{server.address}/files/rocm-7.1.0-py3-none-any.whl" in pylock.read_text()


def test_what_an_index_or_folder_lacks_is_named(site: Site, wheels: Path, server: Server, tmp_path: Path) -> None:
    part = tmp_path / "part"
    part.mkdir()
    (part / "rocm-7.1.0-py3-none-any.whl").write_bytes((wheels / "rocm-7.1.0-py3-none-any.whl").read_bytes())
    lock = tmp_path / "lock.txt"
    done = site.command("select", "--for", "gfx942", "--lock", str(lock), "--find-links", str(part))
    assert (done.returncode, lock.exists()) == (1, False)
    assert "does not contain version 7.1.0 of rocm-sdk-core, rocm-sdk-device-gfx942, rocm-sdk-libraries" in done.stderr
    gone = site.command("select", "--lock", str(lock), "--index-url", f"{server.address}/nothing")
    assert (gone.returncode, gone.stderr.count("\n")) == (1, 1)
    assert f"{server.address}/nothing/rocm/: 404" in gone.stderr
    nowhere = site.command("select", "--lock", str(lock), "--find-links", str(tmp_path / "no"))
    assert nowhere.stderr == f"rocm-sdk: {tmp_path / 'no'} is not a folder\n"


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (
            b'{"files": [{"filename": "rocm-7.1.0-py3-none-any.whl", "url": "x", "hashes": {}}]}',
            "does not provide a sha256 for rocm-7",
        ),
        (
            b'{"files": [{"filename": "rocm-7.1.0-py3-none-any.whl", "url": "x", "yanked": "bad"}]}',
            "does not contain version 7.1.0 of rocm",
        ),
        (b'<a href="x/rocm-7.1.0-py3-none-any.whl" data-yanked>x</a>', "does not contain version 7.1.0 of rocm"),
        (b'<a href="x/rocm-7.1.0-py3-none-any.whl#md5=1">x</a>', "does not provide a sha256 for rocm-7"),
        (b'{"files": [{"name": "x"}]}', "is not a page of a simple index"),
        (b"{broken", "is not a page of a simple index"),
        (b"", "does not contain version 7.1.0 of rocm"),
    ],
)
def test_pages_that_can_not_be_locked(server: Server, page: bytes, said: str) -> None:
    server.files["/simple/rocm/"] = page
    with pytest.raises(SdkError, match=said):
        files_of_index(f"{server.address}/simple", ["rocm"], "7.1.0")


def test_versions_with_a_label_and_source_archives_are_recognised(server: Server) -> None:
    names = [
        "rocm-7.1.0.dev0+abc.1.tar.gz",
        "rocm_sdk_core-7.1.0.dev0+abc.1-py3-none-linux_x86_64.whl",
        "rocm_sdk_core-7.1.0-py3-none-linux_x86_64.whl",
        "rocm_sdk_core-7.1.0.dev0+abc.1.tar.gz",
    ]
    for project in ("rocm", "rocm-sdk-core"):
        known = {name: b"" for name in names if name.startswith(f"{project.replace('-', '_')}-")}
        server.add_project(project, known, as_json=project == "rocm")
    found = files_of_index(f"{server.address}/simple/", ["rocm", "rocm-sdk-core"], "7.1.0.dev0+abc.1")
    assert {dist: [each.name for each in files] for dist, files in found.items()} == {
        "rocm": [names[0]],
        "rocm-sdk-core": [names[1]],
    }


@pytest.mark.parametrize("url", ["ftp://index.example/simple", "index.example"])
def test_an_address_of_another_kind_is_refused(url: str) -> None:
    with pytest.raises(SdkError, match="is not an index URL"):
        files_of_index(url, ["rocm"], "7.1.0")


def run(command: list[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
