"""Disturb studies in every way that a machine can, and compare their results with those of an undisturbed study.

    bench/kill.py kills [N] [TRIALS]   SIGKILL at N random moments, to plait, a guest, the janitor, or plait and janitor
    bench/kill.py signals [N]          N each of SIGINT, SIGTERM and SIGHUP
    bench/kill.py full                 a full disk at ten points, for the result folder and for the cache
    bench/kill.py limits               open files, addresses, processes (as an ordinary user)
    bench/kill.py clock                a wall clock that jumps by up to a year at each look at it

The same command continues the study each time. Every line lists the outcomes and their numbers. The exit code is 1 if
any attempt left something behind, gave other data, or showed a traceback.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plait.cache import cache_root

PLAIT = [sys.executable, "-c", "from plait.cli import main; main()"]
SHORT = ("--set", "traffic.*.bulk.duration=1s")
NOBODY = 65534
GONE_S = 15.0


@dataclass
class Place:
    """A separate result folder and cache, which shares the kernels that are already built."""

    root: Path
    trials: int = 8
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.out = self.root / "results" / "study"
        self.cache = self.root / "cache"
        self.out.parent.mkdir(parents=True)
        self.cache.mkdir()
        for shared in ("kernels", "figures"):
            (self.cache / shared).symlink_to(cache_root() / shared)

    @property
    def command(self) -> list[str]:
        """Return the command of the study: two cases of 1 s each."""
        repeat = str(self.trials // 2)
        return [*PLAIT, "run", "two-paths", *SHORT, "--repeat", repeat, "--out", str(self.out), "--json"]

    def start(self, **options: Any) -> subprocess.Popen[str]:
        environment = {**os.environ, "PLAIT_CACHE": str(self.cache), **self.environment}
        return subprocess.Popen(
            self.command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            **options,
        )

    def finish(self) -> str:
        """Run the study to its end and return its digest."""
        study = self.start()
        _, output = study.communicate(timeout=900)
        if study.returncode != 0:
            raise SystemExit(f"the study failed ({study.returncode}): {output[-2000:]}")
        return str(json.loads((self.out / "summary.json").read_text())["digest"])

    def there(self) -> int:
        """Return how many trials are in the result folder."""
        return len(list(self.out.glob("trials/*/*/provenance.json")))

    def processes(self, *, janitors: bool) -> list[int]:
        """Return the process numbers of the guests, or of the janitors, of this place."""
        pids = []
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if not process.name.isdigit():
                    continue
                line = process.joinpath("cmdline").read_bytes()
                is_guest = b"plait-contain" in line.split(b"\0")[0]
                matches = line.startswith(b"/bin/sh\0-c") if janitors else is_guest
                if matches and str(self.root).encode() in line:
                    pids.append(int(process.name))
                    if is_guest:
                        children = process.joinpath("task", process.name, "children").read_text()
                        pids += [int(pid) for pid in children.split()]
        return pids

    def folders(self) -> list[Path]:
        """Return the working folders that exist."""
        return [*self.out.glob(".*"), *(self.cache / "trials").glob(".*")]

    def left(self, known: Collection[str] = ()) -> list[str]:
        """Return the processes, and the folders that are not `known`, that still exist after GONE_S seconds."""
        until = time.monotonic() + GONE_S
        while time.monotonic() < until:
            processes = self.processes(janitors=True) + self.processes(janitors=False)
            folders = [path for path in self.folders() if path.name not in known]
            if not processes and not folders:
                return []
            time.sleep(0.02)
        return [*map(str, processes), *(path.name for path in folders)]


def kill(pids: list[int]) -> bool:
    """Kill one of the processes, and return whether there was one."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            return True
    return False


def disturb(place: Place, choose: random.Random, victim: str) -> bool:
    """Start the study, kill the victim at a random moment, then plait. Return whether the victim existed."""
    aim = place.there() + choose.randint(0, 4)
    study = place.start()
    until = time.monotonic() + choose.uniform(0.0, 3.0)
    while place.there() < min(aim, place.trials) and study.poll() is None:
        time.sleep(0.005)
        until = time.monotonic() + choose.uniform(0.0, 0.3 if aim < place.trials else 3.0)
    while time.monotonic() < until and study.poll() is None:
        time.sleep(0.005)
    hit = study.poll() is None
    if victim in ("guest", "janitor", "plait and janitor"):
        hit = kill(place.processes(janitors=victim != "guest")) and hit
    if victim == "guest" and choose.random() < 0.5:
        time.sleep(choose.uniform(0.0, 0.5))
    study.kill()
    study.communicate()
    return hit


