"""Axletree itself in a container: a portable copy of its Python, its modules, and uv.

Nothing is installed in the image. The container's Python is a virtual environment of the store, whose modules are those
folders of this process that the engine mounts.
"""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import axletree
from axletree.core.errors import HostError
from axletree.disk import part_folder, sync_files
from axletree.host.files import file_errors
from axletree.host.indexes import uv_program
from axletree.host.interpreters import probe
from axletree.host.portable_python import make_portable
from axletree.host.portable_survey import survey
from axletree.plan.containers import TOOL, Mount, module_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from axletree.host.portable_python import PortablePython
    from axletree.package.python.portable import Portable

_PROGRAMS = f"{TOOL}/bin"


@dataclass(frozen=True)
class Tooling:
    """What a container needs to run ``axletree run-stage``."""

    python: str
    """Path of the interpreter in the container."""
    mounts: tuple[Mount, ...]
    """What else the container must have."""


def make_tooling(pythons: Path, *, seen: Path, surveyed: Iterable[Portable], environ: Mapping[str, str]) -> Tooling:
    """Make what a container needs to run Axletree, unless it is there.

    Args:
        pythons: folder of the store for portable Pythons.
        seen: where a container sees that folder.
        surveyed: portable Pythons of which the build knows already what they are made of.
        environ: variables with which the interpreter is asked.

    Raises:
        HostError: the Python that runs Axletree cannot be copied, or a file cannot be written.
    """
    base = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    known = (each for each in surveyed if Path(each.install.executable) == base)
    portable = next(known, None) or _survey(base, environ)
    made = make_portable(portable, pythons / portable.id, home=str(seen / portable.id))
    folders = module_sources()
    name = f"tool-{portable.id[:16]}-{len(folders)}"
    _make_environment(pythons / name, made, len(folders))
    uv = Path(uv_program()).resolve()
    pairs = [*zip(map(str, folders), module_folders(len(folders)), strict=True), (str(uv), f"{_PROGRAMS}/uv")]
    strange = [source for source, _ in pairs if ":" in source]
    if strange:
        raise HostError(
            f"podman and docker cannot mount a path with a colon: {strange[0]}",
            hint="install Axletree in another folder, or use --runner namespace",
        )
    mounts = tuple(Mount(source=source, target=target) for source, target in pairs)
    return Tooling(f"{seen / name}/bin/python", mounts)


def _survey(base: Path, environ: Mapping[str, str]) -> Portable:
    interpreter = probe(base, environ=environ)
    if interpreter is None:
        raise HostError(f"the Python that runs Axletree does not work: {base}", hint="reinstall Axletree")
    return survey(interpreter, environ=environ, for_builds=False)


def module_sources() -> tuple[Path, ...]:
    """Folders from which this process imports what is not in the standard library."""
    given = sys.path if sys.flags.safe_path else sys.path[1:]
    own = {Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib")}
    own |= {folder / "lib-dynload" for folder in own}
    found = [Path(each).resolve() for each in given if each and Path(each).is_dir()]
    home = Path(axletree.__file__).resolve().parents[1]  # an editable installation may use no search path
    return tuple(folder for folder in dict.fromkeys([*found, home]) if folder not in own)


def _make_environment(folder: Path, made: PortablePython, modules: int) -> None:
    """A virtual environment of the portable Python whose modules are in the container's folders."""
    with file_errors(folder, "cannot be written", precise=True):
        if folder.exists():
            return
        with part_folder(folder) as part:
            site = part / "lib" / Path(made.program).name / "site-packages"
            site.mkdir(parents=True)
            (site / "axletree.pth").write_text("".join(f"{place}\n" for place in module_folders(modules)))
            (part / "pyvenv.cfg").write_text(f"home = {made.home}/bin\nversion = {made.version}\n")
            programs = part / "bin"
            programs.mkdir()
            (programs / "python").symlink_to(f"{made.home}/{made.program}")
            (programs / "uv").symlink_to(f"{_PROGRAMS}/uv")
            sync_files(str(part), ())
            try:
                part.rename(folder)
            except OSError:
                if not folder.exists():
                    raise  # else another process was faster
