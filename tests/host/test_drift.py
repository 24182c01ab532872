"""Drift of real things: git repositories with each trap of `git submodule status`, official wheels, the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from axletree.app.drift import DriftInputs, find_drift
from axletree.cli.drift import command
from axletree.core.errors import HostError, UsageError
from axletree.host.source_tree import read_source
from axletree.package.drift.ranges import relate
from axletree.package.drift.tree import SourceFacts, headers_of, of_tree
from axletree.package.drift.vendored import of_submodule
from support import drift, inputs
from support.repositories import Origin, git
from support.wheels import demo_metadata, wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.package.drift.evidence import Evidence
    from axletree.report.drift import Dependency

TABLE = drift.table()
RECIPES = Path(__file__).parents[2] / "recipes"
ENVIRON = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}

RECIPE = """\
name = "engine"
version = "1.2.0"
license = "MIT"
[source]
path = "engine"
[axes]
python = ["3.11", "3.12"]
gpu = ["cpu", "cu126"]
[properties.gpu.cu126]
nccl = "2.28.9"
[environments.build]
requires = ["setuptools<82", "numpy"]
[stages.build]
action = "build"
environment = "build"
axes = ["python", "gpu"]
[packages.demo]
from = "build"
local = "{gpu}"
"""


def tagged(origin: Origin, name: str, *, annotated: bool) -> None:
    origin.git("tag", *(["-a", "-m", name] if annotated else []), name)


class Tree:
    """A project with a submodule for each trap."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.main = Origin(root / "engine")
        self.main.commit("v1.2.0", version_dot_txt="1.2.0\n")

    def library(self, name: str) -> Origin:
        origin = Origin(self.root / name)
        origin.commit(code="1")
        return origin

    def vendor(self, origin: Origin, commit: str | None = None) -> None:
        path = f"third_party/{origin.folder.name}"
        self.main.add_submodule(origin, path)
        if commit is not None:
            git(self.main.folder / path, "checkout", "-q", commit)
        self.main.git("add", "-A")
        self.main.git("commit", "-q", "-m", f"vendor {path}")

    def read(self, folder: Path | None = None) -> SourceFacts:
        return read_source(folder or self.main.folder, environ=ENVIRON, headers=headers_of(TABLE))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def vendored(facts: SourceFacts, name: str) -> Evidence:
    module = next(each for each in facts.submodules if each.path.endswith(f"/{name}"))
    return of_submodule(module, table=TABLE)


def test_a_lightweight_tag_that_status_hides(tree: Tree) -> None:
    fmt = tree.library("fmt")
    tagged(fmt, "v1.0", annotated=True)
    fmt.commit(code="2")
    tagged(fmt, "v1.5", annotated=False)
    fmt.commit(code="3")
    tree.vendor(fmt)
    status = git(tree.main.folder, "submodule", "status")
    assert "(v1.0-2-g" in status  # the trap is there
    found = vendored(tree.read(), "fmt")
    assert found.spec == "1.5+"
    assert "`git submodule status` reports v1.0, 2 commits later" in found.note


def test_exact_tags_of_both_kinds(tree: Tree) -> None:
    for name, annotated in (("annotated", True), ("lightweight", False)):
        origin = tree.library(name)
        tagged(origin, "v3.1.0", annotated=annotated)
        tree.vendor(origin)
    facts = tree.read()
    for name in ("annotated", "lightweight"):
        found = vendored(facts, name)
        assert (found.spec, found.confidence, found.note) == ("3.1.0", "certain", "")


def test_a_commit_before_a_tag_has_an_upper_bound(tree: Tree) -> None:
    sleef = tree.library("sleef")
    tagged(sleef, "3.6", annotated=True)
    wanted = sleef.commit(code="2")
    sleef.commit(code="3")
    sleef.commit("3.7", code="4")
    tree.vendor(sleef, wanted)
    found = vendored(tree.read(), "sleef")
    assert found.spec == "3.6+ (before 3.7)"
    assert "contained in 3.7~2" in found.text


