"""All facts of a host at once: probes side by side, then everything private is taken out."""

from __future__ import annotations

import getpass
import os
import threading
from typing import TYPE_CHECKING, TypeVar

from axletree.check.host.facts import HostFacts
from axletree.check.host.gpu import Cuda, Rocm
from axletree.check.host.libraries import Libraries
from axletree.check.host.python import Git, Pythons
from axletree.check.host.system import Cpu, Memory, System
from axletree.check.host.toolchain import Toolchain
from axletree.host.facts.build_tools import toolchain_facts
from axletree.host.facts.cuda import cuda_facts, find_toolkits
from axletree.host.facts.cuda import library_folders as cuda_folders
from axletree.host.facts.disks import disk_facts
from axletree.host.facts.loader import Loader
from axletree.host.facts.math import library_facts
from axletree.host.facts.memory import memory_facts
from axletree.host.facts.packaging import git_facts
from axletree.host.facts.privacy import scrubbed, scrubber
from axletree.host.facts.processor import processor_facts
from axletree.host.facts.python import python_facts
from axletree.host.facts.rocm import find_roots, rocm_facts
from axletree.host.facts.rocm import library_folders as rocm_folders
from axletree.host.facts.survey import LibraryFolder, Survey, wheel_places
from axletree.host.facts.system import system_facts
from axletree.host.facts.variables import variable_facts

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Callable

    from axletree.check.host.gpu import CudaToolkit, RocmRoot
    from axletree.check.host.toolchain import Compiler
    from axletree.host.facts.access import Access

P = TypeVar("P")
_INTEL = ("/opt/intel/oneapi/mkl/latest", "/opt/intel/mkl", "/opt/intel")
_ROOTS = ("MKLROOT", "MAGMA_HOME", "OpenBLAS_HOME")
_SECONDS = 180.0
"""How long a probe may take in all; each program that it runs has its own, shorter limit."""


class _Asked:
    """Probes in threads of their own. One that fails in a way that nobody thought of takes only itself away.

    So does one that waits for ever, as a folder on a dead network disk makes it: its thread is left behind, and ends
    with the process.
    """

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}

    def __call__(self, name: str, probe: Callable[[], P]) -> Callable[[], P | None]:
        """Start a probe; what comes back waits for it."""
        found: list[P] = []
        trouble: list[str] = []

        def work() -> None:
            try:
                found.append(probe())
            except Exception as error:  # noqa: BLE001 (a host that surprises a probe must still tell all else)
                trouble.append(f"the probe failed: {type(error).__name__}: {error}"[:300])

        thread = threading.Thread(target=work, name=f"facts of {name}", daemon=True)
        thread.start()

        def result() -> P | None:
            thread.join(_SECONDS)
            silent = f"the probe failed: no response within {_SECONDS:g} s"
            self.sources[name] = "see its own sources" if found else next(iter(trouble), silent)
            return next(iter(found), None)

        return result