def kills(count: int, trials: int) -> bool:
    """Send SIGKILL at random moments. Return whether nothing is lost or left behind."""
    seed = time.time_ns() % 10**6
    choose = random.Random(seed)
    hits: Counter[str] = Counter()
    left: Counter[str] = Counter()
    orphans: set[str] = set()
    """Working folders that a killed janitor left."""
    with tempfile.TemporaryDirectory() as temporary:
        undisturbed = Place(Path(temporary) / "undisturbed", trials)
        place = Place(Path(temporary) / "killed", trials)
        digest = undisturbed.finish()
        while hits.total() < count:
            if place.there() >= trials and choose.random() < 0.5:  # the report has been killed often enough
                shutil.rmtree(place.out)
                shutil.rmtree(place.cache / "trials")
            victim = choose.choices(("plait", "guest", "janitor", "plait and janitor"), (5, 2, 1, 2))[0]
            if disturb(place, choose, victim):
                hits[victim] += 1
                if victim in ("janitor", "plait and janitor"):
                    orphans |= {path.name for path in place.folders()}
                else:  # the next study that lives long enough removes what killed janitors left
                    left.update(set(place.left(orphans)) - orphans)
            print(f"\r{hits.total()} kills, {place.there()} finished trials ", end="", file=sys.stderr)
        same = place.finish() == digest
        page = (place.out / "report.html").read_bytes() == (undisturbed.out / "report.html").read_bytes()
        rest = place.left() + undisturbed.left()
    victims = ", ".join(f"{victim} {times}" for victim, times in sorted(hits.items()))
    print(
        f"\nkills: {hits.total()} ({victims}), seed {seed}; left behind: {dict(left)}, in the end {rest}; ",
        end="",
    )
    print(f"same digest: {same}; same report: {page}")
    return same and page and not rest and not left.total()


def signals(each: int) -> bool:
    """Send signals at random moments after the first trial. Return whether every study ended as it should."""
    choose = random.Random(1)
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        digest = Place(Path(temporary) / "undisturbed").finish()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            codes: Counter[object] = Counter()
            slowest = 0.0
            for attempt in range(each):
                place = Place(Path(temporary) / f"{number.name}-{attempt}")
                study = place.start()
                while not place.there() and study.poll() is None:
                    time.sleep(0.005)
                time.sleep(choose.uniform(0.0, 0.4))
                began = time.monotonic()
                study.send_signal(number)
                _, output = study.communicate(timeout=60)
                slowest = max(slowest, time.monotonic() - began)
                reported = (
                    "The same command" in output
                    or f"terminated by {number.name}" in output
                    or study.returncode == 0
                )
                kept, left = place.there(), place.left()
                fine = (
                    reported and kept and not left and "Traceback" not in output and place.finish() == digest
                )
                codes[study.returncode if fine else f"{study.returncode}: {output[-200:]!r} {left}"] += 1
            print(
                f"{number.name}: exit codes {dict(codes)}, at most {slowest:.2f} s until plait ended",
                flush=True,
            )
            good &= set(codes) <= {128 + number, 0}
    return good


