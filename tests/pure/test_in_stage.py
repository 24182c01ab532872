"""What a stage's report says to do: lines of the recipe, never a variable of a shell that no stage sees."""

from __future__ import annotations

import re
import tomllib
from functools import cache

import msgspec
import pytest

from axletree.check.diagnosis.commands import OUTPUT, Pieces, take_apart
from axletree.check.diagnosis.decode import FAILURE_KINDS
from axletree.check.diagnosis.engine import Diagnosed, Engine
from axletree.check.diagnosis.generic import GENERIC_KINDS
from axletree.check.diagnosis.in_stage import fix_in_stage, line_for
from axletree.core.setting import StageSetting
from axletree.host.shipped_data import read_shipped
from axletree.package.libraries.providers import LIBRARY_PROVIDERS

KINDS = read_shipped(FAILURE_KINDS)
STAGE = StageSetting(
    recipe="sorting.toml",
    table="stages.build",
    environment="build",
    gpu="cu130",
    lines={"stages.build.env": 9, "environments.build.requires": 4},
    network=False,
)
TEST = StageSetting(
    recipe="sorting.toml", table="tests.sorts", environment="test", lines={"environments.test.requires": 14}
)
SETTINGS = {
    "stage": STAGE,
    "networked": msgspec.structs.replace(STAGE, network=True),
    "cpu": msgspec.structs.replace(STAGE, gpu="cpu"),
    "test": msgspec.structs.replace(TEST, network=False),
    "bare": msgspec.structs.replace(STAGE, environment=""),
    "environment": msgspec.structs.replace(STAGE, table="environments.build"),
    "other": StageSetting(recipe="sorting.toml"),
}
USELESS = re.compile(
    r"\bexport \w+=|\bunset [A-Z]|\bpip3? (?:install|download)\b|\b(?:conda|mamba) (?:install|create)\b"
)
NO_HOST = """\
-- Populating libzmq
fatal: unable to access 'https://github.com/zeromq/libzmq.git/': Could not resolve host: github.com
CMake Error at CMakeLists.txt:30 (message): failed
-- Configuring incomplete, errors occurred!
"""
NO_CUDA = """\
  File "torch/utils/cpp_extension.py", line 2780, in _join_cuda_home
OSError: CUDA_HOME environment variable is not set. Please set it to your CUDA install root.
ERROR Backend subprocess exited when trying to invoke build_wheel
"""


@cache
def engine() -> Engine:
    return Engine(KINDS, providers=read_shipped(LIBRARY_PROVIDERS))


def first(text: str, setting: StageSetting | None) -> Diagnosed:
    return engine().diagnose([text.encode()], setting=setting).findings[0]


def fix(text: str, setting: StageSetting) -> list[str]:
    return (first(text, setting).fix or "").splitlines()


@pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)
def test_no_kind_says_what_no_stage_sees(setting: StageSetting) -> None:
    seen = set()
    for kind in (*KINDS, *GENERIC_KINDS):
        for sample in kind.samples:
            for found in engine().diagnose([sample.encode()], setting=setting).findings:
                seen.add(found.rule)
                assert not USELESS.search(found.fix or ""), (found.rule, found.fix)
                assert "$ tools " not in (found.fix or "")
                assert "proxy" not in (found.fix or "") or setting.network
    cut_off = set() if setting.network else {kind.id for kind in KINDS if kind.needs_network}
    assert seen | cut_off >= {kind.id for kind in KINDS}


def test_what_the_check_above_looks_for_is_in_the_fixes_for_other_logs() -> None:
    found = [kind.id for kind in KINDS if USELESS.search(first(kind.samples[0], None).fix or "")]
    assert len(found) > 150


def test_recipe_lines_of_all_kinds_are_toml() -> None:
    lines = [
        line
        for kind in KINDS
        for found in engine().diagnose([kind.samples[0].encode()], setting=STAGE).findings
        for line in (found.fix or "").splitlines()
        if line.startswith("    stages.")
    ]
    assert len(lines) > 100
    for line in lines:
        (key,) = tomllib.loads(line)["stages"]["build"]
        assert key in {"env", "resources"}


