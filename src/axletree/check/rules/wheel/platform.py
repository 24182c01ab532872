"""Rules about the systems that a wheel's tags promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import glibc, library, plain_library, sample
from axletree.core.grouping import grouped
from axletree.core.units import some_of
from axletree.package.libraries.platforms import libc_of
from axletree.package.libraries.policy import SymbolNeed, broken_needs, parse_glibc

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.dist import DistFacts
    from axletree.package.libraries.platforms import Platform

_MUSL_NAME = "demo-1.0-cp311-cp311-musllinux_1_2_x86_64.whl"
_SHOWN = 3


def _by_file(needs: Iterable[SymbolNeed]) -> dict[str, list[SymbolNeed]]:
    return grouped((need.path, need) for need in needs)


def _text(need: SymbolNeed) -> str:
    return f"{need.family}_{need.version} from {need.library}"


def _above(facts: DistFacts, platform: Platform) -> dict[str, list[SymbolNeed]]:
    """File -> symbol versions that it needs beyond a platform's promise."""
    if platform.policy is None or platform.machine is None or platform.system != "glibc":
        return {}
    elfs, machine = facts.elfs, platform.machine
    broken = broken_needs(facts.symbols, platform.policy, machine)
    return _by_file(need for need in broken if elfs[need.path].architecture == machine)


def _above_tag(facts: DistFacts) -> Iterator[Found]:
    platform = facts.strictest
    if platform is not None:
        floor = facts.floors.get(platform.machine or "", f"linux_{platform.machine}")
        fix = f"tag the wheel {floor}, or build it with an older toolchain or sysroot"
        yield from _too_new(_above(facts, platform), platform, fix)


def _too_new(above: dict[str, list[SymbolNeed]], platform: Platform, fix: str | None = None) -> Iterator[Found]:
    """One finding for all files that need the same too much."""
    groups = grouped((tuple(dict.fromkeys(map(_text, needs))), path) for path, needs in above.items())
    for texts, paths in groups.items():
        versions = some_of(texts, _SHOWN, what="version")
        message = f"{subject(paths, 'needs', 'need')} {versions}, which is more than {platform.tag} promises"
        evidence = (*listing(texts), *listing(paths))
        yield Found(paths[0], message, evidence=evidence, fix=fix)


def _above_wanted(facts: DistFacts) -> Iterator[Found]:
    wanted = facts.wanted
    if wanted is None:
        return
    yield from _too_new(_above(facts, wanted), wanted)
    for need in facts.needs:
        if need.owner == "system" and wanted.policy and not _promises(wanted, need.soname):
            message = f"{subject(need.files, 'needs', 'need')} {need.soname}, which {wanted.tag} does not promise"
            yield Found(need.files[0], message, evidence=listing(need.files))
    others = [path for path, elf in facts.elfs.items() if elf.architecture not in {None, wanted.machine}]
    if others:
        message = f"{subject(others, 'is', 'are')} for a different machine than {wanted.tag}"
        yield Found(others[0], message, evidence=listing(others))
    yield from _linked_otherwise(facts, wanted)


def _promises(platform: Platform, soname: str) -> bool:
    """Whether a platform has a library; its loader and its C library it has by definition."""
    return soname.startswith(("ld-", "ld64.", "libc.")) or (
        platform.policy is not None and soname in platform.policy.libraries
    )


def _other_libc(facts: DistFacts) -> Iterator[Found]:
    for platform in facts.platforms:
        yield from _linked_otherwise(facts, platform)


def _linked_otherwise(facts: DistFacts, platform: Platform) -> Iterator[Found]:
    """Files that are linked to another C library than a platform's."""
    expected = platform.system
    if expected not in {"glibc", "musl"}:
        return
    files = [path for path, elf in facts.elfs.items() if libc_of(elf) not in {None, expected}]
    if files:
        other = "glibc" if expected == "musl" else "musl"
        message = (
            f"{subject(files, 'is', 'are')} linked to {other}, which systems with the tag {platform.tag} do not have"
        )
        yield Found(files[0], message, evidence=listing(files))


def _above_promise(facts: DistFacts) -> Iterator[Found]:
    promised = parse_glibc(facts.glibc or "")
    if promised is None:
        return
    above = [
        need
        for need in facts.symbols
        if need.family == "GLIBC" and (version := parse_glibc(need.version)) is not None and version > promised
    ]
    for path, needs in _by_file(above).items():
        worst = max(needs, key=lambda need: parse_glibc(need.version) or ())
        message = f"this file needs {_text(worst)}, but the package promises to work with glibc {facts.glibc}"
        yield Found(path, message, evidence=listing([*map(_text, needs)]))


def _unportable(facts: DistFacts) -> Iterator[Found]:
    for platform in facts.platforms:
        # For 32-bit ARM there is no older baseline worth a policy, and public indexes take the plain tag.
        if platform.system != "linux" or platform.machine in {None, "armv6l", "armv7l"}:
            continue
        floor = facts.floors.get(platform.machine or "", "any")
        allowed = f"; its files would allow {floor}" if floor != platform.tag else ""
        message = f"the tag {platform.tag} does not specify which systems the wheel works on{allowed}"
        yield Found(facts.wheel.filename, message)


