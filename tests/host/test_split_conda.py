"""``axletree split --format conda``: py-rattler indexes, solves and installs what it writes, and Python imports it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from axletree.app.split import load_split_rules, split_wheel
from axletree.cli.split import command
from axletree.core.errors import PublishError
from axletree.host.conda import read_conda
from axletree.package.conda.check import check_siblings, clobbers
from support.conda import demo, index, install, put, put_python, solve
from support.inputs import wheel
from support.small_torch import make_small_torch

if TYPE_CHECKING:
    from pathlib import Path

    from axletree.app.split import SplitOutcome

KEYS = ("sha256", "md5", "size", "name", "version", "build", "subdir")
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the structure of torch's."""
    return make_small_torch(tmp_path_factory.mktemp("small"))


def conda_split(path: Path, out: Path) -> SplitOutcome:
    return split_wheel(path, load_split_rules(None, wheel=path), out, formats=["conda"], verify=False)


def test_conda_packages_install_together(small: Path, tmp_path: Path) -> None:
    outcome = conda_split(small, tmp_path / "out")
    version = "2.14.1+cu130.split.1"
    channel = tmp_path / "out" / "conda"
    assert sorted(path.name.partition(f"-{version}-")[0] for path in outcome.files) == [
        "libtorch", "libtorch-cuda", "libtorch-cuda-linalg", "pytorch", "torch-split"
    ]  # fmt: skip
    assert {path.parent for path in outcome.files} == {channel / "linux-64"}
    assert not list((tmp_path / "out").glob("*.whl"))
    facts = [read_conda(path) for path in outcome.files]
    assert (*check_siblings(facts), *clobbers(facts)) == ()
    listed = json.loads((channel / "linux-64" / "repodata.json").read_text())["packages.conda"]
    assert sorted(listed) == sorted(path.name for path in outcome.files)
    (torch,) = (entry for entry in listed.values() if entry["name"] == "pytorch")
    assert torch["run_exports"]["weak"] == [
        "libtorch >=2.14.1,<2.15.0a0",
        "libtorch-cuda >=2.14.1,<2.15.0a0",
        "libtorch-cuda-linalg >=2.14.1,<2.15.0a0",
        "pytorch >=2.14.1,<2.15.0a0",
    ]
    put_python(channel, VERSION)
    prefix = tmp_path / "prefix"
    names = install(channel, prefix, "torch-split", cache=tmp_path / "cache")
    assert {"libtorch", "libtorch-cuda", "libtorch-cuda-linalg", "pytorch", "torch-split"} < set(names)
    assert not [path for path in prefix.rglob("*") if "__clobber" in path.name]
    site = prefix / "lib" / f"python{VERSION}" / "site-packages"
    compiled = list((site / "torch").rglob("*.pyc"))
    assert {path.name.split(".")[1] for path in compiled} == {sys.implementation.cache_tag}
    assert len(compiled) == len(list((site / "torch").rglob("*.py")))
    code = "import torch; print(torch.value(), torch.__cached__)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": str(site)}, text=True, capture_output=True, check=False
    )
    assert done.stdout.split() == ["28", str(site / "torch" / "__pycache__" / compiled_name("__init__"))], done.stderr


def compiled_name(module: str) -> str:
    return f"{module}.{sys.implementation.cache_tag}.pyc"


def test_the_command_names_the_channel(small: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(small), "--out", str(tmp_path), "--format", "conda"])
    assert result.exit_code == 0, result.output
    lines = [line.strip() for line in result.output.splitlines()]
    (torch,) = (line for line in lines if line.startswith("conda/linux-64/pytorch-"))
    assert torch.endswith(" compiled files")
    assert lines[-1] == f"conda channel: {(tmp_path / 'conda').as_uri()}"


def test_a_sibling_of_another_split_is_never_installed_with_it(small: Path, tmp_path: Path) -> None:
    newer = make_small_torch(tmp_path / "newer", version="2.14.2", answer=9)
    for path in (small, newer):
        conda_split(path, tmp_path / "out")
    channel = tmp_path / "out" / "conda"
    put_python(channel, VERSION)
    records = solve(channel, "pytorch ==2.14.1+cu130.split.1")
    ours = {str(record.version) for record in records if "torch" in record.name.normalized}
    assert ours == {"2.14.1+cu130.split.1"}
    for one, other in (("pytorch", "libtorch"), ("libtorch-cuda", "libtorch"), ("torch-split", "pytorch")):
        with pytest.raises(Exception, match="Cannot solve"):
            solve(channel, f"{one} ==2.14.1+cu130.split.1", f"{other} ==2.14.2+cu130.split.1")


