"""What tests of an installed SDK are made of: cases, their outcomes, and the processes that they start."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ._installed import Dist, find_dists
from ._sources import pip_command
from ._system import missing_system_libraries

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from ._sdk import Sdk, SdkPackage, SystemNeed

_MARK = "@result@"
_TAIL = 4000
_HIDING = ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")
_CHILD = f"""\
import json, sys, warnings
sys.path[:] = json.loads(sys.argv[1])
said = {{"error": "", "kind": "", "loaded": [], "value": None}}
try:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        said["value"] = run(sys.argv[2:])
    said["warnings"] = [str(each.message) for each in caught]
except Exception as error:
    said["error"], said["kind"] = str(error), type(error).__name__
try:
    with open("/proc/self/maps", errors="replace") as file:
        said["loaded"] = sorted({{line.split(maxsplit=5)[5].strip() for line in file if ".so" in line}})
except OSError:
    pass
sys.stdout.flush()
print("\\n{_MARK}" + json.dumps(said), flush=True)
"""


@dataclass(frozen=True)
class Outcome:
    """How a test went."""

    status: str
    """``passed``, ``failed``, ``skipped`` (what it tests is not installed here), or ``system`` (this can't be told: the
    host lacks a library that it must bring)."""
    text: str = ""
    """What is wrong, or why it was skipped; one line."""
    hint: str = ""
    """What to do."""


PASSED = Outcome("passed")


def failed(text: str, hint: str = "") -> Outcome:
    """Something of the SDK is wrong."""
    return Outcome("failed", one_line(text), one_line(hint))


def skipped(text: str, hint: str = "") -> Outcome:
    """What is tested is not there, and need not be."""
    return Outcome("skipped", one_line(text), one_line(hint))


def some(problems: Sequence[str], hint: str = "") -> Outcome:
    """Passed without any problems; else failed with the first of them and the number of the others."""
    if not problems:
        return PASSED
    others = f", and {len(problems) - 3} more" if len(problems) > 3 else ""
    return failed("; ".join(problems[:3]) + others, hint)


def one_line(text: str, most: int = 600) -> str:
    """Text without line ends and control characters, cut where it is long."""
    plain = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return plain if len(plain) <= most else f"{plain[: most - 4]} ..."


class NoTreeError(Exception):
    """The devel tree can't be expanded; the text says why."""


@dataclass(frozen=True)
class Case:
    """A test: of one thing of one package."""

    group: str
    dist: str
    subject: str
    run: Callable[[], Outcome]

    @property
    def name(self) -> str:
        """``load/rocm-sdk-core/amdhip64``."""
        return f"{self.group}/{self.dist}/{self.subject}"


@dataclass(frozen=True)
class Ran:
    """What a process left."""

    code: int
    out: str
    error: str
    late: bool = False
    """It took longer than it was given, and was killed."""

    @property
    def end(self) -> str:
        """How it ended, in words; empty where it ended well."""
        if self.late:
            return "did not finish in time and was killed"
        if self.code < 0:
            try:
                return f"was killed by {signal.Signals(-self.code).name}"
            except ValueError:
                return f"was killed by signal {-self.code}"
        return f"exited with code {self.code}" if self.code else ""

    @property
    def tail(self) -> str:
        """Its last words."""
        lines = [line.strip() for line in (self.error or self.out).splitlines() if line.strip()]
        return one_line(" | ".join(lines[-3:]), 300)


