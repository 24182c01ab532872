"""CUDA toolkits, their libraries and headers, and packages for forward compatibility."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from axletree.check.host.gpu import CompatPackage, Cuda, CudaToolkit
from axletree.check.host.part import HostLibrary
from axletree.host.facts.access import Seen, each_once, read_version
from axletree.host.facts.gpu_compilers import nvcc_root
from axletree.host.facts.names import host_names, library_names
from axletree.host.facts.nvidia_driver import driver_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from axletree.host.facts.access import Access
    from axletree.host.facts.loader import Loader
    from axletree.host.facts.survey import Survey


def find_toolkits(access: Access, site_folders: Iterable[str]) -> tuple[CudaToolkit, ...]:
    """Every toolkit; the one that a build takes is first.

    Args:
        access: the host.
        site_folders: folders of installed Python packages.
    """
    toolkits = (_toolkit(access, *place) for place in each_once(access, _roots(access, site_folders)))
    return tuple(kit for kit in toolkits if kit.version is not None or kit.nvcc not in {None, "none"})


def _roots(access: Access, site_folders: Iterable[str]) -> Iterator[tuple[str, str]]:
    for name in ("CUDA_HOME", "CUDA_PATH", "CUDA_TOOLKIT_ROOT_DIR", "CUDAToolkit_ROOT"):
        if access.environ.get(name):
            yield access.environ[name].rstrip("/"), name
    path = access.which("nvcc")
    if path is not None:
        yield nvcc_root(access, path) or access.real(path).rpartition("/bin/")[0] or "/", "PATH"
    yield "/usr/local/cuda", "/usr/local/cuda"
    for folder in access.glob("/usr/local", "cuda-*"):
        yield folder, "/usr/local"
    for folder in access.glob("/opt", "cuda*"):
        yield folder, "/opt"
    if access.environ.get("CONDA_PREFIX"):
        yield access.environ["CONDA_PREFIX"].rstrip("/"), "conda"
    for site in site_folders:
        for pattern in ("nvidia/cu[0-9]*", "nvidia/cuda_nvcc", "nvidia/cuda_runtime"):
            for folder in access.glob(site, pattern):
                yield folder, "wheel"


def include_folders(access: Access, root: str) -> tuple[str, ...]:
    """Folders of a toolkit's headers; a distribution's own toolkit has them among all others."""
    folders = (f"{root}/include", *access.glob(root, "targets/*/include"), f"{root}/include/cccl")
    if _of_distribution(root):
        folders = (*folders, "/usr/include", "/usr/include/cuda")
    return tuple(folder for folder in folders if access.exists(folder))


def library_folders(access: Access, root: str) -> tuple[str, ...]:
    """Folders of a toolkit's libraries."""
    if _of_distribution(root):
        return tuple(
            folder for folder in (*access.glob("/usr/lib", "*-linux-gnu"), "/usr/lib64") if access.exists(folder)
        )
    folders = (
        f"{root}/lib64",
        f"{root}/lib",
        *access.glob(root, "targets/*/lib"),
        *access.glob(root, "extras/CUPTI/lib64"),
    )
    return tuple(folder for folder in folders if access.exists(folder))


def _of_distribution(root: str) -> bool:
    """Whether it was installed beside the system's own files: Debian's lies in /usr/lib/nvidia-cuda-toolkit."""
    return root == "/usr" or root.startswith("/usr/lib")


def _toolkit(access: Access, root: str, real: str, found_by: tuple[str, ...]) -> CudaToolkit:
    seen = Seen()
    seen.put("root", ", ".join(found_by), root)
    seen.put("real", "by resolving symbolic links", real)
    seen.put("found_by", "the place where it was found", found_by)
    nvcc = next((path for name in ("bin/nvcc", "bin/nvcc.bin") if (path := access.which(f"{root}/{name}"))), None)
    seen.put("nvcc", "bin/nvcc", nvcc or "none")
    version = None
    if nvcc is not None:
        said = access.ask(nvcc, "--version")
        exact = re.search(r"V(\d+(?:\.\d+)+)", said.out)
        version = exact[1] if exact else read_version(said.out)[1]
        seen.put("nvcc_version", "nvcc --version" + ("" if version else f": {said.trouble}"), version)
        listed = access.ask(nvcc, "--list-gpu-arch")
        archs = tuple(line.strip() for line in listed.out.split() if line.startswith("compute_"))
        seen.put("archs", "nvcc --list-gpu-arch" + ("" if archs else f": {listed.trouble}"), archs or None)
    includes = include_folders(access, root)
    header = _macro(access, includes, ("cuda.h",), ("CUDA_VERSION",))
    number = int(header) if header and header.isdigit() else None
    stated = None if number is None else f"{number // 1000}.{number % 1000 // 10}"
    seen.put("header_version", "CUDA_VERSION in cuda.h", stated or "none")
    _version(access, seen, root, version, stated)
    text = next((text for each in includes if (text := access.peek(f"{each}/crt/host_config.h"))), "") or ""
    gcc = re.search(r"^#if __GNUC__ > (\d+)", text, re.MULTILINE)
    seen.put("gcc_most", "include/crt/host_config.h", int(gcc[1]) if gcc else None)
    clang = re.search(r"^#if .*__clang_major__ >= (\d+)", text, re.MULTILINE)
    seen.put("clang_most", "include/crt/host_config.h", int(clang[1]) - 1 if clang else None)
    libraries = library_folders(access, root)
    runtime = any(name.startswith("libcudart") for each in libraries for name in access.names(each))
    headers = any(access.is_file(f"{each}/cuda_runtime.h") for each in includes)
    seen.put("cudart", "cuda_runtime.h and libcudart*", runtime and headers)
    stub = any(access.is_file(f"{each}/stubs/libcuda.so") for each in libraries)
    seen.put("stub", "stubs/libcuda.so", stub)
    headers_of = host_names().parts["cuda"].items()
    missing = [part for part, name in headers_of if not any(access.is_file(f"{each}/{name}") for each in includes)]
    seen.put("missing", "one header from each part", tuple(missing))
    seen.rest(CudaToolkit, "nvcc was not found")
    return CudaToolkit(**seen.values, sources=seen.sources)


