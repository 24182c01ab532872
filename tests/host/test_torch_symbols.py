"""Official wheels against official torches, and our reader of C++ names against ``c++filt``."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from axletree.app.torch_symbols import exports_of_torch
from axletree.binary.cpp.demangle import demangle
from axletree.check.audit import audit_buffer
from axletree.core.errors import AxletreeError, UsageError
from axletree.host.archive import map_file
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.policy import PLATFORM_POLICIES
from axletree.package.libraries.providers import LIBRARY_PROVIDERS
from axletree.package.libraries.torch_symbols import TorchExports, TorchMatch, match_torch
from axletree.package.wheel.scan import scan_wheel
from support.inputs import wheel
from support.wheels import make_elf

CHECK = "c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, unsigned int, bool)"


def match(path: Path, torch: TorchExports) -> TorchMatch:
    buffer = map_file(path)
    elfs = {member.path: member.facts for member in scan_wheel(buffer, filename=path.name).elfs}
    return match_torch(buffer, elfs, torch, filename=path.name)


@pytest.fixture(scope="module")
def cuda_torch() -> TorchExports:
    return exports_of_torch(wheel("torch==2.14.1"))


@pytest.mark.xdist_group("torch-cuda")
def test_exports_of_the_cuda_wheel(cuda_torch: TorchExports) -> None:
    assert (cuda_torch.version, cuda_torch.machine) == ("2.14.1+cu130", "x86_64")
    # 97,799 of Python 3.11's wheel; the binding of each later Python has a few more.
    assert 97_799 <= len(cuda_torch.symbols) < 97_820


@pytest.mark.xdist_group("torch-cuda")
def test_a_release_that_fits_misses_nothing(cuda_torch: TorchExports) -> None:
    found = match(wheel("torchvision==0.29.1"), cuda_torch)
    assert (found.missing, found.absent) == ((), {})
    assert found.symbols > 80


@pytest.mark.xdist_group("torch-cuda")
def test_a_release_that_does_not_fit_misses_one_symbol(cuda_torch: TorchExports) -> None:
    found = match(wheel("torchvision==0.28.0"), cuda_torch)
    assert [missing.text for missing in found.missing] == [CHECK]
    assert found.missing[0].files == ("torchvision/_C.so", "torchvision/image.so")
    assert found.absent == {}


@pytest.mark.xdist_group("torch-cuda")
@pytest.mark.parametrize(("version", "missing"), [("0.28.0", [CHECK]), ("0.29.1", [])])
def test_the_audit_tells_it(cuda_torch: TorchExports, version: str, missing: list[str]) -> None:
    path = wheel(f"torchvision=={version}")
    report = audit_buffer(
        map_file(path),
        filename=path.name,
        policies=read_shipped(PLATFORM_POLICIES),
        providers=read_shipped(LIBRARY_PROVIDERS),
        torch=cuda_torch,
    )
    told = [finding.message for finding in report.findings if finding.rule.startswith("dist/torch-")]
    assert len(told) == len(missing)
    assert all(text in message for text, message in zip(missing, told, strict=True))
    assert {finding.rule for finding in report.findings if finding.severity == "info"} >= {
        "dist/gpu-uncompressed-some",
        "dist/sbom-missing",
        "dist/version-label",
        "dist/licence-restricted",
    }


def test_a_cuda_build_misses_the_cuda_libraries_of_a_cpu_torch() -> None:
    found = match(wheel("torchvision==0.28.0"), exports_of_torch(wheel("torch==2.13.0+cpu")))
    core = [missing for missing in found.missing if "torchvision/_C.so" in missing.files]
    assert len(core) == 16
    assert all("cuda" in missing.text for missing in found.missing)
    assert found.absent.keys() == {"libc10_cuda.so", "libtorch_cuda.so"}


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """An environment with something that looks like torch to a reader of its libraries."""
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    library = next((tmp_path / "env").glob("lib/python3*/site-packages")) / "torch" / "lib"
    library.mkdir(parents=True)
    (library / "libc10.so").write_bytes(make_elf(exported=("_ZN3c103runEv",)))
    (library / "libempty.so").touch()
    (library.parent / "version.py").write_text("__version__ = '2.99'\n")
    return tmp_path / "env"


@pytest.mark.parametrize("part", ["", "bin/python", "lib/python{}.{}/site-packages"])
def test_an_environment_by_any_of_its_names(environment: Path, part: str) -> None:
    exports = exports_of_torch(environment / part.format(*sys.version_info))
    assert (exports.version, exports.symbols) == ("2.99", frozenset({b"_ZN3c103runEv"}))


def test_what_is_no_torch_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="torch was not found in any of these folders: "):
        exports_of_torch(tmp_path)
    with pytest.raises(UsageError, match="does not exist"):
        exports_of_torch(tmp_path / "nothing")
    (tmp_path / "text").write_text("no program")
    with pytest.raises(UsageError, match="neither a wheel nor an executable"):
        exports_of_torch(tmp_path / "text")
    with pytest.raises(AxletreeError, match="for its package folders"):
        exports_of_torch(Path("/bin/false"))


@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt")
def test_names_read_as_cplusplusfilt_prints_them() -> None:
    torch = exports_of_torch(wheel("torch==2.13.0+cpu"))
    names = sorted(name.decode() for name in torch.symbols if name.startswith(b"_Z"))[::8]
    done = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True)
    pairs = list(zip(names, map(demangle, names), done.stdout.splitlines(), strict=True))
    different = [(ours, peer) for name, ours, peer in pairs if ours not in {peer, name}]
    unread = [name for name, ours, peer in pairs if ours == name != peer]
    assert len(pairs) > 5000
    assert len(unread) < len(pairs) / 100
    assert len(different) < len(pairs) / 200
