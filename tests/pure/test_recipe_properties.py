"""Properties of axis values: where they come from, which goes before which, what reaches a stage, what is told."""

from __future__ import annotations

import re
import tomllib

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from axletree.core.errors import Problem, RecipeError
from axletree.recipe.axes import expand
from axletree.recipe.parse import parse_recipe
from axletree.recipe.properties import DataFile, data_names
from axletree.recipe.target import Target, resolve
from support.recipes import SMALL

LIB = SMALL.replace("GPU={gpu} ", "GPU={gpu} ARCH='{gpu.arch-list}' ").replace(
    "[axes]", 'data = ["data/gpu.toml", "data/more.toml"]\n\n[axes]'
)
GPU = """\
# GPUs
[properties.gpu.cpu]
arch-list = ""

[properties.gpu.cu130]
arch-list = "7.5;9.0+PTX"
cudnn = "9.17"

[properties.gpu.cu999]
arch-list = "99"
"""


def files(**texts: str | None) -> list[DataFile]:
    return [
        DataFile(name=f"data/{name}.toml", filename=f"/r/data/{name}.toml", text=text, trouble="No such file")
        for name, text in texts.items()
    ]


def read(text: str = LIB, *, gpu: str | None = GPU, more: str | None = "") -> dict[str, Target]:
    recipe = parse_recipe(text, filename="recipe.toml", data=files(gpu=gpu, more=more))
    return {variant.id: resolve(recipe, variant) for variant in expand(recipe)}


def problems(text: str = LIB, *, gpu: str | None = GPU, more: str | None = "") -> list[Problem]:
    with pytest.raises(RecipeError) as caught:
        read(text, gpu=gpu, more=more)
    return list(caught.value.problems)


def told(**arguments: str | None) -> list[tuple[str, int | None, str]]:
    """File, line and message of each problem."""
    return [(each.file or "", each.line, each.message) for each in problems(**arguments)]  # type: ignore[arg-type]


def command(target: Target) -> str:
    return target.stages[0].commands[0].removeprefix("make ")


def test_texts_read_what_data_files_say() -> None:
    assert {name: command(target) for name, target in read().items()} == {
        "py311-cpu": "GPU=cpu ARCH='' DESTDIR=$AXLETREE_OUT",
        "py311-cu130": "GPU=cu130 ARCH='7.5;9.0+PTX' DESTDIR=$AXLETREE_OUT",
        "py312-cpu": "GPU=cpu ARCH='' DESTDIR=$AXLETREE_OUT",
        "py312-cu130": "GPU=cu130 ARCH='7.5;9.0+PTX' DESTDIR=$AXLETREE_OUT",
    }


def test_only_what_a_stage_reads_changes_it() -> None:
    before = read()
    for other in (GPU.replace("9.17", "9.99"), GPU.replace('"99"', '"1"'), GPU + '[properties.blas.mkl]\na = "b"\n'):
        assert read(gpu=other) == before
    after = read(gpu=GPU.replace("7.5;", "8.0;"))
    assert after["py311-cpu"] == before["py311-cpu"]
    changed, kept = after["py311-cu130"], before["py311-cu130"]
    assert changed.stages[0] != kept.stages[0]
    assert msgspec.structs.replace(changed, stages=()) == msgspec.structs.replace(kept, stages=())
    assert changed.stages[1] == kept.stages[1]


@pytest.mark.parametrize(
    ("own", "more", "expected"),
    [
        ("", "", "7.5;9.0+PTX"),
        ('[properties.gpu.cu130]\narch-list = "own"', "", "own"),
        ('[properties.gpu."cu*"]\narch-list = "own"', "", "own"),
        ('[properties.gpu."*"]\narch-list = "all"\n[properties.gpu."cu*"]\narch-list = "own"', "", "own"),
        ('[properties.gpu."cu*"]\narch-list = "all"\n[properties.gpu.cu130]\narch-list = "own"', "", "own"),
        ("", '[properties.gpu."cu13*"]\narch-list = "more"', "7.5;9.0+PTX"),
        ("", '[properties.gpu.cu130]\narch-list = "7.5;9.0+PTX"', "7.5;9.0+PTX"),
    ],
    ids=["data", "own", "own-pattern", "longer-pattern", "value-before-pattern", "data-pattern", "said-twice-alike"],
)
def test_which_goes_before_which(own: str, more: str, expected: str) -> None:
    assert f"ARCH='{expected}'" in command(read(f"{LIB}\n{own}\n", more=more)["py311-cu130"])


