"""From trees to what clients install: the steps ``pack``, ``audit``, the indexes of a root, and ``test``.

Each format of a package has steps of its own: ``pack -> audit -> index`` for wheels, ``pack-conda -> audit-conda ->
channel`` for conda packages, ``pack-zip -> audit-zip -> archives`` for archives. The three of a root appear in the
output folder together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.backends.cuda import cuda_release
from axletree.core.grouping import grouped
from axletree.plan.actions.audit import WheelAuditParameters
from axletree.plan.actions.audit_conda import CondaAuditParameters
from axletree.plan.actions.audit_zip import ZipAuditParameters
from axletree.plan.actions.fetch import revision_of
from axletree.plan.actions.listing import ListingParameters
from axletree.plan.actions.pack import WheelParameters
from axletree.plan.actions.pack_conda import CondaParameters
from axletree.plan.actions.pack_zip import ZipParameters
from axletree.plan.actions.packages import Described, Taken, TreePart, Waived
from axletree.plan.actions.test import CarriedFile, ClientTestParameters, WantedPackage
from axletree.plan.conda import exported_to, is_linked
from axletree.plan.images import image_of
from axletree.plan.relocation import bundling_step
from axletree.plan.siblings import conda_called, conda_pins, dependents, run_exports
from axletree.plan.step import Step
from axletree.recipe.base import FORMAT_OF
from axletree.recipe.overlay import written_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from axletree.core.values import Digest
    from axletree.plan.graph import PlannedStage
    from axletree.plan.inputs import PlanInputs
    from axletree.recipe.target import Target, TargetPackage, TargetTest
    from axletree.recipe.target_source import AxisValues

DEFLATE_LEVEL = 5
CONDA_LEVEL = 9
"""Of Zstandard; why, says the writer of conda packages."""

Format = Literal["wheel", "conda", "zip"]
_LISTING: dict[Format, tuple[str, str]] = {
    "wheel": ("index", "pack"),
    "conda": ("channel", "pack-conda"),
    "zip": ("archives", "pack-zip"),
}
"""Format -> what lists it in a root, what packs it."""
LISTINGS = frozenset(listing for listing, _ in _LISTING.values())
"""Actions whose trees are published."""

_COMPILERS = frozenset({"cc", "c++", "gcc", "g++", "clang", "clang++", "gfortran", "cargo", "rustc", "nvcc", "hipcc"})


def root_of(stage: PlannedStage) -> str:
    """The index root of a stage that lists packages."""
    parameters = stage.step.parameters
    assert isinstance(parameters, ListingParameters)  # noqa: S101 (it is one)
    return parameters.root


def packaging_steps(target: Target, inputs: PlanInputs, *, trees: Callable[[str], str]) -> Iterator[Step]:
    """The steps from the stages' trees to tested packages.

    Args:
        target: the recipe at a variant.
        inputs: what was read beforehand.
        trees: name of a stage -> name of the step that makes its tree.
    """
    makers = {"wheel": _wheel_steps, "conda": _conda_steps, "zip": _zip_steps}
    for package in target.packages:
        needs = {} if package.stage is None else {"tree": trees(package.stage)}
        for form in package.formats:
            yield from makers[form](package, target, inputs, needs)
    for form, (listing, pack) in _LISTING.items():
        yield from _listing_steps(target, form, listing, pack)
    for test in target.tests:
        yield from _test_steps(test, target, inputs)


def _described(package: TargetPackage, target: Target) -> Described:
    return Described(
        name=package.name,
        version=package.version,
        summary=package.summary,
        license=package.license,
        prefix=package.prefix,
        build_tag=package.build_tag,
        requires=package.requires,
        requires_python=package.requires_python,
        relabel=package.relabel,
        source_version=target.source.version if target.version != target.source.version else None,
    )


def _part(package: TargetPackage, target: Target, form: Format) -> TreePart:
    """What a package takes of its tree in a format, beside the others of the same tree."""
    siblings = {
        other.name: Taken(files=other.files, exclude=other.exclude)
        for other in target.packages
        if package.stage is not None and other.stage == package.stage and form in other.formats
    }
    return TreePart(package=package.name, siblings=siblings)


def _wheel_steps(package: TargetPackage, target: Target, inputs: PlanInputs, needs: dict[str, str]) -> Iterator[Step]:
    part = _part(package, target, "wheel")
    if package.bundle:
        bundling = bundling_step(package, part, inputs, needs)
        yield bundling
        needs = {"tree": bundling.name}
        part = TreePart(package=package.name, siblings={package.name: Taken(files=("**",))})
    yield Step(
        name=f"pack:{package.name}",
        action="pack",
        axes=package.axes,
        parameters=WheelParameters(
            package=_described(package, target),
            part=part,
            compressor=inputs.compressor,
            generator=inputs.generator,
            level=DEFLATE_LEVEL,
            policy=inputs.policy,
            interpreters=_interpreters(package, target, inputs),
        ),
        needs=needs,
    )
    yield Step(
        name=f"audit:{package.name}",
        action="audit",
        axes=package.axes,
        parameters=WheelAuditParameters(
            glibc=package.glibc,
            provided_by=package.provided_by,
            compilers=_compilers(package, target),
            driver=inputs.driver_libraries,
            policy=inputs.policy,
            providers=inputs.providers,
            waive=_waived(package),
        ),
        needs={"wheel": f"pack:{package.name}"},
    )


def _compilers(package: TargetPackage, target: Target) -> tuple[str, ...]:
    """Compilers that the stage of a package declares, if all that it builds is for this package."""
    stage = next((stage for stage in target.stages if stage.name == package.stage), None)
    shared = any(other.stage == package.stage for other in target.packages if other.name != package.name)
    if stage is None or stage.action != "build" or shared:
        return ()
    return tuple(tool for tool in stage.tools if tool in _COMPILERS)


def _conda_steps(package: TargetPackage, target: Target, inputs: PlanInputs, needs: dict[str, str]) -> Iterator[Step]:
    conda = package.conda
    assert conda is not None  # noqa: S101 (whoever has the format has the form)
    weak, strong = run_exports(package, target)
    yield Step(
        name=f"pack-conda:{package.name}",
        action="pack-conda",
        axes=package.axes,
        parameters=CondaParameters(
            package=_described(package, target),
            part=_part(package, target, "conda"),
            called=conda_called(package, inputs.conda_names),
            conda=msgspec.structs.replace(
                conda,
                constrains=(*dependents(package, target, inputs.conda_names), *conda.constrains),
                weak=weak,
                strong=strong,
            ),
            pins=conda_pins(package, target, inputs.conda_names),
            exported=exported_to(package, target, inputs.conda),
            linked=is_linked(package, target),
            names=inputs.conda_table,
            neighbours=inputs.conda_neighbours,
            platform=inputs.platform,
            python=_python(package, target, inputs),
            compressor=inputs.conda_compressor,
            generator=inputs.generator,
            level=CONDA_LEVEL,
            policy=inputs.policy,
            interpreters=_interpreters(package, target, inputs),
        ),
        needs=needs,
    )
    yield Step(
        name=f"audit-conda:{package.name}",
        action="audit-conda",
        axes=package.axes,
        parameters=CondaAuditParameters(
            glibc=package.glibc,
            policy=inputs.policy,
            waive=_waived(package, conda=True),
            owners=inputs.conda_owners,
        ),
        needs={"package": f"pack-conda:{package.name}"},
    )


def _waived(package: TargetPackage, *, conda: bool = False) -> tuple[Waived, ...]:
    """What its recipe accepts of an audit; only conda packages have findings of their own rules."""
    return tuple(
        Waived(rule=each.rule, where=each.where, reason=each.reason)
        for each in package.waive
        if conda or not each.rule.startswith("conda/")
    )


def _interpreters(package: TargetPackage, target: Target, inputs: PlanInputs) -> tuple[str, ...]:
    """Folders of the interpreters that stages of a package's axes can have used."""
    used = {each.python for each in target.environments if each.axes.items() <= package.axes.items()}
    return tuple(sorted({folder for python in used for folder in inputs.interpreters.get(python, ())}))


