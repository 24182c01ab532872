"""Mangled names read as c++filt prints them, and no text makes the reader fail or grow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.binary.cpp.demangle import demangle

PARTS = (
    *(
        "_Z",
        "N",
        "E",
        "I",
        "J",
        "X",
        "L",
        "S_",
        "S0_",
        "St",
        "T_",
        "1a",
        "2at",
        "3c10",
        "C1",
        "D0",
        "ls",
        "cv",
        "Ul",
        "Ut",
    ),
    *("K", "P", "R", "O", "F", "A3_", "M", "Dp", "i", "v", "B"),
)
STRING = "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >"


@pytest.mark.parametrize(
    ("mangled", "text"),
    [
        (
            "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb",
            "c10::cuda::c10_cuda_check_implementation(int, char const*, char const*, unsigned int, bool)",
        ),
        ("_ZN3c104cuda9SetDeviceEab", "c10::cuda::SetDevice(signed char, bool)"),
        ("_ZN3c104cuda20CUDACachingAllocator9allocatorE", "c10::cuda::CUDACachingAllocator::allocator"),
        ("_ZNK3c104cuda10CUDAStream5queryEv", "c10::cuda::CUDAStream::query() const"),
        (
            "_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
            f"c10::Error::Error(c10::SourceLocation, {STRING})",
        ),
        ("_ZN3c105ErrorD0Ev", "c10::Error::~Error()"),
        ("_ZNK2at10TensorBase8data_ptrIN3c104HalfEEEPT_v", "c10::Half* at::TensorBase::data_ptr<c10::Half>() const"),
        ("_ZTVN3c105ErrorE", "vtable for c10::Error"),
        ("_ZTIN3c105ErrorE", "typeinfo for c10::Error"),
        ("_ZGVZN3c104testEvE1x", "guard variable for c10::test()::x"),
        ("_ZThn16_N3c104Test3runEv", "non-virtual thunk to c10::Test::run()"),
        ("_ZTv0_n24_N3c104Test3runEv", "virtual thunk to c10::Test::run()"),
        ("_ZNR5torch7Library4_defEOS0_", "torch::Library::_def(torch::Library&&) &"),
        ("_ZN3c10lsIlEERiS1_NS_8ArrayRefIT_EE", "int& c10::operator<< <long>(int&, c10::ArrayRef<long>)"),
        (
            "_ZN1A1fEPFviEMS_FvcERA4_KiPVKv",
            "A::f(void (*)(int), void (A::*)(char), int const (&) [4], void const volatile*)",
        ),
        ("_ZNSaIcEC1ERKS_", "std::allocator<char>::allocator(std::allocator<char> const&)"),
        ("_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"),
        ("_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"),
        ("_Z1fIJidEEvDpRKT_", "void f<int, double>(int const&, double const&)"),
        ("_Z1fIXadL_Z1gvEEEvv", "void f<&g>()"),
        ("_Z1fILi3ELj4ELb1EL1E5EEvv", "void f<3, 4u, true, (E)5>()"),
        ("aoti_torch_empty_strided", "aoti_torch_empty_strided"),
        ("_ZQQ", "_ZQQ"),
        ("_ZN3c10", "_ZN3c10"),
        ("_Z1fiGARBAGE", "_Z1fiGARBAGE"),
    ],
)
def test_reads_as_in_the_source(mangled: str, text: str) -> None:
    assert demangle(mangled) == text


@given(st.lists(st.sampled_from(PARTS)))
def test_whatever_a_name_is_made_of(parts: list[str]) -> None:
    name = "_Z" + "".join(parts)
    assert len(demangle(name)) <= 40_000


@given(st.text())
def test_any_text(text: str) -> None:
    assert isinstance(demangle("_Z" + text), str)


@pytest.mark.parametrize(
    "name",
    [
        "_Z1f" + "P" * 8000 + "i",
        "_Z" + "N" * 8000,
        "_Z1fI" + "J" * 4000 + "E" * 4000,
        "_ZN1AIJiiEE" + "".join(f"1{chr(97 + n % 26)}IJT_T_EE" for n in range(400)) + "E",
        "_ZN1AIJEE" + "".join(f"1{chr(97 + n % 26)}IJT_T_EE" for n in range(400)) + "E",
        "_Z1f"
        + "".join(f"1{chr(97 + n % 26)}IS{'' if not n else n - 1}_S{'' if not n else n - 1}_E" for n in range(30)),
        "_Z1f" + "FvFv" * 1000,
    ],
    ids=["pointers", "scopes", "packs", "doubled packs", "doubled nothing", "doubled types", "functions"],
)
def test_a_hostile_name_takes_neither_memory_nor_time(name: str) -> None:
    """Without bounds the doubled ones would not end within years."""
    assert len(demangle(name)) <= max(40_000, len(name))