@dataclass(eq=False)
class Bench:
    """Where tests run: the SDK, and processes that see no GPU and none of the variables that change what it does."""

    sdk: Sdk
    timeout: float = 300.0
    """Seconds that a process may take."""
    stopping: bool = False
    _running: set[subprocess.Popen[str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _tree: Path | NoTreeError | None = None
    _tree_lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def installed(self) -> dict[SdkPackage, Path]:
        """Packages for run time that are there -> platform folder."""
        return self.sdk.installed()

    @cached_property
    def dists(self) -> dict[str, list[Dist]]:
        """Distributions of the SDK that are installed, by name; more than one where an uninstallation failed."""
        return find_dists(self.sdk)

    @cached_property
    def system_needs(self) -> dict[str, SystemNeed]:
        """Libraries that the host must bring, by SONAME."""
        return {need.soname: need for package in self.present for need in self.sdk.shipped(package).system}

    @cached_property
    def missing(self) -> set[str]:
        """Those of them that the host does not have."""
        return missing_system_libraries(list(self.system_needs))

    @cached_property
    def environ(self) -> dict[str, str]:
        """Variables for processes of tests."""
        prefix = self.sdk.file.prefix
        own = (
            f"{prefix}_PRELOAD_LIBRARIES",
            f"{prefix}_TARGET_FAMILY",
            f"{prefix}_VERBOSE",
            f"{prefix}_FORCE_GFX_ARCH",
        )
        kept = {name: text for name, text in os.environ.items() if name not in own}
        hidden = dict.fromkeys(_HIDING, "-1")
        return {**kept, **hidden, f"{prefix}_DISABLE_DETECTION": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    @cached_property
    def present(self) -> list[SdkPackage]:
        """All packages that are there, the devel package among them."""
        devel = self.sdk.devel_package()
        there = devel is not None and self.sdk.devel_module() is not None
        return [*self.installed, *([devel] if devel and there else [])]

    def tree(self) -> Path:
        """Root of the devel tree, which is expanded as its first user would do it.

        Raises:
            NoTreeError: it can't be.
        """
        with self._tree_lock:
            if isinstance(self._tree, NoTreeError):
                raise self._tree
            if self._tree is None:
                from ._devel import expand

                try:
                    self._tree = expand(self.sdk, quiet=True)
                except (ImportError, OSError, RuntimeError, ValueError) as error:
                    self._tree = NoTreeError(str(error))
                    raise self._tree from None
            return self._tree

    def again(self, dist: str) -> str:
        """How to install a distribution anew."""
        return pip_command(self.sdk, f"--force-reinstall --no-deps '{dist}=={self.sdk.file.version}'")

    def lacks(self, sonames: Sequence[str], how: str = "") -> Outcome:
        """What can't be told for want of libraries of the system."""
        needs = [(soname, self.system_needs.get(soname)) for soname in sonames]
        what = [
            need.package if need and need.package else f"the package that provides {soname}" for soname, need in needs
        ]
        hint = f"install {'; '.join(dict.fromkeys(what))} {how}".rstrip()
        return Outcome("system", f"missing from this system: {', '.join(sonames)}", one_line(hint))

    def prepare(self) -> None:
        """Find out now what several threads will ask for."""
        for known in (self.present, self.dists, self.system_needs, self.missing, self.environ):
            len(known)

    def spawn(self, words: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Ran:
        """Run a program to its end, or to that of its time; what it started dies with it.

        Raises:
            OSError: it can't be started.
        """
        with (
            tempfile.TemporaryFile("w+", errors="replace") as out,
            tempfile.TemporaryFile("w+", errors="replace") as err,
        ):
            with self._lock:
                if self.stopping:
                    raise InterruptedError("the tests were stopped")
                process = subprocess.Popen(
                    [str(word) for word in words],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    text=True,
                    env={**self.environ, **(env or {})},
                    cwd=cwd,
                    start_new_session=True,
                )
                self._running.add(process)
            late = False
            try:
                process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                late = True
            finally:
                _kill(process)
                process.wait()
                with self._lock:
                    self._running.discard(process)
            return Ran(process.returncode, _tail(out), _tail(err), late)

    def python(self, code: str, *arguments: str, env: Mapping[str, str] | None = None) -> tuple[dict[str, Any], Ran]:
        """Run a function ``run(arguments)`` in a fresh interpreter.

        Returns:
            What it said: ``value``, or ``error`` and ``kind`` of an exception; ``warnings``, and ``loaded`` (files).
            Empty where the process did not get so far.
        """
        words = [sys.executable, "-I", "-S", "-c", f"{code}\n{_CHILD}", json.dumps(sys.path), *arguments]
        ran = self.spawn(words, env)
        _, mark, said = ran.out.rpartition(_MARK)
        try:
            return (json.loads(said.splitlines()[0]) if mark else {}), ran
        except (ValueError, IndexError):
            return {}, ran

    def stop(self) -> None:
        """Kill what runs; nothing new is started."""
        with self._lock:
            self.stopping = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a process with all that it started."""
    with contextlib.suppress(OSError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        elif process.poll() is None:
            process.kill()


def _tail(file: Any) -> str:
    """The end of what a process wrote; the result of a test is the last of it."""
    file.seek(0, os.SEEK_END)
    size = file.tell()
    file.seek(max(0, size - (1 << 20)))
    text: str = file.read()
    return text


def timed(case: Case) -> tuple[Outcome, float]:
    """Run a test; whatever goes wrong in it is its outcome. Also the seconds that it took."""
    start = time.monotonic()
    try:
        outcome = case.run()
    except NoTreeError:
        outcome = skipped("the devel tree cannot be expanded")
    except Exception as error:  # noqa: BLE001  # a test that breaks is one that fails, the others go on
        outcome = failed(f"the test failed to run: {type(error).__name__}: {error}")
    return outcome, time.monotonic() - start