def _version(access: Access, seen: Seen, root: str, nvcc: str | None, header: str | None) -> None:
    if nvcc is not None:
        seen.put("version", "nvcc --version", nvcc)
        return
    text = access.peek(f"{root}/version.json")
    stated = re.search(r'"cuda"\s*:\s*\{[^}]*"version"\s*:\s*"([\d.]+)"', text or "")
    if stated:
        seen.put("version", "version.json", stated[1])
    else:
        seen.put("version", "CUDA_VERSION in cuda.h" if header else "no nvcc, version.json or cuda.h was found", header)


def _macro(access: Access, folders: Iterable[str], files: Iterable[str], macros: Iterable[str]) -> str | None:
    """The values of macros in the first header that defines them, joined by points."""
    for folder in folders:
        for name in files:
            text = access.peek(f"{folder}/{name}") or ""
            values = [re.search(rf"^\s*#\s*define\s+{macro}\s+(\d+)", text, re.MULTILINE) for macro in macros]
            numbers = [value[1] for value in values if value]
            if numbers and len(numbers) == len(values):
                return ".".join(numbers)
    return None


def cuda_facts(
    access: Access, loader: Loader, survey: Survey, toolkits: tuple[CudaToolkit, ...], includes: Iterable[str]
) -> Cuda:
    """Everything of CUDA.

    Args:
        access: the host.
        loader: its loader.
        survey: its libraries.
        toolkits: see :func:`find_toolkits`.
        includes: folders that the C++ compiler looks in.
    """
    seen = Seen()
    seen.put("toolkits", "environment variables, nvcc on PATH, /usr/local, /opt, conda, wheels", toolkits)
    driver = driver_facts(access, loader)
    seen.put("driver", "see its own sources", driver)
    seen.put(
        "compat",
        "compat folders of toolkits, and the one of the loader's libcuda",
        _compat(access, toolkits, driver.libcuda),
    )
    seen.put(
        "libraries",
        "the loader's search path, toolkits, conda, wheels",
        survey.find(library_names("cuda"), HostLibrary),
    )
    folders = [folder for kit in toolkits for folder in include_folders(access, kit.root)]
    packages = [place.folder.rpartition("/")[0] + "/include" for place in survey.places if "/nvidia/" in place.folder]
    everywhere = tuple(dict.fromkeys((*includes, *folders, *packages)))
    macros = host_names().version_macros.items()
    stated = {name: _macro(access, everywhere, each.files, each.macros) for name, each in macros}
    headers = {name: version for name, version in stated.items() if version is not None}
    seen.put("headers", "headers in the folders of compilers, toolkits and wheels", headers)
    hidden = access.environ.get("CUDA_VISIBLE_DEVICES")
    seen.put("hidden", "CUDA_VISIBLE_DEVICES" + ("" if hidden is not None else " is not set"), hidden)
    return Cuda(**seen.values, sources=seen.sources)


def _compat(access: Access, toolkits: Iterable[CudaToolkit], libcuda: str | None) -> tuple[CompatPackage, ...]:
    folders = [f"{kit.root}/compat" for kit in toolkits]
    folders += [folder for each in ("/usr/local", "/opt") for folder in access.glob(each, "cuda*/compat*")]
    if libcuda is not None and "/compat" in libcuda:
        folders.append(libcuda.rpartition("/")[0])
    found: dict[str, CompatPackage] = {}
    for folder in folders:
        names = [name for name in access.names(folder) if name.startswith("libcuda.so")]
        if not names or access.real(folder) in found:
            continue
        exact = [match[1] for name in names if (match := re.fullmatch(r"libcuda\.so\.(\d+\.[\d.]+)", name))]
        used = libcuda is not None and access.real(libcuda).rpartition("/")[0] == access.real(folder)
        seen = Seen()
        seen.put("path", "folders named compat", folder)
        seen.put("version", "the file name of libcuda", exact[0] if exact else None)
        seen.put("used", "the libcuda.so.1 that the loader finds", used)
        found[access.real(folder)] = CompatPackage(**seen.values, sources=seen.sources)
    return tuple(found.values())