def _python(package: TargetPackage, target: Target, inputs: PlanInputs) -> dict[str, str] | None:
    """Identity of the Python that compiles a package's sources; ``None`` where the recipe uses none of its version."""
    version = package.axes.get("python")
    for environment in target.environments:
        if environment.python == version and environment.lock in inputs.environments:
            return inputs.environments[environment.lock].python
    return None


def _zip_steps(package: TargetPackage, target: Target, inputs: PlanInputs, needs: dict[str, str]) -> Iterator[Step]:
    # Where a tree for one prefix has a package of its own beside the wheel's, both are called as users know them.
    called = (package.conda.name if package.conda is not None else None) or package.name
    part = _part(package, target, "zip")
    yield Step(
        name=f"pack-zip:{package.name}",
        action="pack-zip",
        axes=package.axes,
        parameters=ZipParameters(
            part=part,
            version=package.version,
            called=called,
            source=revision_of(inputs.source),
            compressor=inputs.compressor,
            level=DEFLATE_LEVEL,
        ),
        needs=needs,
    )
    yield Step(
        name=f"audit-zip:{package.name}",
        action="audit-zip",
        axes=package.axes,
        parameters=ZipAuditParameters(
            part=part,
            called=called,
            glibc=package.glibc,
            driver=inputs.driver_libraries,
            policy=inputs.policy,
            providers=inputs.providers,
            waive=_waived(package),
        ),
        needs={"archive": f"pack-zip:{package.name}", **needs},
    )


