"""A channel made of an interpreter and wheels: what a conda client installs from it is used like any environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from axletree.core.errors import StageError
from axletree.host.archive import digest_file
from axletree.host.conda import read_conda
from axletree.host.conda_channel import make_channel, md5_of, read_channel, write_index
from axletree.host.conda_install import solve_and_install
from axletree.host.interpreters import find_interpreter
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.interpreter import interpreter_packages
from axletree.package.conda.model import CondaPackage, RunExports
from axletree.package.conda.repodata import channel_file
from axletree.package.conda.requires import CONDA_NAMES
from support.conda import demo, index, put, text
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from pathlib import Path

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
SITE = f"lib/python{PYTHON}/site-packages"
ENVIRON = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """A channel with the Python of this test and one distribution that has a script."""
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    files = {
        "demo/__init__.py": b"import sys\n\ndef main() -> None:\n    print(sys.prefix)\n",
        "demo-1.0.dist-info/entry_points.txt": b"[console_scripts]\ndemo-prefix = demo:main\n",
        "demo-1.0.data/scripts/told": b"#!python\nimport demo; print(demo.__name__)\n",
    }
    wheel.write_bytes(wheel_bytes(files, metadata=demo_metadata("1.0")))
    folder = tmp_path / "it's local"
    folder.mkdir()
    interpreter = find_interpreter(PYTHON, environ=os.environ)
    (made,) = make_channel(
        folder, interpreter=interpreter, python=PYTHON, wheels=[wheel], names=read_shipped(CONDA_NAMES)
    )
    assert (made.name, made.version, made.distribution) == ("demo", "1.0", "demo")
    return folder


def install(tmp_path: Path, *channels: Path, specs: list[str], prefix: str = "prefix") -> Path:
    solve_and_install(
        tmp_path / prefix,
        specs,
        channels=channels,
        subdir="linux-64",
        cache=tmp_path / "cache",
        environ={**ENVIRON, "HOME": str(tmp_path)},
    )
    return tmp_path / prefix


def said(*command: str | Path) -> str:
    return subprocess.run(command, env=ENVIRON, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("name", ["prefix", "a prefix with spaces", "p" * 150])
def test_it_is_an_environment_of_its_own(local: Path, tmp_path: Path, name: str) -> None:
    prefix = install(tmp_path, local / "conda", specs=["python", "demo"], prefix=name)
    ask = "import sys, sysconfig; print(sys.prefix, sys.executable, sysconfig.get_path('purelib'), sep='\\n')"
    for program in ("python", "python3", f"python{PYTHON}"):
        python = prefix / "bin" / program
        assert said(python, "-I", "-c", ask).splitlines() == [str(prefix), str(python), str(prefix / SITE)]
    assert (
        said(prefix / "bin" / "python", "-c", "import demo; print(demo.__file__)")
        == f"{prefix}/{SITE}/demo/__init__.py"
    )
    if " " not in name:  # the first line of a script can't name a path with spaces
        assert said(prefix / "bin" / "demo-prefix") == str(prefix)
        assert said(prefix / "bin" / "told") == "demo"
    nothing = "import importlib.util as u; print(u.find_spec('msgspec'), u.find_spec('json') is not None)"
    assert said(prefix / "bin" / "python", "-c", nothing) == "None True"


def test_a_package_for_any_python_finds_the_site_packages(local: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    package = CondaPackage(
        name="any", version="1", build="0", subdir="noarch", noarch="python", depends=("python >=3.8",),
        entry_points=("any-run = any_one:main",),
    )  # fmt: skip
    put(ours, package, [text("site-packages/any_one.py", b"def main():\n    print('any')\n")])
    index(ours)
    prefix = install(tmp_path, ours, local / "conda", specs=["any", "python"])
    assert said(prefix / "bin" / "any-run") == "any"
    assert (prefix / SITE / "any_one.py").is_file()


def test_modules_go_where_a_free_threaded_python_looks(tmp_path: Path) -> None:
    channel = tmp_path / "conda"
    packages = interpreter_packages(program="/x/python3.13t", version="3.13.2", free_threaded=True, subdir="linux-64")
    for package, content in packages:
        put(channel, package, content)
    any_python = CondaPackage(
        name="any", version="1", build="0", subdir="noarch", noarch="python", depends=("python >=3.8",)
    )
    put(channel, any_python, [text("site-packages/any_one.py", b"")])
    files = sorted(channel.rglob("*.conda"))
    write_index(
        tmp_path, [channel_file(read_conda(path), md5=md5_of(path), sha256=digest_file(path)) for path in files]
    )
    prefix = install(tmp_path, tmp_path / "conda", specs=["any"])
    assert (prefix / "lib" / "python3.13t" / "site-packages" / "any_one.py").is_file()


def test_a_file_of_two_packages_is_an_error(local: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    put(ours, demo(name="one"), [text("lib/x", b"1")])
    put(ours, demo(name="two"), [text("lib/x", b"2")])
    index(ours)
    with pytest.raises(
        StageError,
        match=r"1 files are in two packages each, so only one copy of each was installed: lib/x \(one and two\)",
    ):
        install(tmp_path, ours, local / "conda", specs=["one", "two"])


def test_no_solution_is_told_in_the_words_of_the_client(local: Path, tmp_path: Path) -> None:
    with pytest.raises(StageError, match="No candidates were found for absent"):
        install(tmp_path, local / "conda", specs=["absent"])
    assert not (tmp_path / "prefix").exists()


def test_the_runtimes_of_this_machine_are_packages(local: Path, tmp_path: Path) -> None:
    """In the version that their symbols are of: what needs newer ones finds no solution."""
    found = {line.record["name"]: line.record["version"] for line in read_channel(local)}
    if "libstdcxx" not in found:
        pytest.skip("needs libstdc++")
    prefix = install(tmp_path, local / "conda", specs=[f"libstdcxx >={found['libstdcxx']}", "libgcc >=3.0"])
    assert (prefix / "lib" / "libstdc++.so.6").read_bytes().startswith(b"\x7fELF")
    with pytest.raises(StageError, match="No candidates were found for libstdcxx"):
        install(tmp_path, local / "conda", specs=["libstdcxx >=99"], prefix="newer")


def test_our_channel_comes_first(local: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    put(ours, demo(name="demo", version="0.5"), [text("lib/ours")])
    index(ours)
    prefix = install(tmp_path, ours, local / "conda", specs=["demo"])
    assert (prefix / "lib" / "ours").is_file()


def test_what_a_channel_lists_is_read_back(local: Path) -> None:
    listed = {line.filename: line.subdir for line in read_channel(local) if not line.filename.endswith("_host.conda")}
    tag = f"cp{PYTHON.replace('.', '')}"
    version = ".".join(map(str, sys.version_info[:3]))
    assert listed == {
        "demo-1.0-0.conda": "linux-64",
        f"python-{version}-0_{tag}.conda": "linux-64",
        f"python_abi-{PYTHON}-0_{tag}.conda": "noarch",
    }


@pytest.fixture
def without_exports(tmp_path: Path) -> Path:
    """A channel whose index says nothing of run exports, as most indexes of others."""
    channel = tmp_path / "plain"
    exports = RunExports(weak=("low >=1,<2.0a0",), strong=("low-run",))
    put(channel, demo(name="low", run_exports=exports), [text("lib/low")])
    put(channel, demo(name="high", depends=("low",), run_exports=RunExports(weak=("high",))), [text("lib/high")])
    put(channel, demo(name="plain"), [text("lib/plain")])
    index(channel)
    page = channel / "linux-64" / "repodata.json"
    table = json.loads(page.read_text())
    for line in table["packages.conda"].values():
        line.pop("run_exports", None)
    page.write_text(json.dumps(table))
    page.with_name("repodata.json.zst").unlink()
    return channel


@pytest.mark.parametrize("remote", [False, True])
def test_run_exports_that_no_index_has_are_read_from_packages_that_are_named(
    without_exports: Path,
    tmp_path: Path,
    remote: bool,  # noqa: FBT001
) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory=str(without_exports))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}" if remote else without_exports.as_uri()
        solved = solve_and_install(
            None,
            ["high", "plain", "low >=1"] if remote else ["high", "plain"],
            channels=[address],
            subdir="linux-64",
            cache=tmp_path / "cache",
            environ={**ENVIRON, "HOME": str(tmp_path)},
            exports=True,
        )
        server.shutdown()
    found = {each.name: (each.run_exports.weak, each.run_exports.strong) for each in solved}
    low = (("low >=1,<2.0a0",), ("low-run",)) if remote else ((), ())
    assert found == {"high": (("high",), ()), "plain": ((), ()), "low": low}
    assert {each.url.rpartition("/")[0] for each in solved} == {f"{address}/linux-64"}
