"""`plait shell`: runs the network of a scenario in real time, with a prompt in any node."""

from __future__ import annotations

from contextlib import ExitStack
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.shared.ending import notify
from plait.cli.shared.guest import booted
from plait.cli.shared.kernel import chosen_kernel
from plait.cli.shared.options import KernelOption, PlannedCase, ScenarioArgument, SetOption
from plait.cli.shared.planned import planned_case
from plait.cli.shared.sandbox import DISK, DiskOption, RoOption, UnconfinedOption, policy
from plait.errors import RequestError

if TYPE_CHECKING:
    from pathlib import Path

    from plait.engine.request import Policy
    from plait.plan.model.plan import Plan
    from plait.prompt.loop import Prompt


def command(
    scenario: ScenarioArgument,
    node: Annotated[
        str | None, typer.Argument(metavar="NODE", help="Node in which to open a shell at once")
    ] = None,
    *,
    overrides: SetOption = None,
    case: PlannedCase = None,
    kernel: KernelOption = None,
    ro: RoOption = None,
    disk: DiskOption = DISK,
    unconfined: UnconfinedOption = False,
) -> int:
    """Open a prompt in the running network of a scenario.

    A second `plait shell` of the same network joins the first one.
    """
    from plait.cache import alone
    from plait.cli.shared.environment import environment_of
    from plait.prompt.loop import Prompt
    from plait.prompt.view import view

    plan = _plan(scenario, overrides, case)
    network = view(plan)
    if node is not None and node not in network.roles:
        raise RequestError(f"{node}: the network has no such node; it has: {', '.join(network.roles)}")
    path = _socket(plan)
    prompt = Prompt(network, path, environment_of([], terminal=True))
    with ExitStack() as starting:
        # another one may be booting this network: join it then
        starting.enter_context(
            alone("shell", lambda holder: notify(f"waiting for {holder} that boots a network"))
        )
        if not _has_server(path):
            allowed = policy(disk, ro, unconfined=unconfined)
            return _serve(plan, kernel, allowed, path=path, prompt=prompt, node=node, starting=starting)
    typer.echo("plait: joined the running network", err=True)
    return _use(prompt, node)


def _use(prompt: Prompt, node: str | None) -> int:
    if node is None:
        prompt.read()
        prompt.hang_up()
        return 0
    return prompt.shell(node)


def _serve(
    plan: Plan, kernel: str | None, allowed: Policy, *, path: Path, prompt: Prompt, node: str | None,
    starting: ExitStack,
) -> int:  # fmt: skip
    """Boot the network, serve it to other prompts, and run this prompt; the network ends with it.

    `starting` is closed as soon as others can join.
    """
    from plait.engine.virtual.session import SessionRequest
    from plait.prompt.live import PromptServer

    request, chosen = SessionRequest(network=True), chosen_kernel(kernel)
    with booted(chosen, plan, request, notify, real_time=True, policy=allowed) as session:
        with PromptServer(session, path) as server:
            starting.close()
            code = _use(prompt, node)
        if server.failure is not None:
            raise server.failure
        if session.guest.process.poll() is not None:
            session.explain_end()
    return code


def _plan(scenario: str, overrides: list[str] | None, case: str | None) -> Plan:
    """Return the plan of the requested case, without what only a trial needs."""
    plan, _, _ = planned_case(scenario, overrides, case)
    memory = max(plan.machine.memory_mib, 1024)
    machine = plan.machine.model_copy(update={"memory_mib": memory})
    return plan.model_copy(update={"machine": machine, "pause": ()})


def _socket(plan: Plan) -> Path:
    """Return the path of the socket at which plait serves the network of this plan; its name is a hash of the plan."""
    from plait.cache import cache_root
    from plait.plan.identity import plan_bytes

    folder = cache_root() / "shell"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / sha256(plan_bytes(plan)).hexdigest()[:16]


def _has_server(path: Path) -> bool:
    """Return whether a process serves a network there; remove the socket of a process that was killed."""
    import socket

    from plait.prompt.live import short_address

    with socket.socket(socket.AF_UNIX) as trial:
        try:
            with short_address(path) as address:
                trial.connect(address)
        except FileNotFoundError:
            return False
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return False
    return True
