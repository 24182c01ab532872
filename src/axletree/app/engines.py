"""Makes an engine ready for a build: it answers, has the images, and starts containers on this host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree import registry
from axletree.app.image_inputs import PYTHONS, image_of_recipe
from axletree.app.stage_images import waiting_stages
from axletree.execute.containers import (
    ContainerExecutor,
    ReadyEngine,
    container_name,
    stage_container,
    store_label,
)
from axletree.host.engines import (
    containers_of,
    find_engine,
    find_way,
    has_image,
    load_image,
    remove_containers,
)
from axletree.host.files import read_json, replace_file
from axletree.host.image.export import export_docker_archive
from axletree.host.room import STORE
from axletree.host.tooling import make_tooling
from axletree.plan.containers import ENGINES, EngineFacts, Way, image_reference
from axletree.store.scratch import work_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from axletree.app.planning import Prepared
    from axletree.execute.executor import Executor
    from axletree.plan.graph import PlannedStage
    from axletree.recipe.settings import Settings
    from axletree.store import Store

_MEMORY = "engines.json"
"""File among the caches of a store: what worked with each engine."""


def wanted_engine(prepared: Prepared, settings: Settings, *, environ: Mapping[str, str]) -> EngineFacts | None:
    """The engine that a build needs, if it needs one; before anything is made for it.

    Raises:
        HostError: it is not installed, or cannot be used.
    """
    if settings.runner not in ENGINES or not waiting_stages(prepared):
        return None
    return find_engine(settings.runner, environ=environ)


def make_engine_ready(
    facts: EngineFacts,
    prepared: Prepared,
    store: Store,
    *,
    environ: Mapping[str, str],
    note: Callable[[str], object],
) -> ReadyEngine:
    """Bring the images of a build into an engine, and find out how it starts containers here.

    Raises:
        HostError: it takes no image, or starts no container; says why.
    """
    surveyed = prepared.images.pythons.values()
    tooling = make_tooling(store.cache / PYTHONS, seen=STORE / "cache" / PYTHONS, surveyed=surveyed, environ=environ)
    stages = {image_of_recipe(prepared, stage): stage for stage in waiting_stages(prepared)}
    references = [_bring(facts, prepared, store, stage, environ=environ, note=note) for stage in stages.values()]
    memory = store.cache / _MEMORY
    ways = read_json(memory, dict[str, Way]) or {}
    key = f"{facts.name} {facts.uid}"
    with work_folder(store, "proof") as sign:
        proof = sign / "made"
        script = f"open({str(STORE / proof.relative_to(store.root))!r}, 'x')"
        words = ("-E", "-P", "-c", script)
        trial = stage_container(store.root, tooling, name=container_name(sign), image=references[0], words=words)
        way = find_way(trial, facts, proof=proof, known=ways.get(key), environ=environ)
    if ways.get(key) != way:
        replace_file(memory, msgspec.json.encode({**ways, key: way}))
    _remove_left(facts, way, store, environ=environ)
    return ReadyEngine(facts=facts, way=way, tooling=tooling)


def executor_with(
    engine: ReadyEngine, store: Store, environ: Mapping[str, str], settings: Settings, *, others: Executor
) -> ContainerExecutor:
    """An executor that runs stages with an image in the engine."""

    def networked(action: str) -> bool:
        return registry.action_spec(action).network

    return ContainerExecutor(engine, store, environ, settings, others=others, networked=networked)


def _bring(
    facts: EngineFacts,
    prepared: Prepared,
    store: Store,
    stage: PlannedStage,
    *,
    environ: Mapping[str, str],
    note: Callable[[str], object],
) -> str:
    """Have the engine know a stage's image; what it calls it."""
    image = stage.step.image
    assert image is not None  # noqa: S101 (these stages have one)
    name = image_of_recipe(prepared, stage)
    record = store.get_image(image.id)
    assert record is not None  # noqa: S101 (it was made just now)
    reference = image_reference(name, image.id)
    if not has_image(reference, record.layers, facts, Way(), environ=environ):
        note(f"loading image {name} into {facts.name}")
        with work_folder(store, "archive") as folder:
            archive = folder / "image.tar"
            export_docker_archive(store.image_path(image.id), record, archive, reference)
            load_image(archive, facts, Way(), environ=environ)
    return reference


def _remove_left(facts: EngineFacts, way: Way, store: Store, *, environ: Mapping[str, str]) -> None:
    """Remove containers whose driver is gone: it and the client were killed before the container could start."""
    names: Iterable[str] = containers_of(store_label(store.root), facts, way, environ=environ)
    left = [name for name in names if not (store.scratches / name).exists()]
    remove_containers(left, facts, way, environ=environ)
