"""ROCm: roots, GPUs as the kernel lists them, tools, libraries. Nothing of ROCm needs to be installed to see a GPU."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from axletree.check.host.gpu import INTEGRATED, AmdGpu, Rocm, RocmRoot
from axletree.check.host.part import HostLibrary
from axletree.host.facts.access import Seen, each_once, find_tool
from axletree.host.facts.names import host_names, library_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.host.facts.access import Access
    from axletree.host.facts.survey import Survey

_NODES = "/sys/class/kfd/kfd/topology/nodes"
_AMD = 0x1002


def find_roots(access: Access, site_folders: Iterable[str]) -> tuple[RocmRoot, ...]:
    """Every ROCm installation; the one that a build takes is first.

    Args:
        access: the host.
        site_folders: folders of installed Python packages.
    """
    roots = (_root(access, *place) for place in each_once(access, _places(access, site_folders)))
    return tuple(each for each in roots if each.version or each.hip_version or each.hipcc != "none")


def _places(access: Access, site_folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in ("ROCM_PATH", "ROCM_HOME", "HIP_PATH"):
        if access.environ.get(name):
            yield access.environ[name].rstrip("/").removesuffix("/hip") or "/", name
    path = access.which("hipcc")
    if path is not None:
        yield access.real(path).rpartition("/bin/")[0] or "/", "PATH"
    yield "/opt/rocm", "/opt/rocm"
    for folder in access.glob("/opt", "rocm-[0-9]*"):
        yield folder, "/opt"
    if access.environ.get("CONDA_PREFIX"):
        yield access.environ["CONDA_PREFIX"].rstrip("/"), "conda"
    for site in site_folders:
        for folder in access.glob(site, "_rocm_sdk_*"):
            yield folder, "wheel"
    if access.is_file("/usr/include/hip/hip_version.h"):
        yield "/usr", "distribution"


def _root(access: Access, root: str, real: str, found_by: tuple[str, ...]) -> RocmRoot:
    seen = Seen()
    seen.put("root", ", ".join(found_by), root)
    seen.put("real", "by resolving symbolic links", real)
    seen.put("found_by", "the place where it was found", found_by)
    base = "" if root == "/" else root
    stated, source = access.peek(f"{base}/.info/version"), ".info/version"
    if not stated:
        stated = _macros(
            access, f"{base}/include/rocm-core/rocm_version.h", "ROCM_VERSION_{}", ("MAJOR", "MINOR", "PATCH")
        )
        source = "rocm_version.h" if stated else "neither .info/version nor rocm_version.h was found"
    seen.put("version", source, stated.split("-")[0].strip() if stated else None)
    hip = _macros(access, f"{base}/include/hip/hip_version.h", "HIP_VERSION_{}", ("MAJOR", "MINOR", "PATCH"))
    source = "hip/hip_version.h"
    if hip is None:
        text = next(
            (text for name in ("bin/.hipVersion", "share/hip/version") if (text := access.peek(f"{base}/{name}"))), ""
        )
        parts = [re.search(rf"HIP_VERSION_{name}=(\d+)", text or "") for name in ("MAJOR", "MINOR", "PATCH")]
        hip = ".".join(part[1] for part in parts if part) or None
        source = ".hipVersion" if hip else "neither hip_version.h nor .hipVersion was found"
    seen.put("hip_version", source, hip)
    seen.put("hipcc", "bin/hipcc", access.which(f"{base}/bin/hipcc") or "none")
    patterns = (
        "amdgcn/bitcode/ocml.bc",
        "lib/llvm/lib/clang/*/lib/amdgcn/bitcode/ocml.bc",
        "lib/*/amdgcn/bitcode/ocml.bc",
    )
    devices = [file.rpartition("/")[0] for pattern in patterns for file in access.glob(root, pattern)]
    seen.put("device_libraries", "ocml.bc in the root folder", tuple(dict.fromkeys(devices)))
    headers = host_names().parts["rocm"].items()
    missing = [part for part, name in headers if not access.is_file(f"{base}/include/{name}")]
    seen.put("missing", "one header from each part", tuple(missing))
    return RocmRoot(**seen.values, sources=seen.sources)


def _macros(access: Access, file: str, pattern: str, names: Iterable[str]) -> str | None:
    text = access.peek(file) or ""
    found = [re.search(rf"^\s*#define\s+{pattern.format(name)}\s+(\d+)", text, re.MULTILINE) for name in names]
    return ".".join(match[1] for match in found if match) or None


def library_folders(access: Access, root: str) -> tuple[str, ...]:
    """Folders of an installation's libraries."""
    base = "" if root == "/" else root
    return tuple(folder for folder in (f"{base}/lib", f"{base}/lib64", f"{base}/hip/lib") if access.exists(folder))


