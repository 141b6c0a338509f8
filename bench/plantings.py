"""Let `plait bisect` search ten planted regressions among harmless commits of a real kernel.

    python bench/plantings.py TREE [NUMBER..]

TREE is a git tree of Linux 6.12, such as the distribution's source. Each planting is a branch of 64 commits on its
HEAD: 62 harmless ones, one that does not build and its repair, or one more harmless one, and the regression at a
place that depends on its number. The script writes only branches (`plait-planting-N`), and no working file. It prints
a line for each planting: the position of the regression, whether `plait bisect` names its commit, the kernels that it
measured, and both medians.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

COMMITS = 64
PM, PROTOCOL, INPUT = "net/mptcp/pm_kernel.c", "net/mptcp/protocol.c", "net/ipv4/tcp_input.c"
LONG = ("network.links.*.delay=50ms", "traffic.0.bulk.duration=2s")
WIDE = ("network.links.*.rate=20mbit", "network.links.*.delay=50ms")
SHORT_QUEUES = ("network.links.*.queue=10pkt", "network.links.*.delay=20ms", "network.links.*.rate=20mbit")


@dataclass(frozen=True)
class Planting:
    """A regression."""

    title: str
    file: str
    before: str
    after: str
    settings: tuple[str, ...] = ()
    """What to set in the scenario two-paths, so that the regression matters."""


PLANTINGS = (
    Planting(
        "the connection's send buffer grows less", "net/mptcp/protocol.h",
        "\t\tnew_sndbuf += ssk_sndbuf;\n", "\t\tnew_sndbuf += ssk_sndbuf >> 4;\n",
    ),
    Planting(
        "the scheduler ignores joined paths", PROTOCOL,
        "\t\tif (!mptcp_subflow_active(subflow))\n\t\t\tcontinue;\n\n\t\ttout = max(tout,",
        "\t\tif (!mptcp_subflow_active(subflow) || subflow->request_join)\n\t\t\tcontinue;\n\n\t\ttout = max(tout,",
    ),
    Planting(
        "a join waits one more RTT", PM,
        "static void mptcp_pm_nl_fully_established(struct mptcp_sock *msk)\n{\n",
        "static void mptcp_pm_nl_fully_established(struct mptcp_sock *msk)\n{\n"
        "\tunsigned int rtt_us = tcp_sk(msk->first)->srtt_us >> 3;\n\n"
        "\tspin_unlock_bh(&msk->pm.lock);\n\trelease_sock((struct sock *)msk);\n"
        "\tschedule_timeout_uninterruptible(usecs_to_jiffies(rtt_us));\n"
        "\tlock_sock((struct sock *)msk);\n\tspin_lock_bh(&msk->pm.lock);\n\n",
        LONG,
    ),
    Planting(
        "the receiver offers an eighth of its free buffer", "net/mptcp/protocol.h",
        "READ_ONCE(sk->sk_rcvbuf) - __mptcp_rmem(sk));\n", "READ_ONCE(sk->sk_rcvbuf) - __mptcp_rmem(sk)) >> 3;\n",
        WIDE,
    ),
    Planting(
        "the receive buffer grows only 64-fold at once", PROTOCOL,
        "\t\tif (rcvbuf > sk->sk_rcvbuf) {\n\t\t\tu32 window_clamp;",
        "\t\tif (rcvbuf >> 6 > sk->sk_rcvbuf) {\n\t\t\tu32 window_clamp;",
        WIDE,
    ),
    Planting(
        "the scheduler keeps queues of subflows short", PROTOCOL,
        "\tif (!ssk || !sk_stream_memory_free(ssk))\n\t\treturn NULL;\n\n\tburst = min_t(",
        "\tif (!ssk || ssk->sk_wmem_queued > ssk->sk_sndbuf >> 4)\n\t\treturn NULL;\n\n\tburst = min_t(",
        WIDE,
    ),
    Planting(
        "CUBIC backs off to a quarter", "net/ipv4/tcp_cubic.c",
        "return max((tcp_snd_cwnd(tp) * beta) / BICTCP_BETA_SCALE, 2U);",
        "return max((tcp_snd_cwnd(tp) * beta) / BICTCP_BETA_SCALE / 3, 2U);",
        SHORT_QUEUES,
    ),
    Planting(
        "connections begin with two segments", INPUT,
        "\t\tcwnd = TCP_INIT_CWND;\n\treturn min_t(", "\t\tcwnd = TCP_INIT_CWND / 5;\n\treturn min_t(",
        LONG,
    ),
    Planting(
        "the path manager opens no subflow", PM,
        "\treturn READ_ONCE(pernet->subflows_max);\n", "\treturn READ_ONCE(pernet->subflows_max) >> 4;\n",
    ),
    Planting(
        "the send buffers of subflows grow to half", INPUT,
        "\tsndmem *= nr_segs * per_mss;\n", "\tsndmem *= nr_segs * per_mss / 4;\n",
        WIDE,
    ),
)  # fmt: skip
NOISY = (
    PROTOCOL, PM, "net/mptcp/options.c", "net/mptcp/pm.c", "net/mptcp/subflow.c", "net/mptcp/sockopt.c",
    "net/mptcp/token.c", "net/mptcp/sched.c", INPUT, "net/ipv4/tcp_cubic.c", "net/ipv4/tcp_output.c",
)  # fmt: skip


@dataclass
class Branch:
    """A branch that grows by commits without a working tree."""

    tree: Path
    name: str
    commit: str
    index: Path

    def git(self, *arguments: str, text: str | None = None) -> str:
        """Run git in the tree with the branch's index, and return what it prints."""
        author = {"NAME": "bench", "EMAIL": "bench@example.org", "DATE": "2000-01-01T00:00:00Z"}
        who = {
            f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in author.items()
        }
        environment = os.environ | who | {"GIT_INDEX_FILE": str(self.index)}
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.tree,
            env=environment,
            input=text,
            text=True,
            capture_output=True,
            check=True,
        )
        return done.stdout

    def add(self, title: str, file: str, content: str) -> str:
        """Commit a new content of a file, and return the commit."""
        blob = self.git("hash-object", "-w", "--no-filters", "--stdin", text=content).strip()
        self.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{file}")
        state = self.git("write-tree").strip()
        self.commit = self.git("commit-tree", state, "-p", self.commit, "-m", title).strip()
        return self.commit

    def read(self, file: str) -> str:
        """Return the content of a file."""
        return self.git("show", f"{self.commit}:{file}")


