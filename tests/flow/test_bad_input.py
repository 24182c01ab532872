"""Each way of asking for something that cannot be: one clear error, the right exit code, and nothing left behind."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import re
import shlex
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.app.ledger import LEDGER
from axletree.store import Store, verify
from support.elfs import need
from support.faulty import BOUND, LIBRARY, PYTHON, SOURCES, make_project, powerless, pylock
from support.index_server import make_wheel, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from support.faulty import Project

    Golden = Callable[[str, str], None]

CLOSED_PORT = "http://127.0.0.1:9"
"""The port "discard", where nothing listens: what a network that is not there looks like."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """A recipe, what is done to it and to the command line, and what comes of that."""

    old: str = ""
    new: str = ""
    code: int = 2
    recipe: str = LIBRARY
    arguments: tuple[str, ...] = ()
    files: Mapping[str, str] = dataclasses.field(default_factory=dict)
    environ: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def project(self, folder: Path) -> Project:
        project = make_project(folder / "project", self.recipe, files=self.files).having(**self.environ)
        if self.old:
            project.edit(self.old, self.new)
        return project


PLAIN_LOCK = f"small/pylock.plain-py{PYTHON.replace('.', '')}.toml"

BEFORE = {
    "unknown-key": Fault("commands =", "comands ="),
    "unknown-axis": Fault('axes = ["python"]', 'axes = ["pyton"]', recipe=BOUND),
    "cyclic-stages": Fault("[stages.lib]\n", '[stages.lib]\naxes = ["python"]\ninputs = ["bind"]\n', recipe=BOUND),
    "undeclared-axis": Fault("-fPIC -o $AXLETREE_OUT/lib", "-fPIC -DV={python} -o $AXLETREE_OUT/lib", recipe=BOUND),
    "empty-matrix": Fault(
        "[environments.plain]", f'[matrix]\nexclude = [{{ python = "{PYTHON}" }}]\n[environments.plain]', recipe=BOUND
    ),
    "missing-source": Fault('path = "src"', 'path = "sources"'),
    "missing-patch": Fault("[stages.lib]", '[[patches]]\nfile = "fix.patch"\n\n[stages.lib]'),
    "secret-passed": Fault('tools = ["c++"]', 'tools = ["c++"]\npass-env = ["GITHUB_TOKEN"]'),
    "missing-lock": Fault(
        "[environments.plain]", '[environments.plain]\nrequires = ["wheel"]', recipe=BOUND, arguments=("--locked",)
    ),
    "old-lock": Fault(
        "[environments.plain]",
        '[environments.plain]\nrequires = ["wheel>=2"]',
        recipe=BOUND,
        arguments=("--locked",),
        files={PLAIN_LOCK: pylock({}, requires=["wheel>=1"])},
    ),
    "broken-lock": Fault(recipe=BOUND, files={PLAIN_LOCK: "packages = [\n"}),
    "missing-source-lock": Fault(
        'path = "src"', f'url = "file:///none/small-1.0.tar.gz"\nsha256 = "{"0" * 64}"', arguments=("--locked",)
    ),
    "unknown-variant": Fault(arguments=("-v", "py399"), recipe=BOUND),
    "unknown-option": Fault(arguments=("--keep-goin",)),
    "no-room": Fault('tools = ["c++"]', 'tools = ["c++"]\nresources = { disk = "9000 TB" }', code=3),
    "missing-tool": Fault('tools = ["c++"]', 'tools = ["c++", "no-such-compiler"]', code=3),
}


@pytest.mark.parametrize("name", BEFORE)
def test_before_anything_runs(name: str, tmp_path: Path, golden: Golden) -> None:
    project = BEFORE[name].project(tmp_path)
    ended = project.build(*BEFORE[name].arguments)
    golden(f"flow/{name}.txt", project.account(ended))
    assert ended.code == BEFORE[name].code
    assert not project.out.exists()
    assert project.records() == {}
    assert project.sound()


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    project = Fault(f'python = ["{PYTHON}"]', 'python = ["3.99"]', recipe=BOUND).project(tmp_path)
    ended = project.build()
    assert ended.code == 3
    assert "small.toml: CPython 3.99 is not on PATH, in " in ended.err
    assert "uv python install 3.99" in ended.err
    assert "--skip" not in ended.err


def test_pythons_that_are_not_there_are_told_at_once(tmp_path: Path) -> None:
    pythons = f'python = ["3.98", "{PYTHON}", "3.99"]'
    project = Fault(f'python = ["{PYTHON}"]', pythons, recipe=BOUND).project(tmp_path)
    ended = project.build()
    assert ended.code == 3
    assert ended.err.count("CPython 3.98, 3.99 is not on PATH") == 1
    assert "`pyenv install 3.98 3.99`; or build only other variants with -v or --skip" in ended.err
    project.edit("[environments.plain]", '[environments.plain]\nrequires = ["wheel"]')
    ended = project.run("lock", "small.toml")
    assert ended.code == 2, "nothing here has the wheel that the third Python's environment requires"
    assert "the requirements cannot be satisfied" in ended.err
    assert ended.err.count("CPython 3.98, 3.99 is not on PATH") == 1


def test_a_missing_lock_is_made_for_the_variants_that_are_built(tmp_path: Path) -> None:
    project = Fault(f'python = ["{PYTHON}"]', f'python = ["{PYTHON}", "3.99"]', recipe=BOUND).project(tmp_path)
    project.edit("[environments.plain]", '[environments.plain]\nrequires = ["wheel"]')
    here = f"py{PYTHON.replace('.', '')}"
    ended = project.build("--locked", "-v", f"{here}*", "--skip", "py399")
    assert ended.code == 2
    assert f"hint: run `axletree lock small.toml -v '{here}*' --skip py399`" in ended.err


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("torch-scater", "did you mean 'torch-scatter'?"),
        ("smal.toml", "did you mean small.toml?"),
        ("small", "to use the file in this folder, write small.toml"),
        (".", "axletree recipes"),
        ("./src/", "./src/ is a folder"),
    ],
)
def test_a_recipe_that_is_not_there(name: str, says: str, tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    ended = project.run("build", name)
    assert ended.code == 2
    assert says in ended.err
    assert not project.out.exists()


def test_a_path_without_a_compiler(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", PATH=str(tmp_path / "empty"))
    ended = project.build()
    assert ended.code == 3
    assert ended.err == (
        "error: a stage in the recipe needs c++, which is not on PATH\n"
        "  hint: install it (Debian and Ubuntu: apt-get install g++)\n"
    )
    assert not project.out.exists()


PATCH = """\
--- a/small.cpp
+++ b/small.cpp
@@ -1 +1 @@
-extern "C" int small_answer() { return 41; }
+extern "C" int small_answer() { return 43; }
"""
BUILT = """\
name = "small"
version = "1.0"
source = { path = "src" }
axes = { python = ["PYTHON"] }
environments = { plain = {} }
stages = { wheel = { action = "build", axes = ["python"], environment = "plain" } }
packages = { small = { from = "wheel" } }
""".replace("PYTHON", PYTHON)
PYPROJECT = """\
[build-system]
requires = ["small-backend>=2", "small-helper; python_version > '3'", "not-here; python_version < '3'"]
build-backend = "small_backend"
"""

RUNNING = {
    "compile-error": Fault(
        files={"src/small.cpp": '#error "this source is wrong"\nint main() {}\n'},
        code=1,
    ),
    "test-failure": Fault("small.answer() == 42", "small.answer() == 41", recipe=BOUND, code=1),
    "import-failure": Fault(recipe=BOUND, code=1, files={"src/__init__.py": "from small._small import question\n"}),
    "empty-out": Fault('"mkdir -p $AXLETREE_OUT/lib",', '"AXLETREE_OUT=$PWD; mkdir lib",', code=1),
    "unfit-patch": Fault(
        "[stages.lib]", '[[patches]]\nfile = "fix.patch"\n\n[stages.lib]', code=1, files={"fix.patch": PATCH}
    ),
    "missing-requirement": Fault(recipe=BUILT, code=1, files={"src/pyproject.toml": PYPROJECT}),
    "no-project": Fault(recipe=BUILT, code=1, files={"src/pyproject.toml": "[build-system]\nrequires = 1\n"}),
    "unprovided-library": Fault(
        'requires = ["libsmall=={version}"]\nprovided-by = { libsmall = ["libsmall.so"] }', "", recipe=BOUND, code=1
    ),
    "killed": Fault('"mkdir -p $AXLETREE_OUT/lib",', '"kill -KILL $$",', code=1),
    "out-of-memory": Fault(
        '"mkdir -p $AXLETREE_OUT/lib",', "\"ulimit -v 100000; python3 -c 'bytearray(1 << 30)'\",", code=1
    ),
}


@pytest.mark.parametrize("name", RUNNING)
def test_while_it_runs(name: str, tmp_path: Path, golden: Golden) -> None:
    if name == "unfit-patch":
        need("patch")
    project = RUNNING[name].project(tmp_path)
    ended = project.build()
    # Which line of a log it is depends on Python: tracebacks of 3.13 have one more.
    golden(f"flow/{name}.txt", re.sub(r"(<digest>\.log:)\d+", r"\1N", project.account(ended)))
    assert ended.code == RUNNING[name].code
    check_nothing_left(project)
    logs = [line.split("log: ")[1] for line in ended.out.splitlines() if line.strip().startswith("log: ")]
    assert logs
    assert all(Path(log).stat().st_size for log in logs)


def test_the_command_that_a_failure_advises_is_for_the_same_run(tmp_path: Path) -> None:
    project = RUNNING["missing-requirement"].project(tmp_path)
    options = ["--set", "stages.wheel.env.A=1 2", "-v", "py*"]
    ended = project.build(*options)
    assert f"run `axletree lock small.toml {shlex.join(options)}`" in ended.out
    assert "RECIPE" not in ended.out + ended.err


def check_nothing_left(project: Project) -> None:
    """No wheel and no half of one is published, no process is left, and the store is in order."""
    assert project.published() == []
    assert project.processes() == []
    assert project.sound()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources as a release archive."""
    path = tmp_path_factory.mktemp("release") / "small-1.0.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in SOURCES.items():
            member = tarfile.TarInfo(f"small-1.0/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return path


def source_lock(archive: Path, *, kind: str, location: str, sha256: str | None = None) -> dict[str, str]:
    """The lock of the sources as an archive."""
    digest = sha256 or hashlib.sha256(archive.read_bytes()).hexdigest()
    text = (
        f'kind = "{kind}"\nlocation = "{location}"\nversion = "1.0"\nfilename = "{archive.name}"\nsha256 = "{digest}"\n'
    )
    return {"small/source.lock.toml": text}


def locked_wheel(folder: Path, **environ: str) -> Project:
    """A project whose environment holds one wheel by its lock."""
    name, data = make_wheel("helper", "1.0")
    recipe = BOUND.replace("[environments.plain]", '[environments.plain]\nrequires = ["helper"]')
    files = {PLAIN_LOCK: pylock({name: data}, requires=["helper"])}
    return make_project(folder / "project", recipe, files=files, **environ)


def from_index(folder: Path, archive: Path, **environ: str) -> Project:
    """A project whose source is an sdist of the package index."""
    recipe = LIBRARY.replace('path = "src"', 'pypi = "small"')
    files = source_lock(archive, kind="pypi", location="small")
    return make_project(folder / "project", recipe, files=files, **environ)


def test_an_archive_that_somebody_replaced(tmp_path: Path, archive: Path, golden: Golden) -> None:
    wrong = "ab" * 32
    recipe = LIBRARY.replace('path = "src"', f'url = "{archive.as_uri()}"\nsha256 = "{wrong}"')
    files = source_lock(archive, kind="url", location=archive.as_uri(), sha256=wrong)
    project = make_project(tmp_path / "project", recipe, files=files)
    ended = project.build()
    golden("flow/replaced-archive.txt", project.account(ended).replace(archive.parent.as_uri(), "<release>"))
    assert ended.code == 2
    check_nothing_left(project)
    assert list((project.store / "cache" / "downloads").glob("*.partial")) == []


def test_a_wheel_that_somebody_replaced(tmp_path: Path, golden: Golden) -> None:
    project = locked_wheel(tmp_path, AXLETREE_FIND_LINKS=str(tmp_path))
    name, data = make_wheel("helper", "1.0", body="other = 1\n")
    (tmp_path / name).write_bytes(data)
    ended = project.build("--json")
    message = ended.finished(f"environment:plain[py{PYTHON.replace('.', '')}]")["message"]
    golden("flow/replaced-wheel.txt", project.plain(message).replace(str(tmp_path), "<links>"))
    assert ended.code == 2
    check_nothing_left(project)


def test_a_wheel_that_an_index_serves_wrongly(tmp_path: Path) -> None:
    name, data = make_wheel("helper", "1.0")
    with serve() as server:
        server.add_project("helper", {name: data})
        server.files[f"/files/{name}"] = data[:-1] + b"x"
        project = locked_wheel(tmp_path, AXLETREE_NO_INDEX="", AXLETREE_INDEX_URL=f"{server.address}/simple")
        ended = project.build()
    assert ended.code == 2
    assert f"{name} is not the locked file" in ended.out
    check_nothing_left(project)


def test_an_sdist_that_no_index_has(tmp_path: Path, archive: Path, golden: Golden) -> None:
    with serve() as server:
        server.add_project("small", {"small-0.9.tar.gz": b""})
        project = from_index(tmp_path, archive, AXLETREE_NO_INDEX="", AXLETREE_INDEX_URL=f"{server.address}/simple")
        ended = project.build()
    golden("flow/missing-sdist.txt", project.account(ended).replace(server.address, "<index>"))
    assert ended.code == 3
    check_nothing_left(project)


def test_no_network(tmp_path: Path, archive: Path, golden: Golden) -> None:
    project = from_index(
        tmp_path,
        archive,
        AXLETREE_NO_INDEX="",
        AXLETREE_INDEX_URL="https://files.example/simple",
        https_proxy=CLOSED_PORT,
        http_proxy=CLOSED_PORT,
    )
    ended = project.build()
    golden("flow/no-network.txt", project.account(ended))
    assert ended.code == 3
    check_nothing_left(project)


def test_offline(tmp_path: Path, archive: Path, golden: Golden) -> None:
    project = from_index(tmp_path, archive, AXLETREE_NO_INDEX="", AXLETREE_INDEX_URL="https://files.example/simple")
    ended = project.build("--offline")
    golden("flow/offline.txt", project.account(ended))
    assert ended.code == 3
    check_nothing_left(project)
    ended = project.build("--find-links", archive.parent, "--offline")
    assert ended.code == 0, ended.out
    assert len(project.wheels()) == 1


def test_an_output_folder_below_a_file(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    ended = project.run("build", "small.toml", "--out", "small.toml/dist")
    assert ended.code == 3
    assert ended.err == (
        "error: cannot write to the output folder small.toml/dist: Not a directory\n"
        "  hint: choose a different folder with --out\n"
    )
    assert project.records() == {}


def test_an_output_folder_that_may_not_be_written(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project")
    closed = project.folder / "closed"
    closed.mkdir(mode=0o555)
    prefix = powerless()
    ended = project.run("build", "small.toml", "--out", "closed/dist", prefix=prefix)
    assert ended.code == 3
    assert "cannot write to the output folder closed/dist: Permission denied" in ended.err
    ended = project.having(AXLETREE_STORE=str(closed / "store")).build(prefix=prefix)
    assert ended.code == 3
    assert "cannot use the store: Permission denied" in ended.err
    assert "set AXLETREE_STORE to a folder that you can write to" in ended.err
    assert list(closed.iterdir()) == []
    assert not project.out.exists()


def _published(out: Path) -> dict[Path, bytes]:
    """What lies there for others; the ledger and its logs tell of each run."""
    files = [path for path in out.rglob("*") if path.is_file() and path.name != LEDGER and "logs" not in path.parts]
    return {path: path.read_bytes() for path in files}


def test_a_wheel_that_is_there_with_other_content(tmp_path: Path, golden: Golden) -> None:
    project = make_project(tmp_path / "project")
    assert project.build().code == 0
    before = _published(project.out)
    project.edit("return 42", "return 43", file="src/small.cpp")
    ended = project.build()
    golden("flow/other-content.txt", project.account(ended))
    assert ended.code == 2
    after = _published(project.out)
    assert after == before
    ended = project.run("build", "small.toml", "--out", "other")
    assert ended.code == 0
    assert "5 stages are in the store" not in ended.out  # they were published now
    assert len(list((project.folder / "other").glob("*.whl"))) == 1
    ended = project.build("--replace")
    assert ended.code == 0
    assert "build/published-before" not in ended.out
    assert {path.name for path in _published(project.out)} == {path.name for path in before}
    (wheel,) = project.out.glob("*.whl")
    (line,) = json.loads((project.out / "simple/libsmall/index.json").read_text())["files"]
    assert line["hashes"]["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert wheel.read_bytes() != before[wheel]
    assert project.build().code == 0  # it is the published one now


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Makes a folder a disk of its own, of some size; given another size, the disk grows."""
    mounted: list[Path] = []

    def resize(size: str) -> Path:
        folder = tmp_path / "disk"
        options = f"remount,size={size}" if mounted else f"size={size}"
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            pytest.skip(f"a small disk can't be mounted here: {done.stderr.strip()}")
        mounted[:] = [folder]
        return folder

    yield resize
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("size", ["16k", "64k", "112k", "152k"])
def test_a_store_on_a_full_disk(size: str, small_disk: Callable[[str], Path], tmp_path: Path) -> None:
    disk = small_disk(size)
    project = make_project(tmp_path / "project", AXLETREE_STORE=str(disk))
    ended = project.build()
    assert ended.code == 3
    assert f"no space left on {disk}" in ended.out + ended.err
    assert "set AXLETREE_STORE to a folder on a larger disk, or run `axletree store gc`" in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    assert not project.out.exists() or project.published() == []
    small_disk("100m")
    assert verify(Store.open(disk)).sound
    assert project.build().code == 0


def test_an_output_folder_on_a_full_disk(small_disk: Callable[[str], Path], tmp_path: Path) -> None:
    disk = small_disk("20k")
    project = make_project(tmp_path / "project")
    ended = project.run("build", "small.toml", "--out", disk)
    assert ended.code == 3
    assert ended.err == (
        f"error: cannot write to {disk}: the disk is full\n  hint: free some space there, or choose a "
        "different folder\n"
    )
    assert {path.name for path in disk.rglob("*") if path.is_file()} <= {".axletree.lock", LEDGER, "any.log"}
    small_disk("44k")
    ended = project.run("build", "small.toml", "--out", disk)
    assert ended.code == 3
    assert ended.err.startswith("error: ")
    assert str(disk / "report.html") in ended.err
    assert "the disk is full" in ended.err
    small_disk("10m")
    ended = project.run("build", "small.toml", "--out", disk)
    assert ended.code == 0
    assert (disk / "report.html").exists()
