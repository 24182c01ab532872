"""A small SDK as pip leaves it in a site directory: the selector with its vendored runtime, and the other packages.

Its libraries are real ones (a few kilobytes) that need each other as ROCm's do: ``amdhip64`` needs ``amd_comgr`` and
``hsa-runtime64``, ``hiprand`` needs ``rocrand`` and ``amdhip64``, ``hipsparse`` needs ``rocsparse``, whose GPU code
comes for a family or a single target. Each has a function of its own name; that of ``rocsparse`` tells its package.
"""

from __future__ import annotations

import atexit
import base64
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.package.sdk import shipped
from support.elfs import compile_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


def pip_hint(*words: str) -> str:
    """What is said of how to install packages of rocm, where the installer kept no record of where they came from."""
    alone = "PIP_CONFIG_FILE=/dev/null pip --isolated install --no-index --find-links PLACE"
    return " && ".join(f"{alone} {each}" for each in words) + " # PLACE: the folder or page with the packages of rocm"


RUNTIME = Path(__file__).parents[2] / "src" / "axletree_runtime"
VERSION = "7.1.0"
SCRIPT = '#!/bin/sh\necho "{name} $0 $*"\n'
"""A program of the payload: says who it is, where it lies and what it was called with."""

_NEEDS: dict[str, tuple[str, ...]] = {
    "libamd_comgr.so.3": (),
    "libhsa-runtime64.so.1": (),
    "libamdhip64.so.7": ("libamd_comgr.so.3", "libhsa-runtime64.so.1"),
    "libroctx64.so.4": (),
    "librocrand.so.1": ("libamdhip64.so.7",),
    "libhiprand.so.1": ("librocrand.so.1", "libamdhip64.so.7"),
    "librocsparse.so.1": ("libamdhip64.so.7",),
    "libhipsparse.so.1": ("librocsparse.so.1", "libamdhip64.so.7"),
}
_CORE = ("libamd_comgr.so.3", "libhsa-runtime64.so.1", "libamdhip64.so.7", "libroctx64.so.4")
_NEUTRAL = ("librocrand.so.1", "libhiprand.so.1", "libhipsparse.so.1")
_GPU = ("librocsparse.so.1",)
FAMILIES = {"gfx94x": ("gfx941", "gfx942"), "gfx110x": ("gfx1100", "gfx1101")}
TARGETS = ("gfx942", "gfx1100")
"""Those that have a device package."""
_DEVEL_FILES = {
    "include/hip/hip_runtime.h": b"#pragma once\n",
    "amdgcn/bitcode/ocml.bc": b"BC",
    "lib/cmake/hip/hip-config.cmake": b"set(HIP_FOUND TRUE)\n",
    "lib/llvm/bin/clang": SCRIPT.format(name="clang").encode(),
}
_DEVEL_LINKS = {
    "llvm": "lib/llvm",
    "bin/amdclang": "../llvm/bin/clang",
    "lib/libamdhip64.so": "libamdhip64.so.7",
}


