"""Splitting a wheel as values: every file once, copied as it is, and metadata in which nothing is lost."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from axletree.binary.elf.facts import read_elf
from axletree.core.errors import IntegrityError
from axletree.package.libraries.providers import Provider
from axletree.package.split.metadata import part_metadata, share_requirements, split_version
from axletree.package.split.plan import SplitPart, SplitPlan, plan_split
from axletree.package.split.proof import ReadPart, prove_split
from axletree.package.split.rules import Opens, OutputPackage, parse_split_rules
from axletree.package.split.source import read_split_source
from axletree.package.wheel.metadata import Metadata, create_metadata
from axletree.package.wheel.scan import scan_wheel
from axletree.package.wheel.writer import Packed, write_wheel
from support.wheels import demo_metadata, make_elf, wheel_bytes, zip_bytes

RULES = """\
name = "demo"
label = "split.1"
version-module = "demo/version.py"

[check]
file = "demo/__init__.py"
markers = "libdemo/parts"

[[package]]
name = "libdemo"
summary = "Libraries"
independent = true
takes = ["nvidia-*"]

[[package]]
name = "libdemo-gpu"
independent = true
requires = ["libdemo"]
takes = ["toolkit[a]"]

[[package]]
name = "demo"
requires = ["libdemo", "libdemo-gpu"]

[[package]]
name = "demo-split"
meta = true

[[rule]]
drop = "tests"
files = ["demo/test/**"]

[[rule]]
to = "libdemo-gpu"
files = ["demo/lib/libgpu.so"]
place = { "demo/lib" = "libdemo/lib" }

[[rule]]
to = "libdemo"
files = ["demo/lib/**", "demo/include/**", "*.data/headers/**"]
place = { "demo/lib" = "libdemo/lib", "demo/include" = "libdemo/include" }

[[rule]]
to = "demo"
files = ["demo/_C.so"]
relocate = true

[[rule]]
to = "demo"
files = ["demo/**"]

