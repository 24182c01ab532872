"""``axletree clean`` in real repositories and in trees without git: what is the user's stays, or is in the patch."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from axletree.app.clean import CleanReport, clean, find_trees
from axletree.buildsystem.pytorch.hipified import BREADCRUMB
from axletree.cli.main import cli
from axletree.core.errors import UsageError
from support.envelopes import result_of
from support.repositories import Origin, git

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
SCRIPT = """import pathlib
for name, old, new in (("a.cpp", "cuda", "hip"), ("b.cpp", "cuda", "hip"), ("third_party/inner/cuda.cu", "HCC", "AMD")):
    path = pathlib.Path(name)
    if path.exists():
        path.write_text(path.read_text().replace(old, new))
pathlib.Path("made.txt").write_text("by hipify")
"""
IGNORED = "build/\n*.so\n*.cpp.o\nmy-*/\n# BEGIN NOT-CLEAN-FILES (setup.py handles this marker.)\n.cache\nnotes.txt\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that was built, hipified, and worked in; a submodule of it too."""
    inner = Origin(tmp_path / "inner")
    inner.commit(cuda_dot_cu="#ifdef HIP_PLATFORM_HCC\nx\n", mine="1\n", _dot_gitignore="build/\n")
    top = Origin(tmp_path / "torch")
    top.add_submodule(inner, "third_party/inner")
    top.commit(setup="1\n", a_dot_cpp="cudaFree(p);\n", b_dot_cpp="cudaFree(p);\n", _dot_gitignore=IGNORED)
    top.commit(tools__amd_build__build_amd_dot_py=SCRIPT)
    folder = top.folder
    (folder / ".git/info/exclude").write_text("private/\n")
    top.write(
        build__CMakeCache_dot_txt="x" * 1000,
        build__deep__a_dot_o="x",
        lib_dot_so="so",
        notes_dot_txt="mine",
        private__key="mine",
        untracked="mine",
        made_dot_txt="by hipify",
        _dot_venv__bin__activate="x",
        aten__hip__k_dot_hip=f"{BREADCRUMB.decode()}\nkernel",
        a_dot_cpp="hipFree(p);\n",
        b_dot_cpp="hipFree(p); // and mine\n",
        third_party__inner__cuda_dot_cu="#ifdef HIP_PLATFORM_AMD\nx\n",
        third_party__inner__mine="2\n",
        third_party__inner__build__x_dot_o="x",
    )
    (folder / "my-clone").mkdir()
    git(folder / "my-clone", "init", "-q")
    return folder


def run(tree: Path, what: str, *, really: bool = True) -> CleanReport:
    return clean(tree, what, environ=dict(os.environ), really=really)  # type: ignore[arg-type]


def fates(report: CleanReport) -> dict[str, str]:
    return {item.path: item.fate for item in report.items}


def test_a_dry_run_shows_and_changes_nothing(tree: Path) -> None:
    before = {path: path.lstat().st_mtime_ns for path in tree.rglob("*") if ".git" not in path.parts}
    report = run(tree, "all", really=False)
    assert (report.done, report.patch) == (False, None)
    assert before == {path: path.lstat().st_mtime_ns for path in tree.rglob("*") if ".git" not in path.parts}
    assert fates(report)["build"] == "remove"


def test_build_products_go_and_what_is_the_users_stays(tree: Path) -> None:
    report = run(tree, "build")
    assert fates(report) == {"build": "remove", "lib.so": "remove"} | {
        path: fate for path, fate in fates(report).items() if path == "my-clone"
    }
    assert not (tree / "build").exists()
    for name in ("notes.txt", "private/key", "untracked", ".venv/bin/activate", "my-clone/.git", "aten/hip/k.hip"):
        assert (tree / name).exists(), name
    assert (tree / "third_party/inner/build/x.o").exists()
    assert (tree / "a.cpp").read_text() == "hipFree(p);\n"
    build = next(item for item in report.items if item.path == "build")
    assert (build.files, build.size, build.why) == (2, 1001, "ignored by git")


def test_hipify_is_taken_back_in_submodules_too(tree: Path) -> None:
    report = run(tree, "hipify")
    assert fates(report) == {
        "a.cpp": "restore",
        "aten/hip/k.hip": "remove",
        "b.cpp": "keep",
        "made.txt": "remove",
        "third_party/inner/cuda.cu": "restore",
        "third_party/inner/mine": "keep",
    }
    assert (tree / "a.cpp").read_text() == "cudaFree(p);\n"
    assert (tree / "b.cpp").read_text() == "hipFree(p); // and mine\n"
    assert git(tree / "third_party/inner", "status", "--porcelain") == "M mine"
    assert (tree / "build").exists()


def test_all_saves_the_users_changes_as_a_patch_that_applies(tree: Path) -> None:
    (tree / "new").write_bytes(b"\0\1binary")
    git(tree, "add", "new")
    report = run(tree, "all")
    assert git(tree, "status", "--porcelain", "--untracked-files=no") == ""
    assert (tree / "untracked").read_text() == "mine"
    assert not (tree / "third_party/inner/build").exists()
    assert not (tree / "new").exists()
    assert report.patch is not None
    git(tree, "apply", report.patch)
    assert (tree / "b.cpp").read_text() == "hipFree(p); // and mine\n"
    assert (tree / "third_party/inner/mine").read_text() == "2\n"
    assert (tree / "new").read_bytes() == b"\0\1binary"


