"""The table of neighbours that ships."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.app.audit import audit_paths
from axletree.binary.elf.facts import is_elf, read_elf
from axletree.core.globs import glob_fault
from axletree.host.conda_owners import library_owners
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.model import CondaFile
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS, runtime_depends
from support.conda import demo, put
from support.inputs import debian_root

if TYPE_CHECKING:
    from pathlib import Path

TABLE = read_shipped(CONDA_NEIGHBOURS)
WHEEL = (
    *("advisor-annotate.h", "clog.h", "cpuinfo.h", "dnnl.h", "dnnl.hpp", "dnnl_types.h", "fmt/format.h", "fp16.h"),
    *("fp16/fp16.h", "fxdiv.h", "google/protobuf/message.h", "ittnotify.h", "jitprofiling.h", "oneapi/dnnl/dnnl.hpp"),
    *("psimd.h", "pthreadpool.h", "pybind11/pybind11.h", "sleef.h", "tensorpipe/tensorpipe.h"),
)
"""Headers of other projects in PyTorch's wheel of 2.13.0, below ``torch/include``."""


@pytest.mark.parametrize("header", WHEEL)
def test_what_pytorch_vendors_has_an_owner(header: str) -> None:
    ((path, owner),) = TABLE.owners([f"include/{header}"])
    assert path == f"include/{header}"
    assert owner.package != "libtorch"
    assert not list(TABLE.owners([f"include/libtorch/{header}", f"include/demo/{header}"]))


def test_every_line_says_something() -> None:
    names = [each.package for each in TABLE.neighbour]
    assert len(names) == len(set(names))
    for each in TABLE.neighbour:
        assert each.paths or each.sonames, each.package
        assert each.source, each.package
        assert all(glob_fault(path) is None for path in each.paths), each.package
        for pattern in each.paths:  # no line of another package takes precedence over one that comes later
            sample = pattern.replace("/**", "/x").replace("*", "1")
            assert [owner.package for _, owner in TABLE.owners([sample])] == [each.package], pattern


@pytest.mark.parametrize(
    ("soname", "package"),
    [
        *(("libstdc++.so.6", "libstdcxx"), ("libgcc_s.so.1", "libgcc"), ("libgomp.so.1", "_openmp_mutex")),
        *(("libtorch_cpu.so", "libtorch"), ("libc10.so", "libtorch"), ("libfmt.so.9", "fmt"), ("libz.so.1", "libzlib")),
        *(("libcublas.so.12", "libcublas"), ("libcudart.so.13", "cuda-cudart"), ("libmkl_core.so.2", "mkl")),
        *(("libarrow.so.1800", "libarrow"), ("libcudnn.so.9", "cudnn"), ("libhwloc.so.15", "libhwloc")),
        *(("libcuda.so.1", None), ("libc.so.6", None), ("libnobody-knows.so.1", None), ("libibverbs.so.1", None)),
    ],
)
def test_who_brings_a_library(soname: str, package: str | None) -> None:
    """The driver's and the system's are nobody's: no package can be asked for them."""
    assert next(iter(library_owners().packages(soname)), None) == package


def test_any_of_the_packages_that_bring_a_library_will_do() -> None:
    owners = library_owners()
    assert {"cudnn", "libcudnn"} <= set(owners.packages("libcudnn.so.9")), "called otherwise for CUDA 13"
    assert {"libtorch", "pytorch"} <= set(owners.packages("libtorch_cpu.so"))
    assert {"libarrow", "pyarrow"} <= set(owners.packages("libarrow.so.1800"))


def as_prefix(root: Path) -> list[CondaFile]:
    """Headers and libraries of Debian packages, where a conda package has them."""
    folders = {"usr/include": "include", "usr/lib/x86_64-linux-gnu": "lib"}
    return [
        CondaFile(path=f"{place}/{path.relative_to(root / folder).as_posix()}", data=path.read_bytes())
        for folder, place in folders.items()
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]


@pytest.mark.proof
@pytest.mark.timeout(600)
def test_pytorch_of_debian(tmp_path: Path) -> None:
    """Its own headers are nobody else's. With those that PyTorch vendors beside them, each of their owners is named."""
    own = as_prefix(debian_root("libtorch", "trixie", ("libtorch-dev", "libtorch2.6")))
    elfs = {file.path: read_elf(file.data) for file in own if isinstance(file.data, bytes) and is_elf(file.data[:4])}
    runtimes = runtime_depends(elfs, TABLE)
    assert [spec.partition(" ")[0] for spec in runtimes] == ["libstdcxx", "libgcc", "_openmp_mutex"]
    package = demo(name="libtorch", version="2.6.0", depends=runtimes)
    (report,) = audit_paths([put(tmp_path / "own", package, own).path])
    found = [each for each in report.findings if each.rule.startswith("conda/")]
    assert {each.rule for each in found} == {"conda/needed-not-required"}
    names = ("libprotobuf", "sleef", "fmt", "libblas")
    named = {name for each in found for name in names if f" {name}," in each.message}
    assert named == {*names}
    vendored = ("pybind11-dev", "libfmt-dev", "libcpuinfo-dev", "libpthreadpool-dev", "libprotobuf-dev")
    more = [file for file in as_prefix(debian_root("vendored", "trixie", vendored)) if file.path.startswith("include/")]
    (report,) = audit_paths([put(tmp_path / "planted", package, [*own, *more]).path])
    rules = {"conda/path-of-neighbour", "conda/path-vendored"}
    errors = [each.message for each in report.findings if each.rule in rules]
    for name in ("pybind11", "fmt", "cpuinfo", "pthreadpool", "libprotobuf"):
        assert any(message.endswith(f" {name}") for message in errors), (name, errors)
