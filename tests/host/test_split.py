"""``axletree split`` on wheels on disk: a small stand-in for torch, and real wheels of several makers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from axletree.app.audit import audit_paths
from axletree.app.index_root import staging
from axletree.app.split import load_split_rules, split_wheel
from axletree.cli.main import cli
from axletree.core.errors import HostError, IntegrityError, PublishError, RecipeError, UsageError
from axletree.host.conda import read_conda
from axletree.package.split.rules import parse_split_rules
from support.elfs import printed
from support.envelopes import result_of
from support.inputs import wheel
from support.small_torch import PYTHON, make_small_torch

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

UV = str(Path(sys.executable).with_name("uv"))
RULES = Path(__file__).parents[2] / "recipes" / "split" / "torch.toml"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with the structure of torch's."""
    return make_small_torch(tmp_path_factory.mktemp("small"))


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def run(*words: str | Path) -> str:
    done = subprocess.run([str(word) for word in words], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def make_env(folder: Path) -> Path:
    run(UV, "venv", "-q", "--python", sys.executable, folder)
    return folder / "bin" / "python"


def test_the_command_says_what_went_where(small: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["split", str(small), "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert lines[0] == small.name
    assert lines[1].startswith("libtorch 7 files, ")
    assert lines[5:8] == [
        "torch-split requires the other packages",
        "dropped: 1 file, 10 B: test programs and their data",
        "no file matches rule 2, torch/lib/libaoti_custom_ops.so and 3 more",
    ]
    assert lines[8].startswith("wrote 5 packages (version 2.14.1+cu130.split.1) to ")
    assert lines[9].startswith("install them with: pip install 'libtorch @ file:///")
    assert lines[9].count(".whl'") == 5
    told = CliRunner().invoke(cli, ["split", str(small), "--out", str(tmp_path / "out"), "--json"])
    report = result_of(told.stdout)["split"]
    with zipfile.ZipFile(small) as archive:
        assert sorted(file["path"] for file in report["files"]) == sorted(archive.namelist())
    written = files_in(tmp_path / "out")
    for package in report["packages"]:
        with zipfile.ZipFile(tmp_path / "out" / package["filename"]) as archive:
            assert archive.testzip() is None
        metadata = written[f"{package['filename']}.metadata"].decode()
        assert f"Version: {package['version']}\n" in metadata
        assert package["filename"] in written[f"simple/{package['name']}/index.html"].decode()


def test_every_part_has_a_valid_bill_of_materials(small: Path, tmp_path: Path) -> None:
    validator = JsonStrictValidator(SchemaVersion.V1_6)
    outcome = split_wheel(small, load_split_rules(None, wheel=small), tmp_path, formats=["wheel", "conda"])
    bundled = {}
    for path in (path for path in outcome.files if path.suffix == ".whl"):
        with zipfile.ZipFile(path) as archive:
            (bill,) = (name for name in archive.namelist() if name.endswith(".dist-info/sboms/axletree.cdx.json"))
            text = archive.read(bill).decode()
        assert validator.validate_str(text) is None
        for component in json.loads(text)["components"]:
            if component["properties"][0]["value"] == "bundled":
                bundled[path.name.partition("-")[0]] = component["name"]
    assert bundled == {"libtorch": "libgomp.so.1"}
    conda = [read_conda(path) for path in outcome.files if path.suffix == ".conda"]
    assert all(any(each.path.endswith("/sboms/axletree.cdx.json") for each in facts.members) for facts in conda)


def test_a_dry_run_writes_nothing(small: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["split", str(small), "--out", str(tmp_path / "out"), "--dry-run"])
    assert result.exit_code == 0
    assert "libtorch-cuda-linalg" in result.output
    assert list(tmp_path.iterdir()) == []


def test_the_same_again_changes_nothing(small: Path, tmp_path: Path) -> None:
    rules = load_split_rules(None, wheel=small)
    split_wheel(small, rules, tmp_path)
    before = files_in(tmp_path)
    split_wheel(small, rules, tmp_path)
    assert files_in(tmp_path) == before
    split_wheel(small, rules, tmp_path / "other", verify=False)
    assert files_in(tmp_path / "other") == before


def test_another_release_is_listed_beside_it(small: Path, tmp_path: Path) -> None:
    newer = make_small_torch(tmp_path / "newer", version="2.14.2", answer=9)
    for path in (small, newer):
        split_wheel(path, load_split_rules(None, wheel=path), tmp_path / "out")
    page = json.loads((tmp_path / "out" / "simple" / "libtorch" / "index.json").read_text())
    assert page["versions"] == ["2.14.1+cu130.split.1", "2.14.2+cu130.split.1"]


def test_libraries_of_two_pythons_are_one_package_where_they_are_the_same(small: Path, tmp_path: Path) -> None:
    other = make_small_torch(tmp_path / "other", python="cp312" if PYTHON != "cp312" else "cp311")
    for path in (small, other):
        split_wheel(path, load_split_rules(None, wheel=path), tmp_path / "out")
    names = [path.name.partition("-")[0] for path in sorted((tmp_path / "out").glob("*.whl"))]
    assert names == ["libtorch", "libtorch_cuda", "libtorch_cuda_linalg", "torch", "torch", "torch_split"]


@pytest.mark.parametrize("listed", [True, False])
def test_other_content_under_the_same_name_is_refused(small: Path, tmp_path: Path, *, listed: bool) -> None:
    rules = load_split_rules(None, wheel=small)
    split_wheel(small, rules, tmp_path)
    if not listed:
        for page in (tmp_path / "simple").rglob("index.json"):
            page.unlink()
    before = files_in(tmp_path)
    text = RULES.read_text().replace("summary = \"libtorch's", 'summary = "other').replace("PyTorch's", "the")
    with pytest.raises(PublishError, match="with different content"):
        split_wheel(small, parse_split_rules(text, filename="x.toml"), tmp_path)
    assert files_in(tmp_path) == before


def test_nothing_is_published_that_was_not_proved(small: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES.read_text().replace("relocate = true", ""))
    with pytest.raises(IntegrityError) as caught:
        split_wheel(small, load_split_rules(str(rules), wheel=small), tmp_path / "out")
    assert [problem.key for problem in caught.value.problems] == [
        next(name for name in zipfile.ZipFile(small).namelist() if name.startswith("torch/_C.")),
        "torch/bin/torch_shm_manager",
    ]
    assert list((tmp_path / "out").iterdir()) == []


LINALG_MOVED = """
[[rule]]
to = "libtorch-cuda-linalg"
files = ["torch/lib/libtorch_cuda_linalg.so"]
place = { "torch/lib" = "libtorch_linalg/lib" }
relocate = true

[[rule]]
to = "libtorch-cuda"
files = ["torch/lib/libtorch_cuda.so"]
place = { "torch/lib" = "libtorch/lib" }
relocate = true
"""


def test_a_library_that_another_opens_by_name_is_reached_where_it_went(small: Path, tmp_path: Path) -> None:
    head, rules = RULES.read_text().split("[[rule]]", 1)
    text = f"{head}{LINALG_MOVED}[[rule]]{rules}"
    opens = '"libtorch_cuda.so" = ["libtorch_cuda_linalg.so"]'
    outcome = split_wheel(small, parse_split_rules(text, filename="x.toml"), tmp_path / "out")
    changed = {file.path.rpartition("/")[2] for file in outcome.split.files if file.change == "relocated"}
    assert {"libtorch_cuda.so", "libtorch_cuda_linalg.so"} < changed
    site = unpacked(outcome.files, tmp_path / "site")
    assert printed(site / "libtorch" / "lib" / "libtorch_cuda.so")[1] == "$ORIGIN:$ORIGIN/../../libtorch_linalg/lib"
    assert value_in(site) == "28\n"
    undeclared = parse_split_rules(text.replace(opens, ""), filename="x.toml")
    outcome = split_wheel(small, undeclared, tmp_path / "undeclared")
    # So the declaration is what makes it work. In another folder, for Python has compiled files of the same second.
    assert value_in(unpacked(outcome.files, tmp_path / "other")) != "28\n"


def unpacked(wheels: Iterable[Path], folder: Path) -> Path:
    for path in wheels:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    return folder


def value_in(site: Path) -> str:
    return run(
        sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r}); import torch; print(torch.value())"
    )


def test_a_library_that_another_can_not_open_any_longer_is_an_error(small: Path, tmp_path: Path) -> None:
    head, rules = RULES.read_text().split("[[rule]]", 1)
    moved = LINALG_MOVED.partition('\n[[rule]]\nto = "libtorch-cuda"')[0]
    with pytest.raises(IntegrityError) as caught:
        split_wheel(small, parse_split_rules(f"{head}{moved}\n[[rule]]{rules}", filename="x.toml"), tmp_path)
    (problem,) = caught.value.problems
    assert problem.key == "libtorch/lib/libtorch_cuda.so"
    assert problem.message == (
        "the file opens libtorch_cuda_linalg.so at run time, but cannot find it in "
        "libtorch_linalg/lib/libtorch_cuda_linalg.so: the loader searches only libtorch/lib"
    )
    assert not list(tmp_path.rglob("*.whl"))


@pytest.mark.parametrize("listed", [True, False])
def test_what_can_not_be_read_is_named(small: Path, tmp_path: Path, *, listed: bool) -> None:
    rules = load_split_rules(None, wheel=small)
    outcome = split_wheel(small, rules, tmp_path)
    path = tmp_path / "simple" / "libtorch" / "index.json" if listed else outcome.files[0]
    if not listed:
        shutil.rmtree(tmp_path / "simple")
    path.unlink()
    path.mkdir()
    with pytest.raises(HostError) as caught:
        split_wheel(small, rules, tmp_path)
    assert str(caught.value) == f"{path}: the file cannot be read: Is a directory"


def test_trouble_while_unfinished_files_lie_there_is_not_blamed_on_the_folder(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), staging(tmp_path) as folder:
        (folder / "gone").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_can_not_be_written_to(small: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(HostError, match="cannot write to"):
        split_wheel(small, load_split_rules(None, wheel=small), tmp_path / "file" / "out")


def test_what_a_killed_run_left_is_removed(small: Path, tmp_path: Path) -> None:
    owner = tmp_path / ".staging.0123456789abcdef.axletree-part"
    owner.touch()
    left = tmp_path / f"{owner.name}.d" / "big.whl"
    left.parent.mkdir()
    left.write_bytes(b"half")
    split_wheel(small, load_split_rules(None, wheel=small), tmp_path)
    assert not left.parent.exists()
    assert not owner.exists()


def test_a_library_that_no_rule_knows_does_not_slip_through(small: Path, tmp_path: Path) -> None:
    copy = tmp_path / small.name
    copy.write_bytes(small.read_bytes())
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("torch/nn/libnew.so", b"\x7fELF")
    with pytest.raises(IntegrityError, match=r"no rule matches a file: torch/nn/libnew\.so"):
        split_wheel(copy, load_split_rules(None, wheel=copy), tmp_path / "out")


def test_rules_are_found_by_the_project_or_named(tmp_path: Path) -> None:
    assert load_split_rules(None, wheel=Path("torch-2.14.1-cp311-cp311-linux_x86_64.whl")).name == "torch"
    assert load_split_rules("torch", wheel=Path("x.whl")).name == "torch"
    with pytest.raises(UsageError, match="no rules found to split 'numpy'"):
        load_split_rules(None, wheel=Path("numpy-2.0-cp311-cp311-linux_x86_64.whl"))
    with pytest.raises(UsageError, match="rules file"):
        load_split_rules(str(tmp_path / "x.toml"), wheel=Path("x.whl"))
    (tmp_path / "x.toml").write_text("name = 3\n")
    with pytest.raises(RecipeError, match=r"x\.toml:1: name: expected a string, found the number 3"):
        load_split_rules(str(tmp_path / "x.toml"), wheel=Path("x.whl"))


NUMPY = """\
name = "numpy"
label = "split.1"

[check]
file = "numpy/__init__.py"
markers = "numpy.libs/parts"

[[package]]
name = "numpy-blas"
summary = "OpenBLAS for numpy"
independent = true

[[package]]
name = "numpy-tests"

[[package]]
name = "numpy"
requires = ["numpy-blas"]

[[rule]]
to = "numpy-blas"
soname = ["libscipy_openblas*", "libgfortran*", "libquadmath*"]

[[rule]]
to = "numpy-tests"
modules = ["numpy.testing.tests", "numpy.ma.tests"]
files = ["numpy/*/tests/**", "numpy/tests/**"]

[[rule]]
to = "numpy"
files = ["numpy/**"]
"""


def test_another_project_by_soname_and_module(tmp_path: Path) -> None:
    path = wheel("numpy==2.2.6")
    text = NUMPY.replace(
        'requires = ["numpy-blas"]', 'requires = ["numpy-blas", "numpy-tests"]'
    )  # the check asks for it
    outcome = split_wheel(path, parse_split_rules(text, filename="numpy.toml"), tmp_path)
    counts = {package.name: package.files for package in outcome.split.packages}
    assert counts["numpy-blas"] == 3
    assert counts["numpy-tests"] > 100
    python = make_env(tmp_path / "env")
    index = ["--index-url", (tmp_path / "simple").as_uri()]
    run(UV, "pip", "install", "-q", "--python", python, *index, outcome.split.install)
    assert run(python, "-c", "import numpy; print(numpy.linalg.inv([[2.0]])[0, 0])") == "0.5\n"
    run(UV, "pip", "uninstall", "-q", "--python", python, "numpy-blas")
    done = subprocess.run([python, "-c", "import numpy"], text=True, capture_output=True, check=False)
    assert "numpy 2.2.6+split.1 does not match its parts: numpy-blas is missing." in done.stderr


SMOKE = """
import torch
a = torch.randn(8, 8, requires_grad=True)
(a @ a).sum().backward()
assert a.grad.shape == (8, 8)
assert torch.nn.Linear(8, 2)(a).shape == (8, 2)
assert torch.allclose(torch.linalg.inv(torch.eye(3) * 2), torch.eye(3) / 2)
torch.multiprocessing.set_sharing_strategy("file_system")
assert torch.ones(3).share_memory_().is_shared()  # by libtorch's manager program
print(torch.utils.cmake_prefix_path)
"""
CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(tiny CXX)
find_package(Torch REQUIRED)
add_executable(tiny tiny.cpp)
target_link_libraries(tiny "${TORCH_LIBRARIES}")
set_property(TARGET tiny PROPERTY CXX_STANDARD 20)
"""


def uv_install(python: Path, index: Path, *requirements: str) -> None:
    """From one index root; dependencies from where this machine's configuration says."""
    run(UV, "pip", "install", "-q", "--python", python, "--extra-index-url", (index / "simple").as_uri(), *requirements)


@pytest.mark.slow
def test_the_official_cpu_wheel(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("compiling against libtorch needs cmake")
    path = wheel("torch==2.13.0+cpu")
    out = tmp_path / "out"
    outcome = split_wheel(path, load_split_rules(None, wheel=path), out)
    assert outcome.split.notes == ()
    assert [package.name for package in outcome.split.packages] == ["libtorch", "torch", "torch-split"]
    assert [audit.file for audit in audit_paths(outcome.files) if audit.failed] == []
    python = make_env(tmp_path / "env")
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    uv_install(python, out, "torch-split")
    cmake = run(python, "-c", SMOKE).strip()
    assert cmake == str(site / "libtorch" / "share" / "cmake")
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "CMakeLists.txt").write_text(CMAKE)
    main = "#include <ATen/ops/ones.h>\nint main() { return at::ones({2, 2}).numel() == 4 ? 0 : 1; }\n"
    (tmp_path / "tiny" / "tiny.cpp").write_text(main)
    run("cmake", "-S", tmp_path / "tiny", "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={cmake}")
    run("cmake", "--build", tmp_path / "build")
    run(tmp_path / "build" / "tiny")
    # The official one over it, and back: neither takes a file of the other along.
    run(UV, "pip", "install", "-q", "--python", python, "--no-deps", "--reinstall", path)
    assert run(python, "-c", SMOKE).strip() == str(site / "torch" / "share" / "cmake")
    uv_install(python, out, outcome.split.install)
    assert run(python, "-c", SMOKE).strip() == cmake
    run(UV, "pip", "uninstall", "-q", "--python", python, "torch-split", "torch", "libtorch")
    assert not [each for name in ("torch", "libtorch", "functorch", "torchgen") for each in site.glob(f"{name}/**/*")]


@pytest.mark.proof
def test_pip_installs_the_split_over_the_official_cpu_wheel_and_back(tmp_path: Path) -> None:
    path = wheel("torch==2.13.0+cpu")
    outcome = split_wheel(path, load_split_rules(None, wheel=path), tmp_path / "out", verify=False)
    python = make_env(tmp_path / "env")
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check"]
    index = ["--extra-index-url", (tmp_path / "out" / "simple").as_uri()]
    official: list[str | Path] = ["--no-deps", "--force-reinstall", path]
    split: list[str | Path] = [*index, outcome.split.install]
    for number, step in enumerate([official, split, official, split]):
        run(*pip, "install", "-q", *step)
        if not number:
            run(UV, "pip", "install", "-q", "--python", python, path)  # what it requires
        folder = "torch" if step is official else "libtorch"
        assert run(python, "-c", SMOKE).strip() == str(site / folder / "share" / "cmake")
        check = subprocess.run([*pip, "check"], text=True, capture_output=True, check=False)
        print(f"step {number + 1}, {folder}: {check.stdout.strip()}")  # noqa: T201 (docs/proof/split.md shows it)
    run(*pip, "uninstall", "-q", "-y", "torch-split", "torch", "libtorch")
    left = [each for name in ("torch", "libtorch", "functorch", "torchgen") for each in site.glob(f"{name}/**/*")]
    assert [each for each in left if each.is_file()] == []


@pytest.mark.proof
def test_an_extension_is_compiled_against_the_split_cpu_wheel(tmp_path: Path) -> None:
    path = wheel("torch==2.13.0+cpu")
    split_wheel(path, load_split_rules(None, wheel=path), tmp_path / "out", verify=False)
    python = make_env(tmp_path / "env")
    uv_install(python, tmp_path / "out", "torch-split", "ninja")
    code = """
from torch.utils.cpp_extension import load_inline
import torch
source = "torch::Tensor twice(torch::Tensor x) { return x * 2; }"
print(load_inline("tiny", source, functions=["twice"]).twice(torch.ones(2)).tolist())
print(torch.compile(lambda x: torch.sin(x) + x * 2)(torch.zeros(2)).tolist())
"""
    caches = {"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext"), "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    environ = os.environ | caches | {"PATH": f"{python.parent}:{os.environ['PATH']}"}
    done = subprocess.run([python, "-c", code], env=environ, text=True, capture_output=True, check=False)
    assert done.stdout.splitlines()[-2:] == ["[2.0, 2.0]", "[0.0, 0.0]"], done.stderr


@pytest.mark.slow
@pytest.mark.xdist_group("torch-cuda")
def test_the_official_cuda_wheel_is_split_without_inflating_it(tmp_path: Path) -> None:
    path = wheel("torch==2.14.1")
    outcome = split_wheel(path, load_split_rules(None, wheel=path), tmp_path)
    report = outcome.split
    names = [package.name for package in report.packages]
    assert names == ["libtorch", "libtorch-cuda", "libtorch-cuda-linalg", "torch", "torch-split"]
    with zipfile.ZipFile(path) as archive:
        original = {info.filename: info for info in archive.infolist() if not info.is_dir()}
    assert sorted(file.path for file in report.files) == sorted(original)
    parts = members_of(outcome.files)
    copied = 0
    for file in report.files:
        if file.rule and not file.change:
            (package,) = file.packages
            member = parts[package].pop(file.target or file.path)
            assert (member.CRC, member.compress_size) == (original[file.path].CRC, original[file.path].compress_size)
            copied += member.compress_size
    assert copied > 0.99 * sum(info.compress_size for info in original.values()) - 1_000_000
    changed = {file.path for file in report.files if file.rule and file.change}
    added = {path for package in report.packages for path in package.added}
    left = {path for each in parts.values() for path in each if ".dist-info/" not in path}
    assert left == changed | added
    assert len(changed) == 9


CUDA_SMOKE = """
import ctypes, os, torch
a = torch.randn(64, 64, requires_grad=True)
(a @ a).sum().backward()
print("torch", torch.__version__, "CUDA", torch.version.cuda, tuple(torch.nn.Linear(64, 3)(a).shape))
print("GPU:", torch.cuda.is_available(), "code for:", *torch.cuda.get_arch_list())
site = os.path.dirname(os.path.dirname(torch.__file__))
# libtorch_cuda opens it when a GPU first does linear algebra; here it is opened by hand
ctypes.CDLL(os.path.join(site, "libtorch", "lib", "libtorch_cuda_linalg.so"))
with open("/proc/self/maps") as maps:
    loaded = sorted({line.split()[-1] for line in maps if ".so" in line and site in line})
for path in loaded:
    print("loaded", os.path.relpath(path, site))
"""


@pytest.mark.proof
@pytest.mark.xdist_group("torch-cuda")
def test_the_split_cuda_wheel_is_imported_with_nvidias_libraries(tmp_path: Path) -> None:
    path = wheel("torch==2.14.1")
    split_wheel(path, load_split_rules(None, wheel=path), tmp_path / "out")
    python = make_env(tmp_path / "env")
    uv_install(python, tmp_path / "out", "torch-split")
    lines = run(python, "-c", CUDA_SMOKE).splitlines()
    print("\n".join(lines))  # noqa: T201 (docs/proof/split.md shows it)
    loaded = {line.removeprefix("loaded ") for line in lines if line.startswith("loaded ")}
    assert [name for name in loaded if name.startswith("torch/")] == [
        next(name for name in loaded if name.startswith("torch/_C."))
    ]
    assert {"libtorch/lib/libtorch_cuda.so", "libtorch/lib/libtorch_cuda_linalg.so"} < loaded
    assert any(name.endswith("/libcudnn.so.9") for name in loaded)
    site = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    run(UV, "pip", "uninstall", "-q", "--python", python, "libtorch-cuda-linalg")
    done = subprocess.run([python, "-c", "import torch"], text=True, capture_output=True, check=False)
    print(done.stderr.splitlines()[-1])  # noqa: T201
    assert "libtorch-cuda-linalg is missing" in done.stderr
    run(UV, "pip", "uninstall", "-q", "--python", python, "torch-split", "torch", "libtorch-cuda", "libtorch")
    assert not [each for name in ("torch", "libtorch", "functorch", "torchgen") for each in site.glob(f"{name}/**/*")]


def members_of(files: Sequence[Path]) -> dict[str, dict[str, zipfile.ZipInfo]]:
    """Distribution -> path -> member of its wheel."""
    found = {}
    for path in files:
        with zipfile.ZipFile(path) as archive:
            found[path.name.partition("-")[0].replace("_", "-")] = {info.filename: info for info in archive.infolist()}
    return found


def test_rules_are_looked_for_by_the_normalised_name_of_the_wheel() -> None:
    with pytest.raises(UsageError, match="no rules found to split 'zope-interface'"):
        load_split_rules(None, wheel=Path("Zope.Interface-5.0-py3-none-any.whl"))
