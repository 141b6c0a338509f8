"""What a test runs inside a guest: a change on real hosts, trials with and without it, and what the hosts have then.

python verify_in_guest.py LINES.yaml HOSTS.yaml SSH_CONFIG OUT CHANGE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from plait.advice.candidates import candidates
from plait.advice.changes.model import NOW
from plait.advice.goals import GOALS
from plait.advice.search import AdviceRequest
from plait.advice.situation import Situation
from plait.advice.verify import RealLines, run_on_lines
from plait.engine.factory import make_engine
from plait.engine.remote.lasting import RemoteHost, undo
from plait.engine.request import EngineRequest
from plait.hosts.read import read_hosts
from plait.scenario import load


def main() -> None:
    lines, hosts, ssh_config, out = map(Path, sys.argv[1:5])
    situation = Situation.of(load(lines))
    engine = make_engine("remote", EngineRequest(hosts=hosts, ssh_config=ssh_config))
    request = AdviceRequest((GOALS["download"],), 1, out)
    reached = {name: RemoteHost.named(name, read_hosts(hosts), ssh_config) for name in ("h1", "h2")}
    real = RealLines(situation, request, reached, lambda _: engine, repeat=2)
    real.refuse_changed()
    change = next(candidate for candidate in candidates(situation) if candidate.name == sys.argv[5])
    run_on_lines(real, GOALS["download"], [NOW, change], print)
    left = {name: undo(host, preview=True).changed for name, host in reached.items()}
    (out / "left.json").write_text(json.dumps(left), encoding="utf-8")


if __name__ == "__main__":
    main()