def rocm_facts(access: Access, survey: Survey, roots: tuple[RocmRoot, ...]) -> Rocm:
    """Everything of ROCm.

    Args:
        access: the host.
        survey: its libraries.
        roots: see :func:`find_roots`.
    """
    seen = Seen()
    seen.put("roots", "environment variables, hipcc on PATH, /opt, conda, wheels, /usr", roots)
    nodes = access.names(_NODES)
    source = f"{_NODES}/*/properties" if nodes else f"{_NODES}: not found"
    seen.put("gpus", source, tuple(kfd_gpus(access)) if nodes or access.exists("/sys/module") else None)
    module = access.peek("/sys/module/amdgpu/version") or ("in-tree" if access.exists("/sys/module/amdgpu") else "none")
    seen.put("module", "/sys/module/amdgpu", module)
    kfd = _may_open(access, "/dev/kfd") if access.exists("/dev/kfd") else None
    seen.put("kfd", "access(2) of /dev/kfd" if kfd is not None else "/dev/kfd does not exist", kfd)
    render = [f"/dev/dri/{name}" for name in access.names("/dev/dri") if name.startswith("renderD")]
    seen.put("render_nodes", "access(2) of /dev/dri/renderD*", {name: _may_open(access, name) for name in render})
    seen.put("dxg", "/dev/dxg", access.exists("/dev/dxg"))
    places = [f"{each.root.rstrip('/')}/bin" for each in roots] + [
        f"{each.root.rstrip('/')}/llvm/bin" for each in roots
    ]
    _enumerate(access, seen, places)
    tools = host_names().rocm_tools
    found = [find_tool(access, path) for name in tools if (path := _program(access, name, places)) is not None]
    seen.put("tools", "PATH and the bin folders of the roots", tuple(tool for tool in found if tool is not None))
    seen.put(
        "libraries", "the loader's search path, roots, conda, wheels", survey.find(library_names("rocm"), HostLibrary)
    )
    return Rocm(**seen.values, sources=seen.sources)


def kfd_gpus(access: Access) -> Iterator[AmdGpu]:
    """The GPUs of KFD's topology, in its order; its nodes are processors and GPUs.

    See "KFD topology" in the kernel's amdgpu driver; the number of a target is ``major * 10000 + minor * 100 +
    stepping``.
    """
    for node in sorted((name for name in access.names(_NODES) if name.isdigit()), key=int):
        lines = (line.split() for line in (access.peek(f"{_NODES}/{node}/properties") or "").splitlines())
        fields = {words[0]: int(words[1]) for words in lines if len(words) == 2 and words[1].isdigit()}
        if not fields.get("simd_count") or fields.get("vendor_id", _AMD) != _AMD:
            continue
        number = fields.get("gfx_target_version", 0)
        gfx = gfx_name(number) if number else None
        integrated = fields.get("cpu_cores_count", 0) > 0 or gfx in INTEGRATED
        device = f"{fields['device_id']:#06x}" if "device_id" in fields else None
        seen = Seen()
        stated = {"node": int(node), "gfx": gfx, "simds": fields.get("simd_count"), "device": device}
        for field, value in stated.items():
            seen.put(field, "the node's properties", value)
        seen.put("memory", "the node's mem_banks of types 1 and 2", _own_memory(access, f"{_NODES}/{node}"))
        seen.put("integrated", "whether the node also has CPU cores, or LLVM lists the name as an APU", integrated)
        yield AmdGpu(**seen.values, sources=seen.sources)


def gfx_name(number: int) -> str:
    """The name of a target: 90010 -> ``gfx90a``, 110501 -> ``gfx1151``."""
    major, minor, stepping = number // 10000, number // 100 % 100, number % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _own_memory(access: Access, node: str) -> int | None:
    sizes: list[int] = []
    for bank in access.names(f"{node}/mem_banks"):
        lines = (line.split() for line in (access.peek(f"{node}/mem_banks/{bank}/properties") or "").splitlines())
        fields = {words[0]: words[1] for words in lines if len(words) == 2}
        if fields.get("heap_type") in {"1", "2"} and fields.get("size_in_bytes", "").isdigit():
            sizes.append(int(fields["size_in_bytes"]))
    return sum(sizes) if sizes else None


def _may_open(access: Access, path: str) -> bool:
    return os.access(access.path(path), os.R_OK | os.W_OK)


def _program(access: Access, name: str, folders: Iterable[str]) -> str | None:
    candidates = (access.which(name), *(access.which(f"{folder}/{name}") for folder in folders))
    return next((path for path in candidates if path is not None), None)


def _enumerate(access: Access, seen: Seen, folders: list[str]) -> None:
    """Ask the vendor's own programs; a root's ``offload-arch`` that is a Python package's entry point is not run.

    That one would unpack gigabytes to answer.
    """
    program = _program(access, "rocm_agent_enumerator", folders)
    if program is None:
        seen.put("agents", "rocm_agent_enumerator was not found", None)
    else:
        said = access.ask(program)
        agents = tuple(
            line.strip() for line in said.out.splitlines() if line.startswith("gfx") and line.strip() != "gfx000"
        )
        source = "rocm_agent_enumerator" + ("" if said.code == 0 else f": {said.trouble}")
        seen.put("agents", source, agents if said.code == 0 else None)
    for name in ("offload-arch", "amdgpu-arch"):
        path = _program(access, name, folders)
        if path is None or (access.peek(path) or "").startswith("#!"):
            continue
        said = access.ask(path)
        archs = tuple(line.strip() for line in said.out.splitlines() if line.startswith("gfx"))
        seen.put(
            "offload_archs", name if said.code == 0 else f"{name}: {said.trouble}", archs if said.code == 0 else None
        )
        return
    seen.put("offload_archs", "neither offload-arch nor amdgpu-arch was found", None)
