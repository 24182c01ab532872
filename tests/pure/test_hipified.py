"""Files that hipify made, told from others."""

from __future__ import annotations

from axletree.buildsystem.pytorch.hipified import BREADCRUMB, is_made_by_hipify


def test_files_that_hipify_made() -> None:
    assert is_made_by_hipify(BREADCRUMB + b"\nint x;\n")
    assert is_made_by_hipify(BREADCRUMB + b"\r\nint x;\n")
    assert not is_made_by_hipify(b"int x;\n" + BREADCRUMB)
    assert not is_made_by_hipify(b"")