def test_conda_packages_for_a_python_that_is_not_here(small: Path, tmp_path: Path) -> None:
    other = make_small_torch(tmp_path / "other", python="cp34", requires=["filelock", "strange>=2"])
    conda_split(small, tmp_path / "out")
    outcome = conda_split(other, tmp_path / "out")
    libraries, *_ = (part for part in outcome.split.conda if part.name == "libtorch")
    assert (tmp_path / "out" / libraries.filename).is_file()  # the same for both
    (torch,) = (part for part in outcome.split.conda if part.name == "pytorch")
    assert torch.compiled == 0
    assert torch.guessed == ("strange",)
    assert "filelock" in torch.depends
    assert outcome.split.notes[0].startswith(
        "conda: pytorch has no compiled Python files because this machine does not have Python 3.4"
    )
    assert "no package is known for strange" in outcome.split.notes[1]


def test_the_channel_lists_what_rattler_would(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # it is not needed
    outcome = conda_split(small, tmp_path / "out")
    page = tmp_path / "out" / "conda" / "linux-64" / "repodata.json"
    ours = json.loads(page.read_text())["packages.conda"]
    assert len(ours) == len(outcome.files)
    monkeypatch.undo()
    index(tmp_path / "out" / "conda")
    theirs = json.loads(page.read_text())["packages.conda"]
    assert ours.keys() == theirs.keys()
    for name, line in ours.items():
        assert {key: line[key] for key in KEYS} == {key: theirs[name][key] for key in KEYS}


def test_a_package_that_no_page_of_the_channel_names(small: Path, tmp_path: Path) -> None:
    """A stranger's file stays, and is nobody's business; one under the name of ours is an error."""
    bad = tmp_path / "out" / "conda" / "linux-64" / "x-1-0.conda"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"junk")
    first = conda_split(small, tmp_path / "out")
    assert bad.read_bytes() == b"junk"
    page = bad.with_name("repodata.json")
    assert sorted(json.loads(page.read_text())["packages.conda"]) == sorted(path.name for path in first.files)
    page.unlink()
    first.files[0].write_bytes(b"junk")
    with pytest.raises(PublishError, match="the package is already in the channel with different content"):
        conda_split(small, tmp_path / "out")


STUBS = ("filelock", "fsspec", "jinja2", "networkx", "setuptools", "sympy", "typing_extensions")
SMOKE = """
import os, sys
import torch
a = torch.randn(8, 8, requires_grad=True)
(a @ a).sum().backward()
assert torch.allclose(torch.linalg.inv(torch.eye(3) * 2), torch.eye(3) / 2)
assert torch.nn.Linear(8, 2)(a).shape == (8, 2)
print("torch", torch.__version__, "from", os.path.relpath(torch.__cached__, PREFIX))
with open("/proc/self/maps") as maps:
    loaded = sorted({line.split()[-1] for line in maps if ".so" in line and PREFIX in line})
for path in loaded:
    if "torch" in path:
        print("loaded", os.path.relpath(path, PREFIX))
"""


@pytest.mark.proof
def test_the_official_cpu_wheel_as_conda_packages(tmp_path: Path) -> None:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("the wheel is for Python 3.11")
    path = wheel("torch==2.13.0+cpu")
    outcome = conda_split(path, tmp_path / "out")
    for part in outcome.split.conda:
        size = (tmp_path / "out" / part.filename).stat().st_size
        print(f"{part.filename}: {size / 1e6:.1f} MB, {part.compiled} compiled files")  # noqa: T201
        print("  depends:", "; ".join(part.depends))  # noqa: T201 (docs/proof/split.md shows it)
        print("  constrains:", "; ".join(part.constrains))  # noqa: T201
    assert outcome.split.notes == ()
    channel = tmp_path / "out" / "conda"
    put_python(channel, VERSION)
    for name in STUBS:
        put(channel, demo(name=name, version="999", subdir="noarch", noarch="generic"), [])
    prefix = tmp_path / "prefix"
    installed = install(channel, prefix, "torch-split", cache=tmp_path / "cache")
    print("installed:", *installed)  # noqa: T201
    assert not [each for each in prefix.rglob("*") if "__clobber" in each.name]
    pure = tmp_path / "pure"
    uv = os.path.join(os.path.dirname(sys.executable), "uv")  # noqa: PTH118, PTH120
    words = [uv, "pip", "install", "-q", "--python", sys.executable, "--target", str(pure), *STUBS]
    subprocess.run(words, check=True)
    site = prefix / "lib" / f"python{VERSION}" / "site-packages"
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"PREFIX = {str(prefix)!r}\n{SMOKE}"],
        env={"PYTHONPATH": f"{site}:{pure}"},
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # noqa: T201
    assert "loaded lib/python3.11/site-packages/libtorch/lib/libtorch_cpu.so" in done.stdout
    assert "/__pycache__/__init__.cpython-311.pyc" in done.stdout
