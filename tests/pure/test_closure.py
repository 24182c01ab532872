"""Which files of ours one installation needs."""

from __future__ import annotations

import pytest

from axletree.package.closure import OwnWheel, closures
from axletree.package.install import conda_commands, quoted, wheel_commands
from axletree.package.wheel.names import parse_wheel_name

CP311, CP312 = "cp311-cp311-manylinux_2_17_x86_64", "cp312-cp312-manylinux_2_17_x86_64"


def offer(name: str, *requires: str, python: str | None = None) -> OwnWheel:
    filename = f"{name}.whl"
    return OwnWheel(filename=filename, url=f"file:///d/{filename}", requires=requires, requires_python=python)


def found(asked: OwnWheel, *ours: OwnWheel, extras: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """Target -> files without their ends, in order."""

    def find(project: str) -> list[OwnWheel]:
        return [each for each in ours if parse_wheel_name(each.filename).project == project]

    given = {parse_wheel_name(asked.filename).project: extras}
    return {
        each.target: [offer.filename.removesuffix(".whl") for offer, _ in each.files]
        for each in closures([asked], find, extras=given)
    }


@pytest.mark.parametrize(
    ("requirement", "taken"),
    [
        ("b==1.0", "b-1.0-7-py3-none-any"),  # the higher build tag, as pip does
        ("b>=1", "b-2.0-py3-none-any"),
        ("b<1", None),
        ("b", "b-2.0-py3-none-any"),
        ("B", "b-2.0-py3-none-any"),
        ("b; sys_platform == 'win32'", None),
        ("b; python_version >= '3.12'", "b-2.0-py3-none-any"),  # for some Python
        ("b; extra == 'x'", None),
        ("b @ https://example.org/b-3-py3-none-any.whl", None),
        ("b >=1 (nothing that anybody reads)", None),
        ("c", None),
    ],
)
def test_what_is_required_of_ours(requirement: str, taken: str | None) -> None:
    ours = [offer(name) for name in ("b-1.0-py3-none-any", "b-1.0-7-py3-none-any", "b-2.0-py3-none-any")]
    (files,) = found(offer("a-1-py3-none-any", requirement), *ours).values()
    assert files[1:] == ([] if taken is None else [taken])


def test_extras_of_what_was_reached_already() -> None:
    a = offer("a-1-py3-none-any", "b", "c", "d; extra == 'more'")
    b = offer("b-1-py3-none-any", "e; extra == 'Big_one'")
    ours = [b, offer("c-1-py3-none-any", "b[big.one]"), offer("d-1-py3-none-any"), offer("e-1-py3-none-any", "a")]
    assert found(a, *ours) == {"": [f"{name}-1-py3-none-any" for name in "abce"]}
    assert found(a, *ours, extras=("more",)) == {"": [f"{name}-1-py3-none-any" for name in "abcde"]}


def test_what_fits_the_python_and_the_platform() -> None:
    others = [
        "cp313-cp313t-manylinux_2_17_x86_64",
        "cp311-cp311-musllinux_1_2_x86_64",
        "cp311-cp311-manylinux_2_17_aarch64",
    ]
    ours = [offer(f"b-1-{tag}") for tag in (*others, "cp311-cp311-manylinux_2_34_x86_64", CP311, CP312)]
    assert found(offer(f"a-1-{CP311}", "b"), *ours) == {"Python 3.11, x86_64": [f"a-1-{CP311}", f"b-1-{CP311}"]}
    abi3 = [offer("b-2-cp39-abi3-manylinux_2_17_x86_64"), offer("b-3-py3-none-any", python=">=3.12")]
    assert found(offer(f"a-1-{CP311}", "b"), *ours, *abi3) == {
        "Python 3.11, x86_64": [f"a-1-{CP311}", "b-2-cp39-abi3-manylinux_2_17_x86_64"]
    }


def test_several_where_only_what_is_required_tells_them_apart() -> None:
    ours = [offer(f"b-1-{tag}") for tag in (CP312, CP311)]
    assert found(offer("a-1-py3-none-any", "b"), *ours) == {
        "Python 3.11, x86_64": ["a-1-py3-none-any", f"b-1-{CP311}"],
        "Python 3.12, x86_64": ["a-1-py3-none-any", f"b-1-{CP312}"],
    }


def test_commands_are_quoted() -> None:
    (closure,) = closures(
        [OwnWheel(filename="a_b-1-py3-none-any.whl", url="https://h/it's")], lambda _: [], extras={"a-b": ["x"]}
    )
    assert wheel_commands(closure)["pip"] == """pip install 'a-b[x] @ https://h/it'"'"'s'"""
    assert quoted("$HOME") == "'$HOME'"
    assert conda_commands("file:///c", [("a", "1.0", "h_0")])["conda"].endswith(" -c 'file:///c' 'a=1.0=h_0'")