def test_tags_of_another_line_of_releases_are_no_bound(tree: Tree) -> None:
    fmt = tree.library("fmt")
    tagged(fmt, "v5.0", annotated=True)
    wanted = fmt.commit(code="2")
    fmt.commit("v4.9", code="a late release of the old line")
    tree.vendor(fmt, wanted)
    assert vendored(tree.read(), "fmt").spec == "5.0+"


def test_a_shallow_clone_and_one_without_tags(tree: Tree) -> None:
    fmt = tree.library("fmt")
    tagged(fmt, "v1.0", annotated=True)
    fmt.commit(code="2")
    sleef = tree.library("sleef")
    tree.vendor(fmt)
    tree.vendor(sleef)
    clone = tree.root / "clone"
    git(tree.root, "clone", "-q", tree.main.url, str(clone))
    git(clone, "submodule", "--quiet", "update", "--init", "--depth", "1", "third_party/fmt")
    facts = tree.read(clone)
    assert vendored(facts, "fmt").note == "its clone has no tags, because it is shallow"
    assert vendored(facts, "fmt").range is None
    missing = vendored(facts, "sleef")
    assert missing.note == "not checked out; only its commit is known"
    assert missing.text == sleef.git("rev-parse", "HEAD")
    told = "some submodules are not checked out, so only their commits are known: third_party/sleef; "
    assert facts.notes == (f"{told}check them out with `git submodule update --init --recursive`",)
    assert tree.read().notes == ()
    assert "its clone has no tags" in vendored(tree.read(), "sleef").note


def test_another_commit_is_checked_out(tree: Tree) -> None:
    fmt = tree.library("fmt")
    tagged(fmt, "v1.0", annotated=True)
    tree.vendor(fmt)
    fmt.commit("v2.0", code="2")
    tree.main.move_submodule("third_party/fmt", fmt)
    assert git(tree.main.folder, "submodule", "status").startswith("+")
    found = vendored(tree.read(), "fmt")
    assert found.spec == "1.0"  # what the commit names is what upstream vendors
    assert "a different commit is checked out" in found.note


def test_submodules_of_submodules_and_macros_beside_tags(tree: Tree) -> None:
    fmt = tree.library("fmt")
    fmt.commit("11.0.2", include__fmt__base_dot_h="#define FMT_VERSION 110003\n")
    kineto = tree.library("kineto")
    kineto.add_submodule(fmt, "libkineto/third_party/fmt")
    kineto.commit()
    tree.vendor(kineto)
    tree.main.git("submodule", "--quiet", "update", "--init", "--recursive")
    facts = tree.read()
    path = "third_party/kineto/libkineto/third_party/fmt"
    assert [(each.path, each.nested) for each in facts.submodules] == [("third_party/kineto", False), (path, True)]
    found = {each.column: each for each in of_tree(facts, table=TABLE, pythons=()) if each.dependency == "fmt"}
    assert found["vendored"].spec == "11.0.2"
    assert (found["tree"].spec, found["tree"].file) == ("11.0.3", f"{path}/include/fmt/base.h")


@pytest.mark.parametrize(("revision", "spec"), [("1", "2.21.5.1"), ("2", "2.21.5.2")])
def test_the_revision_of_a_package_is_a_part_of_nccls_version(tree: Tree, revision: str, spec: str) -> None:
    """Its tag v2.21.5-1 is of another package than 2.21.5-2; without the revision both would be 2.21.5."""
    nccl = tree.library("nccl")
    text = f"NCCL_MAJOR := 2\nNCCL_MINOR := 21\nNCCL_PATCH := 5\nNCCL_SUFFIX :=\nPKG_REVISION := {revision}\n"
    nccl.commit("v2.21.5-1", makefiles__version_dot_mk=text)
    tree.vendor(nccl)
    found = {each.column: each for each in of_tree(tree.read(), table=TABLE, pythons=()) if each.dependency == "nccl"}
    assert found["vendored"].spec == "2.21.5.1"
    assert (found["tree"].spec, found["tree"].file) == (spec, "third_party/nccl/makefiles/version.mk")
    both = (found["vendored"].range, found["tree"].range)
    assert both[0] is not None
    assert both[1] is not None
    assert relate(both[0], both[1]) == ("same" if revision == "1" else "disjoint")


