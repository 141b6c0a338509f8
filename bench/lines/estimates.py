"""What the bench runs inside a guest: measure the lines of a hosts file, and write the estimates as JSON.

python estimates.py HOSTS.yaml SSH_CONFIG OUT.json
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from plait.hosts.read import read_hosts
from plait.measure.run import measured_lines

if __name__ == "__main__":
    hosts, ssh_config, out = map(Path, sys.argv[1:])
    lines = measured_lines(read_hosts(hosts), ssh_config, print)
    out.write_text(json.dumps([asdict(line) for line in lines]), encoding="utf-8")
