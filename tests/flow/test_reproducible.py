"""The same inputs give the same bytes, wherever and however they are built; nothing of the machine is in them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.app.build import find_ccache
from support.tiny import RECIPE, Tiny, make_tiny, need_pythons, pythons

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("workspace")]

WITH_DEBUG = (
    RECIPE.partition("[tests.smoke]")[0]
    .replace("-O1", "-O1 -g")
    .replace("cp __init__.py", "cp __init__.py data.txt")
    .replace('[environments.test]\nrequires = ["demo>=1"]\n', "")
)
"""Debug information names files and folders; a large file is compressed in several threads."""
SOURCE = '#include <cassert>\nextern "C" const char* tiny_file() { assert(tiny_answer()); return __FILE__; }\n'


def project(root: Path) -> Tiny:
    tiny = make_tiny(root, need_pythons(), recipe=WITH_DEBUG)
    with (tiny.source / "tiny.cpp").open("a") as file:
        file.write(SOURCE)
    words = random.Random(1)
    text = "".join(f"{words.randrange(10**6)} and\n" for _ in range(300_000))
    (tiny.source / "data.txt").write_text(text)
    return tiny


def published(tiny: Tiny) -> dict[str, bytes]:
    """All that users install from; the report, the ledger and logs tell about runs."""
    files = (path for path in sorted(tiny.out.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(tiny.out)): path.read_bytes()
        for path in files
        if path.name not in {"report.html", "ledger.json", ".axletree.lock"} and path.parent.name != "logs"
    }


def members(wheel: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        for name in archive.namelist():
            yield name, archive.read(name)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A build with all cores and nothing cached."""
    tiny = project(tmp_path_factory.mktemp("first"))
    tiny.built()
    return tiny


def test_one_core_another_place_another_home(first: Tiny, tmp_path: Path) -> None:
    second = project(tmp_path / "a-place-with-a-much-longer-name-than-that-of-the-first")
    if shutil.which("taskset") is None:
        pytest.skip("needs taskset")
    one = ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0))))
    second = replace(second, prefix=one).with_environ(TZ="Asia/Tokyo", LANG="de_DE.UTF-8", USER="somebody")
    jobs = {event["jobs"] for event in second.built().events if event["event"] == "stage-started"}
    assert jobs == {1}
    assert published(second) == published(first)


def test_a_warm_compiler_cache(first: Tiny) -> None:
    ccache = find_ccache()
    if ccache is None:
        pytest.skip("needs ccache")
    before = published(first)
    for folder in (first.out, first.store / "results", first.store / "workspaces"):
        shutil.rmtree(folder)
    run = first.built()
    assert {"lib", "bind[A]", "bind[B]"} <= run.stages("done")
    assert published(first) == before
    statistics = subprocess.run(
        [ccache, "--print-stats"],
        env={"CCACHE_DIR": str(first.store / "cache" / "ccache"), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counts = dict(line.split("\t") for line in statistics.splitlines() if "\t" in line)
    assert int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"]) >= 3


def test_no_wheel_names_a_place_of_this_machine(first: Tiny) -> None:
    places = {str(first.store), str(first.home), str(first.folder), str(first.store.parents[2]), str(Path.home())}
    prefixes = {str(Path(interpreter.path).parents[1]) for interpreter in pythons().values()}
    places |= {prefix for prefix in prefixes if not prefix.startswith("/usr")}
    places = {place for place in places if len(Path(place).parts) > 1}  # a home may be /, and that is everywhere
    wheels = sorted(first.out.glob("*.whl"))
    assert len(wheels) == 3
    for wheel in wheels:
        content = dict(members(wheel))
        assert any(b"tiny.cpp" in data or b"bind.cpp" in data for data in content.values()), "no debug information"
        for name, data in content.items():
            assert not [place for place in places if place.encode() in data], f"{wheel.name}: {name}"