PLATFORM_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/glibc-above-tag",
        severity="error",
        title="A file needs newer system libraries than the platform tag promises",
        why="Installers select the wheel on older systems, where importing it fails with ``version `GLIBC_2.34' "
        "not found``.",
        fix="choose a tag that promises the versions that the wheel needs, or build it with an older toolchain or "
        "sysroot",
        check=_above_tag,
        cases=lambda: (
            fires("GLIBC_2.34 with a manylinux_2_17 tag", sample(library(versions_needed=glibc("2.34")))),
            fires("GLIBC_PRIVATE, which no tag promises", sample(library(versions_needed=glibc("PRIVATE")))),
            fires(
                "several tags; the lowest is too low",
                sample(
                    library(versions_needed=glibc("2.34")),
                    filename="demo-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux_2_34_x86_64.whl",
                ),
            ),
            silent("GLIBC_2.14 with a manylinux_2_17 tag", sample()),
            silent(
                "a tag between two policies, with a sufficient glibc version",
                sample(
                    library(versions_needed=glibc("2.25")), filename="demo-1.0-cp311-cp311-manylinux_2_25_x86_64.whl"
                ),
            ),
            silent(
                "linux_x86_64, which makes no promise",
                sample(library(versions_needed=glibc("2.34")), filename="demo-1.0-cp311-cp311-linux_x86_64.whl"),
            ),
        ),
    ),
    Rule(
        id="dist/glibc-above-promise",
        severity="error",
        title="A file needs a newer glibc than promised",
        why="The recipe (`glibc`) or `--glibc` names the oldest system that the wheel must support.",
        fix="build the wheel with an older toolchain or sysroot, or raise `glibc` in the recipe's package",
        check=_above_promise,
        cases=lambda: (
            fires(
                "GLIBC_2.34 needed, 2.28 promised",
                sample(
                    library(versions_needed=glibc("2.34")),
                    filename="demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl",
                    glibc="2.28",
                ),
            ),
            silent("GLIBC_2.14 needed, 2.17 promised", sample(glibc="2.17")),
            silent("no glibc promised", sample()),
        ),
    ),
    Rule(
        id="dist/policy-unmet",
        severity="error",
        title="A file needs more than the requested policy promises",
        why="`--policy` names the systems that must be able to load the wheel.",
        fix=(
            "build the wheel for the policy's architecture and C library, with an older toolchain or sysroot, "
            "or request a different policy with `--policy`"
        ),
        check=_above_wanted,
        cases=lambda: (
            fires(
                "GLIBC_2.34 needed, manylinux_2_28 requested",
                sample(
                    library(versions_needed=glibc("2.34")),
                    filename="demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl",
                    wanted="manylinux_2_28_x86_64",
                ),
            ),
            fires("linked to glibc, musllinux requested", sample(wanted="musllinux_1_2_x86_64")),
            fires("a different machine requested", sample(wanted="manylinux_2_28_aarch64")),
            silent("GLIBC_2.14 needed, manylinux_2_28 requested", sample(wanted="manylinux_2_28_x86_64")),
            silent("no policy requested", sample()),
        ),
    ),
    Rule(
        id="dist/libc-mismatch",
        severity="error",
        title="A file is linked to a different C library than the platform tag names",
        why="glibc and musl are not interchangeable: the loader finds neither the library nor its symbols.",
        fix="build the wheel in a manylinux or musllinux image that matches the tag, or correct the tag",
        check=_other_libc,
        cases=lambda: (
            fires("glibc with a musllinux tag", sample(filename=_MUSL_NAME)),
            fires("musl with a manylinux tag", sample(library(needed=("libc.musl-x86_64.so.1",), versions_needed=()))),
            silent(
                "musl with a musllinux tag",
                sample(library(needed=("libc.musl-x86_64.so.1",), versions_needed=()), filename=_MUSL_NAME),
            ),
            silent(
                "a static program with both tags",
                sample(
                    filename="demo-1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_2_x86_64.whl",
                    elfs={"demo/tool": plain_library(kind="executable", needed=(), versions_needed=())},
                ),
            ),
        ),
    ),
    Rule(
        id="dist/platform-unportable",
        severity="warning",
        title="The platform tag promises nothing about the system",
        why="The tag `linux_x86_64` promises only that the wheel works on the machine that it was built on. Public "
        "indexes reject it, and installers accept it on systems that are too old for it.",
        fix="change the platform tag to the lowest one that the files allow: `axletree repair WHEEL`",
        check=_unportable,
        cases=lambda: (
            fires("linux_x86_64", sample(filename="demo-1.0-cp311-cp311-linux_x86_64.whl")),
            silent("linux_armv7l", sample(filename="demo-1.0-py3-none-linux_armv7l.whl", elfs={})),
            silent("manylinux_2_17_x86_64", sample()),
            silent("any", sample(filename="demo-1.0-py3-none-any.whl", elfs={})),
        ),
    ),
)

GLIBC_PROMISE = next(rule for rule in PLATFORM_RULES if rule.id == "dist/glibc-above-promise")
"""The one that a conda package can be asked too: nothing else there is promised by a tag."""