def test_variables_become_a_line_of_the_recipe_with_its_place() -> None:
    text = 'Take it back:\n$ export CFLAGS="$CFLAGS -Wno-error"\nPyTorch\'s own switch:\n$ export WERROR=0'
    assert fix_in_stage(text, STAGE).splitlines() == [
        "Take it back:",
        "Set stages.build.env in sorting.toml, line 9:",
        '    stages.build.env = { CFLAGS = "-O3 -Wno-error" }',
        "PyTorch's own switch:",
        "Set stages.build.env in sorting.toml, line 9:",
        '    stages.build.env = { WERROR = "0" }',
    ]


def test_a_test_has_no_variables_of_its_own() -> None:
    text = "$ export HIP_VISIBLE_DEVICES=0"
    assert fix_in_stage(text, TEST).splitlines() == [
        "Put this in front of the command that needs it (tests.sorts.commands in sorting.toml):",
        '    HIP_VISIBLE_DEVICES="0"',
    ]
    assert fix_in_stage(text, SETTINGS["other"]) == ""


def test_the_command_that_locks_is_that_of_the_run() -> None:
    command = "axletree lock sorting --set axes.python=3.12 -v py312"
    setting = msgspec.structs.replace(STAGE, lock=command)
    assert f"$ {command}" in fix_in_stage("Install it:\n$ python -m pip install numpy", setting).splitlines()
    assert f"$ {command}" in fix("/env/bin/python: No module named pip\n", setting)
    key = "environments.build.requires"
    set_by_call = msgspec.structs.replace(setting, files={key: f"--set {key}"}, lines={})
    assert fix_in_stage("Install it:\n$ python -m pip install numpy", set_by_call).splitlines() == [
        "Install it:",
        f'Add "numpy" to {key} in --set {key}.',
    ]


def test_packages_become_requirements_and_conda_goes_with_its_sentence() -> None:
    text = (
        "Install it:\n$ python -m pip install 'numpy<2' --no-deps\nIn a conda environment:\n$ conda install -c x numpy"
    )
    assert fix_in_stage(text, STAGE).splitlines() == [
        "Install it:",
        'Add "numpy<2" to environments.build.requires in sorting.toml, line 4, then:',
        "$ axletree lock sorting.toml",
    ]
    assert "`environment` in [stages.build]" in fix_in_stage(text, SETTINGS["bare"])


@pytest.mark.parametrize(
    ("lines", "pieces"),
    [
        (
            ["export CUDA_HOME=/usr/local/cuda PATH=/usr/local/cuda/bin:$PATH", "export CPATH=$CUDA_HOME/include"],
            Pieces(
                sets=(
                    ("CUDA_HOME", "/usr/local/cuda"),
                    ("PATH", "/usr/local/cuda/bin"),
                    ("CPATH", "/usr/local/cuda/include"),
                )
            ),
        ),
        (["export CPATH=${X:-/opt}/include${CPATH:+:$CPATH}"], Pieces(sets=(("CPATH", "/opt/include"),))),
        (
            ['export P="-DX=$(command -v python) -DY=$(command -v python)"'],
            Pieces(sets=(("P", f"-DX={OUTPUT} -DY={OUTPUT}"),), runs=("command -v python",)),
        ),
        (
            ['export L="$(python -c \'print("a;b")\')"'],
            Pieces(sets=(("L", OUTPUT),), runs=("python -c 'print(\"a;b\")'",)),
        ),
        (["free -g; unset CFLAGS && grep ';' x"], Pieces(unsets=("CFLAGS",), runs=("free -g; grep ';' x",))),
        (["export GITHUB_TOKEN=..."], Pieces(sets=(("GITHUB_TOKEN", "..."),))),
        (["python -m pip install -v . 2>&1 | tee build.log", "rm -rf build"], Pieces()),
        (["uv pip install -r more.txt pip attrs[x] PACKAGE 'cffi>=1'"], Pieces(requires=("attrs[x]", "cffi>=1"))),
        (["git submodule sync", "git submodule update --init"], Pieces(submodules=True)),
        (["echo $CUDA_HOME; env | grep X; . .venv/bin/activate"], Pieces()),
    ],
)
def test_what_shell_lines_do(lines: list[str], pieces: Pieces) -> None:
    assert take_apart(lines) == pieces


def test_a_secret_comes_from_the_shell() -> None:
    assert fix_in_stage("$ export GITHUB_TOKEN=...", STAGE) == (
        'Add "GITHUB_TOKEN" to stages.build.pass-env in sorting.toml.'
    )


def test_braces_in_a_value_are_no_placeholder() -> None:
    assert line_for("env", {"X": 'a{b} "c"'}, STAGE) == r'stages.build.env = { X = "a{{b}} \"c\"" }'


