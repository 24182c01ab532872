"""The selector in both flavours: real pip and uv install, lock and choose from folders, pages and a web server."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest

from axletree.cli.main import main
from support.clients import rival, run_printed, site_of, who
from support.gizmo_sdk import MANIFEST, make_gizmo
from support.index_server import serve
from support.small_sdk import interpreter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.index_server import Server

CLIENTS = ("pip", "uv")
SHARED = {"gizmo", "gizmo-core", "gizmo-libraries"}
EXTRAS = {
    "": {"gizmo", "gizmo-core"},
    "libraries": SHARED | {"gizmo-libraries-gfx9-0"},
    "libraries-gfx9-0": SHARED | {"gizmo-libraries-gfx9-0"},
    "Libraries_GFX9.0": SHARED | {"gizmo-libraries-gfx9-0"},
    "device-gfx1030": SHARED | {"gizmo-device-gfx1030"},
    "device": SHARED | {"gizmo-libraries-gfx9-0"},
    "device-all": SHARED | {"gizmo-device-gfx900", "gizmo-device-gfx906", "gizmo-device-gfx1030"},
    "devel": SHARED | {"gizmo-devel"},
}
JSON = "application/vnd.pypi.simple.v1+json"


def build(tree: Path, out: Path, *options: str) -> int:
    file = out.with_suffix(".toml")
    file.write_text(MANIFEST)
    with pytest.raises(SystemExit) as ended:
        main(["sdk", "build", str(file), "--prefix", str(tree), "--out", str(out), "--level", "1", *options])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_gizmo(tmp_path_factory.mktemp("gizmo") / "prefix")


@pytest.fixture(scope="module")
def dist(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Both flavours, of a version whose local label has to be encoded in addresses."""
    out = tmp_path_factory.mktemp("built") / "dist"
    assert build(tree, out, "--selector", "both", "--version", "2.5+label.1") == 0
    return out


@pytest.fixture
def server(dist: Path) -> Iterator[Server]:
    with serve() as running:
        for path in dist.rglob("*"):
            if path.is_file() and path.name != "index.json":
                place = path.relative_to(dist).as_posix().removesuffix("index.html")
                running.files[f"/{quote(place)}"] = path.read_bytes()
                running.types[f"/{quote(place)}"] = "text/html" if path.suffix == ".html" else "binary/octet-stream"
        running.files["/links.html"] = running.files["/"]
        running.types["/links.html"] = "text/html"
        yield running


