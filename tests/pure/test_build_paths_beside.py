"""Search paths into an environment of the build, as they are where a conda package is installed."""

from __future__ import annotations

import pytest

from axletree.package.libraries.build_paths import beside, build_paths

HOST = f"/axletree/store/environments/{'ab' * 12}-fixed"


@pytest.mark.parametrize(
    ("entry", "place", "moved"),
    [
        (f"{HOST}/lib", "lib/libtiny.so", "$ORIGIN"),
        (f"{HOST}/lib", "bin/tiny", "$ORIGIN/../lib"),
        (f"{HOST}/lib", "lib/python3.11/site-packages/tiny/_tiny.so", "$ORIGIN/../../.."),
        (f"{HOST}/targets/x/lib", "lib/libtiny.so", "$ORIGIN/../targets/x/lib"),
        (HOST, "lib/libtiny.so", None),
        ("/opt/other/lib", "lib/libtiny.so", None),
        (f"/axletree/store/work/{'ab' * 12}/lib", "lib/libtiny.so", None),
    ],
)
def test_an_entry_leads_to_the_same_folder_of_another_prefix(entry: str, place: str, moved: str | None) -> None:
    assert beside(entry, place) == moved


def test_environments_at_the_fixed_path_are_of_the_build() -> None:
    assert build_paths([f"{HOST}/lib", "/opt/lib", "$ORIGIN"], ()) == (f"{HOST}/lib",)