def test_a_bare_repository_is_read_without_a_checkout(tree: Tree) -> None:
    fmt = tree.library("fmt")
    tree.vendor(fmt)
    tree.main.commit(
        _dot_ci__docker__triton_version_dot_txt="3.7.1\n", third_party__eigen_pin_dot_txt="3.4.0\n", README="no"
    )
    bare = tree.root / "bare.git"
    git(tree.root, "clone", "-q", "--bare", tree.main.url, str(bare))
    facts = tree.read(bare)
    assert facts.files == {
        "version.txt": "1.2.0\n",
        ".ci/docker/triton_version.txt": "3.7.1\n",
        "third_party/eigen_pin.txt": "3.4.0\n",
    }
    assert vendored(facts, "fmt").text == fmt.git("rev-parse", "HEAD")


def test_a_plain_tree_has_what_its_files_say(tree: Tree) -> None:
    fmt = tree.library("fmt")
    fmt.commit("11.0.2", include__fmt__base_dot_h="#define FMT_VERSION 110002\n", test__CMakeLists_dot_txt="x")
    tree.vendor(fmt)
    plain = tree.root / "plain"
    shutil.copytree(tree.main.folder, plain, ignore=shutil.ignore_patterns(".git"))
    (plain / ".pc").mkdir()
    (plain / ".pc" / "setup.py").write_text("install_requires = ['old']\n")
    facts = tree.read(plain)
    assert sorted(facts.files) == ["third_party/fmt/include/fmt/base.h", "version.txt"]
    assert "not a git repository" in facts.notes[0]
    assert [each.spec for each in of_tree(facts, table=TABLE, pythons=())] == ["11.0.2"]


def test_changed_files_are_told(tree: Tree) -> None:
    tree.main.write(version_dot_txt="1.2.0\n\n")
    assert tree.read().notes == ("files that changed since the commit were read with their changes: version.txt",)


def test_nothing_of_a_hostile_repository_runs(tree: Tree, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    program = tmp_path / "evil"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    fmt = tree.library("fmt")
    tree.vendor(fmt)
    tree.main.commit(_dot_gitattributes="*.txt filter=evil diff=evil\n")
    for folder in (tree.main.folder, tree.main.folder / "third_party" / "fmt"):
        for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "filter.evil.clean"):
            git(folder, "config", key, str(program))
        git(folder, "config", "diff.evil.textconv", str(program))
        git(folder, "config", "filter.evil.smudge", str(program))
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-auto-gc", "post-index-change", "reference-transaction"):
        shutil.copy(program, hooks / name)
    git(tree.main.folder, "config", "core.hooksPath", str(hooks))
    marker.unlink(missing_ok=True)
    tree.main.write(version_dot_txt="1.2.0 \n")
    before = (tree.main.folder / ".git" / "index").read_bytes()
    assert tree.read().submodules
    assert not marker.exists()
    assert (tree.main.folder / ".git" / "index").read_bytes() == before


def test_a_partial_clone_fetches_nothing(tree: Tree) -> None:
    tree.main.commit(_dot_ci__x_dot_sh="MKL_VERSION=2024.2.0\n")
    tree.main.git("config", "uploadpack.allowFilter", "true")
    clone = tree.root / "partial"
    git(tree.root, "clone", "-q", "--bare", "--filter=blob:none", tree.main.url, str(clone))
    assert tree.read(clone).files == {}


def test_links_out_of_the_tree_are_not_followed(tree: Tree, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "triton_version.txt").write_text("9.9.9\n")
    plain = tmp_path / "plain"
    (plain / ".ci").mkdir(parents=True)
    (plain / ".ci" / "docker").symlink_to(secret)
    (plain / "version.txt").symlink_to(secret / "triton_version.txt")
    assert tree.read(plain).files == {}
    folder = tree.main.folder / ".ci" / "docker"
    tree.main.commit(_dot_ci__docker__triton_version_dot_txt="3.7.1\n")
    shutil.rmtree(folder)
    folder.symlink_to(secret)
    assert ".ci/docker/triton_version.txt" not in tree.read().files


