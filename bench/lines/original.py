"""What `twins.py` runs inside a guest: measure the lines of a hosts file, and run the scenario on these hosts.

python original.py HOSTS.yaml SSH_CONFIG FOLDER TRIALS
"""

from __future__ import annotations

import sys
from pathlib import Path

from plait.engine.factory import make_engine
from plait.engine.request import EngineRequest
from plait.hosts.read import read_hosts
from plait.measure.run import measured_between
from plait.scenario import load
from plait.study.perform import Options, perform
from plait.study.progress import silent

if __name__ == "__main__":
    hosts, ssh_config, folder = map(Path, sys.argv[1:4])
    lines = folder / "lines.yaml"
    lines.write_text(measured_between(read_hosts(hosts), ssh_config, print).scenario(), encoding="utf-8")
    engine = make_engine("remote", EngineRequest(hosts=hosts, ssh_config=ssh_config))
    scenario = load(lines, ["vary={}", "transport=mptcp", "engine=remote"])
    options = Options(repeat=int(sys.argv[4]), calibrate=False)
    perform(
        scenario,
        "original",
        lambda _: engine,
        options,
        folder=folder / "original",
        watch=silent,
        notify=print,
    )
