"""Rules about the Pythons that a wheel's tags promise."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.check.engine import Found, Rule, fires, listing, silent, subject
from axletree.check.rules.wheel.sample import library, plain_library, sample
from axletree.package.wheel.tags import needs_cpython

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.check.dist import DistFacts

_VERSIONED = re.compile(r"\.cpython-(\d+[a-z]*)-")
_PURE = "demo-1.0-py3-none-any.whl"
_LIB = "demo/libdemo.so"


def _over_tagged(facts: DistFacts) -> Iterator[Found]:
    name, elfs = facts.wheel.name, facts.elfs
    if not elfs or name.abi == "none" or any(needs_cpython(path, elf) for path, elf in elfs.items()):
        return
    message = f"no file needs CPython's symbols, but the wheel is only for {name.python}-{name.abi}"
    fix = (
        f"if its Python files work with other versions, tag the wheel py3-none-{name.platform}: one wheel then "
        "works with all of them"
    )
    yield Found(facts.wheel.filename, message, fix=fix)


def _under_tagged(facts: DistFacts) -> Iterator[Found]:
    name = facts.wheel.name
    if name.abi != "none" or not name.python.startswith(("py2", "py3")):
        return
    files = tuple(path for path, elf in facts.elfs.items() if elf.python_modules and elf.python_symbols)
    builds = {found[1] for path in files if (found := _VERSIONED.search(path))}
    if files and len(builds) < 2:  # named for several Pythons, each takes its own
        what = subject(files, "is an extension module", "are extension modules")
        message = f"{what}, but the tags {name.python}-none match every Python version"
        yield Found(files[0], message, evidence=listing(files))


def _nothing_compiled(facts: DistFacts) -> Iterator[Found]:
    if facts.compilers and not facts.elfs:
        message = f"the wheel contains no extension module, although its stage declares {' and '.join(facts.compilers)}"
        yield Found(facts.wheel.filename, message)


def _other_python(facts: DistFacts) -> Iterator[Found]:
    """Modules whose file names fit none of the Pythons that the tags name.

    An interpreter looks for ``NAME.cpython-311-x86_64-linux-gnu.so`` of its own, ``NAME.abi3.so`` and ``NAME.so``.
    """
    abis = facts.wheel.name.abi.split(".")
    wanted = {abi.removeprefix("cp") for abi in abis if re.fullmatch(r"cp\d+[a-z]*", abi)}
    if not wanted and "abi3" not in abis:
        return
    builds: dict[str, dict[str, str]] = {}
    for path, elf in facts.elfs.items():
        if elf.python_modules:
            name = path.rpartition("/")[2].partition(".")[0]
            found = _VERSIONED.search(path)
            builds.setdefault(f"{path.rpartition('/')[0]}/{name}", {})[found[1] if found else ""] = path
    lost = [
        path
        for files in builds.values()
        if "" not in files and ("abi3" in abis or wanted.isdisjoint(files))
        for path in files.values()
    ]
    if lost:
        tags = f"{facts.wheel.name.python}-{facts.wheel.name.abi}"
        message = f"{subject(lost, 'has', 'have')} a name that Python versions with the tags {tags} do not look for"
        yield Found(lost[0], message, evidence=listing(lost))


PYTHON_RULES: tuple[Rule[DistFacts], ...] = (
    Rule(
        id="dist/python-too-narrow",
        severity="info",
        title="The wheel is tied to one Python version although none of its files are",
        why="Libraries that are loaded by path (`torch.ops.load_library`, ctypes) do not use CPython's ABI. Each "
        "additional Python version then needs another build and another download of the same bytes.",
        fix="tag the wheel py3-none if its Python files work with other versions",
        check=_over_tagged,
        cases=lambda: (
            fires("a cp311 wheel without CPython symbols", sample(elfs={_LIB: plain_library()})),
            silent("a cp311 wheel with CPython symbols", sample()),
        ),
    ),
    Rule(
        id="dist/python-other",
        severity="error",
        title="An extension module is named for a different Python version than the wheel's tags",
        why="Python looks only for file names that match its own version, so importing this module fails with `No "
        "module named` under every version except the one in its file name.",
        fix="build the module with the tag's Python version; for abi3, use `py_limited_api=True`, which names "
        "the file `.abi3.so`",
        check=_other_python,
        cases=lambda: (
            fires("a 3.11 module with a cp39 tag", sample(filename="demo-1.0-cp39-cp39-manylinux_2_17_x86_64.whl")),
            fires("a 3.11 module with an abi3 tag", sample(filename="demo-1.0-cp311-abi3-manylinux_2_17_x86_64.whl")),
            silent(
                "a stray build next to the correct one",
                sample(elfs={f"demo/_core.cpython-{python}-x86_64-linux-gnu.so": library() for python in (310, 311)}),
            ),
            silent(
                "names without a version",
                sample(
                    filename="demo-1.0-cp311-abi3-manylinux_2_17_x86_64.whl",
                    elfs={"demo/_a.abi3.so": library(), "demo/_b.so": library()},
                ),
            ),
            silent("a 3.11 module with a cp311 tag", sample()),
        ),
    ),
    Rule(
        id="dist/python-too-wide",
        severity="warning",
        title="The wheel is tagged for every Python version but contains an extension module",
        why="Importing the module fails or crashes under any Python version except the one it was built for.",
        fix=(
            "change the Python tag to the version that the wheel was built for, or build it against the stable "
            "ABI (abi3)"
        ),
        check=_under_tagged,
        cases=lambda: (
            fires(
                "a py3-none wheel with PyInit_ and CPython symbols",
                sample(filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl"),
            ),
            silent(
                "a py3-none wheel with a build for each Python version",
                sample(
                    filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl",
                    elfs={f"demo/_core.cpython-{python}-x86_64-linux-gnu.so": library() for python in (311, 312)},
                ),
            ),
            silent(
                "a py3-none wheel with a plain library",
                sample(filename="demo-1.0-py3-none-manylinux_2_17_x86_64.whl", elfs={_LIB: plain_library()}),
            ),
        ),
    ),
    Rule(
        id="dist/nothing-compiled",
        severity="warning",
        title="The wheel contains no extension module, although its build asked for a compiler",
        why=(
            "If a header or a compiler is missing, or a variable is not set, many projects silently build a wheel that "
            "contains only Python files. The wheel works, but slowly."
        ),
        fix=(
            "set what the build stage's log reports as missing\nor remove the compilers from its tools if the "
            "project has nothing to compile"
        ),
        check=_nothing_compiled,
        cases=lambda: (
            fires(
                "a wheel without binaries from a stage that declares cc",
                msgspec.structs.replace(sample(filename=_PURE, elfs={}), compilers=("cc",)),
            ),
            silent("a wheel without binaries from a stage without compilers", sample(filename=_PURE, elfs={})),
            silent("a wheel with an extension module", msgspec.structs.replace(sample(), compilers=("cc", "c++"))),
        ),
    ),
)
