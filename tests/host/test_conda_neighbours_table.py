"""The table of neighbours that ships."""

from __future__ import annotations

import pytest

from axletree.core.globs import glob_fault
from axletree.host.conda_owners import library_owners
from axletree.host.shipped_data import read_shipped
from axletree.package.conda.neighbours import CONDA_NEIGHBOURS

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
        *(("libcuda.so.1", None), ("libc.so.6", None), ("libnobody-knows.so.1", None), ("libibverbs.so.1", None)),
    ],
)
def test_who_brings_a_library(soname: str, package: str | None) -> None:
    """The driver's and the system's are nobody's: no package can be asked for them."""
    assert next(iter(library_owners().packages(soname)), None) == package
