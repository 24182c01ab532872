"""Proves in which order compilers, linkers and the loader look, by having them do it."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from axletree.binary.elf.facts import read_elf
from axletree.core.errors import AxletreeError
from axletree.environment.gcc import name_in
from axletree.environment.layers import SYSTEM
from axletree.environment.loader import refused_file, why_not_started
from axletree.environment.verify import Choice, Origin, Proof, Verified, inversions, merged
from axletree.host.archive import map_file
from axletree.host.environment.asking import (
    SEARCHES,
    compile_probe,
    find_compilers,
    library_folders,
    link_probe,
    look,
    names_below,
    run_probe,
)
from axletree.host.facts.elf import newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from axletree.environment.delta import Order
    from axletree.environment.gcc import SearchList
    from axletree.environment.linker import Linked
    from axletree.environment.loader import Loaded
    from axletree.host.environment.asking import FoundCompiler, ProbeRun, Ran

_PROBED = {
    "gcc": ("cstdio", "string"),
    "clang": ("cstdio", "string"),
    "nvcc": ("string", "cuda_runtime.h", "thrust/version.h", "cub/version.cuh"),
    "hipcc": ("string", "hip/hip_version.h", "thrust/version.h"),
}
_CONFIRMED = 3
"""Names of one pair of folders that a tool is asked about: each asks for a process."""
_ITSELF = "the compiler itself"
_TRIES = 8


def verify_environment(
    name: str,
    order: Order,
    environ: Mapping[str, str],
    *,
    compilers: Sequence[str] = (),
    note: Callable[[str], None] = lambda _: None,
) -> Verified:
    """See what each compiler on PATH really does.

    Args:
        name: the environment's folder, ``system`` without one.
        order: what it wants.
        environ: variables with the environment active.
        compilers: names of those that are asked; all where there is none.
        note: told which one is asked.
    """
    wanted = {way: _real(entry.path for entry in getattr(order, way)) for way in ("include", "link", "run")}
    proofs = []
    for compiler in find_compilers(environ, only=compilers):
        note(f"asking {compiler.name}")
        with tempfile.TemporaryDirectory(prefix="axletree-verify-") as folder:
            proofs.append(_Asking(compiler, order, environ, Path(folder)).prove())
    return Verified(environment=name, proofs=tuple(proofs), **wanted)


class _Asking:
    """One compiler, with and without the variables of the user."""

    def __init__(self, compiler: FoundCompiler, order: Order, environ: Mapping[str, str], scratch: Path) -> None:
        self.compiler, self.order, self.environ, self.scratch = compiler, order, environ, scratch
        self.trouble: list[str] = []
        self.tools, self.now, self.now_ran = self._startable(environ)
        self.own = {name: value for name, value in environ.items() if name not in SEARCHES}
        if order.run:
            self.own["LD_LIBRARY_PATH"] = ":".join(entry.path for entry in order.run)
        # A compiler whose own libraries are only found by the user's variable.
        self.usual, _, ran = look(compiler, (), self.own, scratch)
        if self.usual is None and "LD_LIBRARY_PATH" in self.tools:
            self.own["LD_LIBRARY_PATH"] = self.tools["LD_LIBRARY_PATH"]
            self.usual, _, ran = look(compiler, (), self.own, scratch)
        if self.usual is None and self.now is not None:
            self.trouble.append(ran.trouble)

    def _startable(self, environ: Mapping[str, str]) -> tuple[dict[str, str], SearchList | None, Ran]:
        """Variables with which the compiler starts: a planted library can keep that from working too."""
        result = dict(environ)
        folders, _, ran = look(self.compiler, (), result, self.scratch)
        for _ in range(_TRIES):
            words, file = why_not_started(ran.err), refused_file(ran.err)
            if folders is not None or words is None:
                break
            self.trouble.append(words)
            bad = os.path.realpath(os.path.dirname(file)) if file is not None else None  # noqa: PTH120
            listed = result.get("LD_LIBRARY_PATH", "").split(":")
            kept = [folder for folder in listed if os.path.realpath(folder) != bad]
            if kept == listed:
                break
            result["LD_LIBRARY_PATH"] = ":".join(kept)
            folders, _, ran = look(self.compiler, (), result, self.scratch)
        return result, folders, ran

    def prove(self) -> Proof:
        include, headers, moved = self._headers()
        program, linked = self._link()
        loaded = self._load(program) if program is not None else ()
        return Proof(
            compiler=self.compiler.name,
            path=self.compiler.path,
            kind=self.compiler.kind,
            version=self.compiler.version,
            include=include,
            headers=headers,
            linked=linked,
            loaded=loaded,
            moved=moved,
            trouble=tuple(dict.fromkeys(self.trouble)),
        )

    def _headers(self) -> tuple[tuple[Origin, ...], tuple[Choice, ...], tuple[str, ...]]:
        if self.now is None:
            self.trouble.append(self.now_ran.trouble)
            return (), (), ()
        own = _real(self.usual.angle) if self.usual is not None else ()
        actual = _real(self.now.angle)
        expected = merged(self._wanted(own), own)
        origins = tuple(Origin(path=path, by=self._origin(path, own, "include")) for path in actual)
        by = {origin.path: origin.by for origin in origins}
        names = [name for name in _PROBED[self.compiler.kind] if any(Path(each, name).is_file() for each in actual)]
        names += _in_several(expected, actual)
        choices: dict[str, Choice] = {}
        together = self._chosen(dict.fromkeys(names))
        for name in dict.fromkeys(names):
            # One header that can't be read keeps those behind it from being read.
            chosen = together.get(name) or self._chosen([name]).get(name)
            right = next((folder for folder in expected if Path(folder, name).is_file()), None)
            if chosen is not None:
                path = os.path.join(right or chosen, name)  # noqa: PTH118 (both are texts)
                actual_path = os.path.join(chosen, name)  # noqa: PTH118
                choices[name] = Choice(name=name, actual=actual_path, expected=path, by=by.get(chosen, _ITSELF))
        wanted = _real(entry.path for entry in self.order.include)
        moved = tuple(
            path for path in _real(self.now.moved) if path in wanted and not _keeps_place(path, wanted, actual)
        )
        return origins, tuple(choices.values()), moved

    def _wanted(self, own: Sequence[str]) -> tuple[str, ...]:
        """What the environment wants first; nvcc's own toolkit is before that, whatever is asked."""
        wanted = _real(entry.path for entry in self.order.include)
        if self.compiler.kind != "nvcc":
            return wanted
        return (*(folder for folder in own if folder not in SYSTEM and _has_cuda(Path(folder))), *wanted)

    def _chosen(self, names: Iterable[str]) -> dict[str, str]:
        """Header -> the folder, by its real name, that the compiler takes it from."""
        names = tuple(names)
        folders, headers, _ = look(self.compiler, names, self.tools, self.scratch)
        # Compilers print a folder as it was given, or by a shorter name of it; a folder inside may be a link elsewhere.
        given = folders.angle if folders is not None else ()
        spellings = {each: os.path.realpath(path) for path in given for each in (path, os.path.realpath(path))}
        found: dict[str, str] = {}
        for header in headers:
            place = name_in(header, tuple(spellings))
            if place is not None and place[1] in names:
                found.setdefault(place[1], spellings[place[0]])
        return found

    def _origin(self, path: str, own: Sequence[str], way: str) -> str:
        for entry in getattr(self.order, way):
            if os.path.realpath(entry.path) == path:
                return str(entry.origin)
        if path in own:
            return _ITSELF
        for variable in SEARCHES:
            value = self.environ.get(variable, "")
            if path in _real(re.split(r":|\s|-isystem|-I|-L", value)):
                return variable
        return "its command line or configuration"

    def _link(self) -> tuple[Path | None, tuple[Choice, ...]]:
        program = self.scratch / "probe"
        thing, ran = compile_probe(self.compiler, self.tools, self.scratch)
        if ran.code:
            self.trouble.append(ran.trouble)
            thing, ran = compile_probe(self.compiler, self.own, self.scratch)
            if ran.code:
                return None, ()
        own, own_ran = link_probe(self.compiler, thing, self.scratch / "usual", self.own)
        folders = library_folders(self.compiler, self.own)
        linked, ran = link_probe(self.compiler, thing, program, self.tools)
        choices = list(self._linked(linked, own, folders))
        for name in self._doubtful(folders):
            if not any(choice.name.startswith(f"lib{name}.") for choice in choices):
                more, _ = link_probe(self.compiler, thing, self.scratch / "more", self.tools, libraries=(name,))
                choices += [each for each in self._linked(more, own, folders) if each.name.startswith(f"lib{name}.")]
        if ran.code:
            self.trouble.append(ran.trouble)
            program, ran = self.scratch / "usual", own_ran
        return (None if ran.code else program), tuple(choices)

    def _doubtful(self, folders: Sequence[str]) -> Iterator[str]:
        """Libraries in folders that the environment does not want, and that are elsewhere too."""
        wanted = _real(entry.path for entry in self.order.link)
        count = 0
        told = [self.environ.get(name, "") for name in ("LDFLAGS", "LIBRARY_PATH")]
        for folder in _real(re.split(r":|\s|-L", ":".join(told))):
            if folder in wanted:
                continue
            for path in sorted(Path(folder).glob("lib*.so")) if folder.startswith("/") else ():
                if count < _CONFIRMED and any(Path(other, path.name).exists() for other in (*wanted, *folders)):
                    count += 1
                    yield path.name[3:-3]

    def _linked(self, linked: Sequence[Linked], own: Sequence[Linked], folders: Sequence[str]) -> Iterator[Choice]:
        wanted = _real(entry.path for entry in self.order.link)
        usual = {each.name: os.path.realpath(each.path) for each in own}
        seen: set[str] = set()
        for each in linked:
            if each.name in seen or each.path.endswith("_nonshared.a"):
                continue
            seen.add(each.name)
            places = (*wanted, *(() if each.name in usual else folders))
            right = next((Path(folder, each.name) for folder in places if Path(folder, each.name).exists()), None)
            actual = os.path.realpath(each.path)
            expected = os.path.realpath(right) if right is not None else usual.get(each.name, actual)
            folder = os.path.realpath(os.path.dirname(each.path))  # noqa: PTH120
            by = self._origin(folder, folders, "link")
            yield _choice(each.name, actual, expected, by)

    def _load(self, program: Path) -> tuple[Choice, ...]:
        now = run_probe(program, self.environ)
        refused = why_not_started(now.ran.err)
        if refused is not None:
            self.trouble.append(refused)
        elif now.ran.code:
            self.trouble.append(f"the probe ended with exit code {now.ran.code}")
        usual = {each.name: each.path for each in self._usual(program, now).loaded}
        return tuple(self._loaded(now, usual))

    def _usual(self, program: Path, now: ProbeRun) -> ProbeRun:
        """The probe with the environment's own order only; what is then nowhere gets a stand-in, behind all else."""
        stand_in = self.scratch / "stand-in"
        stand_in.mkdir(exist_ok=True)
        variables = {name: value for name, value in self.environ.items() if name not in SEARCHES}
        folders = [*(entry.path for entry in self.order.run), str(stand_in)]
        variables["LD_LIBRARY_PATH"] = ":".join(folders)
        taken = {each.name: each.path for each in now.loaded}
        usual = run_probe(program, variables)
        for _ in range(_TRIES):
            absent = next((name for name in taken if f"libraries: {name}:" in usual.ran.err), None)
            if absent is None or (stand_in / absent).exists():
                break
            (stand_in / absent).symlink_to(taken[absent])
            usual = run_probe(program, variables)
        return usual

    def _loaded(self, now: ProbeRun, usual: Mapping[str, str]) -> Iterator[Choice]:
        mapped = {os.path.realpath(path) for path in now.mapped}
        for each in now.loaded:
            actual = os.path.realpath(each.path)
            if mapped and actual not in mapped:
                actual = self._mapped_as(each, mapped) or actual
            expected = os.path.realpath(usual.get(each.name, each.path))
            yield _choice(each.name, actual, expected, self._loader_origin(each))

    def _mapped_as(self, loaded: Loaded, mapped: set[str]) -> str | None:
        return next((path for path in mapped if os.path.basename(path).startswith(loaded.name)), None)  # noqa: PTH119

    def _loader_origin(self, loaded: Loaded) -> str:
        folder = os.path.realpath(os.path.dirname(loaded.path))  # noqa: PTH120
        for entry in self.order.run:
            if os.path.realpath(entry.path) == folder:
                return entry.origin
        return loaded.by