def test_two_files_that_disagree() -> None:
    assert told(more='\n[properties.gpu.cu130]\narch-list = "other"\n') == [
        (
            "/r/data/more.toml",
            3,
            "this value of arch-list for gpu 'cu130' conflicts with properties.gpu.cu130.arch-list of data/gpu.toml",
        )
    ]
    own = '\n[properties.gpu.cu130]\narch-list = "mine"\n'
    text = LIB + own
    assert "mine" in command(read(text, more='[properties.gpu.cu130]\narch-list = "x"\n')["py311-cu130"]), "is settled"


def test_a_property_that_lacks_is_told_with_all_values_and_where_to_add_it() -> None:
    text = LIB.replace('["cpu", "cu130"]', '["cpu", "cu130", "rocm7.1", "xpu"]')
    (problem,) = problems(text)
    assert (problem.file, problem.line, problem.key) == ("recipe.toml", 18, "stages.lib.commands[0]")
    assert problem.message == "{gpu.arch-list}: gpu has no property 'arch-list' for 'rocm7.1' and 'xpu'"
    assert problem.hint == (
        'add to data/gpu.toml: [properties.gpu."rocm7.1"] arch-list = "...", [properties.gpu.xpu] arch-list = "..."'
    )


def test_a_property_is_asked_for_only_where_the_text_is() -> None:
    override = '\n[[override]]\nwhen = { gpu = "cu130" }\nstage = "lib"\nenv = { CUDNN = "{gpu.cudnn}" }\n'
    assert read(LIB + override)["py312-cu130"].stages[0].env == {"CUDNN": "9.17"}
    assert problems(LIB + override.replace('"cu130"', '["cpu", "cu130"]'))[0].message.endswith("for 'cpu'")
    package = LIB.replace('from = "lib"\n', 'from = "lib"\nwhen = { gpu = "cu130" }\nsummary = "cuDNN {gpu.cudnn}"\n')
    package = package.replace('"small-lib=={version}+{gpu}"', "")
    package = package.replace(
        'packages = ["small", "small-lib"]', 'packages = ["small-lib"]\ncommands = ["{gpu.cudnn}"]'
    )
    targets = read(package.replace('requires = [""]\n', ""))
    assert targets["py311-cu130"].packages[0].summary == "cuDNN 9.17"
    assert targets["py311-cu130"].tests[0].commands == ("9.17",)
    assert targets["py311-cpu"].tests == ()


@pytest.mark.parametrize(
    ("gpu", "line", "message"),
    [
        ('a = "b\n', 1, "not valid TOML: Illegal character"),
        (GPU.replace("cudnn", "minor"), 7, "no property can be called 'minor': {gpu.minor} is a part of the value"),
        (GPU.replace("cudnn", "cuDNN"), 7, "'cuDNN' is not a property name: lowercase letters"),
        (GPU.replace('"9.17"', "9.17"), 7, "expected a string, found the number"),
        (GPU.replace("[properties.gpu.cu999]", "[properties.gpu.rocm7.1]"), 9, "quote an axis value"),
        (GPU.replace("[properties.gpu.cu999]", "[propertys.gpu.cu999]"), 9, "unknown key"),
        (GPU.replace('"9.17"', '"{gpu}"'), 7, "placeholders do not work in properties: {gpu} would not be replaced"),
    ],
)
def test_faults_of_data_files_have_their_own_file_and_line(gpu: str, line: int, message: str) -> None:
    found = problems(gpu=gpu)
    assert {problem.file for problem in found} == {"/r/data/gpu.toml"}, "and nothing that only follows from them"
    assert any(problem.line == line and message in problem.message for problem in found), found


def test_all_faults_of_a_recipe_and_its_data_at_once() -> None:
    text = LIB.replace('from = "bind"', 'from = "bond"').replace("DESTDIR", "{name.x} {gpu.arch} DESTDIR")
    found = told(text=text, gpu=GPU.replace("cudnn", "major"), more=None)
    assert [(file, line) for file, line, _ in found] == [
        ("recipe.toml", 5),
        ("recipe.toml", 18),
        ("recipe.toml", 31),
        ("/r/data/gpu.toml", 7),
    ]
    assert found[0][2] == "cannot read data/more.toml: No such file"
    assert found[1][2] == "{name.x} uses an unknown part 'x'; valid parts are major, minor, nodot"
    assert "bond" in found[2][2]


@pytest.mark.parametrize(
    ("own", "line", "message", "hint"),
    [
        ('[properties.gpu.cu131]\na = "b"', 40, "axis 'gpu' has no value 'cu131'", "did you mean 'cu130'?"),
        ('[properties.gpu."rocm*"]\na = "b"', 40, "axis 'gpu' has no value 'rocm*'", None),
        ('[properties.gpus.cpu]\na = "b"', 40, "unknown axis 'gpus'", "did you mean 'gpu'?"),
        ('[properties.python.3.11]\na = "b"', 40, "quote an axis value", None),
        ('[properties.gpu.cpu]\nnodot = "b"', 41, "no property can be called 'nodot'", None),
    ],
)
def test_what_stands_in_the_recipe_is_for_its_own_values(own: str, line: int, message: str, hint: str | None) -> None:
    assert own
    found = [each for each in problems(f"{LIB}\n{own}\n") if message in each.message]
    assert [each.line for each in found] == [line]
    assert hint is None or found[0].hint == hint


