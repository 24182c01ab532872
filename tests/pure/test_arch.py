"""Which code runs on which GPU."""

from __future__ import annotations

import pytest

from axletree.core.errors import UsageError
from axletree.package.gpu.arch import choose, gpu_of, order, parse_code, parse_gpu, runs


@pytest.mark.parametrize(
    ("code", "on", "not_on"),
    [
        ("sm_80", "80 86 89", "75 87 90 100"),
        ("sm_86", "86 89", "80 87"),
        ("sm_87", "87", "86 89"),
        ("sm_90", "90", "89 100"),
        ("sm_90a", "90", "100"),
        ("sm_100", "100 103 107", "90 110 120"),
        ("sm_100a", "100", "103"),
        ("sm_100f", "100 103 107", "110 120"),
        ("sm_103f", "103 107", "100"),
        ("sm_120f", "120 121", "100 110"),
        ("compute_80", "80 86 87 90 100 120", "75"),
        ("compute_90a", "90", "100 89"),
        ("compute_100f", "100 103", "90 110 120"),
        ("lto_80", "", "80 90"),
        ("gfx90a", "gfx90a gfx90a:xnack- gfx90a:sramecc+:xnack+", "gfx908 90"),
        ("gfx90a:xnack-", "gfx90a gfx90a:xnack-", "gfx90a:xnack+"),
        ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+", "gfx90a:sramecc-:xnack-"),
        ("gfx11-generic", "gfx1100 gfx1151", "gfx1030 gfx1200"),
        ("amdgcnspirv", "gfx90a gfx1201", "90"),
    ],
)
def test_what_runs_where(code: str, on: str, not_on: str) -> None:
    parsed = parse_code(code)
    assert parsed is not None
    assert [gpu for gpu in on.split() if not runs(parsed, parse_gpu(gpu))] == []
    assert [gpu for gpu in not_on.split() if runs(parsed, parse_gpu(gpu))] == []


@pytest.mark.parametrize(
    ("codes", "gpu", "kept"),
    [
        ("sm_75 sm_80 sm_86 sm_90", "90", "sm_90"),
        ("sm_75 sm_80 sm_86 sm_90", "89", "sm_86"),
        ("sm_80 sm_86 sm_89 sm_90", "89", "sm_89"),
        ("sm_90 sm_90a sm_100", "90", "sm_90 sm_90a"),
        ("sm_100 sm_100a sm_103f", "100", "sm_100 sm_100a"),
        ("sm_100 sm_100a sm_103f", "103", "sm_100 sm_103f"),
        ("sm_120 sm_120a", "121", "sm_120"),
        ("sm_80 compute_80", "86", "sm_80"),
        ("sm_80 compute_80 compute_90", "100", "compute_90"),
        ("sm_80 compute_80 compute_90a compute_90", "90", "compute_90a compute_90"),
        ("sm_80 sm_90", "75", ""),
        ("sm_80 sm_80", "80", "sm_80 sm_80"),
        ("lto_90 sm_80", "90", ""),
        ("gfx900:xnack- gfx90a:xnack+ gfx90a:xnack-", "gfx90a", "gfx90a:xnack+ gfx90a:xnack-"),
        ("gfx900:xnack- gfx90a:xnack+ gfx90a:xnack-", "gfx90a:xnack-", "gfx90a:xnack-"),
        ("gfx11-generic gfx1100 amdgcnspirv", "gfx1100", "gfx1100"),
        ("gfx11-generic gfx1100 amdgcnspirv", "gfx1101", "gfx11-generic"),
        ("gfx11-generic gfx1100 amdgcnspirv", "gfx942", "amdgcnspirv"),
    ],
)
def test_a_gpu_keeps_what_its_driver_may_pick(codes: str, gpu: str, kept: str) -> None:
    names = codes.split()
    chosen = choose([parse_code(name) for name in names], parse_gpu(gpu))
    assert [names[index] for index in sorted(chosen)] == kept.split()


def test_gpus_are_written_in_many_ways() -> None:
    assert {parse_gpu(text).name for text in ("90", "9.0", "sm_90", "sm90", "90a", "compute_90")} == {"90"}
    assert parse_gpu("12.1").number == 121
    for text in ("", "9", "hopper", "gfx", "gfx90a:xnack", "gfx11-generic", "90b", "1200.0"):
        with pytest.raises(UsageError):
            parse_gpu(text)


def test_order_is_numeric() -> None:
    names = ["compute_90", "gfx1030", "sm_100", "gfx906", "sm_90a", "sm_90", "sm_75", "odd"]
    assert sorted(names, key=order) == ["sm_75", "sm_90", "sm_90a", "sm_100", "compute_90", "gfx906", "gfx1030", "odd"]


def test_the_gpu_of_code() -> None:
    gpus = [
        gpu_of(code)
        for name in ("sm_90a", "gfx90a:xnack-", "compute_90", "gfx11-generic")
        if (code := parse_code(name))
    ]
    assert [gpu and gpu.name for gpu in gpus] == ["90", "gfx90a:xnack-", None, None]
