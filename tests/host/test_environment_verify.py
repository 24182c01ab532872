"""Planted headers and libraries are found with gcc, clang, nvcc and Debian's hipcc; where all is well nothing is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from axletree.check.engine import apply_rules
from axletree.check.rules.search_order import ENVIRONMENT_RULES
from axletree.environment.apply import activated
from axletree.environment.delta import Activation, Order, SearchFolder
from axletree.environment.layers import Layer, deltas_of, order_of, ordered
from axletree.host.environment.headers import copy_headers, moved_folders
from axletree.host.environment.proof import verify_environment
from axletree.host.environment.toolkits import find_toolkit, toolkit_layer
from support.rocm import old_libstdcxx, rocm_root

if TYPE_CHECKING:
    from axletree.core.findings import Finding
    from axletree.environment.verify import Verified

SYSTEM = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8"}


def seen(environ: dict[str, str], order: Order | None = None, *, only: str) -> tuple[Verified, tuple[Finding, ...]]:
    program = {"gcc": "c++", "clang": "clang++"}.get(only, only)
    found = verify_environment("test", order or Order(), environ, compilers=[program])
    assert [proof.kind for proof in found.proofs] == [only]
    return found, apply_rules(ENVIRONMENT_RULES, found)


def rules(findings: tuple[Finding, ...]) -> list[str]:
    return sorted({finding.rule.removeprefix("environment/") for finding in findings})


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder of headers that others have too."""
    for name in ("zlib.h", "thrust/version.h", "hip/hip_version.h", "openssl/ssl.h", "limits.h"):
        (tmp_path / "planted" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "planted" / name).write_text("#pragma once\n")
    return tmp_path / "planted"


@pytest.fixture
def nvcc() -> dict[str, str]:
    root = find_toolkit("cuda", None, environ={**SYSTEM, "PATH": os.environ["PATH"]}, given=None)
    if root is None:
        pytest.skip("no CUDA toolkit here")
    return {**SYSTEM, "PATH": f"{root}/bin:{SYSTEM['PATH']}"}


def activated_with(*layers: Layer) -> tuple[dict[str, str], Order]:
    order = order_of(layers)
    return activated(SYSTEM, Activation(folder="/test", deltas=deltas_of(layers, order))), order


@pytest.fixture(scope="module")
def rocm() -> Layer:
    layer = toolkit_layer("rocm", rocm_root(), "ROCm")
    assert layer is not None
    return layer


def test_gcc_alone_takes_what_it_should() -> None:
    found, findings = seen(SYSTEM, only="gcc")
    (proof,) = found.proofs
    assert findings == ()
    assert "/usr/include" in [origin.path for origin in proof.include]
    assert {"cstdio", "string"} == {choice.name for choice in proof.headers}
    assert any(choice.name.startswith("libstdc++.so") for choice in proof.linked)
    # What the loader took is what `ldd` says.
    assert any(choice.name == "libstdc++.so.6" and Path(choice.actual).is_file() for choice in proof.loaded)


