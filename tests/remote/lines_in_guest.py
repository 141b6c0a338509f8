"""What tests run inside `plait exec`: hosts with planted lines, and a command of plait that uses them.

    python lines_in_guest.py FOLDER REQUEST.json

The request has `lines` ([name, qdiscs there, qdiscs back, whether addresses are translated], ..), `limits`, and
`command`: the arguments of plait, in which {hosts}, {ssh_config} and {folder} stand for paths; with `program`, they are
those of another program of Python. With `home`, the lines are those of a home to a server (`home_lines.py`; with
`ipv6`, of IPv6 alone), and the command runs at home. `before` has commands for namespaces that run first. The
program prints what the hosts still hold at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from home_lines import HomeLines, HomeLinesIpv6
from real_hosts import PlantedLine, RealHosts


def unlock_root() -> None:
    """Let sshd accept root's key in a guest whose files an ordinary user reads.

    /etc/shadow is then unreadable, and the systemd module of the name service invents an entry for root that is locked.
    """
    shadow = Path(tempfile.mkdtemp()) / "shadow"
    shadow.write_text("root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n", encoding="utf-8")
    shadow.chmod(0o600)
    subprocess.run(["mount", "--bind", str(shadow), "/etc/shadow"], check=True, timeout=300)


def main() -> int:
    folder, request = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    unlock_root()
    lines = [
        PlantedLine(name, tuple(there), tuple(back), *more) for name, there, back, *more in request["lines"]
    ]
    is_home = request.get("home", False)
    homes = HomeLinesIpv6 if request.get("ipv6") else HomeLines
    with (homes if is_home else RealHosts)(Path(tempfile.mkdtemp()), lines) as hosts:
        for namespace, *words in request.get("before", []):
            hosts.run(namespace, *words)
        places = {
            "{hosts}": str(hosts.hosts_yaml(limits=request["limits"])) if not is_home else "",
            "{ssh_config}": str(hosts.ssh_config),
            "{folder}": str(folder),
        }
        command = request["command"]
        for name, place in places.items():
            command = [word.replace(name, place) for word in command]
        program = (
            [request["program"]] if "program" in request else ["-c", "from plait.cli import main; main()"]
        )
        code = subprocess.run(
            [
                "ip",
                "netns",
                "exec",
                hosts.netns("home" if is_home else "control"),
                sys.executable,
                *program,
                *command,
            ],
            check=False,
            timeout=3000,
            env={**os.environ, "TMPDIR": str(hosts.tmp("home"))} if is_home else None,
        ).returncode
        left = {host: [path.name for path in hosts.tmp(host).iterdir()] for host in hosts.with_files}
    sys.stdout.write(json.dumps({"code": code, "left": left}) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