def test_arguments_of_cmake_are_options_where_axletree_calls_it() -> None:
    text = "$ export BLAS=OpenBLAS CMAKE_ARGS='-DA:BOOL=ON -DB=/x=y -G Ninja'"
    setting = msgspec.structs.replace(STAGE, action="compile")
    assert [line for line in fix_in_stage(text, setting).splitlines() if line.startswith("    ")] == [
        '    stages.build.env = { BLAS = "OpenBLAS" }',
        '    stages.build.options = { A = "ON", B = "/x=y" }',
    ]
    assert 'options = { FETCHCONTENT_SOURCE_DIR_LIBZMQ = "third_party/libzmq" }' in (first(NO_HOST, setting).fix or "")


def test_fewer_jobs_are_a_matter_of_resources() -> None:
    assert fix_in_stage("$ export MAX_JOBS=2", STAGE).splitlines()[-1] == (
        '    stages.build.resources = { memory-per-job = "4 GB" }'
    )


def test_a_stage_that_downloads_is_told_that_it_has_no_network() -> None:
    found = first(NO_HOST, STAGE)
    assert found.rule == "fetch/offline"
    url = "https://github.com/zeromq/libzmq.git"
    assert found.message == f"CMake's FetchContent libzmq downloads {url}, but stages have no network"
    assert f"The build tried to access {url}." in found.cause
    assert "stages.build.env in sorting.toml, line 9" in (found.fix or "")
    of_test = first(NO_HOST, SETTINGS["test"])
    assert of_test.message == "The test downloads something, but stages have no network"
    assert "tests.sorts.files in sorting.toml" in (of_test.fix or "")


def test_a_step_with_a_network_and_a_server_of_its_own_are_told_the_usual() -> None:
    assert first(NO_HOST, SETTINGS["networked"]).message == "A host name cannot be resolved"
    local = "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Connection refused\nFAILED: x\n"
    assert first(local, STAGE).message == "The server cannot be reached"


def test_a_variant_for_the_cpu_needs_no_toolkit() -> None:
    found = first(NO_CUDA, SETTINGS["cpu"])
    assert found.rule == "env/cuda-home-unset"
    assert 'This variant is for gpu = "cpu"' in found.cause
    assert "CUDA_HOME" not in (found.fix or "")
    assert '    stages.build.env = { FORCE_CUDA = "0", USE_CUDA = "0" }' in (found.fix or "").splitlines()
    assert '    stages.build.env = { CUDA_HOME = "/usr/local/cuda" }' in fix(NO_CUDA, STAGE)
    assert 'Add "nvcc" to stages.build.tools in sorting.toml.' in fix(NO_CUDA, STAGE)


@pytest.mark.parametrize(
    ("module", "distribution"),
    [("yaml", "pyyaml"), ("PIL.Image", "pillow"), ("scipy.sparse", "scipy"), ("google.protobuf", "protobuf")],
)
def test_a_module_missing_in_a_test_names_the_test_s_environment(module: str, distribution: str) -> None:
    log = f"ModuleNotFoundError: No module named '{module}'\n"
    lines = fix(log, TEST)
    assert fix(f"/srv/venv/bin/python3.12: No module named {module}\n", TEST) == lines
    assert f'Add "{distribution}" to environments.test.requires in sorting.toml, line 14, then:' in lines
    assert "$ axletree lock sorting.toml" in lines


def test_a_program_that_is_missing_is_one_of_the_tools() -> None:
    log = "/bin/sh: 1: swig: not found\nninja: build stopped: subcommand failed.\n"
    assert 'Add "swig" to stages.build.tools in sorting.toml.' in fix(log, STAGE)
    assert not any("tools" in line for line in fix(log, TEST))


@pytest.mark.parametrize(
    ("tools", "line"),
    [
        (("c++",), 'stages.build.tools = ["c++", "swig"]'),
        (("ninja", "swig"), 'stages.build.tools = ["ninja", "swig"]'),
    ],
)
def test_tools_that_only_the_defaults_state_are_named_with_the_one_to_add(tools: tuple[str, ...], line: str) -> None:
    short = msgspec.structs.replace(STAGE, unsaid={"stages.build.tools": tools})
    lines = fix("/bin/sh: 1: swig: not found\nninja: build stopped: subcommand failed.\n", short)
    assert "Set stages.build.tools in sorting.toml, which replaces the default:" in lines
    assert f"    {line}" in lines