def test_the_patch_is_called_as_the_tree_was(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree.parent)
    report = run(Path("torch"), "all")
    assert report.patch is not None
    assert report.patch.startswith("torch-changes-")
    (tree / "setup").write_text("changed\n")
    monkeypatch.chdir(tree)
    inside = run(Path(), "all").patch
    assert inside is not None
    assert inside.startswith(str(tree.parent / "torch-changes-"))


def test_what_a_patch_cannot_hold_stays(tree: Path) -> None:
    (tree / "setup").write_text("staged\n")
    git(tree, "add", "setup")
    (tree / "setup").write_text("and changed\n")
    assert fates(run(tree, "all"))["setup"] == "keep"
    assert (tree / "setup").read_text() == "and changed\n"
    assert git(tree, "show", ":setup") == "staged"


def test_links_are_removed_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/file").write_text("mine")
    shutil.rmtree(tree / "build")
    (tree / "build").mkdir()
    (tree / "build/link").symlink_to(tmp_path / "elsewhere")
    (tree / "x.so").symlink_to(tmp_path / "elsewhere")
    run(tree, "build")
    assert not (tree / "build").exists()
    assert not (tree / "x.so").is_symlink()
    assert (tmp_path / "elsewhere/file").read_text() == "mine"


def test_a_tree_without_git(tmp_path: Path) -> None:
    for name in ("build/CMakeCache.txt", "build/x.o", "dist/a.whl", "docs/build/index.md", "pkg/__pycache__/a.pyc"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "_skbuild").mkdir()
    (tmp_path / "_skbuild/notes").write_text("nothing shows who made this")
    report = run(tmp_path, "build")
    assert sorted(fates(report)) == ["build", "dist", "pkg/__pycache__"]
    assert (tmp_path / "docs/build/index.md").exists()
    assert (tmp_path / "_skbuild/notes").exists()
    with pytest.raises(UsageError, match="is not a git repository"):
        run(tmp_path, "hipify")


def test_no_empty_folder_is_left(tree: Path) -> None:
    """Those of the user's stay, empty or not: nothing of theirs was removed."""
    for name in ("deep/er/x.so", "half/x.so", "half/mine", "third_party/inner/deep/build/x.o"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("x")
    (tree / "empty/inside").mkdir(parents=True)
    report = run(tree, "all")
    assert {"aten/hip/k.hip", "deep", "half/x.so"} <= {path for path, fate in fates(report).items() if fate == "remove"}
    for name in ("aten", "deep", "third_party/inner/deep"):
        assert not (tree / name).exists(), name
    assert os.listdir(tree / "half") == ["mine"]  # noqa: PTH208
    assert (tree / "empty/inside").is_dir()
    assert (tree / "third_party/inner/.git").exists()


def test_no_empty_folder_is_left_in_a_tree_without_git(tmp_path: Path) -> None:
    (tmp_path / "tree/pkg/__pycache__").mkdir(parents=True)
    (tmp_path / "tree/pkg/__pycache__/a.pyc").write_text("x")
    run(tmp_path / "tree", "build")
    assert list(tmp_path.iterdir()) == [tmp_path / "tree"]
    assert list((tmp_path / "tree").iterdir()) == []


def test_names_that_are_no_text_go_into_json(tree: Path) -> None:
    (tree / "build" / os.fsdecode(b"\xe9.o")).write_text("x")
    (tree / os.fsdecode(b"\xe9.so")).write_text("x")
    shown = CliRunner().invoke(cli, ["clean", str(tree), "--json"], catch_exceptions=False, standalone_mode=False)
    items = result_of(shown.output)["trees"][0]["items"]
    assert os.fsdecode(b"\xe9.so") in {item["path"] for item in items}


def test_trees_of_a_recipe(tree: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "torch.toml"
    recipe.write_text(f'name = "torch"\nversion = "1"\n[source]\ngit = "{tree.as_uri()}"\nref = "main"\n')
    assert find_trees(str(recipe), here=tmp_path) == (tree,)
    with pytest.raises(UsageError, match="no source tree found here"):
        find_trees(str(recipe), here=tmp_path / "empty")


def test_the_command(tree: Path) -> None:
    runner = CliRunner()
    shown = runner.invoke(cli, ["clean", str(tree)], standalone_mode=False)
    assert "nothing was changed: run again with --yes to apply these changes" in shown.stdout
    assert (tree / "build").exists()
    done = result_of(runner.invoke(cli, ["clean", str(tree), "--yes", "--json"], standalone_mode=False).stdout)
    assert done["trees"][0]["done"] is True
    assert not (tree / "build").exists()
    with pytest.raises(UsageError, match="cannot be combined"):
        runner.invoke(cli, ["clean", str(tree), "--all", "--build"], standalone_mode=False, catch_exceptions=False)
