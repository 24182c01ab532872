"""What platform tags promise, and what an audit makes of it."""

from __future__ import annotations

import pytest

from axletree.binary.elf.facts import VersionNeed
from axletree.check.audit import report_facts
from axletree.check.rules.wheel.sample import CORE, POLICIES, glibc, library, plain_library, sample
from axletree.check.verdict import complete_policy, judge_platform
from axletree.core.errors import UsageError
from axletree.package.libraries.platforms import libc_of, linux_environment
from axletree.package.libraries.policy import highest_versions, policy_between, symbol_needs
from axletree.package.libraries.providers import required_names


def test_a_tag_between_two_policies_promises_its_own_glibc_and_the_next_ones_rest() -> None:
    policy = policy_between((2, 25), POLICIES)
    assert policy is not None
    versions = policy.versions["x86_64"]
    assert {"2.17", "2.25"} <= versions["GLIBC"]
    assert not {"2.26", "2.28"} & versions["GLIBC"]
    assert versions["GLIBCXX"] == POLICIES[1].versions["x86_64"]["GLIBCXX"]


def test_above_the_newest_policy_only_glibc_is_judged() -> None:
    policy = policy_between((2, 60), POLICIES)
    assert policy is not None
    assert policy.versions["x86_64"].keys() == {"GLIBC"}
    assert {"2.34", "2.59"} <= policy.versions["x86_64"]["GLIBC"]
    assert policy_between((2, 4), POLICIES) is None


def test_the_c_library_of_a_file() -> None:
    assert libc_of(library()) == "glibc"
    assert libc_of(library(needed=(), versions_needed=glibc("2.17"))) == "glibc"
    assert libc_of(library(needed=("libc.musl-aarch64.so.1",), versions_needed=())) == "musl"
    own = (VersionNeed(file="libgcc_s-2d945d6c.so.1", versions=("GCC_3.3", "GLIBC_2.0")),)
    assert libc_of(library(needed=("libgcc_s-2d945d6c.so.1", "libc.musl-aarch64.so.1"), versions_needed=own)) == "musl"
    static = {"needed": (), "versions_needed": ()}
    assert libc_of(plain_library(**static, interpreter="/lib/ld-musl-x86_64.so.1")) == "musl"
    assert libc_of(plain_library(**static)) is None
    assert libc_of(library(needed=("libc.so",), versions_needed=())) is None  # Android's, or an old musl's


def test_requirements_of_other_systems_do_not_count() -> None:
    environment = linux_environment("x86_64", "cp311")
    requires = [
        'a; sys_platform == "win32"',
        'b; platform_machine == "aarch64"',
        'c; python_version < "3.11"',
        'd; platform_system == "Linux" and python_version >= "3.11"',
        'e; extra == "gpu" and sys_platform == "linux"',
    ]
    assert required_names(requires, environment=environment) == {"d"}
    assert required_names(requires, environment=environment, extras=True) == {"d", "e"}


def test_the_highest_versions_of_all_families() -> None:
    needs = symbol_needs({CORE: library(versions_needed=glibc("2.9", "2.14", "PRIVATE"))})
    assert highest_versions(needs) == {"GLIBC": "2.14"}


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("manylinux_2_28", "manylinux_2_28_aarch64"),
        ("manylinux2014", "manylinux_2_17_aarch64"),
        ("manylinux_2_28_x86_64", "manylinux_2_28_x86_64"),
        ("manylinux2014_aarch64", "manylinux_2_17_aarch64"),
    ],
)
def test_a_policy_by_name(text: str, tag: str) -> None:
    assert complete_policy(text, ["aarch64"], POLICIES) == tag


@pytest.mark.parametrize("text", ["manylinux_2_99", "linux_x86_64", "manylinux_2_28_vax", "", "glibc"])
def test_an_unknown_policy_names_the_known(text: str) -> None:
    with pytest.raises(UsageError, match=r"manylinux_2_17, manylinux_2_28, manylinux_2_34"):
        complete_policy(text, ["x86_64"], POLICIES)


@pytest.mark.parametrize(
    ("facts", "verdict"),
    [
        (sample(), "complies with its tags; its symbols allow manylinux_2_17_x86_64 (GLIBC 2.14)"),
        (
            sample(elfs={CORE: library(versions_needed=glibc("2.34"))}),
            "does not comply with manylinux_2_17_x86_64; its symbols allow manylinux_2_34_x86_64 (GLIBC 2.34)",
        ),
        (
            sample(elfs={CORE: library(needed=("libx.so",))}),
            (
                "complies with its tags, except for 1 library that no required package provides; "
                "its symbols allow manylinux_2_17_x86_64 (GLIBC 2.14)"
            ),
        ),
        (
            sample(filename="demo-1.0-cp311-cp311-linux_x86_64.whl"),
            "its tags set no limits on system libraries; its symbols allow manylinux_2_17_x86_64 (GLIBC 2.14)",
        ),
        (
            sample(filename="demo-1.0-py3-none-any.whl", elfs={}),
            "contains no machine code, so it works on every system",
        ),
        (
            sample(filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl", elfs={}),
            "contains no ELF files, so nothing in it depends on the platform that its tag names",
        ),
        (
            sample(filename="demo-1.0-cp311-cp311-win_amd64.whl", elfs={}),
            "built for Windows, so rules about ELF files and Linux platform tags do not apply",
        ),
        (
            sample(filename="demo-1.0-cp311-cp311-macosx_11_0_universal2.whl"),
            "built for macOS, so rules about ELF files and Linux platform tags do not apply",
        ),
        (
            sample(
                filename="demo-1.0-cp311-cp311-musllinux_1_2_x86_64.whl",
                elfs={CORE: library(needed=("libc.musl-x86_64.so.1",), versions_needed=())},
            ),
            "built for musl, which has no symbol versions, so it works with the musl release in its tag and later",
        ),
    ],
)
def test_the_verdict_is_one_sentence(facts: object, verdict: str) -> None:
    assert judge_platform(facts) == verdict  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "filename",
    [
        "demo-1.0-cp311-cp311-win_arm64.whl",
        "demo-1.0-cp313-cp313-ios_13_0_arm64_iphoneos.whl",
        "demo-1.0-cp311-cp311-macosx_10_9_x86_64.whl",
        "demo-1.0-cp27-cp27mu-manylinux1_x86_64.whl",
        "demo-1.0-py2.py3-none-any.whl",
        "demo-1.0-cp311-cp311-freebsd_14_x86_64.whl",
    ],
)
def test_tags_of_any_system_give_an_answer(filename: str) -> None:
    report = report_facts(sample(filename=filename, elfs={}))
    assert not report.failed
    assert report.verdict


def test_android_is_no_linux_and_links_to_libpython() -> None:
    elf = library(needed=("libc.so", "libpython3.13.so"), versions_needed=(), machine=183)
    module = "demo/_core.cpython-313-aarch64-linux-android.so"
    report = report_facts(sample(filename="demo-1.0-cp313-cp313-android_24_arm64_v8a.whl", elfs={module: elf}))
    assert [finding.severity for finding in report.findings] == ["info"] * len(report.findings)
