"""Runs stages that have an image in containers of podman or docker, one each; other stages as they are without."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from axletree.core.values import digest_of
from axletree.execute.executor import end_process, follow_stage, run_stage_words
from axletree.execute.workspace import kept_folder
from axletree.host.contained import Surroundings
from axletree.host.engines import remove_containers
from axletree.host.room import STORE, WORKSPACE
from axletree.host.tooling import Tooling
from axletree.plan.containers import MARK, Container, EngineFacts, Mount, Way, gpus_of, image_reference, run_command

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from axletree.core.events import Event, StageFinished
    from axletree.core.images import ImageId
    from axletree.core.records import StageRequest
    from axletree.execute.executor import Executor
    from axletree.plan.containers import Gpus
    from axletree.recipe.settings import Settings
    from axletree.store.store import Store

_GRACE_SECONDS = 10.0
"""How long a container may take to end by itself, once nobody holds its lock."""


class ReadyEngine(msgspec.Struct, frozen=True, kw_only=True):
    """An engine that is known to work here."""

    facts: EngineFacts
    way: Way
    tooling: Tooling


class ContainerExecutor:
    """Runs stages in containers: a client of the engine, a container, and in it ``axletree run-stage`` as process 1."""

    def __init__(
        self,
        engine: ReadyEngine,
        store: Store,
        environ: Mapping[str, str],
        settings: Settings,
        *,
        others: Executor,
        networked: Callable[[str], bool],
    ) -> None:
        """Use ``store`` for requests and results.

        ``environ`` is for the engine's client alone, ``others`` runs stages without an image, and ``networked`` says
        whether an action needs a network.
        """
        self._engine = engine
        self._store = store
        self._environ = dict(environ)
        self._settings = msgspec.structs.replace(settings, store=str(STORE))
        self._others = others
        self._networked = networked

    async def run(self, request: StageRequest, emit: Callable[[Event], None]) -> StageFinished:
        """Run a stage to its end; see :class:`~axletree.execute.executor.Executor`."""
        image = request.ingredients.image
        if image is None:
            return await self._others.run(request, emit)
        self._store.put_request(request)
        sign = self._store.scratch(MARK)
        container = self._container(request, image.id, sign)

        async def end(process: Process) -> None:
            well = process.returncode in {0, 1}
            self._store.drop_scratch(sign)  # the container ends now, if it has not
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(process.wait()), _GRACE_SECONDS)
            await end_process(process)
            if not well:
                # The client may have been killed before it could remove the container, or create it.
                await asyncio.to_thread(self._remove, container.name)

        try:
            return await follow_stage(
                run_command(container, self._engine.facts, self._engine.way),
                request,
                emit,
                environ=self._environ,
                settings=self._settings,
                engine=self._engine.facts.name,
                end=end,
            )
        finally:
            self._store.drop_scratch(sign)  # where not even the client could be started

    def _container(self, request: StageRequest, image: ImageId, sign: Path) -> Container:
        kept = self._kept(request)
        outside = Surroundings(
            store=str(self._store.root),
            sign=str(sign.relative_to(self._store.root)) + ".owner",
            kept=None if kept is None else str(kept.relative_to(self._store.root)),
        )
        shown = () if kept is None else (Mount(source=str(kept), target=str(WORKSPACE), writable=True),)
        words = ("-E", "-P", "-m", "axletree", *run_stage_words(request))
        return stage_container(
            self._store.root,
            self._engine.tooling,
            name=container_name(sign),
            image=image_reference(request.local.image or "", image),
            mounts=shown,
            network=self._networked(request.action),
            gpus=gpus_of(request.ingredients.axes.get("gpu", "")) if request.local.gpus else "none",
            words=(*words, "--contained", msgspec.json.encode(outside).decode()),
        )

    def _kept(self, request: StageRequest) -> Path | None:
        """The kept folder that a stage may use; it is mounted, so it has to be there."""
        name = request.local.continues or request.local.workspace
        if not name:
            return None
        folder = kept_folder(self._store, name, fixed=True)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _remove(self, name: str) -> None:
        remove_containers([name], self._engine.facts, self._engine.way, environ=self._environ)


def stage_container(
    store: Path,
    tooling: Tooling,
    *,
    name: str,
    image: str,
    words: tuple[str, ...],
    mounts: tuple[Mount, ...] = (),
    network: bool = False,
    gpus: Gpus = "none",
) -> Container:
    """A container that sees the store and can run our Python, with these arguments."""
    return Container(
        name=name,
        image=image,
        store=store_label(store),
        mounts=(Mount(source=str(store), target=str(STORE), writable=True), *mounts, *tooling.mounts),
        network=network,
        gpus=gpus,
        entry=(tooling.python, *words),
        variables={"LC_ALL": "C.UTF-8", "HOME": "/"},
    )


def container_name(sign: Path) -> str:
    """What the container is called that ends when this process gives up a private folder of the store."""
    return sign.name


def store_label(store: Path) -> str:
    """By what containers of a store are found."""
    return digest_of(str(store).encode())[:16]
