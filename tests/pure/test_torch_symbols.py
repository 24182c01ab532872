"""Which symbols are torch's business, and what a wheel lacks of a torch."""

from __future__ import annotations

import pytest

from axletree.binary.elf.symbols import Symbols, read_symbols
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError
from axletree.package.libraries.torch_symbols import (
    TorchMatch,
    collect_exports,
    is_torch_library,
    is_torch_symbol,
    match_torch,
    read_version,
    wheel_exports,
)
from axletree.package.wheel.scan import scan_wheel
from support.wheels import make_elf, wheel_bytes

SET_DEVICE = "_ZN3c104cuda9SetDeviceEab"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb"
TAG = "cp311-cp311-manylinux_2_17_x86_64"
NAME = f"demo-1.0-{TAG}.whl"


@pytest.mark.parametrize(
    "name",
    [
        SET_DEVICE,
        "_ZNK2at10TensorBase8data_ptrIfEEPT_v",
        "_ZNR5torch7Library4_defEOS0_",
        "_ZTIN3c105ErrorE",
        "_ZTVN5torch8autograd4NodeE",
        "_ZThn16_N3c1010IntrusiveDEv",
        "_ZTv0_n24_N2at6Tensor3runEv",
        "_ZGVZN3c104testEvE1x",
        "_ZZN2at4testEvE1x",
        "_ZN6caffe28TypeMeta26error_unsupported_typemetaES0_",
        "_ZN4c10d12ProcessGroup7barrierEv",
        "_ZN3c10lsERSoNS_10DeviceTypeE",
        "_ZNSt6vectorIN2at6TensorESaIS1_EE17_M_realloc_insertEv",
        "_ZN8pybind116detail11type_casterIN2at6TensorEvE4loadENS_6handleEb",
        "_Z16THPVariable_WrapRKN2at10TensorBaseE",
        "THPVariableClass",
        "aoti_torch_empty_strided",
        "torch_call_dispatcher",
    ],
)
def test_torchs_symbols(name: str) -> None:
    assert is_torch_symbol(name.encode())


@pytest.mark.parametrize(
    "name",
    [
        "_ZN6vision3ops3nmsERKN2at6TensorES4_d",  # of a library built on torch
        "_ZN11torchvision3foo3barEv",
        "_ZN12at_something3runEv",
        "_ZNSt6vectorIiSaIiEE9push_backEOi",
        "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6assignEPKc",
        "_ZTVN10__cxxabiv117__class_type_infoE",
        "_Z4mainv",
        "PyModule_Create2",
        "cudaMalloc",
        "malloc",
        "torchaudio_init",
        "THREAD_start",
        "",
    ],
)
def test_symbols_of_others(name: str) -> None:
    assert not is_torch_symbol(name.encode())


@pytest.mark.parametrize("part", ["Z", "T", "Tc_", "Tv0_n24_", "TVTI", "P", "NK", "1"])
def test_a_hostile_name_is_told_at_once(part: str) -> None:
    """Backtracking would take longer than the universe."""
    assert not is_torch_symbol(b"_Z" + part.encode() * 20_000)


def test_torchs_libraries() -> None:
    ours = ("libtorch.so", "libtorch_cpu.so", "libc10.so", "libc10_cuda.so", "libtorch_cuda_linalg.so", "libshm.so")
    assert all(map(is_torch_library, ours))
    assert not any(map(is_torch_library, ("libtorchaudio.so", "libtorch_tensorrt.so", "libc.so.6", "libc10x.so")))


def test_weak_and_local_symbols_are_not_needed() -> None:
    data = make_elf(undefined=("needed",), weak=("optional",), exported=("offered",))
    symbols = read_symbols(BufferSource(data), name="x.so")
    assert symbols == (frozenset({b"needed"}), frozenset({b"optional"}), frozenset({b"offered"}))
    assert read_symbols(BufferSource(data), name="x.so", wanted=lambda name: name == b"other") == Symbols()


@pytest.mark.parametrize("count_by", ["sections", "hash", "gnu_hash"])
@pytest.mark.parametrize(("bits", "order"), [(64, "little"), (32, "little"), (64, "big")])
def test_symbols_of_every_kind_of_file(bits: int, order: str, count_by: str) -> None:
    data = make_elf(bits=bits, order=order, undefined=("a",), exported=("b", "c"), count_by=count_by)
    assert read_symbols(BufferSource(data), name="x.so").exported == {b"b", b"c"}


