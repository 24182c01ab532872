"""PyTorch's versions: what they are called, and that they sort as they came."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from axletree.buildsystem.pytorch.versions import (
    candidate,
    from_commit,
    nightly,
    of_tag,
    parse_desired_cuda,
    rebuilt,
    release_of,
    version_for,
)


@pytest.mark.parametrize(
    ("text", "world", "version", "machine", "label"),
    [
        ("cpu", "cpu", "", "", "cpu"),
        ("cpu-aarch64", "cpu", "", "aarch64", "cpu"),
        ("cpu-s390x", "cpu", "", "s390x", "cpu"),
        ("cu118", "cuda", "11.8", "", "cu118"),
        ("cu130", "cuda", "13.0", "", "cu130"),
        ("12.6", "cuda", "12.6", "", "cu126"),
        ("13.0-aarch64", "cuda", "13.0", "aarch64", "cu130"),
        ("rocm6.3", "rocm", "6.3", "", "rocm6.3"),
        ("rocm6.2.4", "rocm", "6.2.4", "", "rocm6.2.4"),
        ("rocm7.14", "rocm", "7.14", "", "rocm7.14"),
        ("xpu", "xpu", "", "", "xpu"),
    ],
)
def test_desired_cuda(text: str, world: str, version: str, machine: str, label: str) -> None:
    found = parse_desired_cuda(text)
    assert (found.world, found.version, found.machine, found.label) == (world, version, machine, label)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda",
        "cu12",
        "cu1260",
        "126",
        "12",
        "12.6.3",
        "12.6-x86_64",
        "rocm",
        "rocm7",
        "xpu1",
        " cpu",
        "cu126-aarch64",
    ],
)
def test_what_is_no_desired_cuda(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a valid DESIRED_CUDA \(such as cpu, cu126"):
        parse_desired_cuda(text)


@given(st.integers(10, 99), st.integers(0, 9))
def test_both_ways_to_say_a_cuda_release_are_one(major: int, minor: int) -> None:
    short, long = parse_desired_cuda(f"cu{major}{minor}"), parse_desired_cuda(f"{major}.{minor}")
    assert short == long
    assert parse_desired_cuda(long.label) == long


@pytest.mark.parametrize(
    ("base", "text", "version"),
    [
        ("2.14.0a0", "nightly=20260822", "2.14.0.dev20260822"),
        ("2.6.0", "nightly=20240229", "2.6.0.dev20240229"),
        ("2.14.0a0", "rc=3", "2.14.0rc3"),
        ("2.6.0", "post=2", "2.6.0.post2"),
        ("2.6.0", "post=1", "2.6.0"),
        ("2.6.0", "post=0", "2.6.0"),
        ("2.14.0a0", "git=1a2b3c4d5e6f", "2.14.0a0+git1a2b3c4"),
        ("2.14.0a0", "tag=v2.13.1-rc4", "2.13.1"),
        ("2.14.0a0", "tag=v2.13.1", "2.13.1"),
        ("2.14.0a0", "2.13.0.dev20260101", "2.13.0.dev20260101"),
        ("2.14.0a0", "v2.13.0-rc1", "2.13.0rc1"),
    ],
)
def test_versions(base: str, text: str, version: str) -> None:
    assert version_for(base, text) == version
    assert str(Version(version)) == version, "normalised"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nightly=2026-08-22", "is not a date .expected eight digits"),
        ("nightly=20260230", "is not a date"),
        ("nightly=", "is not a date"),
        ("nightly=٢٠٢٦٠٨٢٢", "is not a date"),
        ("rc=x", "is not a number"),
        ("post=-1", "is not a number"),
        ("git=xyz", "is not a commit"),
        ("git=1a2b", "is not a commit"),
        ("tag=2.13.0", "is not a release tag"),
        ("tag=v2.13", "is not a release tag"),
        ("weekly=1", r"unknown kind of release 'weekly' \(expected nightly=, rc=, post=, git=, tag= or a version\)"),
        ("nightly", "is neither a version"),
        ("", "is neither a version"),
    ],
)
def test_what_is_no_release(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        version_for("2.14.0a0", text)


RELEASES = st.tuples(st.integers(1, 9), st.integers(0, 40), st.integers(0, 5))
LABELS = st.sampled_from(["", "+cpu", "+cu126", "+cu130", "+rocm7.1", "+xpu"])


@given(RELEASES, st.dates(dt.date(2016, 1, 1)), st.integers(1, 20), st.integers(2, 9))
def test_builds_of_one_release_sort_as_they_come(
    release: tuple[int, int, int], day: dt.date, number: int, build: int
) -> None:
    base = f"{'.'.join(map(str, release))}a0"
    built = [
        nightly(base, f"{day:%Y%m%d}"),
        base,
        from_commit(base, "1a2b3c4"),
        candidate(base, number),
        candidate(base, number + 1),
        rebuilt(base, 1),
        rebuilt(base, build),
        rebuilt(base, build + 1),
    ]
    versions = [Version(each) for each in built]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions)
    assert {release_of(each) for each in built} == {base.removesuffix("a0")}
    assert of_tag(f"v{release_of(base)}-rc{number}") == rebuilt(base, 1), (
        "a candidate's wheels are called as the release"
    )


@given(RELEASES, RELEASES, LABELS, LABELS)
def test_a_label_never_decides_between_releases(
    one: tuple[int, int, int], other: tuple[int, int, int], label: str, second: str
) -> None:
    first, last = (rebuilt(".".join(map(str, each)), 1) for each in sorted([one, other]))
    if first != last:
        assert Version(first + label) < Version(last + second)
    else:
        assert Version(first + label).public == Version(last + second).public


@given(st.dates(dt.date(2016, 1, 1)), st.dates(dt.date(2016, 1, 1)))
def test_nightlies_sort_by_day(one: dt.date, other: dt.date) -> None:
    first, last = (Version(nightly("2.14.0a0", f"{day:%Y%m%d}")) for day in sorted([one, other]))
    assert first <= last
    assert (first == last) == (one == other)