@dataclass(frozen=True)
class Site:
    """Where the small SDK is installed."""

    folder: Path
    """The site directory."""
    scripts: Path
    """Folder of console scripts."""
    sdk: shipped.SdkFile

    def python(self, code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run Python code with the site directory on its path; see :meth:`run`."""
        return self.run("-c", code, *arguments, **options)

    def command(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the SDK's command, ``rocm-sdk``; see :meth:`run`."""
        return self.run("-m", self.sdk.module, *arguments, **options)

    def run(
        self, *words: str | Path, python: str | Path = sys.executable, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run an interpreter, without what the host's variables say of GPUs and SDKs, and with detection off."""
        known = ("HIP", "ROCR", "ROCM", "CUDA", "HSA", "GPU", "LD_", "PYTHON", self.sdk.prefix)
        kept = {name: text for name, text in os.environ.items() if not name.startswith(known)}
        variables = {
            **kept,
            "PYTHONPATH": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            f"{self.sdk.prefix}_DISABLE_DETECTION": "1",
            **(env or {}),
        }
        return subprocess.run([python, *words], env=variables, capture_output=True, text=True, check=False)

    def remove(self, *dists: str) -> None:
        """Remove distributions as pip does: what RECORD lists, and folders that this empties."""
        for dist in dists:
            (record,) = self.folder.glob(f"{dist.replace('-', '_')}-*.dist-info/RECORD")
            names = [line.partition(",")[0] for line in record.read_text().splitlines()]
            for name in names:
                (self.folder / name).unlink(missing_ok=True)
            for folder in sorted({up for name in names for up in Path(name).parents}, key=lambda up: -len(up.parts)):
                place = self.folder / folder
                if folder != Path() and place.is_dir() and not any(place.iterdir()):
                    place.rmdir()


def packages(*, prefix: str = "rocm-sdk") -> tuple[shipped.SdkPackage, ...]:
    """All packages of the small SDK, as its selector knows them."""
    base = prefix.replace("-", "_")

    def make(name: str, kind: shipped.Kind, part: str, sonames: tuple[str, ...], **fields: Any) -> shipped.SdkPackage:
        folder = f"_{base}_{part.replace('-', '_')}"
        shortnames = tuple(sorted(map(shortname, sonames)))
        dist = f"{prefix}-{part}"
        return shipped.SdkPackage(package=name, kind=kind, dist=dist, folder=folder, shortnames=shortnames, **fields)

    return (
        make("core", "core", "core", _CORE),
        make("libraries", "libraries", "libraries", _NEUTRAL, extra="libraries"),
        *(
            make("libraries", "device", f"libraries-{name}", _GPU, extra=f"libraries-{name}", targets=targets)
            for name, targets in FAMILIES.items()
        ),
        *(
            make("libraries", "device", f"device-{name}", _GPU, extra=f"device-{name}", targets=(name,))
            for name in TARGETS
        ),
        make("devel", "devel", "devel", (), extra="devel"),
    )


def sdk_file(*, prefix: str = "rocm-sdk", module: str = "rocm_sdk", **changes: Any) -> shipped.SdkFile:
    """What the selector of the small SDK ships; ``changes`` are other values of its fields."""
    values: dict[str, Any] = {
        "sdk": "rocm",
        "dist": "rocm",
        "module": module,
        "command": prefix,
        "prefix": prefix.upper().replace("-", "_"),
        "version": VERSION,
        "packages": packages(prefix=prefix),
        "default_family": "gfx94x",
        "families": {**FAMILIES, **{target: (target,) for target in TARGETS}},
        "hierarchy": {
            **{target: (family,) for family, targets in FAMILIES.items() for target in targets},
            "gfx1036": ("gfx103x",),
        },
        "preload_order": tuple(map(shortname, _NEEDS)),
        "environment": {"ROCM_PATH": "{root}", "HIP_DEVICE_LIB_PATH": "{root}/amdgcn/bitcode"},
        "cmake_package": "hip",
    }
    return shipped.SdkFile(**{**values, **changes})


def shortname(soname: str) -> str:
    """``libamdhip64.so.7`` -> ``amdhip64``."""
    return soname.removeprefix("lib").partition(".so")[0]


def make_site(
    tmp_path: Path,
    *,
    only: Iterable[str] | None = None,
    site: Path | None = None,
    scripts: Path | None = None,
    versions: Mapping[str, str] | None = None,
    devel_files: Mapping[str, bytes] | None = None,
    **changes: Any,
) -> Site:
    """Install the small SDK.

    Args:
        tmp_path: where ``site-packages`` and ``bin`` are made.
        only: names of distributions without their common beginning (``core``, ``device-gfx942``); None: all.
        site: the site directory of an environment to install into instead.
        scripts: its folder of console scripts.
        versions: such a name -> another version than the SDK's.
        devel_files: further files of the devel payload.
        changes: see :func:`sdk_file`.
    """
    sdk = sdk_file(**changes)
    made = Site(folder=site or tmp_path / "site-packages", scripts=scripts or tmp_path / "bin", sdk=sdk)
    made.scripts.mkdir(parents=True, exist_ok=True)
    runtime = {f"{sdk.module}/{path.name}": path.read_bytes() for path in RUNTIME.glob("*.py")}
    encoded = msgspec.json.encode(sdk, order="sorted")
    _install(made, sdk.dist, sdk.version, {**runtime, f"{sdk.module}/{shipped.FILE}": encoded})
    for package in sdk.packages:
        part = package.dist.removeprefix(f"{sdk.command}-")
        if only is None or part in only:
            _install_package(made, package, (versions or {}).get(part, sdk.version), devel_files or {})
    return made


def _install_package(site: Site, package: shipped.SdkPackage, version: str, devel_files: Mapping[str, bytes]) -> None:
    about = package_file(site.sdk, package, version)
    encoded = msgspec.json.encode(about, order="sorted")
    module = package.dist.replace("-", "_")
    if package.kind == "devel":
        payload = devel_tar(site.sdk, {**_DEVEL_FILES, **devel_files})
        files = {"__init__.py": b"", shipped.FILE: encoded, "_devel.tar": payload}
        _install(site, package.dist, version, {f"{module}/{name}": content for name, content in files.items()})
        return
    files = {"__init__.py": b"", shipped.FILE: encoded, **_payload(package)}
    _install(site, package.dist, version, {f"{package.folder}/{name}": content for name, content in files.items()})
    for command in about.commands:
        (site.folder / package.folder / command.path).chmod(0o755)
        script = site.scripts / command.name
        call = f"from {site.sdk.module}._launch import launch\nlaunch({package.folder!r}, {command.name!r})\n"
        script.write_text(f"#!{sys.executable}\n{call}")
        script.chmod(0o755)


def package_file(sdk: shipped.SdkFile, package: shipped.SdkPackage, version: str) -> shipped.PackageFile:
    """What a package's platform folder ships."""
    commands: tuple[shipped.ShippedCommand, ...] = ()
    if package.kind == "core":
        commands = (
            shipped.ShippedCommand(name="hipcc", path="bin/hipcc", devel=True),
            shipped.ShippedCommand(name="rocminfo", path="bin/rocminfo", args=("-h",), expect="rocminfo"),
        )
    libraries = tuple(
        shipped.ShippedLibrary(shortname=shortname(each), path=f"lib/{each}", soname=each, needs=_NEEDS[each])
        for each in _sonames(package)
    )
    return shipped.PackageFile(
        sdk=sdk.sdk,
        package=package.package,
        kind=package.kind,
        dist=package.dist,
        version=version,
        folder=package.folder,
        targets=package.targets,
        libraries=libraries,
        commands=commands,
        system=(shipped.SystemNeed(soname="libc.so.6", package="glibc"),),
    )


def devel_tar(sdk: shipped.SdkFile, files: Mapping[str, bytes]) -> bytes:
    """The devel payload: its own files, and links to those of the packages for run time."""
    links = dict(_DEVEL_LINKS)
    for package in sdk.packages:
        if package.kind == "core" or (package.kind == "libraries" and not package.targets):
            for name in _payload(package):
                links[name] = f"{'../' * (name.count('/') + 1)}{package.folder}/{name}"
    folders = {str(up) for name in (*files, *links) for up in Path(name).parents} - {"."}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted({*files, *links, *folders}):
            member = tarfile.TarInfo(name)
            member.mode = 0o755 if name in folders or "bin/" in name else 0o644
            if name in files:
                member.size = len(files[name])
                tar.addfile(member, io.BytesIO(files[name]))
            else:
                member.type = tarfile.DIRTYPE if name in folders else tarfile.SYMTYPE
                member.linkname = links.get(name, "")
                tar.addfile(member)
    return buffer.getvalue()


def _sonames(package: shipped.SdkPackage) -> tuple[str, ...]:
    return _CORE if package.kind == "core" else _GPU if package.targets else _NEUTRAL if package.shortnames else ()


def _payload(package: shipped.SdkPackage) -> dict[str, bytes]:
    built = _built(package.dist, _sonames(package))
    found = {f"lib/{path.name}": path.read_bytes() for path in built}
    if package.kind == "core":
        found |= {f"bin/{name}": SCRIPT.format(name=name).encode() for name in ("hipcc", "rocminfo")}
    return found


@cache
def _built(dist: str, sonames: tuple[str, ...]) -> tuple[Path, ...]:
    """Libraries of a package, compiled once for all tests. They find what they need in the folders beside their own."""
    base = f"_{dist.partition('-core')[0].partition('-libraries')[0].partition('-device')[0].replace('-', '_')}"
    parts = ("core", "libraries", *(f"libraries_{each}" for each in FAMILIES), *(f"device_{each}" for each in TARGETS))
    paths = ":".join(("$ORIGIN", *(f"$ORIGIN/../../{base}_{part}/lib" for part in parts)))
    found = []
    for soname in sonames:
        name = shortname(soname).replace("-", "_")
        value = f'const char *{name}(void) {{ return "{dist}"; }}\n'
        needs = [_stub(each) for each in _NEEDS[soname]]
        flags = ("-Wl,--disable-new-dtags", f"-Wl,-rpath,{paths}", "-Wl,--allow-shlib-undefined", *map(str, needs))
        folder = _scratch() / dist
        folder.mkdir(exist_ok=True)
        found.append(compile_library(folder / soname, *flags, source=value))
    return tuple(found)


@cache
def _stub(soname: str) -> Path:
    """An empty library of a name: what the others are linked with."""
    folder = _scratch() / "stubs"
    folder.mkdir(exist_ok=True)
    return compile_library(folder / soname, source="")


@cache
def _scratch() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="small-sdk-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _install(site: Site, dist: str, version: str, files: Mapping[str, bytes]) -> None:
    info = f"{dist.replace('-', '_')}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {dist}\nVersion: {version}\n".encode()
    wheel = b"Wheel-Version: 1.0\nGenerator: small-sdk\nRoot-Is-Purelib: false\nTag: py3-none-any\n"
    every = {**files, f"{info}/METADATA": metadata, f"{info}/WHEEL": wheel, f"{info}/INSTALLER": b"pip\n"}
    rows = []
    for name, content in every.items():
        path = site.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    (site.folder / info / "RECORD").write_text("\n".join([*rows, f"{info}/RECORD,,"]) + "\n")


def interpreter(version: str) -> Path:
    """Another Python of this machine, such as ``3.9``; skips where there is none."""
    name = f"python{version}"
    tried = [found] if (found := shutil.which(name)) else []
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    tried += [str(path) for path in sorted(root.glob(f"versions/{version}*/bin/{name}"))]
    for path in tried:
        if subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return Path(path)
    pytest.skip(f"needs Python {version}")