def client_environ(tmp_path: Path, **more: str) -> dict[str, str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "GIZMO_"))}
    environ |= {"PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return environ | {"PIP_CACHE_DIR": str(tmp_path / "pip"), "UV_CACHE_DIR": str(tmp_path / "uv"), **more}


def call(client: str, tmp_path: Path, *words: str | Path, **more: str) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-m", *(("uv", "pip") if client == "uv" else ("pip",))]
    environ = client_environ(tmp_path, **more)
    return subprocess.run(
        [*program, *map(str, words)], env=environ, capture_output=True, text=True, check=False, cwd=tmp_path
    )


def install(client: str, tmp_path: Path, name: str, *words: str | Path, **more: str) -> Path:
    """The folder that a client installs into."""
    site = tmp_path / name
    done = call(client, tmp_path, "install", "--target", site, *words, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return site


def installed(site: Path) -> set[str]:
    return {path.name.partition("-")[0].replace("_", "-") for path in site.glob("*.dist-info")}


def sources(dist: Path) -> dict[str, list[str]]:
    """How a client can be pointed at a root."""
    return {
        "folder": ["--no-index", "--find-links", str(dist)],
        "page": ["--no-index", "--find-links", (dist / "index.html").as_uri()],
        "index": ["--index-url", (dist / "simple").as_uri()],
    }


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("source", ["folder", "page", "index"])
def test_the_wheel_installs_from(client: str, source: str, dist: Path, tmp_path: Path) -> None:
    site = install(client, tmp_path, "site", *sources(dist)[source], "gizmo[libraries,devel]")
    assert installed(site) == EXTRAS["libraries"] | EXTRAS["devel"]
    assert not (site / "gizmo_sdk/_backend.py").exists()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("source", ["page", "index"])
def test_the_sdist_installs_from(client: str, source: str, dist: Path, tmp_path: Path) -> None:
    words = sources(dist / "at-install")[source]
    site = install(client, tmp_path, "site", *words, "gizmo[libraries]", GIZMO_TARGET_FAMILY="gfx1030")
    assert installed(site) == EXTRAS["device-gfx1030"]
    chosen = json.loads((site / "gizmo_sdk/_selection.json").read_text())
    assert (chosen["by"], chosen["family"]) == ("environment", "gfx1030")
    assert chosen["reasons"][0] == "set by GIZMO_TARGET_FAMILY=gfx1030"


@pytest.mark.parametrize("client", CLIENTS)
def test_both_install_through_a_web_server(client: str, server: Server, tmp_path: Path) -> None:
    wheel = install(client, tmp_path, "wheel", "--index-url", f"{server.address}/simple", "gizmo[libraries]")
    assert installed(wheel) == EXTRAS["libraries"]
    links = ("--no-index", "--find-links", f"{server.address}/links.html")
    assert installed(install(client, tmp_path, "links", *links, "gizmo[device-gfx1030]")) == EXTRAS["device-gfx1030"]
    index = ("--index-url", f"{server.address}/at-install/simple")
    sdist = install(client, tmp_path, "sdist", *index, "gizmo[libraries]", GIZMO_FORCE_GFX_ARCH="gfx906")
    assert installed(sdist) == SHARED | {"gizmo-device-gfx906"}
    asked = [path for _, path, _ in server.requests]
    assert any(path.endswith("/gizmo-2.5%2Blabel.1.tar.gz") for path in asked)
    assert not any(path.endswith(".tar.gz.metadata") for path in asked)


@pytest.mark.parametrize("extra", EXTRAS)
def test_extras_resolve_to_what_they_say(extra: str, dist: Path, tmp_path: Path) -> None:
    asked = f"gizmo[{extra}]" if extra else "gizmo"
    words = ["install", "--dry-run", "--ignore-installed", "--quiet", "--report", "-", *sources(dist)["index"], asked]
    report = call("pip", tmp_path, *words)
    assert report.returncode == 0, report.stderr
    assert {each["metadata"]["name"] for each in json.loads(report.stdout)["install"]} == EXTRAS[extra]
    (tmp_path / "in.txt").write_text(asked)
    for source in ("index", "folder"):
        done = call("uv", tmp_path, "compile", "-q", "--generate-hashes", *sources(dist)[source], "in.txt")
        lines = [line.partition("==")[0] for line in done.stdout.splitlines() if "==" in line and line[0] != "#"]
        assert {line.partition("[")[0] for line in lines} == EXTRAS[extra], done.stderr
        assert done.stdout.count("--hash=sha256:") == len(EXTRAS[extra])


def test_uv_and_pip_lock_it(dist: Path, tmp_path: Path) -> None:
    project = '[project]\nname = "user"\nversion = "1"\nrequires-python = ">=3.11"\n'
    index = f'[[tool.uv.index]]\nurl = "{(dist / "simple").as_uri()}"\ndefault = true\n'
    (tmp_path / "pyproject.toml").write_text(f'{project}dependencies = ["gizmo[libraries,devel]"]\n{index}')
    command = [sys.executable, "-m", "uv", "lock", "-q", "--python", sys.executable]
    environ = client_environ(tmp_path)
    environ.pop("UV_NO_CONFIG")
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wanted = EXTRAS["libraries"] | EXTRAS["devel"]
    locked = tomllib.loads((tmp_path / "uv.lock").read_text())["package"]
    assert {each["name"] for each in locked} >= wanted  # and what other families' extras need
    assert {each["name"] for each in locked} - wanted <= {"user"}
    done = call("pip", tmp_path, "lock", "-q", *sources(dist)["index"], "gizmo[libraries,devel]")
    if done.returncode and "unknown command" in done.stderr:
        return  # before pip 25.1
    assert done.returncode == 0, done.stderr
    packages = tomllib.loads((tmp_path / "pylock.toml").read_text())["packages"]
    assert {each["name"] for each in packages} == wanted


def test_an_extra_that_is_none_is_a_warning_of_pip(dist: Path, tmp_path: Path) -> None:
    done = call("pip", tmp_path, "install", "--target", tmp_path / "site", *sources(dist)["index"], "gizmo[gfx9]")
    assert done.returncode == 0
    assert "does not provide the extra 'gfx9'" in done.stderr
    assert installed(tmp_path / "site") == EXTRAS[""]


def test_a_later_install_chooses_anew_though_pip_keeps_wheels(dist: Path, tmp_path: Path) -> None:
    words = (*sources(dist / "at-install")["index"], "gizmo[libraries]")
    assert installed(install("pip", tmp_path, "first", *words)) == EXTRAS["libraries"]
    kept = [path.name for path in (tmp_path / "pip").rglob("*.whl")]
    assert kept == ["gizmo-2.5+label.1-py3-none-chosen_here.whl"]  # kept by pip, but it fits nothing
    refused = call("pip", tmp_path, "install", "--target", tmp_path / "no", *words, GIZMO_TARGET_FAMILY="doesnotexist")
    assert refused.returncode == 1
    said = refused.stdout + refused.stderr
    assert "gizmo: GIZMO_TARGET_FAMILY=doesnotexist is not one of gfx10, gfx1030" in said
    assert "Traceback" not in said
    second = install("pip", tmp_path, "second", *words, GIZMO_TARGET_FAMILY="gfx1030")
    assert installed(second) == EXTRAS["device-gfx1030"]
    assert "Tag: py3-none-any\n" in next(second.glob("gizmo-*.dist-info")).joinpath("WHEEL").read_text()


def run_sdk(site: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIZMO_")}
    environ |= {"PYTHONPATH": str(site), **more}
    return subprocess.run([sys.executable, *words], env=environ, capture_output=True, text=True, check=False)


def test_what_a_cache_froze_is_noticed_when_it_runs(dist: Path, tmp_path: Path) -> None:
    words = (*sources(dist / "at-install")["index"], "gizmo[libraries]")
    install("uv", tmp_path, "first", *words)
    frozen = install("uv", tmp_path, "second", *words, GIZMO_TARGET_FAMILY="doesnotexist")
    assert installed(frozen) == EXTRAS["libraries"]  # uv takes what it built before
    version = ("-m", "gizmo_sdk", "version")
    quiet = run_sdk(frozen, *version)
    assert (quiet.stdout, quiet.stderr) == ("2.5+label.1\n", "")
    same = run_sdk(frozen, *version, GIZMO_TARGET_FAMILY="gfx906")
    assert same.stderr == ""  # the family's package has code for it
    unknown = run_sdk(frozen, *version, GIZMO_TARGET_FAMILY="doesnotexist")
    assert (unknown.returncode, unknown.stdout) == (0, "2.5+label.1\n")
    assert unknown.stderr.count("\n") == 1
    assert "GIZMO_TARGET_FAMILY=doesnotexist is not one of gfx10" in unknown.stderr
    other = run_sdk(frozen, *version, GIZMO_FORCE_GFX_ARCH="gfx1030")
    assert "installed with packages for gfx9_0 (the default because no GPU was found)" in other.stderr
    assert "this host has gfx1030, which needs gizmo-device-gfx1030" in other.stderr
    code = "import gizmo_sdk as sdk; sdk.initialize_process(); sdk.initialize_process()"
    warned = run_sdk(frozen, "-W", "always", "-c", code, GIZMO_FORCE_GFX_ARCH="gfx1030")
    assert warned.returncode == 0
    assert warned.stdout == ""
    assert warned.stderr.count("UserWarning: gizmo 2.5+label.1: the SDK was installed with packages for gfx9_0") == 1


@pytest.mark.parametrize("client", CLIENTS)
def test_the_commands_that_it_names_mend_it(
    client: str, dist: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A choice that was right once: the container that it was installed in now runs on another host."""
    against = rival(tmp_path / "rival", ("gizmo_device_gfx1030", "2.5+label.1"))
    place = (dist / "at-install" / "index.html").as_uri()
    first = {
        "pip": f"PIP_CONFIG_FILE=/dev/null pip --isolated install --no-index --find-links {place} 'gizmo[libraries]'",
        "uv": f"uv pip install --no-config --no-index --find-links {place} --prerelease allow 'gizmo[libraries]'",
    }
    done = run_printed(first[client], client, tmp_path, against)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("GIZMO_FORCE_GFX_ARCH", "gfx1030")
    ask = [str(tmp_path / "venv/bin/gizmo-sdk"), "version"]
    told = subprocess.run(ask, capture_output=True, text=True, check=True).stderr
    command, _, where = told.partition("To choose again, run: ")[2].partition(" # ")
    assert where.startswith("PLACE: the folder or page with the packages of gizmo")
    assert command.count(f"{client} ") == command.count(" PLACE ") == (2 if client == "pip" else 1)
    done = run_printed(command.replace("PLACE", place), client, tmp_path, against)
    assert done.returncode == 0, done.stderr
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stderr == ""
    assert next((tmp_path / "venv/lib").rglob("_gizmo_device_gfx1030/lib/libkernels.so.1")).is_file()


def sdist_of(dist: Path) -> bytes:
    return (dist / "at-install/gizmo-2.5+label.1.tar.gz").read_bytes()


@pytest.fixture
def unpacked(dist: Path, tmp_path: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(sdist_of(dist))) as archive:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(tmp_path)
    return tmp_path / "gizmo-2.5+label.1"


def backend(python: str | Path, unpacked: Path, call: str, **more: str) -> subprocess.CompletedProcess[str]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIZMO_")}
    code = f"from gizmo_sdk import _backend as backend; print({call})"
    return subprocess.run(
        [python, "-c", code], cwd=unpacked, env=environ | more, capture_output=True, text=True, check=False
    )


def test_the_sdist_is_the_same_everywhere(tree: Path, dist: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    assert build(tree, again, "--selector", "sdist", "--version", "2.5+label.1", "--threads", "3") == 0
    data = (again / "gizmo-2.5+label.1.tar.gz").read_bytes()
    assert data == sdist_of(dist)
    assert not list(again.glob("gizmo-*.whl"))
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        members = archive.getmembers()
    assert {member.name.partition("/")[0] for member in members} == {"gizmo-2.5+label.1"}
    assert {(member.mtime, member.uid, member.mode, member.type) for member in members} == {
        (315532800, 0, 0o644, tarfile.REGTYPE)
    }
    assert [member.name for member in members] == sorted(member.name for member in members)
    assert len(gzip.decompress(data)) < len(data) < len(gzip.decompress(data)) + 1000  # stored: no compressor decides


def test_its_metadata_says_what_is_open(unpacked: Path) -> None:
    lines = (unpacked / "PKG-INFO").read_text().splitlines()
    assert lines[:3] == ["Metadata-Version: 2.4", "Name: gizmo", "Version: 2.5+label.1"]
    assert "Dynamic: Requires-Dist" in lines
    assert "Provides-Extra: device-gfx1030" in lines
    assert not any(line.startswith("Requires-Dist") for line in lines)
    assert tomllib.loads((unpacked / "pyproject.toml").read_text())["build-system"]["requires"] == []


@pytest.mark.parametrize("version", ["3.9", "3.13"])
def test_the_backend_needs_nothing_but_python(version: str, dist: Path, unpacked: Path, tmp_path: Path) -> None:
    python = interpreter(version)
    made = backend(python, unpacked, "backend.prepare_metadata_for_build_wheel('..')")
    assert made.stdout == "gizmo-2.5+label.1.dist-info\n", made.stderr
    with zipfile.ZipFile(dist / "gizmo-2.5+label.1-py3-none-any.whl") as wheel:
        metadata = wheel.read("gizmo-2.5+label.1.dist-info/METADATA")
        published = {name for name in wheel.namelist() if name.startswith("gizmo_sdk/")}
    assert (tmp_path / "gizmo-2.5+label.1.dist-info/METADATA").read_bytes() == metadata  # no GPU: the default
    built = backend(python, unpacked, "backend.build_wheel('..')")
    assert built.stdout == "gizmo-2.5+label.1-py3-none-any.whl\n", built.stderr
    with zipfile.ZipFile(tmp_path / built.stdout.strip()) as wheel:
        assert wheel.read("gizmo-2.5+label.1.dist-info/METADATA") == metadata
        assert {name for name in wheel.namelist() if name.startswith("gizmo_sdk/")} == {
            *published,
            "gizmo_sdk/_selection.json",
        }
    packed = backend(python, unpacked, "backend.build_sdist('..')")
    with tarfile.open(tmp_path / packed.stdout.strip()) as archive:
        again = {member.name for member in archive}
    with tarfile.open(fileobj=io.BytesIO(sdist_of(dist))) as archive:
        assert {member.name for member in archive} == again


@pytest.mark.parametrize(("pip", "tag"), [("26.3", "chosen_here"), ("27.0", "any"), ("main", "any")])
def test_a_pip_that_is_not_known_gets_an_ordinary_wheel(pip: str, tag: str, unpacked: Path, tmp_path: Path) -> None:
    hooks = tmp_path / "pip/_vendor/hooks/run.py"
    hooks.parent.mkdir(parents=True)
    (tmp_path / "pip/__init__.py").write_text(f'__version__ = "{pip}"\n')
    hooks.write_text("from gizmo_sdk import _backend\nprint(_backend.build_wheel('.'))\n")
    environ = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(
        [sys.executable, hooks], cwd=tmp_path, env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout == f"gizmo-2.5+label.1-py3-none-{tag}.whl\n"


def test_the_backend_chooses_for_several_gpus(unpacked: Path, tmp_path: Path) -> None:
    made = backend(
        sys.executable,
        unpacked,
        "backend.prepare_metadata_for_build_wheel('..')",
        GIZMO_FORCE_GFX_ARCH="gfx1030,gfx906",
    )
    assert made.returncode == 0, made.stderr
    lines = (tmp_path / "gizmo-2.5+label.1.dist-info/METADATA").read_text().splitlines()
    wanted = [line for line in lines if line.endswith("extra == 'libraries'")]
    assert wanted == [
        f"Requires-Dist: {dist}==2.5+label.1 ; extra == 'libraries'"
        for dist in ("gizmo-libraries", "gizmo-device-gfx906", "gizmo-device-gfx1030")
    ]


def test_the_commands_that_are_printed_install_a_dev_version(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "a dist #1"
    assert build(tree, out, "--selector", "both", "--version", "2.6.dev0+abc.1") == 0
    names = {"gizmo", "gizmo-core", "gizmo-libraries", "gizmo-libraries-gfx9-0", "gizmo-device-gfx1030", "gizmo-devel"}
    against = rival(tmp_path / "rival", *((name, "2.6.dev0+abc.1") for name in names))
    lines = [line.strip() for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert [line.split("install ")[0] for line in lines] == [
        *("pip ", "uv pip ", "pip "),
        *("PIP_CONFIG_FILE=/dev/null pip --isolated ", "uv pip ", "PIP_CONFIG_FILE=/dev/null pip --isolated "),
    ]
    for number, client in ((1, "uv"), (2, "pip"), (3, "pip"), (4, "uv")):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        done = run_printed(lines[number], client, folder, against)
        assert done.returncode == 0, done.stdout + done.stderr
        gpu = EXTRAS["device-gfx1030" if number == 2 else "libraries"]
        assert installed(site_of(folder)) == gpu | EXTRAS["devel"]
        assert who(folder) == {}  # nothing of the rival, and ours don't say


@pytest.mark.parametrize("flavours", [("wheel", "sdist"), ("sdist", "wheel"), ("sdist", "both")])
def test_a_root_has_one_flavour(
    flavours: tuple[str, str], tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "dist"
    assert build(tree, out, "--selector", flavours[0]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert build(tree, out, "--selector", flavours[1]) == 2
    assert "an index cannot contain it both" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert build(tree, out, "--selector", flavours[1], "--version", "2.6") == 0  # another version may be


def test_versions_that_pip_orders_otherwise_are_noted(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert build(tree, tmp_path / "dist", "--version", "2.5+gizmo7.1") == 0
    assert "note: gizmo" not in capsys.readouterr().out
    assert build(tree, tmp_path / "dist", "--version", "2.5+gizmo10.1") == 0
    assert "note: gizmo-core: pip considers 2.5+gizmo7.1 newer than 2.5+gizmo10.1" in capsys.readouterr().out


def test_an_own_page_of_the_user_stays(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dist"
    out.mkdir()
    (out / "index.html").write_text("<html>mine</html>")
    assert build(tree, out) == 2
    assert "the file already exists, but is not a page created by Axletree" in capsys.readouterr().err
    assert (out / "index.html").read_text() == "<html>mine</html>"
    assert not list(out.glob("*.whl"))