DATA = 'data = ["data/gpu.toml", "data/more.toml"]'


@pytest.mark.parametrize(
    ("data", "own", "place", "message"),
    [
        ('data = "data/gpu.toml"', "", ("data", 5), "expected a list of strings"),
        ('data = ["../gpu.toml"]', "", ("data[0]", 5), "must be a relative path inside the folder"),
        ("", "cu130]\narch-list = 9.0", ("properties.gpu.cu130.arch-list", 43), "expected a string, found the number"),
        ("", 'cu130]\nArch-list = "9.0"', ("properties.gpu.cu130.Arch-list", 43), "is not a property name"),
        ("", 'cu131]\narch-list = "9.0"', ("properties.gpu.cu131", 42), "axis 'gpu' has no value 'cu131'"),
    ],
)
def test_what_only_follows_from_a_fault_of_data_or_properties_is_not_told(
    data: str, own: str, place: tuple[str, int], message: str
) -> None:
    """A property that then lacks may be the one that is meant."""
    assert DATA in LIB
    written = f'\n[properties.gpu.cpu]\narch-list = ""\n[properties.gpu.{own}\n' if own else ""
    (problem,) = problems(LIB.replace(DATA, data) + written, gpu="")
    assert (problem.key, problem.line) == place
    assert message in problem.message


@pytest.mark.parametrize(
    ("placeholder", "hint"),
    [
        ("{gpu.arch-lst}", "did you mean 'arch-list'?"),
        ("{gpu.zz}", "properties of gpu: arch-list, cudnn"),
    ],
)
def test_unknown_properties(placeholder: str, hint: str) -> None:
    (problem,) = problems(LIB.replace("{gpu.arch-list}", placeholder))
    assert problem.message.startswith(f"{placeholder} uses an unknown part")
    assert problem.hint == hint


def test_undeclared_axes_stay_undeclared() -> None:
    text = LIB.replace('axes = ["python", "gpu"]\n', 'axes = ["python", "gpu"]\nenv = { A = "{gpu.cudnn}" }\n')
    text = text.replace("{gpu.cudnn}", "{blas.cmake}")
    assert "uses unknown axis 'blas'" in problems(text, more='[properties.blas.mkl]\ncmake = "MKL"\n')[0].message
    lib = LIB.replace("{gpu.arch-list}", "{python.tag}")
    assert "which is not declared here" in problems(lib, more='[properties.python."*"]\ntag = "x"\n')[0].message


@pytest.mark.parametrize(
    ("names", "read_names", "message"),
    [
        ('["a.toml", "b/c.toml"]', ("a.toml", "b/c.toml"), None),
        ('["../a.toml"]', (), "must be a relative path inside the folder"),
        ('["/etc/passwd"]', (), "must be a relative path inside the folder"),
        ('["a.toml", "a.toml"]', ("a.toml",), "is listed twice"),
        ('"a.toml"', (), "expected a list of strings"),
        ("[1]", (), "expected a string"),
    ],
)
def test_names_of_data_files(names: str, read_names: tuple[str, ...], message: str | None) -> None:
    text = SMALL.replace("[axes]", f"data = {names}\n\n[axes]")
    assert data_names(tomllib.loads(text)) == read_names
    data = [DataFile(name=name, filename=name, text="") for name in read_names]
    if message is None:
        parse_recipe(text, filename="recipe.toml", data=data)
        return
    with pytest.raises(RecipeError, match=re.escape(message)) as caught:
        parse_recipe(text, filename="recipe.toml", data=data)
    assert len(caught.value.problems) == 1


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=20)


@given(TEXTS, TEXTS)
def test_any_text_comes_out_as_it_is(cpu: str, cuda: str) -> None:
    escaped = [text.replace("\\", "\\\\").replace('"', '\\"') for text in (cpu, cuda)]
    data = "".join(
        f'[properties.gpu.{gpu}]\narch-list = "{text}"\n' for gpu, text in zip(("cpu", "cu130"), escaped, strict=True)
    )
    assume(not any(re.search(r"\{(gpu|name|version)(\.[a-z][a-z0-9-]*)?\}", text) for text in (cpu, cuda)))
    targets = read(gpu=data)
    assert f"ARCH='{cpu}'" in command(targets["py311-cpu"])
    assert f"ARCH='{cuda}'" in command(targets["py312-cu130"])