@pytest.mark.parametrize("variable", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_gcc_takes_a_planted_header(planted: Path, variable: str) -> None:
    _, findings = seen({**SYSTEM, variable: str(planted)}, only="gcc")
    assert rules(findings) == ["header-shadowed"]
    (finding,) = findings
    assert f"{planted} ({variable}), which shadows " in finding.message
    assert any(line.startswith("<limits.h>: expected /usr/") for line in finding.evidence)


def test_a_folder_with_headers_of_its_own_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.h").touch()
    assert seen({**SYSTEM, "CPATH": str(tmp_path)}, only="gcc")[1] == ()


def test_what_the_environment_wants_in_front_shadows_nothing(planted: Path) -> None:
    order = Order(include=(SearchFolder(path=str(planted), origin="environment"),))
    assert seen({**SYSTEM, "CPATH": str(planted)}, order, only="gcc")[1] == ()


def test_a_folder_before_the_environments_is_told(planted: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    shutil.copytree(planted / "openssl", own / "openssl")
    order = Order(include=(SearchFolder(path=str(own), origin="environment"),))
    _, (finding,) = seen({**SYSTEM, "CPATH": f"{planted / '..' / 'planted'}:{own}"}, order, only="gcc")
    assert any(line.startswith(f"<openssl/ssl.h>: expected {own}/openssl/ssl.h") for line in finding.evidence)


@pytest.mark.parametrize("kind", ["gcc", "nvcc", "hipcc"])
def test_an_old_cpp_library_is_found(kind: str, request: pytest.FixtureRequest) -> None:
    old, order = str(old_libstdcxx()), Order()
    if kind == "hipcc":
        environ, order = activated_with(request.getfixturevalue("rocm"))
    else:
        environ = request.getfixturevalue("nvcc") if kind == "nvcc" else SYSTEM
    environ = {**environ, "LD_LIBRARY_PATH": f"{old}:{environ.get('LD_LIBRARY_PATH', '')}".rstrip(":")}
    _, findings = seen(environ, order, only=kind)
    found = {finding.rule.removeprefix("environment/"): finding for finding in findings}
    assert "(LD_LIBRARY_PATH) comes first" in found["library-shadowed-run"].message
    assert found["libstdcxx-old"].where == f"{os.path.realpath(old)}/libstdc++.so.6.0.28"
    assert "versions up to GLIBCXX_3.4.28" in found["libstdcxx-old"].message
    # Here clang, and HIP's runtime, need a newer one: neither it nor what it builds starts.
    assert ("probe-fails" in found) == (kind == "hipcc")


@pytest.mark.parametrize("kind", ["gcc", pytest.param("hipcc", marks=pytest.mark.proof)])
def test_an_old_cpp_library_is_found_by_the_linker(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    (tmp_path / "libstdc++.so").symlink_to(old_libstdcxx() / "libstdc++.so.6")
    environ, order = activated_with(request.getfixturevalue("rocm")) if kind == "hipcc" else (SYSTEM, Order())
    flags = f"-L{tmp_path} {environ.get('LDFLAGS', '')}".rstrip()
    _, findings = seen({**environ, "LDFLAGS": flags}, order, only=kind)
    where = {finding.rule.removeprefix("environment/"): finding.message for finding in findings}
    assert "libstdc++.so.6.0.28" in where["library-shadowed-link"]
    assert "(LDFLAGS) comes first" in where["library-shadowed-link"]
    assert "GLIBCXX_3.4.28" in where["libstdcxx-old"]


def test_what_is_behind_the_systems_folders_shadows_nothing(tmp_path: Path) -> None:
    (tmp_path / "libstdc++.so").symlink_to(old_libstdcxx() / "libstdc++.so.6")
    assert seen({**SYSTEM, "LIBRARY_PATH": str(tmp_path)}, only="gcc")[1] == ()


def test_a_preloaded_library_is_found() -> None:
    _, findings = seen({**SYSTEM, "LD_PRELOAD": str(old_libstdcxx() / "libstdc++.so.6")}, only="gcc")
    assert "library-shadowed-run" in rules(findings)


def test_nvcc_takes_a_planted_thrust(nvcc: dict[str, str], planted: Path) -> None:
    (planted / "limits.h").unlink()
    found, findings = seen({**nvcc, "CPATH": str(planted)}, only="nvcc")
    wrong = {choice.name: choice for choice in found.proofs[0].headers if choice.actual != choice.expected}
    assert wrong["thrust/version.h"].actual == f"{planted}/thrust/version.h"
    assert "include" in wrong["thrust/version.h"].expected
    assert rules(findings) == ["header-shadowed"]


@pytest.mark.proof
def test_nvcc_alone_takes_what_it_should(nvcc: dict[str, str]) -> None:
    found, findings = seen(nvcc, only="nvcc")
    assert findings == ()
    assert "cuda_runtime.h" in {choice.name for choice in found.proofs[0].headers}
    assert any(choice.name.startswith("libcudart.so") for choice in found.proofs[0].loaded)


def test_hipcc_takes_a_planted_header(rocm: Layer, planted: Path) -> None:
    environ, order = activated_with(rocm)
    environ = {**environ, "CPATH": f"{planted}:{environ['CPATH']}"}
    _, findings = seen(environ, order, only="hipcc")
    assert "header-shadowed" in rules(findings)
    assert any("<hip/hip_version.h>" in line for finding in findings for line in finding.evidence)


@pytest.mark.proof
def test_clang_takes_a_planted_header(rocm: Layer, planted: Path) -> None:
    environ, order = activated_with(Layer(origin="ROCm", run=rocm.run))
    clang = next(each.value for each in rocm.settings if each.variable == "HIP_CLANG_PATH")
    environ = {**environ, "PATH": f"{clang}:{environ['PATH']}"}
    assert seen(environ, order, only="clang")[1] == ()
    _, findings = seen({**environ, "CPATH": str(planted)}, order, only="clang")
    assert rules(findings) == ["header-shadowed"]


def test_hipccs_own_folder_does_not_come_first_and_a_copy_does(rocm: Layer, planted: Path, tmp_path: Path) -> None:
    conda = Layer(origin="conda", include=(str(planted),))
    environ, order = activated_with(*ordered([conda], rocm, "rocm"))
    _, findings = seen(environ, order, only="hipcc")
    assert rules(findings) == ["include-moved"]
    assert f"<hip/hip_version.h> comes from {planted}" in findings[0].message
    assert moved_folders([entry.path for entry in order.include], environ) == rocm.include

    copy = tmp_path / "copy"
    assert copy_headers(Path(rocm.include[0]), copy) > 20
    mended = Layer(**{name: getattr(rocm, name) for name in rocm.__struct_fields__} | {"include": (str(copy),)})
    environ, order = activated_with(*ordered([conda], mended, "rocm"))
    found, findings = seen(environ, order, only="hipcc")
    assert findings == ()
    chosen = {choice.name: choice.actual for choice in found.proofs[0].headers}
    assert chosen["hip/hip_version.h"] == f"{copy}/hip/hip_version.h"


@pytest.mark.proof
def test_hipcc_without_another_folder_has_no_fault(rocm: Layer) -> None:
    environ, order = activated_with(rocm)
    assert moved_folders([entry.path for entry in order.include], environ) == ()
    assert seen(environ, order, only="hipcc")[1] == ()


def test_links_that_lead_in_circles_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "include" / "a").mkdir(parents=True)
    (tmp_path / "include" / "a" / "x.h").touch()
    (tmp_path / "include" / "a" / "up").symlink_to("..")
    (tmp_path / "include" / "b").symlink_to("a")
    assert copy_headers(tmp_path / "include", tmp_path / "copy") == 2
    assert (tmp_path / "copy" / "b" / "x.h").resolve() == tmp_path / "include" / "a" / "x.h"


def test_a_toolkit_that_is_none_is_none(tmp_path: Path) -> None:
    assert toolkit_layer("cuda", tmp_path, "CUDA") is None
    assert find_toolkit("cpu", None, environ=SYSTEM, given=None) is None
    assert find_toolkit("rocm", None, environ={"PATH": "/nonexistent", "ROCM_PATH": str(tmp_path)}, given=None) is None