[[edit]]
file = "demo/paths.py"
find = "'demo/lib'"
replace = "'libdemo/lib'"
count = 2
"""
CORE = make_elf(soname="libcore.so", runpath="$ORIGIN")
GPU = make_elf(soname="libgpu.so", needed=("libcore.so", "libcudart.so.13"), rpath="$ORIGIN")
MODULE = make_elf(needed=("libcore.so",), rpath="$ORIGIN/lib", undefined=("PyErr_SetString",))
FILES = {
    "demo/__init__.py": b'"""Demo."""\nimport os\n',
    "demo/version.py": b"__version__: str = '1.0+cu130'\n",
    "demo/paths.py": b"a = 'demo/lib'\nb = 'demo/lib'\n",
    "demo/_C.so": MODULE,
    "demo/lib/libcore.so": CORE,
    "demo/lib/libgpu.so": GPU,
    "demo/include/x.h": b"int x;\n" * 50,
    "demo/test/t": b"t",
    "demo-1.0.data/headers/y.h": b"int y;\n",
    "demo-1.0.dist-info/entry_points.txt": b"[console_scripts]\nd = demo:main\n",
    "demo-1.0.dist-info/licenses/LICENSE": b"Do what you want.\n",
}
METADATA = demo_metadata(
    requires=["numpy>=2", 'nvidia-x==1; platform_system == "Linux"', "toolkit[a,b]==3", 'yaml; extra == "yaml"']
)
TAG = "cp311-cp311-manylinux_2_28_x86_64"
VERSION = "1.0+cu130.split.1"


def split(
    files: dict[str, bytes] = FILES,
    text: str = RULES,
    metadata: Metadata = METADATA,
    tag: str = TAG,
    **options: Any,
) -> tuple[bytes, SplitPlan]:
    data = wheel_bytes(files, tag=tag, metadata=metadata)
    source = read_split_source(data, filename=f"demo-1.0-{tag}.whl")
    return data, plan_split(source, parse_split_rules(text, filename="demo.toml"), **options)


def written(part: SplitPart) -> tuple[bytes, ReadPart]:
    sink = io.BytesIO()
    record = write_wheel(sink, part.members, metadata=part.metadata, wheel_info=part.wheel_info)
    stem = f"{part.name.project.replace('-', '_')}-{part.name.version}"
    filename = f"{stem}-{part.name.python}-{part.name.abi}-{part.name.platform}.whl"
    return sink.getvalue(), ReadPart(part=part, written=record, scan=scan_wheel(sink.getvalue(), filename=filename))


def contents(plan: SplitPlan) -> dict[str, dict[str, bytes]]:
    """Package -> path -> content of the written wheels, their own METADATA, WHEEL and RECORD left out."""
    found = {}
    for part in plan.parts:
        archive = zipfile.ZipFile(io.BytesIO(written(part)[0]))
        assert archive.testzip() is None
        made = ("METADATA", "WHEEL", "RECORD")
        found[part.name.project] = {name: archive.read(name) for name in archive.namelist() if not name.endswith(made)}
    return found


def test_each_file_is_where_the_rules_say() -> None:
    _, plan = split()
    version = "1.0+cu130.split.1"
    assert {package: sorted(files) for package, files in contents(plan).items()} == {
        "libdemo": [
            f"libdemo-{version}.data/headers/y.h",
            f"libdemo-{version}.dist-info/licenses/LICENSE",
            f"libdemo-{version}.dist-info/sboms/axletree.cdx.json",
            "libdemo/include/x.h",
            "libdemo/lib/libcore.so",
            "libdemo/parts/libdemo.json",
        ],
        "libdemo-gpu": [
            "libdemo/lib/libgpu.so",
            "libdemo/parts/libdemo-gpu.json",
            f"libdemo_gpu-{version}.dist-info/licenses/LICENSE",
            f"libdemo_gpu-{version}.dist-info/sboms/axletree.cdx.json",
        ],
        "demo": [
            f"demo-{version}.dist-info/entry_points.txt",
            f"demo-{version}.dist-info/licenses/LICENSE",
            f"demo-{version}.dist-info/sboms/axletree.cdx.json",
            "demo/_C.so",
            "demo/__init__.py",
            "demo/paths.py",
            "demo/version.py",
        ],
        "demo-split": [f"demo_split-{version}.dist-info/sboms/axletree.cdx.json"],
    }


def test_what_does_not_change_is_copied_without_inflating_it() -> None:
    data, plan = split()
    original = zipfile.ZipFile(io.BytesIO(data))
    crcs = {info.filename: info.CRC for info in original.infolist()}
    origins = {place.target or place.path: place.path for place in plan.report.files}
    changed = {"demo/_C.so", "demo/__init__.py", "demo/paths.py"}
    for part in plan.parts:
        for member in part.members:
            if isinstance(member.data, Packed):
                path = origins.get(
                    member.path, member.path.replace(f"libdemo-{plan.report.version}.data", "demo-1.0.data")
                )
                if ".dist-info" not in path:
                    assert member.data.crc == crcs[path]
            else:
                assert member.path in changed or member.path.startswith("libdemo/parts/") or "/sboms/" in member.path


def bill(contents: dict[str, bytes]) -> dict[str, Any]:
    (data,) = (data for path, data in contents.items() if path.endswith("/sboms/axletree.cdx.json"))
    document: dict[str, Any] = json.loads(data)
    return document


def test_each_part_has_a_bill_of_what_it_holds_of_others() -> None:
    library = make_elf(soname="libgomp.so.1")
    licence = "demo-1.0.dist-info/licenses/third_party/fmt-11.2.0/LICENSE"
    files = FILES | {"demo/lib/libgomp.so.1": library, licence: b"MIT\n"}
    providers = [Provider(name="demo", distributions=("demo",), sonames=("libcore.so",), copies=("libgomp.so.1",))]
    _, plan = split(files, providers=providers)
    found = contents(plan)
    assert [
        (each["name"], each.get("version", ""), each["properties"][0]["value"], each.get("evidence", {}))
        for each in bill(found["libdemo"])["components"]
    ] == [
        ("libgomp.so.1", "", "bundled", {"occurrences": [{"location": "libdemo/lib/libgomp.so.1"}]}),
        (
            "fmt",
            "11.2.0",
            "vendored",
            {"occurrences": [{"location": licence.replace("demo-1.0", f"libdemo-{VERSION}")}]},
        ),
        ("nvidia-x", "1", "required", {}),
    ]
    digest = hashlib.sha256(library).hexdigest()
    assert bill(found["libdemo"])["components"][0]["hashes"] == [{"alg": "SHA-256", "content": digest}]
    assert bill(found["demo"])["metadata"]["component"]["purl"] == f"pkg:pypi/demo@{VERSION.replace('+', '%2B')}"
    assert "fmt" in [each["name"] for each in bill(found["demo"])["components"]]  # _C.so may hold it
    assert {each["properties"][0]["value"] for each in bill(found["demo-split"])["components"]} == {"required"}


def test_bills_of_the_original_stay_in_the_main_part() -> None:
    sboms = "demo-1.0.dist-info/sboms"
    files = FILES | {f"{sboms}/axletree.cdx.json": b'{"old": 1}', f"{sboms}/other.spdx.json": b"{}"}
    _, plan = split(files)
    found = contents(plan)
    bills = {path.rpartition("/")[2]: data for path, data in found["demo"].items() if "/sboms/" in path}
    assert bills.keys() == {"axletree.cdx.json", "demo-1.0.cdx.json", "other.spdx.json"}
    assert bills["demo-1.0.cdx.json"] == b'{"old": 1}'
    assert [path for path in found["libdemo"] if "/sboms/" in path] == [
        f"libdemo-{VERSION}.dist-info/sboms/axletree.cdx.json"
    ]


def test_the_date_of_a_bill_does_not_change_what_a_part_is() -> None:
    first, second = (split(epoch=epoch)[1] for epoch in (1_600_000_000, 1_700_000_000))
    assert [part.identity for part in first.parts] == [part.identity for part in second.parts]
    assert bill(contents(first)["demo"]) != bill(contents(second)["demo"])


def test_files_that_know_where_others_lie_are_edited() -> None:
    _, plan = split()
    demo = contents(plan)["demo"]
    assert demo["demo/paths.py"] == b"a = 'libdemo/lib'\nb = 'libdemo/lib'\n"
    assert demo["demo/__init__.py"].startswith(b'"""Demo."""\ndef _axletree_check_parts():\n')
    assert demo["demo/__init__.py"].endswith(b"\nimport os\n")
    for name in ("libdemo", "libdemo-gpu"):
        identity = next(package.identity for package in plan.report.packages if package.name == name)
        assert f'("{name}", "\\"{identity}\\"")'.encode() in demo["demo/__init__.py"]
    assert read_elf(demo["demo/_C.so"], name="_C").rpath == ("$ORIGIN/lib", "$ORIGIN/../libdemo/lib")


def test_requirements_go_where_they_are_needed_and_none_is_lost() -> None:
    _, plan = split()
    version = plan.report.version
    assert {part.name.project: part.metadata.requires for part in plan.parts} == {
        "libdemo": ('nvidia-x==1; platform_system == "Linux"',),
        "libdemo-gpu": ("toolkit[a]==3", f"libdemo=={version}"),
        "demo": (
            "numpy>=2",
            "toolkit[b]==3",
            'yaml; extra == "yaml"',
            f"libdemo=={version}",
            f"libdemo-gpu=={version}",
        ),
        "demo-split": (f"libdemo=={version}", f"libdemo-gpu=={version}", f"demo=={version}"),
    }
    assert [share.requirement for share in plan.report.requirements] == list(METADATA.requires)


def test_tags_of_the_parts() -> None:
    _, plan = split()
    assert [f"{part.name.python}-{part.name.abi}-{part.name.platform}" for part in plan.parts] == [
        "py3-none-manylinux_2_28_x86_64",
        "py3-none-manylinux_2_28_x86_64",
        TAG,
        "py3-none-any",
    ]
    assert [part.wheel_info.purelib for part in plan.parts] == [False, False, False, True]


def test_the_report_proves_where_each_file_is() -> None:
    data, plan = split()
    names = [name for name in zipfile.ZipFile(io.BytesIO(data)).namelist() if not name.endswith("/")]
    report = plan.report
    assert sorted(file.path for file in report.files) == sorted(names)
    assert {file.path: file.packages for file in report.files if len(file.packages) != 1} == {
        "demo/test/t": (),
        "demo-1.0.dist-info/licenses/LICENSE": ("libdemo", "libdemo-gpu", "demo"),
        **{
            f"demo-1.0.dist-info/{name}": tuple(p.name for p in report.packages)
            for name in ("METADATA", "WHEEL", "RECORD")
        },
    }
    assert {file.path: file.change for file in report.files if file.change and file.rule} == {
        "demo/_C.so": "relocated",
        "demo/__init__.py": "edited",
        "demo/paths.py": "edited",
    }
    assert [(rule.number, rule.files, rule.size) for rule in report.dropped] == [(1, 1, 1)]
    assert sum(package.files for package in report.packages) + 1 + 5 == len(names)
    assert report.install == f"demo-split=={report.version}"


def test_packages_without_files_are_not_made() -> None:
    files = {path: data for path, data in FILES.items() if "libgpu" not in path}
    _, plan = split(files)
    assert [part.name.project for part in plan.parts] == ["libdemo", "demo", "demo-split"]
    requires = {part.name.project: part.metadata.requires for part in plan.parts}
    assert not any("libdemo-gpu" in text for texts in requires.values() for text in texts)
    assert "toolkit[a,b]==3" in requires["demo"]  # who would take it is not there


def test_the_same_input_gives_the_same_split_and_others_another() -> None:
    one, same = split()[1], split()[1]
    assert [written(part)[0] for part in one.parts] == [written(part)[0] for part in same.parts]


def identities(plan: SplitPlan) -> dict[str, str]:
    return {part.name.project: part.identity for part in plan.parts}


def test_a_part_is_known_by_what_it_holds_and_requires() -> None:
    one = identities(split()[1])
    python = identities(split(FILES | {"demo/x.py": b""}, tag="cp312-cp312-manylinux_2_28_x86_64")[1])
    assert {name for name in one if one[name] != python[name]} == {"demo"}  # libraries serve several Pythons
    library = identities(split(FILES | {"demo/lib/libcore.so": make_elf(soname="libcore.so")})[1])
    assert {name for name in one if one[name] != library[name]} == {"demo", "libdemo"}
    required = identities(split(text=RULES.replace('takes = ["toolkit[a]"]', ""))[1])
    assert {name for name in one if one[name] != required[name]} == {"demo", "libdemo-gpu"}


def test_only_parts_that_are_required_are_checked() -> None:
    _, plan = split(text=RULES.replace('requires = ["libdemo", "libdemo-gpu"]', 'requires = ["libdemo"]'))
    assert b"libdemo-gpu" not in contents(plan)["demo"]["demo/__init__.py"]
    _, plan = split(text=RULES.replace('requires = ["libdemo", "libdemo-gpu"]', 'requires = ["libdemo-gpu"]'))
    assert b'("libdemo", ' in contents(plan)["demo"]["demo/__init__.py"]  # by way of libdemo-gpu
    _, plan = split(text=RULES.replace('requires = ["libdemo", "libdemo-gpu"]', ""))
    assert contents(plan)["demo"]["demo/__init__.py"] == FILES["demo/__init__.py"]


def test_every_edit_that_does_not_fit_is_told() -> None:
    files = FILES | {"demo/paths.py": b"a = 'demo/lib'\n"}
    text = RULES + '\n[[edit]]\nfile = "demo/gone.py"\nfind = "x"\nreplace = "y"\n'
    text += '\n[[edit]]\nfile = "demo/never.py"\nfind = "x"\nreplace = "y"\nwhen = "demo/never.py"\n'
    with pytest.raises(IntegrityError) as caught:
        split(files, text)
    assert [(problem.file, problem.key, problem.message) for problem in caught.value.problems] == [
        ("demo/paths.py", "edit[0]", "the text to replace occurs once, expected 2"),
        ("demo/gone.py", "edit[1]", "the file to edit does not exist"),
    ]


def test_what_can_not_be_split() -> None:
    with pytest.raises(IntegrityError, match="these rules are for other"):
        split(text=RULES.replace('name = "demo"', 'name = "other"').replace('to = "demo"', 'to = "other"'))
    with pytest.raises(IntegrityError, match="no rule matches a file: new"):
        split(FILES | {"new": b""})
    without = {path: data for path, data in FILES.items() if path != "demo/__init__.py"}
    with pytest.raises(IntegrityError, match="the import check must go into this file"):
        split(without)
    with pytest.raises(IntegrityError, match="not UTF-8 text"):
        split(FILES | {"demo/paths.py": b"\xff"})
    with pytest.raises(IntegrityError, match="METADATA: the file is missing"):
        read_split_source(zip_bytes({"a": b""}), filename="other-1.0-py3-none-any.whl")
    with pytest.raises(IntegrityError, match=r"has metadata for demo 1\.0, which does not match its file name"):
        read_split_source(wheel_bytes({}), filename="demo-1.1-py3-none-any.whl")


def prove(plan: SplitPlan, **changed: object) -> tuple[str, ...]:
    parts = [written(part)[1] for part in plan.parts]
    options: dict[str, Any] = {
        "origins": plan.origins,
        "before": plan.before,
        "opens": {},
        "requires": METADATA.requires,
        "providers": (),
        "policies": (),
    }
    return prove_split(parts, **(options | changed))


def test_parts_that_work_together_are_proved() -> None:
    assert prove(split()[1]) == ()


def test_a_file_that_loses_its_library_is_an_error() -> None:
    with pytest.raises(IntegrityError, match=r"demo/_C\.so: the file no longer finds libcore\.so"):
        prove(split(text=RULES.replace("relocate = true", ""))[1])


def test_what_the_original_did_not_find_either_is_a_note() -> None:
    files = FILES | {"demo/_C.so": make_elf(needed=("libcore.so",), rpath="$ORIGIN/nowhere")}
    notes = prove(split(files, RULES.replace("relocate = true", ""))[1])
    assert notes == ("demo/_C.so: does not find libcore.so through its own search path, just as in the original",)


def test_who_needs_a_part_must_require_it() -> None:
    with pytest.raises(IntegrityError, match=r"libgpu\.so: the file needs libcore\.so from libdemo, but libdemo-gpu"):
        prove(split(text=RULES.replace('requires = ["libdemo"]\n', ""))[1])


def test_who_needs_a_provider_must_require_it() -> None:
    from axletree.package.libraries.providers import Provider

    cuda = Provider(name="cudart", distributions=("nvidia-x",), sonames=("libcudart.so*",))
    assert prove(split()[1], providers=(cuda,)) == ()  # libdemo-gpu has it from libdemo
    plan = split(text=RULES.replace('takes = ["nvidia-*"]\n', ""))[1]
    with pytest.raises(
        IntegrityError, match=r"needs libcudart\.so\.13 from cudart, but libdemo-gpu no longer requires cudart"
    ):
        prove(plan, providers=(cuda,))


def opens_faults(opens: Opens, **libraries: bytes) -> list[str]:
    """What the proof says of files in two folders: the libraries ``core`` and ``gpu``, and the module ``C``."""
    files = FILES | {{"C": "demo/_C.so"}.get(name, f"demo/lib/lib{name}.so"): data for name, data in libraries.items()}
    try:
        prove(split(files)[1], opens=opens)
    except IntegrityError as error:
        return [f"{problem.key} {problem.message}" for problem in error.problems]
    return []


def test_what_a_file_opens_by_name_must_be_reached() -> None:
    assert opens_faults({"libcore.so": ("libgpu.so",), "libgpu.so": ("libgone.so",), "other.so": ("libgpu.so",)}) == []
    lost = [
        "libdemo/lib/libcore.so the file opens libgpu.so at run time, but cannot find it in libdemo/lib/libgpu.so: "
    ]
    bare = make_elf(soname="libcore.so")
    assert opens_faults({"libcore.so": ("libgpu.so",)}, core=bare) == [lost[0] + "it has no search path"]
    away = make_elf(soname="libcore.so", runpath="$ORIGIN/../x:/opt")
    by_path: Opens = {"demo/lib/libcore.so": ("libgpu.so",)}
    assert opens_faults(by_path, core=away) == [lost[0] + "the loader searches only libdemo/x, /opt"]


def test_what_a_file_opens_counts_as_reached_where_it_needs_it() -> None:
    module = make_elf(needed=("libgpu.so",), rpath="$ORIGIN/../libdemo/lib")
    assert opens_faults({"_C.so": ("libcore.so",)}, C=module) == []


def test_a_search_path_leads_to_what_is_opened() -> None:
    text = RULES.replace("[[package]]", '[opens]\n"demo/_C.so" = ["libgpu.so", "libgone.so"]\n\n[[package]]', 1)
    module = make_elf(needed=("libcudart.so.13",), runpath="$ORIGIN/lib:/opt")
    found = contents(split(FILES | {"demo/_C.so": module}, text)[1])["demo"]["demo/_C.so"]
    assert read_elf(found, name="_C").runpath == ("$ORIGIN/lib", "/opt", "$ORIGIN/../libdemo/lib")


def test_a_part_for_any_python_needs_none() -> None:
    text = RULES.replace('to = "demo"\nfiles = ["demo/_C.so"]', 'to = "libdemo"\nfiles = ["demo/_C.so"]')
    with pytest.raises(IntegrityError, match=r"demo/_C\.so: the file needs CPython, but libdemo is for any Python"):
        prove(split(text=text)[1])


def test_a_part_that_does_not_read_back_is_an_error() -> None:
    plan = split()[1]
    parts = [written(part)[1] for part in plan.parts]
    swapped = [ReadPart(part=parts[0].part, written=parts[1].written, scan=parts[0].scan), *parts[1:]]
    with pytest.raises(IntegrityError, match="the RECORD or the size of the wheel differs from what was written"):
        prove_split(swapped, origins={}, before={}, opens={}, requires=(), providers=(), policies=())


@pytest.mark.parametrize(
    ("version", "module", "expected"),
    [
        ("2.14.1", "__version__ = '2.14.1+cu130'", "2.14.1+cu130.split.1"),
        ("2.14.1", '__version__: str = "2.14.1+cu130"', "2.14.1+cu130.split.1"),
        ("2.13.0+cpu", "__version__ = '2.13.0+cpu'", "2.13.0+cpu.split.1"),
        ("2.14.1", "__version__ = '2.14.2+cu130'", "2.14.1+split.1"),
        ("2.14.1", "__version__ = 'what?'", "2.14.1+split.1"),
        ("2.14.1", "version = 3", "2.14.1+split.1"),
        ("2.14.1", None, "2.14.1+split.1"),
        ("1.0RC1", None, "1.0rc1+split.1"),
    ],
)
def test_the_version_of_the_parts(version: str, module: str | None, expected: str) -> None:
    assert split_version(version, module=module, label="split.1") == expected
    assert Version(expected) > Version(version)


def test_a_requirement_nobody_can_read_stays() -> None:
    metadata = Metadata(fields=(*METADATA.fields, ("Requires-Dist", "old (what?")))
    shares = share_requirements(metadata, (OutputPackage(name="a", takes=("*",)),), main="demo")
    assert shares[-1].given == {"demo": "old (what?"}


EXTRAS = st.sets(st.sampled_from("abc"))
TAKES = st.lists(
    st.sampled_from(["x", "y", "x*", "*", "x[a]", "x[a,b]", "*[c]"]), max_size=3
).map(tuple)  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("xyz"), EXTRAS), max_size=4), st.lists(TAKES, max_size=3), TAKES)
def test_no_requirement_and_no_extra_is_lost(
    requirements: list[tuple[str, set[str]]], takers: list[tuple[str, ...]], own: tuple[str, ...]
) -> None:
    from packaging.requirements import Requirement

    texts = [f"{name}[{','.join(sorted(extras))}]>=1" for name, extras in requirements]
    metadata = create_metadata(name="demo", version="1", requires=())
    metadata = Metadata(fields=(*metadata.fields, *(("Requires-Dist", text) for text in texts)))
    packages = [OutputPackage(name=f"p{number}", takes=takes) for number, takes in enumerate(takers)]
    packages.append(OutputPackage(name="demo", takes=own))
    shares = share_requirements(metadata, packages, main="demo")
    made = [
        part_metadata(metadata, package, main="demo", version="1+a", siblings=(), shares=shares) for package in packages
    ]
    for share, (name, extras) in zip(shares, requirements, strict=True):
        given_to = [Requirement(text) for text in share.given.values()]
        assert given_to
        assert {requirement.name for requirement in given_to} == {name}
        assert set().union(*(requirement.extras for requirement in given_to)) == extras
    assert sorted(text for share in shares for text in share.given.values()) == sorted(
        text for each in made for text in each.requires
    )