def gather_facts(access: Access, *, taken: dt.datetime, version: str) -> HostFacts:
    """Everything that is known of a host, without credentials, names of users, and the machine's name.

    Args:
        access: the way to the host.
        taken: now.
        version: Axletree's.
    """
    loader = Loader(access=access)
    asked = _Asked()
    toolchain = asked("toolchain", lambda: toolchain_facts(access, loader))
    python = asked("python", lambda: python_facts(access))
    system = asked("system", lambda: system_facts(access))
    cpu = asked("cpu", lambda: processor_facts(access))
    memory = asked("memory", lambda: memory_facts(access))
    disks = asked("disks", lambda: disk_facts(access))
    git = asked("git", lambda: git_facts(access))
    sites = _site_folders(python())
    kits = asked("cuda", lambda: find_toolkits(access, sites))() or ()
    roots = asked("rocm", lambda: find_roots(access, sites))() or ()
    includes = _includes(access, toolchain())
    survey = Survey(access=access, loader=loader, places=_places(access, toolchain(), kits, roots, sites))
    cuda = asked("cuda", lambda: cuda_facts(access, loader, survey, kits, includes))
    rocm = asked("rocm", lambda: rocm_facts(access, survey, roots))
    libraries = asked("libraries", lambda: library_facts(access, loader, survey, includes))
    facts = HostFacts(
        taken=taken.strftime("%Y-%m-%dT%H:%M:%SZ"),
        axletree=version,
        system=system() or System(),
        cpu=cpu() or Cpu(),
        memory=memory() or Memory(),
        disks=disks(),
        toolchain=toolchain() or Toolchain(),
        python=python() or Pythons(),
        git=git() or Git(),
        cuda=cuda() or Cuda(),
        rocm=rocm() or Rocm(),
        libraries=libraries() or Libraries(),
        variables=variable_facts(access.environ),
        sources=asked.sources
        | {
            "axletree": "this program",
            "taken": "the clock",
            "variables": "the environment",
        },
    )
    return scrubbed(facts, scrubber(home=access.home, user=_user(), machine=os.uname().nodename))


def _user() -> str | None:
    """Name of the user; ``None`` where the system has none for the number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None


def _site_folders(python: Pythons | None) -> tuple[str, ...]:
    """Folders of installed packages, those of the first interpreter first."""
    interpreters = (python.interpreters if python else None) or ()
    folders = (each.site_packages for each in interpreters)
    return tuple(dict.fromkeys(folder for folder in folders if folder))


def _cxx(toolchain: Toolchain | None) -> Compiler | None:
    compilers = (toolchain.compilers if toolchain else None) or ()
    return next((each for each in compilers if each.language == "c++"), None)


def _includes(access: Access, toolchain: Toolchain | None) -> tuple[str, ...]:
    """Folders of headers that libraries may have: the C++ compiler's, conda's, those of variables, Intel's."""
    cxx = _cxx(toolchain)
    prefix = access.environ.get("CONDA_PREFIX")
    more = [f"{prefix}/include", f"{prefix}/targets/x86_64-linux/include"] if prefix else []
    more += [f"{access.environ[name]}/include" for name in _ROOTS if access.environ.get(name)]
    more += [f"{folder}/include" for folder in _INTEL]
    return tuple(folder for folder in (*((cxx.includes if cxx else None) or ()), *more) if access.exists(folder))


def _places(
    access: Access,
    toolchain: Toolchain | None,
    toolkits: tuple[CudaToolkit, ...],
    roots: tuple[RocmRoot, ...],
    sites: tuple[str, ...],
) -> tuple[LibraryFolder, ...]:
    """Folders of libraries beside the loader's: compilers', toolkits', conda's, Intel's, wheels'."""
    cxx = _cxx(toolchain)
    places = [LibraryFolder(folder=folder, origin="compiler") for folder in (cxx.libraries if cxx else None) or ()]
    for kit in toolkits:
        places += [LibraryFolder(folder=folder, origin="cuda toolkit") for folder in cuda_folders(access, kit.root)]
    for root in roots:
        places += [LibraryFolder(folder=folder, origin="rocm") for folder in rocm_folders(access, root.root)]
    if access.environ.get("CONDA_PREFIX"):
        places.append(LibraryFolder(folder=f"{access.environ['CONDA_PREFIX'].rstrip('/')}/lib", origin="conda"))
    named = [(name, access.environ[name].rstrip("/")) for name in _ROOTS if access.environ.get(name)]
    named += [(folder, folder) for folder in _INTEL]
    places += [
        LibraryFolder(folder=f"{folder}/{rest}", origin=name)
        for name, folder in named
        for rest in ("lib", "lib/intel64")
    ]
    places += [LibraryFolder(folder=folder, origin=folder) for folder in ("/usr/local/lib", "/usr/local/magma/lib")]
    return (*places, *wheel_places(access, sites))
