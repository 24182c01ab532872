"""METADATA and WHEEL: read, changed, written, with nothing lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.metadata import Metadata as Peer

from axletree.core.errors import IntegrityError
from axletree.package.wheel.info import WheelInfo, carry_dist_info, parse_wheel_info, render_wheel_info
from axletree.package.wheel.metadata import (
    Metadata,
    create_metadata,
    parse_metadata,
    render_metadata,
    with_requirement,
    with_version,
)

TEXT = """\
Metadata-Version: 2.1
Name: torch_scatter
Version: 2.1.2
Summary: Optimised scatter operations
License: Some licence
        of several lines
        
        with an empty one
X-Unknown: kept
Requires-Dist: numpy>=1.20
Requires-Dist: torch
Requires-Dist: pytest ; extra == "test"
Provides-Extra: test

# torch-scatter

Name: this is no field, but the description.
"""  # noqa: W293 (as setuptools writes it)


def metadata() -> Metadata:
    return parse_metadata(TEXT.encode())


def test_fields_and_description() -> None:
    found = metadata()
    assert (found.name, found.version) == ("torch_scatter", "2.1.2")
    assert found.get("license") == "Some licence\n        of several lines\n        \n        with an empty one"
    assert found.get("x-unknown") == "kept"
    assert found.get("Maintainer") is None
    assert found.requires == ("numpy>=1.20", "torch", 'pytest ; extra == "test"')
    assert found.description.startswith("# torch-scatter\n")


def test_what_is_not_changed_is_written_as_it_was() -> None:
    assert render_metadata(metadata()).decode() == TEXT


def test_line_ends_of_other_systems() -> None:
    assert parse_metadata(TEXT.replace("\n", "\r\n").encode()) == metadata()


def test_a_local_version() -> None:
    text = render_metadata(with_version(metadata(), "2.1.2+TORCH-2.13.cpu")).decode()
    assert text == TEXT.replace("Version: 2.1.2", "Version: 2.1.2+torch.2.13.cpu")


def test_a_requirement_replaces_the_one_on_the_same_distribution() -> None:
    text = render_metadata(with_requirement(metadata(), "Torch == 2.13.0")).decode()
    assert text == TEXT.replace("Requires-Dist: torch\n", "Requires-Dist: Torch==2.13.0\n")


def test_a_requirement_under_another_marker_stays() -> None:
    changed = with_requirement(metadata(), 'torch==2.13.0; sys_platform == "linux"')
    assert changed.requires == (
        "numpy>=1.20",
        "torch",
        'pytest ; extra == "test"',
        'torch==2.13.0; sys_platform == "linux"',
    )


def test_a_new_requirement_stands_after_the_others() -> None:
    changed = with_requirement(metadata(), "scipy")
    assert changed.fields[-2:] == (("Requires-Dist", "scipy"), ("Provides-Extra", "test"))
    assert with_requirement(Metadata(fields=(("Name", "a"),)), "scipy").requires == ("scipy",)


def test_twice_required_becomes_once() -> None:
    twice = with_requirement(
        Metadata(fields=(("Requires-Dist", "torch"), ("Requires-Dist", "torch>=2"))), "torch==2.13"
    )
    assert twice.requires == ("torch==2.13",)


def test_requirements_of_a_former_age_are_kept() -> None:
    old = Metadata(fields=(("Requires-Dist", "thing (>=1.0,<2.*) ;;"),))
    assert with_requirement(old, "torch").requires == ("thing (>=1.0,<2.*) ;;", "torch")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"Name: a\nVersion: 1\n", "Metadata-Version: the field is missing"),
        (b"Metadata-Version: 2.1\n", "Name: the field is missing"),
        (b"Metadata-Version: 2.1\nName: a\nVersion: one\n", "'one' is not a valid version"),
        (b"Metadata-Version: 2.1\nno field\nName: a\nVersion: 1\n", "METADATA:2: the line is not a valid header field"),
        (b"Name: \xff\n", "not UTF-8"),
        (b"", "Version: the field is missing"),
    ],
)
def test_what_is_no_metadata(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        parse_metadata(data)
    assert message in str(caught.value)


def test_what_can_not_be_set() -> None:
    with pytest.raises(IntegrityError, match="is not a valid version"):
        with_version(metadata(), "latest")
    with pytest.raises(IntegrityError, match="is not a valid requirement"):
        with_requirement(metadata(), "torch ==")


def test_from_scratch_as_packaging_reads_it() -> None:
    made = create_metadata(
        name="demo",
        version="1.0+torch.2.13.cpu",
        summary="Two\n lines",
        license="MIT OR Apache-2.0",
        requires_python=">=3.10",
        requires=("torch==2.13.0", 'numpy; python_version >= "3.12"'),
    )
    peer = Peer.from_email(render_metadata(made), validate=True)
    assert (peer.metadata_version, peer.name, str(peer.version)) == ("2.4", "demo", "1.0+torch.2.13.cpu")
    assert peer.summary == "Two lines"
    assert peer.license_expression == "MIT OR Apache-2.0"
    assert str(peer.requires_python) == ">=3.10"
    assert [str(requirement) for requirement in peer.requires_dist or []] == list(made.requires)


@given(
    st.lists(
        st.tuples(
            st.from_regex(r"X-[A-Za-z]{1,8}", fullmatch=True), st.from_regex(r"[!-~]([ -~]*[!-~])?", fullmatch=True)
        )
    ),
    st.text(st.characters(blacklist_categories=("Cs", "Cc"))),
)
def test_round_trip(fields: list[tuple[str, str]], description: str) -> None:
    made = Metadata(
        fields=(("Metadata-Version", "2.1"), ("Name", "demo"), ("Version", "1"), *fields), description=description
    )
    assert parse_metadata(render_metadata(made)) == made


def test_the_wheel_file() -> None:
    info = WheelInfo(tags=("cp311-cp311-linux_x86_64", "cp311-cp311-manylinux_2_17_x86_64"), purelib=False, build="2")
    text = render_wheel_info(info).decode()
    assert text.startswith("Wheel-Version: 1.0\nGenerator: axletree ")
    assert text.endswith(
        "Root-Is-Purelib: false\nTag: cp311-cp311-linux_x86_64\nTag: cp311-cp311-manylinux_2_17_x86_64\nBuild: 2\n"
    )
    assert parse_wheel_info(text.encode()) == info


def test_wheel_files_that_are_refused() -> None:
    with pytest.raises(IntegrityError, match="Tag: the field is missing"):
        parse_wheel_info(b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
    with pytest.raises(IntegrityError, match="is not supported"):
        parse_wheel_info(b"Wheel-Version: 2.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")


def test_the_rest_of_the_folder_is_carried_along() -> None:
    old, new = "demo-1.0.dist-info", "demo-1.0+cpu.dist-info"
    kept = ("entry_points.txt", "top_level.txt", "licenses/LICENSE", "sboms/x.cdx.json")
    gone = ("METADATA", "WHEEL", "RECORD", "RECORD.jws", "INSTALLER", "REQUESTED", "direct_url.json")
    paths = ["demo/__init__.py", *(f"{old}/{name}" for name in (*kept, *gone))]
    carried = carry_dist_info(paths, source=old, target=new)
    assert carried == {f"{old}/{name}": f"{new}/{name}" for name in kept}