def full() -> bool:
    """Run on a small file system of ten sizes, below the results or the cache, and then again with more space."""
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        first = Place(Path(temporary) / "undisturbed")
        digest = first.finish()
        for which in ("results", "cache"):
            size = _bytes(first.root / which)
            ends: Counter[str] = Counter()
            for point in range(1, 11):
                place = Place(Path(temporary) / f"{which}-{point}")
                ends[_on_full_disk(place, which, size * point // 11, digest)] += 1
            print(
                f"full disk below {which} ({size >> 10} KiB used, at 1/11 .. 10/11): {dict(ends)}", flush=True
            )
            good &= all(not end.startswith("BAD") for end in ends)
    return good


def _on_full_disk(place: Place, which: str, size: int, digest: str) -> str:
    small = place.root / which
    kernels = (cache_root() / "kernels").resolve()
    link = f"ln -s {kernels} {small}/kernels; " if which == "cache" else ""
    command = " ".join(f"'{word}'" for word in place.command)
    inner = (
        f"mount -t tmpfs -o size={max(size, 4096)} none {small} || exit 99; {link}"
        f"{command} >/dev/null; echo code $? >&2; "
        f"mount -o remount,size=1g {small}; {command} | grep digest; ls -A {small} {place.out} >&2"
    )
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", inner],
        env={**os.environ, "PLAIT_CACHE": str(place.cache)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    code = done.stderr.split("code ")[-1].split()[0]
    clear = code == "0" or "space" in done.stderr.split("code ")[0] or "disk is full" in done.stderr
    sound = (
        digest in done.stdout
        and "Traceback" not in done.stderr
        and ".work-" not in done.stderr.split("code ")[-1]
    )
    return f"exit {code}, then the same digest" if clear and sound else f"BAD {code}: {done.stderr[-900:]}"


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def limits() -> bool:
    """Run with several limits of open files, addresses and processes."""
    good = True
    with tempfile.TemporaryDirectory() as temporary:
        Path(temporary).chmod(0o755)
        for name, kind, amounts in (
            ("open files", resource.RLIMIT_NOFILE, (8, 12, 16, 20, 24, 32, 48, 64, 80, 128, 256)),
            ("GiB of addresses", resource.RLIMIT_AS, (0.2, 0.5, 1, 2, 3, 4, 8, 32, 64, 80)),
            (
                "processes of an ordinary user",
                resource.RLIMIT_NPROC,
                (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64),
            ),
        ):
            ends = {}
            for number, amount in enumerate(amounts):
                place = Place(Path(temporary) / f"{kind}-{number}")
                ends[amount] = _with_limit(
                    place, kind, int(amount * (1 << 30 if kind == resource.RLIMIT_AS else 1))
                )
            print(f"{name}: {ends}", flush=True)
            good &= not any("BAD" in end for end in ends.values())
    return good


def _with_limit(place: Place, kind: int, amount: int) -> str:
    def limit() -> None:
        resource.setrlimit(kind, (amount, amount))

    identity: dict[str, Any] = {}
    if kind == resource.RLIMIT_NPROC and os.geteuid() == 0:
        for path in (place.root, place.cache, place.out.parent):
            os.chown(path, NOBODY, NOBODY)
        identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    study = place.start(preexec_fn=limit, **identity)
    _, output = study.communicate(timeout=600)
    advice = next((line for line in output.splitlines() if "ulimit" in line), "")
    if study.returncode == 0 or (study.returncode in (1, 3) and advice and "Traceback" not in output):
        return str(study.returncode)
    return f"BAD {study.returncode}: {output[-300:]!r}"


def clock() -> bool:
    """Run with a wall clock that jumps at each reading, and with files from the past and the future."""
    jumping = (
        "import random, time, datetime\n"
        "_choose, _time = random.Random(1), time.time\n"
        "def _jump(): return _time() + _choose.uniform(-3e7, 3e7)\n"
        "time.time = _jump; time.time_ns = lambda: int(_jump() * 1e9)\n"
    )
    with tempfile.TemporaryDirectory() as temporary:
        digest = Place(Path(temporary) / "undisturbed").finish()
        site = Path(temporary) / "site"
        site.mkdir()
        (site / "sitecustomize.py").write_text(jumping)
        place = Place(Path(temporary) / "jumping", environment={"PYTHONPATH": str(site)})
        same = place.finish() == digest
        choose = random.Random(2)
        for path in place.root.rglob("*"):
            if not path.is_symlink():
                moment = choose.uniform(0, 4e9)
                os.utime(path, (moment, moment))
        shutil.rmtree(place.out / "trials")
        again = place.finish() == digest
    print(f"jumping wall clock: same digest: {same}; with files of 1970 to 2096: {again}")
    return same and again


def main() -> None:
    """Run the mode of the command line, and exit with 1 after any failure."""
    mode, *numbers = sys.argv[1:] or ["kills"]
    arguments = [int(number) for number in numbers]
    good = {
        "kills": lambda: kills(*(arguments or [50]), *([] if len(arguments) > 1 else [40])),
        "signals": lambda: signals(*(arguments or [10])),
        "full": full,
        "limits": limits,
        "clock": clock,
    }[mode]()
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
