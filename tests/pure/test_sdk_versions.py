"""Versions of SDK packages: the forms, their order for pip, dpkg's and rpm's order by the same rules, labels."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from axletree.core.errors import UsageError
from axletree.package.sdk.versions import (
    FORMS,
    OrderFault,
    ReleaseType,
    compute_version,
    framework_version,
    order_faults,
    with_suffix,
)

SHA = "f689a8ea40232f3f6be1ec958354b108349023ff"


@pytest.mark.parametrize(
    ("kind", "more", "wheel", "deb", "rpm"),
    [
        ("release", {}, "7.10.0", "7.10.0", "7.10.0"),
        ("prerelease", {"prerelease": "2"}, "7.10.0rc2", "7.10.0~pre2", "7.10.0~rc2"),
        ("nightly", {"date": "20251021"}, "7.10.0a20251021", "7.10.0~20251021", "7.10.0~20251021"),
        (
            "nightly-bkc",
            {"date": "20251101", "base_date": "20251021"},
            "7.10.0a20251021+bkc.20251101",
            "7.10.0~20251021+bkc.20251101",
            "7.10.0~20251021+bkc.20251101",
        ),
        (
            "dev",
            {"date": "20251203", "git_sha": SHA},
            f"7.10.0.dev0+{SHA}",
            "7.10.0~dev20251203",
            "7.10.0~20251203gf689a8ea",
        ),
    ],
)
def test_the_forms_are_therocks(kind: ReleaseType, more: dict[str, str], wheel: str, deb: str, rpm: str) -> None:
    assert [compute_version("7.10.0", kind, form, **more) for form in FORMS] == [wheel, deb, rpm]


def test_a_commit_of_digits_keeps_its_zeros() -> None:
    version = compute_version("7.10.0", "dev", date="20251203", git_sha="00123456")
    assert version == str(Version(version)) == "7.10.0.dev0+g00123456"


def test_all_that_is_missing_or_wrong_is_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        compute_version("7", "dev", date="20251301", prerelease="1")
    assert [problem.key for problem in caught.value.problems] == [
        "--base",
        "--date",
        "--git-sha",
        "--prerelease-version",
    ]
    with pytest.raises(UsageError, match="is later than"):
        compute_version("7.10.0", "nightly-bkc", date="20251021", base_date="20251022")


@pytest.mark.parametrize("suffix", [".dev0", "a20261128", "rc1", ".post1", "+local.1"])
def test_suffixes_of_ones_own(suffix: str) -> None:
    assert with_suffix("7.10.0", suffix) == f"7.10.0{suffix}"


@pytest.mark.parametrize("suffix", ["", ".1", "1", "~pre1", "; rm -rf", "\n"])
def test_suffixes_that_make_another_version_or_none_are_refused(suffix: str) -> None:
    with pytest.raises(UsageError, match=r"a valid (version|suffix)|is not a valid base"):
        with_suffix("7.10.0", suffix)


numbers = st.integers(0, 30)
bases = st.tuples(numbers, numbers, numbers).map(lambda parts: ".".join(map(str, parts)))
dates = st.dates().map(lambda day: f"{day.year:04}{day.month:02}{day.day:02}").filter(lambda text: text > "1900")


@given(bases, dates, st.integers(0, 40), st.text("0123456789abcdef", min_size=7, max_size=40))
def test_at_one_base_dev_comes_before_nightly_before_prerelease_before_release(
    base: str, date: str, count: int, sha: str
) -> None:
    made = [
        compute_version(base, "dev", date=date, git_sha=sha),
        compute_version(base, "nightly", date=date),
        compute_version(base, "nightly-bkc", date=date, base_date=date),
        compute_version(base, "prerelease", prerelease=str(count)),
        compute_version(base, "release"),
    ]
    assert sorted(made, key=Version) == made
    assert [str(Version(version)) for version in made] == made  # wheels' file names have the very same text


@given(bases, dates, dates)
def test_later_nightlies_are_newer(base: str, one: str, other: str) -> None:
    versions = [Version(compute_version(base, "nightly", date=date)) for date in (one, other)]
    assert (versions[0] < versions[1]) == (one < other)


def test_labels_of_frameworks() -> None:
    assert framework_version("2.9.0", "7.10.0") == "2.9.0+rocm7.10.0"
    assert framework_version("2.9.0", "7.10.0.dev0+abcdef1") == "2.9.0+devrocm7.10.0.dev0.abcdef1"
    assert framework_version("2.9.0", "10.1.0", numeric=True) == "2.9.0+rocm.10.1.0"
    labels = [framework_version("2.9.0", each) for each in ("7.10.0.dev0+abcdef1", "7.10.0a20251021", "7.10.0")]
    assert sorted(labels, key=Version) == labels
    with pytest.raises(UsageError, match="has a local version label"):
        framework_version("2.9.0+cpu", "7.10.0")
    with pytest.raises(UsageError, match="not a valid version"):
        framework_version("x", "y")


def test_rocm_10_after_rocm_7_is_found() -> None:
    (fault,) = order_faults(["2.12.0+rocm10.1.0a20260807", "2.12.0+rocm7.15.0a20260728", "2.11.0+rocm7.14.0", "2.12.0"])
    assert fault == OrderFault(
        older="2.12.0+rocm7.15.0a20260728",
        newer="2.12.0+rocm10.1.0a20260807",
        why="'rocm10' and 'rocm7' are compared as strings (PEP 440, local version identifiers)",
    )


def test_other_traps_of_labels() -> None:
    assert [fault.newer for fault in order_faults(["1+rocm7.1.0rc9", "1+rocm7.1.0rc10"])] == ["1+rocm7.1.0rc10"]
    (fault,) = order_faults(["1+rocm7.2.0", "1+rocm.10.0.0"])
    assert "with a dot after rocm" in fault.why
    assert not list(order_faults(["1+rocm.7.2.0", "1+rocm.10.0.0", "1+cpu", "1+cu130", "nonsense", "1+rocm.7.2.0"]))
    assert not list(order_faults(["1+devrocm7.2.0.dev0.abcdef1", "1+devrocm7.2.0.dev0.1bcdef1", "1+rocm7.1.0"]))


@given(st.lists(bases, min_size=2, max_size=6, unique=True))
def test_labels_with_a_dot_are_in_order(sdks: list[str]) -> None:
    assert not list(order_faults(framework_version("2.9.0", sdk, numeric=True) for sdk in sdks))


@given(st.lists(bases, min_size=2, max_size=6, unique=True))
def test_what_is_not_reported_is_in_pips_order(sdks: list[str]) -> None:
    labelled = [framework_version("2.9.0", sdk) for sdk in sdks]
    meant = sorted(labelled, key=lambda text: Version(text.partition("+rocm")[2]))
    wrong = bool(list(order_faults(labelled)))
    assert wrong == (meant != sorted(labelled, key=Version))