def test_what_is_no_source_is_an_error(tree: Tree, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="source folder does not exist"):
        tree.read(tmp_path / "none")
    empty = tmp_path / "empty"
    git(tmp_path, "init", "-q", str(empty))
    with pytest.raises(UsageError, match="has no commits"):
        tree.read(empty)
    (tmp_path / "broken" / ".git").mkdir(parents=True)
    with pytest.raises(HostError, match="git rev-parse failed"):
        tree.read(tmp_path / "broken")


def wheel(folder: Path, version: str, *requires: str) -> Path:
    path = folder / f"demo-{version}-py3-none-any.whl"
    path.write_bytes(wheel_bytes({}, metadata=demo_metadata(version, requires=requires)))
    return path


def run(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(each) for each in arguments], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return int(done.return_value), done.stdout


def rows(*arguments: object) -> dict[str, Any]:
    _, output = run(*arguments, "--json")
    return {row["dependency"]: row for row in json.loads(output)["result"]["dependencies"]}


def verdicts_of(found: Sequence[Dependency]) -> dict[str, tuple[str, ...]]:
    return {row.dependency: row.verdicts for row in found}


@pytest.fixture
def project(tree: Tree) -> Tree:
    """A whole case: source, recipe, channel."""
    tree.main.commit(
        **{".ci/docker/ci_commit_pins/nccl-cu12.txt": "v2.27.5-1\n"},
        pyproject_dot_toml='[build-system]\nrequires = ["setuptools>=77,<82", "cmake>=3.27"]\n',
    )
    (tree.root / "engine.toml").write_text(RECIPE)
    (tree.root / "repodata.json").write_bytes(drift.repodata({"setuptools": "80.1", "nccl": "2.28.9.1"}))
    return tree


def test_the_command(project: Tree) -> None:
    root = project.root
    arguments = (root / "engine.toml", "--source", project.main.folder, "--channel", root / "repodata.json")
    code, output = run(*arguments)
    assert code == 0  # NCCL is later than the pin: no conflict
    table = {line.split()[0]: line for line in output.splitlines() if line.strip()}
    assert "ahead of upstream" in table["nccl"] or "ahead of upstream" in output
    assert "missing in recipe" in output
    assert run(*arguments, "--fail-on", "missing")[0] == 1
    assert run(*arguments, "--fail-on", "never")[0] == 0
    found = rows(*arguments)
    assert found["cmake"]["verdicts"] == ["missing in recipe"]
    assert found["setuptools"]["verdicts"] == ["recipe looser"]
    assert found["nccl"]["verdicts"] == ["ahead of upstream"]
    assert found["numpy"]["verdicts"] == ["only in recipe"]
    assert found["nccl"]["newest"] == {"version": "2.28.9.1", "file": "repodata.json", "releases": 1}
    asked = [each for each in found["setuptools"]["evidence"] if each["column"] == "recipe"]
    assert [(each["gpus"], each["when"]) for each in asked] == [([], "environment build")]  # all variants alike
    statement = next(each for each in found["nccl"]["evidence"] if each["column"] == "ci")
    assert statement["text"] == "v2.27.5-1"
    assert (statement["file"], statement["line"]) == (".ci/docker/ci_commit_pins/nccl-cu12.txt", 1)
    assert statement["range"] == "==2.27.5.1"
    _, told = run(*arguments, "--evidence", "--only", "nccl")
    assert ".ci/docker/ci_commit_pins/nccl-cu12.txt:1" in told
    assert "setuptools" not in told.partition("dependencies:")[0]


def test_where_nothing_differs_no_empty_lines_are_left(tree: Tree) -> None:
    tree.vendor(tree.library("sleef"))
    (tree.root / "engine.toml").write_text(RECIPE)
    _, output = run(tree.root / "engine.toml", "--source", tree.main.folder, "--only", "sleef")
    assert "sleef" in output
    assert "\n\n\n" not in output


