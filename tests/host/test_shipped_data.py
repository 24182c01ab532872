"""Data that ships with Axletree: each table is read by what understands it; a damaged installation is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from axletree.backends.bounds import decode_bounds
from axletree.backends.link_size import decode_link_sizes
from axletree.core.errors import HostError, IntegrityError
from axletree.host.shipped_data import TABLES, read_shipped, read_table

if TYPE_CHECKING:
    from collections.abc import Callable


def test_files_come_by_name() -> None:
    names = [name for name, _ in read_shipped(TABLES, "providers-*.toml")]
    assert names == sorted(names)
    assert "providers-nvidia.toml" in names


def test_what_is_missing_is_told() -> None:
    with pytest.raises(HostError, match=r"nothing\.toml of axletree\.backends/data is missing\n.*reinstall axletree"):
        read_table("nothing.toml")
    with pytest.raises(HostError, match="cannot be read"):
        read_shipped("axletree.backends/nowhere", "*.toml")


@pytest.mark.parametrize("decode", [decode_bounds, decode_link_sizes])
@pytest.mark.parametrize("data", [b"no toml", b"\xff", b"other = 1", b"n = " + b"1" * 5000])
def test_a_damaged_table_is_told(decode: Callable[..., object], data: bytes) -> None:
    with pytest.raises(IntegrityError, match=r"^table\.toml: no table of "):
        decode(data, file="table.toml")