def plant(tree: Path, number: int) -> tuple[str, int]:
    """Write the branch of a planting, and return the commit of the regression and its position."""
    planting, chance = PLANTINGS[number], Random(number)
    position = chance.randrange(1, COMMITS)
    unbuildable = chance.choice([at for at in range(4, COMMITS - 4) if abs(at - position) > 3])
    with tempfile.TemporaryDirectory() as scratch:
        branch = Branch(tree, f"plait-planting-{number}", "", Path(scratch) / "index")
        branch.commit = branch.git("rev-parse", "HEAD").strip()
        branch.git("read-tree", branch.commit)
        planted = ""
        for at in range(1, COMMITS + 1):
            if at == position:
                content = branch.read(planting.file)
                assert content.count(planting.before) == 1, planting.title
                content = content.replace(planting.before, planting.after)
                planted = branch.add(planting.title, planting.file, content)
            elif at in (unbuildable, unbuildable + 1):
                ending = "int f(\n" if at == unbuildable else "/* repaired */\n"
                base = branch.read("net/mptcp/token.c").removesuffix("int f(\n")
                branch.add("break or repair the build", "net/mptcp/token.c", base + ending)
            else:
                branch.add(*_harmless(branch, chance, at))
        branch.git("update-ref", f"refs/heads/{branch.name}", branch.commit)
    return planted, position


def _harmless(branch: Branch, chance: Random, at: int) -> tuple[str, str, str]:
    """Return the title, file and content of a harmless change."""
    kind, file = (
        chance.choice(("comment", "function", "message", "random", "clock", "page")),
        chance.choice(NOISY),
    )
    if kind == "page":
        return "page", f"Documentation/networking/harmless-{at}.rst", f"{at}\n"
    if kind in (
        "random",
        "clock",
    ):  # all later random numbers or times differ, and so do the bytes of all trials
        start = "void mptcp_finish_connect(struct sock *ssk)\n{\n"
        draw = "\tu32 drawn = get_random_u32();\n" if kind == "random" else "\tktime_t drawn = ktime_get();\n"
        content = branch.read(PROTOCOL)
        if "drawn" not in content:
            return kind, PROTOCOL, content.replace(start, f"{start}{draw.replace('=', '__maybe_unused =')}")
    content = branch.read(file)
    if kind == "message":
        changed = content.replace('pr_debug("msk=', f'pr_debug("{at} msk=', 1)
        if changed != content:
            return kind, file, changed
    if kind == "function":
        return (
            kind,
            file,
            f"{content}\nstatic int __maybe_unused harmless_{at}(int a)\n{{\n\treturn a + {at};\n}}\n",
        )
    return "comment", file, f"{content}\n/* harmless {at} */\n"


def bisect(tree: Path, number: int) -> str:
    """Plant a regression, search it, and return the line of the table."""
    planting = PLANTINGS[number]
    planted, position = plant(tree, number)
    settings = [
        part for setting in ("vary.transport=[mptcp]", *planting.settings) for part in ("--set", setting)
    ]
    command = [
        str(Path(sys.executable).with_name("plait")), "bisect", "two-paths", *settings,
        "--tree", str(tree), "--good", "HEAD", "--bad", f"plait-planting-{number}",
    ]  # fmt: skip
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    took_s = time.monotonic() - began
    named = re.search(r"^([0-9a-f]{40}) is the first bad commit", done.stdout, re.MULTILINE)
    verdicts = re.findall(
        r"^plait: [0-9a-f]{12}  (\w+)[^:]*: (?:median goodput_bps over \d+ seeds: (\S+ [^\s,]+)|it does not)",
        done.stderr,
        re.MULTILINE,
    )
    if named is None or not verdicts:
        return f"| {planting.title} | {position} | no answer | {(done.stdout + done.stderr)[-400:]!r} |"
    values = dict(verdicts)
    skipped = sum(verdict == "skip" for verdict, _ in verdicts)
    return (
        f"| {planting.title} | {position} | {'yes' if named[1] == planted else 'NO: ' + named[1][:12]} | "
        f"{len(verdicts)} ({skipped} skipped) | {values['good']} | {values['bad']} | {took_s:.0f} s |"
    )


def main() -> None:
    """Search the plantings of the command line, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("number", type=int, nargs="*", help="0 to 9")
    options = parser.parse_args()
    print("| regression | commit of 64 | found | kernels | good | bad | time |", flush=True)
    for number in options.number or range(len(PLANTINGS)):
        print(bisect(options.tree.resolve(), number), flush=True)


if __name__ == "__main__":
    main()
