"""One build in all formats: wheels, conda packages, an archive; for pip, uv, a conda client and C++."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from axletree.host.conda import read_conda
from axletree.package.conda.check import check_siblings, clobbers
from support.ferry import make_ferry
from support.tiny import Tiny, copied, need_pythons

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ferry")]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    ferry = make_ferry(tmp_path_factory.mktemp("ferry"), need_pythons(2))
    ferry.built()
    return ferry


def digests(out: Path) -> dict[str, str]:
    """Packages and archives of an output folder, by name."""
    files = [path for path in out.rglob("*") if path.suffix in {".whl", ".conda", ".zip"}]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_every_format_is_published_and_every_client_uses_it(built: Tiny) -> None:
    names = sorted(digests(built.out))
    kinds = {end: [name for name in names if name.endswith(end)] for end in (".whl", ".conda", ".zip")}
    assert [name.partition("-")[0] for name in kinds[".whl"]] == ["ferry", "ferry", "ferry_cpu", "libferry"]
    assert [name.rpartition("-")[0] for name in kinds[".conda"]] == [
        "ferry-cpu-1.2.0", "libferry-1.2.0", "py-ferry-1.2.0", "py-ferry-1.2.0"
    ]  # fmt: skip
    assert kinds[".zip"] == ["libferry-shared-with-deps-1.2.0.zip"]
    tested = {stage for stage in built.plan() if stage.startswith("test:")}
    assert tested == {f"test:smoke:{client}[{letter}]" for client in ("pip", "uv", "conda") for letter in "AB"}
    again = built.built()
    assert again.counts["ran"] == 0
    facts = [read_conda(path) for path in sorted((built.out / "conda").rglob("*.conda"))]
    first = [each for each in facts if "py312" not in each.build]
    assert (*check_siblings(first, exact=False), *clobbers(first)) == ()


def test_the_archive_is_what_a_cpp_user_needs(built: Tiny, tmp_path: Path) -> None:
    subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=built.out, check=True, capture_output=True)
    (archive,) = built.out.glob("*.zip")
    subprocess.run(["unzip", "-q", archive], cwd=tmp_path, check=True)
    root = tmp_path / "libferry"
    assert (root / "build-version").read_text() == "1.2.0\n"
    assert len((root / "build-hash").read_text()) == 65
    consumer = tmp_path / "consumer"
    consumer.mkdir()
    shutil.copyfile(built.folder / "tests" / "consumer.txt", consumer / "CMakeLists.txt")
    commands: tuple[list[str], ...] = (
        ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={root}"],
        ["cmake", "--build", "build"],
        ["build/consumer"],
    )
    for command in commands:
        subprocess.run(command, cwd=consumer, check=True, capture_output=True)
    assert subprocess.check_output([root / "bin" / "show"], text=True) == "42\n"


def test_another_store_makes_the_same_bytes(built: Tiny, tmp_path: Path) -> None:
    again = copied(built, tmp_path)
    shutil.rmtree(again.store)
    recipe = again.recipe.read_text()
    again.recipe.write_text(recipe[: recipe.index("[tests.smoke]")])
    again.built("-v", f"py{again.versions[0].replace('.', '')}-*")
    before, after = digests(built.out), digests(again.out)
    assert len(after) == 7
    assert after.items() <= before.items()


def test_nothing_of_a_variant_appears_where_one_client_fails(built: Tiny, tmp_path: Path) -> None:
    ferry = copied(built, tmp_path)
    ferry.change('"python check.py",', '"python check.py", \'test -z "${CONDA_PREFIX:-}"\',')
    run = ferry.build("-v", f"py{ferry.versions[0].replace('.', '')}-*")
    assert run.code == 1
    assert run.stages("failed") == {"test:smoke:conda[A]"}
    assert digests(ferry.out) == {}


def test_dependencies_that_nothing_here_brings_are_told(built: Tiny, tmp_path: Path) -> None:
    ferry = copied(built, tmp_path)
    ferry.change("build-number = 3", 'build-number = 4\ndepends = ["libblas * *mkl", "mkl >=2024"]')
    ferry.change('installers = ["pip", "uv", "conda"]', 'installers = ["conda"]')
    version = ferry.versions[0].replace(".", "")
    run = ferry.built("-v", f"py{version}-*")
    (told,) = (finding for event in run.events for finding in event.get("findings", ())
               if finding["rule"] == "test/dependency-untried")  # fmt: skip
    assert told["where"] == "libferry"
    assert told["evidence"] == ["libblas * *mkl", "mkl >=2024"]
    record = json.loads((ferry.out / "conda" / "linux-64" / "repodata.json").read_text())["packages.conda"]
    (library,) = (line for name, line in record.items() if name.startswith("libferry-"))
    assert library["depends"][1:] == ["libblas * *mkl", "mkl >=2024"]  # left out for the test alone
    assert library["build_number"] == 4
