"""What tests run inside `plait exec`: hosts with planted lines, and a command of plait that uses them.

    python lines_in_guest.py FOLDER REQUEST.json

The request has `lines` ([name, qdiscs there, qdiscs back, whether addresses are translated], ..), `limits`, and
`command`: the arguments of plait, in which {hosts}, {ssh_config} and {folder} stand for paths; with `program`, they are
those of another program of Python. The program prints what the hosts still hold at the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
from real_hosts import HOSTS, PlantedLine, RealHosts


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
    with RealHosts(Path(tempfile.mkdtemp()), lines) as hosts:
        places = {
            "{hosts}": str(hosts.hosts_yaml(limits=request["limits"])),
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
            ["ip", "netns", "exec", hosts.netns("control"), sys.executable, *program, *command],
            check=False,
            timeout=3000,
        ).returncode
        left = {host: [path.name for path in hosts.tmp(host).iterdir()] for host in HOSTS}
    sys.stdout.write(json.dumps({"code": code, "left": left}) + "\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