def _listing_steps(target: Target, form: Format, listing: str, pack: str) -> Iterator[Step]:
    audit = pack.replace("pack", "audit")
    roots = grouped((package.index, package) for package in target.packages if form in package.formats)
    for root, packages in roots.items():
        needs = {f"{form}:{package.name}": f"{pack}:{package.name}" for package in packages}
        needs |= {f"audit:{package.name}": f"{audit}:{package.name}" for package in packages}
        yield Step(
            name=f"{listing}:{root}",
            action=listing,
            axes=_axes_of(packages, target),
            parameters=ListingParameters(root=root),
            needs=needs,
        )


def _axes_of(packages: Sequence[TargetPackage], target: Target) -> AxisValues:
    """What the presence and the content of some packages depend on."""
    axes = {axis: value for package in packages for axis, value in (package.axes | package.chosen_by).items()}
    return _in_target_order(axes, target)


def _test_steps(test: TargetTest, target: Target, inputs: PlanInputs) -> Iterator[Step]:
    for installer in test.installers:
        form = FORMAT_OF[installer]
        listing = _LISTING[form][0]
        made = [package for package in target.packages if form in package.formats]
        packages = sorted((package for package in made if package.name in test.packages), key=_name_of)
        if not packages:
            continue
        roots = list(dict.fromkeys(package.index for package in packages))
        # The index that it installs from differs by the axes of all that is in there.
        axes = test.axes | _axes_of([package for package in made if package.index in roots], target)
        # By number: a root that is called otherwise is still the same index, and tests nothing new.
        needs = {f"{listing}:{number}": f"{listing}:{root}" for number, root in enumerate(roots)}
        needs["environment"] = f"environment:{test.environment}"
        conda = form == "conda"
        yield Step(
            name=f"test:{test.name}:{installer}",
            action="test",
            axes=_in_target_order(axes, target),
            parameters=ClientTestParameters(
                installer=installer,
                client=inputs.clients.get(installer, ""),
                packages=_conda_builds(packages, inputs) if conda else tuple(map(_pinned, packages)),
                imports=test.imports,
                commands=test.commands,
                files=tuple(each for path in test.files for each in _carried(path, inputs.files)),
                names=inputs.conda_table if conda else None,
                virtual=_virtual(axes) if conda else {},
            ),
            needs=needs,
            image=image_of(test.image, inputs),
            resources=test.resources,
        )


def _carried(path: str, known: Mapping[str, Digest]) -> Iterator[CarriedFile]:
    """A file of a test, or all files of a folder, which keep their places in it."""
    if path in known:
        yield CarriedFile(path=written_path(path), blob=known[path])
        return
    for name, blob in sorted(known.items()):
        if name.startswith(f"{path}/"):
            inside = name[len(path) + 1 :]
            yield CarriedFile(path=written_path(name), blob=blob, at=f"{path.rpartition('/')[2]}/{inside}")


def _pinned(package: TargetPackage) -> WantedPackage:
    return WantedPackage(name=package.name, version=package.version)


def _conda_builds(packages: Iterable[TargetPackage], inputs: PlanInputs) -> tuple[WantedPackage, ...]:
    return tuple(
        WantedPackage(
            name=conda_called(package, inputs.conda_names), version=package.conda.version, build=package.conda.build
        )
        for package in packages
        if package.conda is not None
    )


def _virtual(axes: AxisValues) -> dict[str, str]:
    """What a conda client is told of the system: one without a GPU can still install and load what is built for one."""
    release = cuda_release(axes.get("gpu", ""))
    return {} if release is None else {"__cuda": release}


def _name_of(package: TargetPackage) -> str:
    return package.name


def _in_target_order(axes: AxisValues, target: Target) -> AxisValues:
    return {axis: axes[axis] for axis in target.axes if axis in axes}
