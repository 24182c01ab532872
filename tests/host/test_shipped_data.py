"""Data that ships with Axletree: each table is read by what understands it; a damaged installation is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.backends.bounds import decode_bounds
from axletree.backends.link_size import decode_link_sizes
from axletree.core.errors import HostError, IntegrityError, Problem
from axletree.core.shipped import Shipped, shipped_file, shipped_list
from axletree.host.facts.names import decode_host_names
from axletree.host.shipped_data import read_shipped, shipped_digest
from axletree.package.libraries.policy import MANYLINUX_POLICIES, PLATFORM_POLICIES

if TYPE_CHECKING:
    from collections.abc import Callable


def test_files_come_by_name() -> None:
    names = read_shipped(Shipped(patterns=("providers-*.toml",), decode=list))
    assert names == sorted(names)
    assert "providers-nvidia.toml" in names


def test_what_is_missing_is_told() -> None:
    with pytest.raises(HostError, match=r"nothing\.toml is missing from axletree\.backends/data\n.*reinstall axletree"):
        read_shipped(shipped_file("nothing.toml", decode_bounds))
    with pytest.raises(HostError, match="cannot be read"):
        read_shipped(Shipped(folder="axletree.backends/nowhere", patterns=("*.toml",), decode=dict))


def test_a_list_in_several_files_tells_the_problems_of_all() -> None:
    def decode(data: bytes, *, file: str) -> list[str]:
        raise IntegrityError(Problem(file=file, message=f"has {len(data)} bytes"))

    with pytest.raises(IntegrityError) as raised:
        read_shipped(shipped_list("providers-*.toml", decode))
    assert len(raised.value.problems) > 1


def test_what_may_be_missing_is_read_after_the_rest_where_it_is_there() -> None:
    few, more = read_shipped(MANYLINUX_POLICIES), read_shipped(PLATFORM_POLICIES)
    assert more[: len(few)] == few
    assert {policy.libc for policy in few} == {"glibc"}
    assert {policy.libc for policy in more} > {"glibc"}
    nothing = Shipped(patterns=("amd-targets.toml",), optional=("nothing.toml",), decode=list)
    assert read_shipped(nothing) == ["amd-targets.toml"]
    assert shipped_digest(MANYLINUX_POLICIES) != shipped_digest(PLATFORM_POLICIES)


def test_data_is_read_once() -> None:
    assert read_shipped(PLATFORM_POLICIES) is read_shipped(PLATFORM_POLICIES)


@pytest.mark.parametrize("decode", [decode_bounds, decode_host_names, decode_link_sizes])
@pytest.mark.parametrize("data", [b"no toml", b"\xff", b"other = 1", b"n = " + b"1" * 5000])
def test_a_damaged_table_is_told(decode: Callable[..., object], data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^table\.toml: the file is not a valid table of "):
        decode(data, file="table.toml")
