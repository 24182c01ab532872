"""Rules about the machines and interpreters that a wheel's tags promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.check.engine import Case, Found, Rule, listing
from axletree.check.rules.dist_sample import CORE, glibc, library, plain_library, sample
from axletree.package.policy import SymbolNeed, broken_needs, parse_glibc
from axletree.package.tags import needs_cpython

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.check.dist import DistFacts

_UNLOADED = 1 << 20
_LIB = "demo/libdemo.so"


def _by_file(needs: Iterable[SymbolNeed]) -> dict[str, list[SymbolNeed]]:
    files: dict[str, list[SymbolNeed]] = {}
    for need in needs:
        files.setdefault(need.path, []).append(need)
    return files


def _text(need: SymbolNeed) -> str:
    return f"{need.family}_{need.version} of {need.library}"


def _above_tag(facts: DistFacts) -> Iterator[Found]:
    platform = facts.strictest
    if platform is None or platform.policy is None or platform.machine is None:
        return
    machine = platform.machine
    elfs = facts.elfs
    broken = broken_needs(facts.symbols, platform.policy, machine)
    for path, needs in _by_file(need for need in broken if elfs[need.path].architecture == machine).items():
        floor = facts.floors.get(machine, f"linux_{machine}")
        yield Found(
            where=path,
            message=f"it needs {', '.join(map(_text, needs[:3]))}, more than {platform.tag} promises",
            evidence=listing([*map(_text, needs)]),
            fix=f"tag the wheel {floor}, or build it with an older toolchain or sysroot",
        )


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
        message = f"it needs {_text(worst)}; {facts.glibc} was promised to be enough"
        yield Found(where=path, message=message, evidence=listing([*map(_text, needs)]))


def _unportable(facts: DistFacts) -> Iterator[Found]:
    for platform in facts.platforms:
        if not platform.tag.startswith("linux_") or platform.machine is None:
            continue
        floor = facts.floors.get(platform.machine, "any")
        allowed = f"; its files would allow {floor}" if floor != platform.tag else ""
        message = f"the tag {platform.tag} does not say which systems the wheel works on{allowed}"
        yield Found(where=facts.wheel.filename, message=message)


def _other_machine(facts: DistFacts) -> Iterator[Found]:
    promised = {platform.machine for platform in facts.platforms}
    for machine in sorted({elf.architecture for elf in facts.elfs.values() if elf.architecture} - promised):
        files = tuple(path for path, elf in facts.elfs.items() if elf.architecture == machine)
        message = (
            f"{len(files)} of its files are for {machine}, which the tag {facts.wheel.name.platform} does not name"
        )
        yield Found(where=files[0], message=message, evidence=listing(files))


def _damaged(facts: DistFacts) -> Iterator[Found]:
    for path, message in facts.scan.damaged_elfs:
        yield Found(where=path, message=message)


def _executable_stack(facts: DistFacts) -> Iterator[Found]:
    for path, elf in facts.elfs.items():
        if elf.stack != "plain" and elf.dynamic and elf.architecture is not None:
            reason = "asks for an executable stack" if elf.stack == "executable" else "does not say what stack it needs"
            yield Found(where=path, message=f"it {reason}")


def _over_tagged(facts: DistFacts) -> Iterator[Found]:
    name, elfs = facts.wheel.name, facts.elfs
    if not elfs or name.abi == "none" or any(needs_cpython(path, elf) for path, elf in elfs.items()):
        return
    message = f"no file needs CPython's symbols, yet the wheel is for {name.python}-{name.abi} only"
    fix = f"if its Python files fit other versions, tag it py3-none-{name.platform}: one wheel then serves all"
    yield Found(where=facts.wheel.filename, message=message, fix=fix)


def _under_tagged(facts: DistFacts) -> Iterator[Found]:
    name = facts.wheel.name
    if name.abi != "none" or not name.python.startswith(("py2", "py3")):
        return
    files = tuple(path for path, elf in facts.elfs.items() if elf.python_modules and elf.python_symbols)
    if files:
        message = f"{files[0]} is an extension module, yet the tags {name.python}-none fit every Python"
        yield Found(where=files[0], message=message, evidence=listing(files))


def _never_loaded(facts: DistFacts) -> Iterator[Found]:
    sizes = {path: elf.symbol_table + elf.debug for path, elf in facts.elfs.items()}
    total = sum(sizes.values())
    if total < _UNLOADED:
        return
    largest = sorted(sizes, key=lambda path: -sizes[path])[:10]
    evidence = tuple(f"{path}: {sizes[path] / 1e6:.1f} MB" for path in largest if sizes[path])
    message = f"{total / 1e6:.1f} MB of its files are symbol tables and debug sections that are never loaded"
    yield Found(where=facts.wheel.filename, message=message, evidence=evidence)


PLATFORM_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/glibc-above-tag",
        severity="error",
        title="A file needs newer system libraries than the platform tag promises",
        why="Installers take the wheel on older systems, where importing it fails with ``version `GLIBC_2.34' not "
        "found``.",
        fix="tag the wheel for what it needs, or build it with an older toolchain or sysroot",
        check=_above_tag,
        cases=(
            Case(
                title="GLIBC_2.34 under manylinux_2_17",
                facts=sample(elfs={CORE: library(versions_needed=glibc("2.34"))}),
                fires=True,
            ),
            Case(
                title="GLIBC_PRIVATE, which no tag grants",
                facts=sample(elfs={CORE: library(versions_needed=glibc("PRIVATE"))}),
                fires=True,
            ),
            Case(
                title="several tags, the lowest too low",
                facts=sample(
                    filename="demo-1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux_2_34_x86_64.whl",
                    elfs={CORE: library(versions_needed=glibc("2.34"))},
                ),
                fires=True,
            ),
            Case(title="GLIBC_2.14 under manylinux_2_17", facts=sample(), fires=False),
            Case(
                title="linux_x86_64, which promises nothing",
                facts=sample(
                    filename="demo-1.0-cp311-cp311-linux_x86_64.whl",
                    elfs={CORE: library(versions_needed=glibc("2.34"))},
                ),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/glibc-above-promise",
        severity="error",
        title="A file needs a newer glibc than was promised",
        why="The recipe (`glibc`) or `--glibc` names the oldest system that must work.",
        fix="build with an older toolchain or sysroot, or raise the promise",
        check=_above_promise,
        cases=(
            Case(
                title="GLIBC_2.34, promised 2.28",
                facts=sample(
                    filename="demo-1.0-cp311-cp311-manylinux_2_34_x86_64.whl",
                    elfs={CORE: library(versions_needed=glibc("2.34"))},
                    glibc="2.28",
                ),
                fires=True,
            ),
            Case(title="GLIBC_2.14, promised 2.17", facts=sample(glibc="2.17"), fires=False),
            Case(title="nothing promised", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/platform-unportable",
        severity="warning",
        title="The platform tag promises nothing about the system",
        why="`linux_x86_64` means `the machine that it was built on`; public indexes refuse it, and installers take it "
        "on systems that are too old for it.",
        fix="tag it for the lowest manylinux policy that its files allow",
        check=_unportable,
        cases=(
            Case(title="linux_x86_64", facts=sample(filename="demo-1.0-cp311-cp311-linux_x86_64.whl"), fires=True),
            Case(title="manylinux_2_17_x86_64", facts=sample(), fires=False),
            Case(title="any", facts=sample(filename="demo-1.0-py3-none-any.whl", elfs={}), fires=False),
        ),
    ),
    Rule(
        id="dist/machine-mismatch",
        severity="warning",
        title="A file is for another machine than the platform tag",
        why="It can't be loaded where the wheel is installed; at best it is dead weight.",
        fix="leave the file out, or tag the wheel for its machine",
        check=_other_machine,
        cases=(
            Case(title="an aarch64 file under x86_64", facts=sample(elfs={CORE: library(machine=183)}), fires=True),
            Case(title="a library under `any`", facts=sample(filename="demo-1.0-py3-none-any.whl"), fires=True),
            Case(title="GPU code", facts=sample(elfs={"demo/kernel.cubin": library(machine=190)}), fires=False),
        ),
    ),
    Rule(
        id="dist/elf-damaged",
        severity="error",
        title="A file begins as an ELF file but is none",
        why="No loader takes it; it was cut off or changed by a tool that does not know the format.",
        fix="build the file again; if a tool changed it, compare with `readelf -a` before and after",
        check=_damaged,
        cases=(
            Case(title="a file that was cut off", facts=sample(damaged=((_LIB, "cut off"),)), fires=True),
            Case(title="files that can be read", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/stack-executable",
        severity="error",
        title="A library makes the stack executable",
        why="glibc 2.41 and later refuse to load it into a running process (`cannot enable executable stack`); before, "
        "it takes a protection from the whole process. A file without the mark counts as asking for it.",
        fix="give assembly sources a `.note.GNU-stack` section, or link with `-z noexecstack`",
        check=_executable_stack,
        cases=(
            Case(title="marked executable", facts=sample(elfs={CORE: library(stack="executable")}), fires=True),
            Case(title="not marked", facts=sample(elfs={CORE: library(stack="unmarked")}), fires=True),
            Case(title="marked plain", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/python-too-narrow",
        severity="info",
        title="The wheel is tied to one Python though no file of it is",
        why="Libraries that are loaded by path (`torch.ops.load_library`, ctypes) don't use CPython's ABI; each "
        "further Python then costs a build and a download of the same bytes.",
        fix="tag the wheel py3-none, if its Python files fit other versions",
        check=_over_tagged,
        cases=(
            Case(title="cp311 without CPython symbols", facts=sample(elfs={_LIB: plain_library()}), fires=True),
            Case(title="cp311 with CPython symbols", facts=sample(), fires=False),
        ),
    ),
    Rule(
        id="dist/python-too-wide",
        severity="warning",
        title="The wheel promises every Python but holds an extension module",
        why="Importing the module fails, or crashes, under any Python but the one it was built for.",
        fix="tag the wheel for the Python that it was built for, or build against the stable ABI (abi3)",
        check=_under_tagged,
        cases=(
            Case(
                title="py3-none with PyInit_ and CPython symbols",
                facts=sample(filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl"),
                fires=True,
            ),
            Case(
                title="py3-none with a plain library",
                facts=sample(filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl", elfs={_LIB: plain_library()}),
                fires=False,
            ),
        ),
    ),
    Rule(
        id="dist/never-loaded",
        severity="info",
        title="Symbol tables and debug sections make the wheel larger",
        why="They are for debuggers; no loader reads them.",
        fix="link with `-s`, or run `strip --strip-unneeded` before packing; keep the unstripped files elsewhere",
        check=_never_loaded,
        cases=(
            Case(title="90 MB of .symtab", facts=sample(elfs={CORE: library(symbol_table=90_000_000)}), fires=True),
            Case(title="a few KB of .symtab", facts=sample(elfs={CORE: library(symbol_table=28_000)}), fires=False),
        ),
    ),
)