def _has_cuda(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("cuda_runtime.h", "thrust/version.h", "cuda/std"))


def _choice(name: str, actual: str, expected: str, by: str) -> Choice:
    told = name.startswith("libstdc++.so") and actual != expected
    return Choice(
        name=name,
        actual=actual,
        expected=expected,
        by=by,
        actual_version=_newest(actual) if told else None,
        expected_version=_newest(expected) if told else None,
    )


def _newest(path: str) -> str | None:
    """The newest symbol version of a C++ library."""
    try:
        defined = read_elf(map_file(Path(path)), name=path).versions_defined
    except AxletreeError:
        return None
    number = newest(defined, "GLIBCXX_")
    return f"GLIBCXX_{number}" if number is not None else None


def _in_several(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    """Headers that lie in two folders which the compiler looks into in the wrong order; a few of each pair."""
    found: list[str] = []
    for early, late in inversions(expected, actual):
        names = (name for name in names_below(early) if Path(late, name).is_file())
        found += [name for name, _ in zip(names, range(_CONFIRMED), strict=False)]
    return found


def _keeps_place(path: str, wanted: Sequence[str], actual: Sequence[str]) -> bool:
    """Whether a folder is before those of the environment that it should be before."""
    behind = [other for other in wanted[wanted.index(path) + 1 :] if other in actual]
    return path in actual and all(actual.index(path) < actual.index(other) for other in behind)


def _real(paths: Iterator[str] | Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(os.path.realpath(path) for path in paths if path))
