"""The size of PyTorch's CUDA library, estimated: against the wheels that were measured, and what is said of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.backends.link_size import LINK_SIZES, REACH, GpuArch, LinkSizes, compression, estimate, parse_arch_list
from axletree.check.engine import apply_rules
from axletree.check.rules.build import BUILD_RULES
from axletree.host.shipped_data import read_shipped

SPANS = {
    "12.4": ("5.0;6.0;7.0;7.5;8.0;8.6;9.0", "", 0x3468C000 + 0xB1B408),
    "12.6": ("5.0;6.0;7.0;7.5;8.0;8.6;9.0", "", 0x3945B000 + 0xAE0F28),
    "12.8": ("7.0;7.5;8.0;8.6;9.0;10.0;12.0", "", 0x3B52D000 + 0x6C4B50),
    "13.0": ("7.5;8.0;8.6;9.0;10.0;12.0", "-compress-mode=size", 0x19F56000 + 0x4773A8),
}
"""CUDA -> arch list, flags, and the end of the last segment (`readelf -lW`) of libtorch_cuda.so in torch 2.6.0, 2.7.1,
2.8.0 and 2.14.1."""


@pytest.fixture(scope="module")
def sizes() -> LinkSizes:
    return read_shipped(LINK_SIZES)


@pytest.mark.parametrize("cuda", SPANS)
def test_the_estimate_of_a_measured_wheel_is_right(cuda: str, sizes: LinkSizes) -> None:
    text, flags, span = SPANS[cuda]
    archs = parse_arch_list(text)
    assert archs is not None
    found = estimate(archs, cuda=cuda, mode=compression(flags, cuda=cuda, sizes=sizes), sizes=sizes)
    assert found.least < span < found.most
    assert found.expected == pytest.approx(span, rel=0.02)
    assert apply_rules(BUILD_RULES, found) == ()


def test_each_release_is_within_the_bounds_that_the_one_before_gives(sizes: LinkSizes) -> None:
    for before, now in itertools.pairwise(sizes.measured):
        known = before.packed.keys() & now.packed.keys()
        archs = tuple(GpuArch(number=number) for number in sorted(known))
        only = LinkSizes(library="l", modes=sizes.modes, defaults=sizes.defaults, measured=(before,))
        found = estimate(archs, cuda=now.cuda, mode=now.mode, sizes=only)
        real = now.host + sum(now.packed[number] for number in known)
        assert found.least < real < found.most, now.cuda


@pytest.mark.parametrize(
    ("text", "archs"),
    [
        ("8.0;9.0a;12.0+PTX", ["8.0", "9.0a", "12.0+PTX"]),
        ("7.5 8.6,8.6+PTX", ["7.5", "8.6+PTX"]),
        ("Ampere", ["8.0", "8.6+PTX"]),
        ("10.0f", ["10.0f"]),
        ("8.6(8.0)", ["8.6"]),
        ("Auto", None),
        ("", None),
        ("8.0;sm_90", None),
    ],
)
def test_arch_lists(text: str, archs: list[str] | None) -> None:
    found = parse_arch_list(text)
    assert (None if found is None else [str(arch) for arch in found]) == archs


@pytest.mark.parametrize(
    ("flags", "cuda", "mode"),
    [
        ("-Xfatbin -compress-all", "12.6", "speed"),
        ("-Xfatbin -compress-all", "13.0", "balance"),
        ("", "13.2", "balance"),
        ("--compress-mode=size", "12.8", "size"),
        ("-compress-mode=size -compress-mode=none", "13.0", "none"),
        ("--compress-mode=default", "12.6", "speed"),
        ("", "10.2", "speed"),
    ],
)
def test_how_code_is_packed(flags: str, cuda: str, mode: str, sizes: LinkSizes) -> None:
    assert compression(flags, cuda=cuda, sizes=sizes) == mode


@given(st.lists(st.sampled_from([50, 60, 70, 75, 80, 86, 89, 90, 100, 103, 120, 121]), min_size=1, unique=True))
def test_more_code_is_never_smaller(sizes: LinkSizes, numbers: list[int]) -> None:
    for cuda in SPANS:
        by_mode = [
            estimate(tuple(GpuArch(number=n) for n in numbers), cuda=cuda, mode=mode, sizes=sizes).expected
            for mode in ("size", "balance", "speed", "none")
        ]
        assert by_mode == sorted(by_mode)
        fewer = estimate(tuple(GpuArch(number=n) for n in numbers[1:]), cuda=cuda, mode="speed", sizes=sizes)
        assert fewer.expected < by_mode[2]


def test_code_that_is_not_packed_does_not_fit(sizes: LinkSizes) -> None:
    archs = parse_arch_list("8.0;9.0;10.0;12.0+PTX")
    assert archs is not None
    (finding,) = apply_rules(BUILD_RULES, estimate(archs, cuda="12.8", mode="none", sizes=sizes))
    assert finding.rule == "build/link-size"
    assert ", more than the 2.15 GB" in finding.message
    assert finding.fix is not None
    assert finding.fix.startswith("-Xfatbin -compress-all")
    assert finding.fix.count("\n") == 4
    assert ";" not in finding.fix
    assert REACH == 2**31