def test_the_package_index_is_asked_for_what_channels_have_not(
    project: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simple = tmp_path / "simple"
    for name, files in {
        "setuptools": ["setuptools-99.0-py3-none-any.whl"],
        "cmake": ["cmake-3.31.6-py3-none-any.whl", "cmake-4.2rc1-py3-none-any.whl", "cmake-4.1.0.tar.gz"],
    }.items():
        (simple / name).mkdir(parents=True)
        links = "".join(f'<a href="{file}">{file}</a>' for file in files)
        (simple / name / "index.html").write_text(f"<html><body>{links}</body></html>")
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "UV_INDEX", "UV_FIND_LINKS", "UV_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("UV_DEFAULT_INDEX", simple.as_uri())
    arguments = (project.root / "engine.toml", "--source", project.main.folder)
    found = rows(*arguments, "--channel", project.root / "repodata.json", "--index")
    assert found["cmake"]["newest"] == {"version": "4.1.0", "file": "package index", "releases": 2}
    assert found["setuptools"]["newest"] == {"version": "80.1", "file": "repodata.json", "releases": 1}
    assert found["numpy"]["newest"] is None
    assert rows(*arguments)["cmake"]["newest"] is None


def test_what_had_come_by_a_day(project: Tree) -> None:
    channel = project.root / "repodata.json"
    channel.write_bytes(drift.repodata({"nccl": "2.28.9.1"}, later={"nccl": "2.30.7.1"}))
    arguments = (project.root / "engine.toml", "--source", project.main.folder, "--channel", channel)
    assert rows(*arguments)["nccl"]["verdicts"] == ["ahead of upstream", "behind newest"]
    assert rows(*arguments, "--at", "2024-11-28")["nccl"]["newest"]["version"] == "2.28.9.1"


def test_upstream_that_contradicts_itself(project: Tree) -> None:
    whl = wheel(project.root, "1.2.0+cu126", "nvidia-nccl-cu12==2.28.9")
    arguments = (project.root / "engine.toml", "--source", project.main.folder, "--wheel", whl)
    code, output = run(*arguments)
    assert code == 0
    assert "upstream specifies two versions of nccl" in output
    assert run(*arguments, "--fail-on", "contradiction")[0] == 1


def test_a_wheel_of_another_project_is_refused(project: Tree) -> None:
    path = wheel(project.root, "1.2.0")
    path = path.rename(path.with_name("other-1.2.0-py3-none-any.whl"))
    with pytest.raises(UsageError, match="but the recipe does not build demo"):
        find_drift(str(project.root / "engine.toml"), DriftInputs(wheels=(path,)), environ=ENVIRON)


def test_only_one_version_is_compared(project: Tree) -> None:
    other = wheel(project.root, "1.3.0")
    project.main.commit(version_dot_txt="1.1.0a0\n")
    inputs_ = DriftInputs(source=project.main.folder, wheels=(other,))
    with pytest.raises(UsageError) as caught:
        find_drift(str(project.root / "engine.toml"), inputs_, environ=ENVIRON)
    assert [problem.file for problem in caught.value.problems] == [str(project.main.folder), other.name]
    assert "1.1.0a0 (version.txt)" in str(caught.value)
    with pytest.raises(UsageError, match="no upstream data"):
        find_drift(str(project.root / "engine.toml"), DriftInputs(), environ=ENVIRON)


def test_a_conda_recipe_stands_in_for_the_recipes_requirements(project: Tree) -> None:
    meta = project.root / "meta.yaml"
    meta.write_text(
        '{% set version = "1.2.0" %}\nrequirements:\n  host:\n    - setuptools >=77,<82\n    - nccl <2.20\n'
    )
    arguments = (project.root / "engine.toml", "--source", project.main.folder, "--recipe-metadata", meta)
    found = rows(*arguments)
    assert found["setuptools"]["verdicts"] == ["same"]
    assert found["nccl"]["verdicts"] == ["conflict"]
    assert "numpy" not in found
    assert run(*arguments)[0] == 1
    meta.write_text("{% set version = '9.9' %}\nrequirements:\n  host:\n    - setuptools\n")
    with pytest.raises(UsageError, match=r"the conda recipe has version 9\.9"):
        run(*arguments)


FEEDSTOCK = """\
{% set version = "2.13.0" %}
{% set triton = "3.7.1" %}
requirements:
  host:
    - pyyaml
    - setuptools <82
    - nccl <2.29            # [linux and cuda_compiler_version=="12.9" and arm_variant_type!="tegra"]
  run:
    - llvm-openmp
    - libblas * *{{ blas_impl }}        # [blas_impl == "mkl"]
    - triton =={{ triton }}             # [cuda_compiler_version != "None" and not win]
    - __cuda                            # [cuda_compiler_version != "None"]
    - filelock
    - fsspec
    - jinja2
    - networkx
    - optree >=0.13.0
    - pybind11
    - setuptools <82
    - sympy >=1.13.3
    - typing_extensions >=4.10.0
"""
"""Run requirements of conda-forge's feedstock at 2.13.0, with some of its host requirements."""


def test_the_official_cpu_wheel_against_the_feedstock(tmp_path: Path) -> None:
    meta = tmp_path / "meta.yaml"
    meta.write_text(FEEDSTOCK)
    cpu = inputs.official_cpu_wheel()
    found = find_drift(str(RECIPES / "pytorch.toml"), DriftInputs(wheels=(cpu,), conda_recipe=meta), environ=ENVIRON)
    verdicts = verdicts_of(found.dependencies)
    expected = {
        "setuptools": ("recipe looser",),
        "networkx": ("recipe looser",),
        "fsspec": ("recipe looser",),
        "optree": ("same",),  # an extra of the wheel, and hard in the recipe
        "opt-einsum": ("missing in recipe",),
        "pyyaml": ("missing in recipe",),  # in host only
        "triton": ("only in recipe",),
        "pybind11": ("only in recipe",),
        "llvm-openmp": ("only in recipe",),
        "libblas": ("only in recipe",),
        "sympy": ("same",),
        "filelock": ("same",),
        "typing-extensions": ("same",),
    }
    assert {name: verdicts[name] for name in expected} == expected
    why = next(row for row in found.dependencies if row.dependency == "setuptools").judgements[0].why
    assert "the recipe also allows <77.0.3" in why
    optional = {row.dependency for row in found.dependencies if row.judgements and row.judgements[0].optional}
    assert {"opt-einsum", "pyyaml"} <= optional


def test_the_official_cuda_wheel(tmp_path: Path) -> None:
    cuda = inputs.wheel("torch==2.14.1", python="3.11")
    for name in ("pytorch.toml", "pytorch"):
        (shutil.copytree if (RECIPES / name).is_dir() else shutil.copy)(RECIPES / name, tmp_path / name)
    recipe = tmp_path / "pytorch.toml"
    recipe.write_text(recipe.read_text().replace('version = "2.13.0"', 'version = "2.14.1"'))
    toolkit = inputs.wheel("cuda-toolkit==13.0.3")
    report = find_drift(str(recipe), DriftInputs(wheels=(cuda, toolkit)), environ=ENVIRON)
    found = {row.dependency: row for row in report.dependencies}
    required = {
        name: next(each.spec for each in row.evidence if each.column == "wheel")
        for name, row in found.items()
        if any(each.column == "wheel" for each in row.evidence)
    }
    wanted = {
        "nccl": "==2.30.7.*",
        "cudnn": "==9.24.0.43",
        "cusparselt": "==0.8.1.*",
        "nvshmem": "==3.4.5",
        "triton": "~=3.8.0",
        "cuda-bindings": ">=13.0.3,<14",
        "cuda": "==13.0.*",
    }
    assert {name: required[name] for name in wanted} == wanted
    assert {"libcublas", "libcufft", "libcusparse", "cuda-nvrtc"} <= required.keys()  # the toolkit's extras
    linked = {name for name, row in found.items() for each in row.evidence if each.column == "linked"}
    assert {"nccl", "cudnn", "cuda", "glibc"} <= linked
    worlds = {gpu for each in found["nccl"].evidence if each.column == "wheel" for gpu in each.gpus}
    assert worlds == {"cu130"}
    assert required["libcufft"] == "==12.0.0.61.*"
    assert found["libcufft"].verdicts == ("same",)
    assert found["libcublas"].verdicts == ("conflict",)  # 13.1.0.3 in the recipe's table, 13.1.1.3 in the toolkit
    assert found["nccl"].verdicts == ("conflict",)
    with pytest.raises(UsageError, match=r"the wheel has version 2\.14\.1"):
        find_drift(str(RECIPES / "pytorch.toml"), DriftInputs(wheels=(cuda,)), environ=ENVIRON)