def torch_wheel(*exported: str, machine: int = 62) -> bytes:
    files = {
        "torch/version.py": b"__version__ = '2.99.1+cu130'\ncuda: str = '13.0'\n",
        "torch/lib/libc10.so": make_elf(machine=machine, exported=exported),
        "torch/lib/libtorch.so": make_elf(machine=machine, exported=("torch_library_init",)),
        "torch/lib/notes.so.txt": b"no library",
    }
    return wheel_bytes(files, tag=TAG)


def match(files: dict[str, bytes], torch: bytes) -> TorchMatch:
    data = wheel_bytes(files, tag=TAG)
    elfs = {member.path: member.facts for member in scan_wheel(data, filename=NAME).elfs}
    return match_torch(data, elfs, wheel_exports(torch, filename="torch.whl"), filename=NAME)


def test_what_a_torch_exports() -> None:
    exports = wheel_exports(torch_wheel(SET_DEVICE), filename="torch.whl")
    assert (exports.version, exports.machine, exports.origin) == ("2.99.1+cu130", "x86_64", "torch.whl")
    assert exports.libraries == {"libc10.so", "libtorch.so"}
    assert exports.symbols == {SET_DEVICE.encode(), b"torch_library_init"}


def test_missing_symbols_are_named_with_their_files() -> None:
    core = make_elf(needed=("libc10.so", "libc10_cuda.so"), undefined=(SET_DEVICE, CHECK, "PyModule_Create2"))
    image = make_elf(needed=("libc10.so",), undefined=(CHECK,))
    found = match({"demo/_core.so": core, "demo/image.so": image}, torch_wheel(SET_DEVICE))
    assert found.symbols == 2
    assert [missing.text for missing in found.missing] == [
        "c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, unsigned int, bool)"
    ]
    assert found.missing[0].symbol == CHECK
    assert found.missing[0].files == ("demo/_core.so", "demo/image.so")
    assert found.absent == {"libc10_cuda.so": ("demo/_core.so",)}


@pytest.mark.parametrize(
    ("missing", "exported", "instead"),
    [
        (
            CHECK,
            f"{CHECK}PNS0_1LE",
            (
                "c10::cuda::c10_cuda_check_implementation"
                "(int, char const*, char const*, unsigned int, bool, c10::cuda::L*)"
            ),
        ),
        ("_ZNK2at6Tensor3runEi", "_ZNK2at6Tensor3runEl", "at::Tensor::run(long) const"),
        ("_ZN2at6Tensor3runEi", "_ZN2at6Tensor4run2Ei", None),
        ("_ZN3c105ErrorC1Ei", "_ZN3c105ErrorC1El", None),  # a constructor: not told apart by plain scopes
        ("aoti_torch_old", "aoti_torch_older", None),
    ],
)
def test_what_is_exported_instead_is_shown(missing: str, exported: str, instead: str | None) -> None:
    core = make_elf(needed=("libc10.so",), undefined=(missing,))
    (found,) = match({"demo/_core.so": core}, torch_wheel(exported)).missing
    assert found.instead == (() if instead is None else (instead,))


def test_what_the_wheel_itself_exports_is_not_missing() -> None:
    core = make_elf(needed=("libc10.so", "libdemo.so"), undefined=(SET_DEVICE,))
    plain = make_elf(exported=(SET_DEVICE,))  # neither linked to torch nor naming what torch must bring
    found = match({"demo/_core.so": core, "demo/libdemo.so": plain}, torch_wheel())
    assert (found.symbols, found.missing) == (1, ())


def test_files_without_torch_are_not_compared() -> None:
    found = match({"demo/_core.so": make_elf(needed=("libc.so.6",), undefined=("malloc",))}, torch_wheel())
    assert (found.symbols, found.missing, found.absent) == (0, (), {})


def test_another_machine_is_said_not_compared() -> None:
    core = make_elf(needed=("libc10.so",), undefined=(SET_DEVICE,))
    found = match({"demo/_core.so": core}, torch_wheel(machine=183))
    assert (found.other_machine, found.missing) == (("demo/_core.so",), ())


def test_no_torch_is_an_error() -> None:
    with pytest.raises(IntegrityError, match="no torch libraries to compare with"):
        wheel_exports(wheel_bytes({"demo/__init__.py": b""}), filename="demo.whl")
    with pytest.raises(IntegrityError):
        collect_exports([("libc10.so", BufferSource(b"MZ no ELF file"))], origin="env", version="")


@pytest.mark.parametrize(
    ("module", "version"),
    [
        (b"__version__ = '2.14.1+cu130'\n", "2.14.1+cu130"),
        (b'x = 1\n__version__: str = "2.0"\r\n', "2.0"),
        (b"version = '1'\n# __version__ = '2'\n", ""),
        (b"", ""),
    ],
)
def test_the_version_module(module: bytes, version: str) -> None:
    assert read_version(module) == version
