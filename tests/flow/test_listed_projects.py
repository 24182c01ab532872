"""Projects of the list in docs/proof, from their names to tested wheels, without a line of a recipe by hand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from axletree.core.errors import AxletreeError
from axletree.host.indexes import read_indexes
from axletree.host.simple_api import list_files
from axletree.recipe.settings import Settings
from support.envelopes import events_of
from support.proof import proof_only

ROOT = Path(__file__).parents[2]
PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
LISTED = {
    project["name"]: project
    for project in tomllib.loads((ROOT / "docs/proof/projects.toml").read_text(encoding="utf-8"))["project"]
}
NEEDED = {"pyyaml": Path("/usr/include/yaml.h")}
"""Headers without which a project makes another wheel than the one that is expected here."""
EXPECTED = {
    "pyyaml": (rf"{PYTHON}-{PYTHON}-manylinux.*", ("yaml/_yaml.cpython-", "pyyaml.libs/libyaml-")),
    "psutil": (r"cp36-abi3-manylinux.*", ("psutil/_psutil_linux.abi3.so",)),
    "black": (r"py3-none-any", ("black/__init__.py",)),
    "packaging": (r"py3-none-any", ("packaging/version.py",)),
    "cached-ipaddress": (rf"{PYTHON}-{PYTHON}-manylinux.*", ("cached_ipaddress/ipaddress.cpython-",)),
}
"""Tags of the wheel, and beginnings of files that it has to contain."""

pytestmark = [pytest.mark.network, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "name", [proof_only(each) if each in {"pyyaml", "cached-ipaddress"} else each for each in EXPECTED]
)
def test_wheel(name: str, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler")
    if name in NEEDED and not NEEDED[name].exists():
        pytest.skip(f"needs {NEEDED[name]}")
    version = LISTED[name]["version"]
    _skip_without_index(name, version)
    command = [sys.executable, "-m", "axletree", "wheel", f"{name}=={version}", "--out", "dist", "--json"]
    environ = {**os.environ, "AXLETREE_STORE": str(tmp_path / "store")}
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout[-4000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    tags, files = EXPECTED[name]
    assert re.fullmatch(rf"{name.replace('-', '_')}-{version}-{tags}\.whl", wheel.name), wheel.name
    with zipfile.ZipFile(wheel) as archive:
        members = archive.namelist()
    assert all(any(member.startswith(start) for member in members) for start in files), members
    ended = {event["stage"]: event["status"] for event in events_of(done.stdout) if event["event"] == "stage-finished"}
    tests = {stage: status for stage, status in ended.items() if stage.startswith("test:imports:")}
    assert len(tests) == 2, ended
    assert set(tests.values()) == {"done"}


def _skip_without_index(name: str, version: str) -> None:
    """Skip where the index that pip and uv are configured for does not have the sdist."""
    settings = read_indexes(Settings(), os.environ, home=Path.home(), cwd=ROOT)
    try:
        names = [file.filename for file in list_files(name, settings)]
    except AxletreeError as error:
        pytest.skip(f"the package index cannot be reached: {error}")
    if not any(version in each and each.endswith(".tar.gz") for each in names):
        pytest.skip(f"the package index has no sdist of {name} {version}")
