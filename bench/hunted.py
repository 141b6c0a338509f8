"""Let `plait hunt` search faults of MPTCP: fixes that Linux 6.12 received after its release, unmade one by one.

    python bench/hunted.py TREE [NUMBER..] [--minutes M] [--jobs N] [--draw SEED]

TREE is a git tree of Linux 6.12.117. The branch of each fault is one commit on its HEAD. The script builds it
incrementally, and hunts in it with one guest for each core for faults that the kernel of HEAD does not have. It prints
a line of a Markdown table: the fix, whether the hunt found the fault, the wall and processor time until then, the
events of the smallest case, and what it violates.
Without numbers it takes the first ten faults, and ten of the others that `--draw` draws, so that whoever works on the
hunt does not choose them.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import NamedTuple

PM, PROTOCOL, OPTIONS, SUBFLOW = (
    f"net/mptcp/{name}.c" for name in ("pm_kernel", "protocol", "options", "subflow")
)
CHOSEN = 10
SOUND = "plait-no-fault"
"""The kernel of HEAD."""
PLAIT = str(Path(sys.executable).with_name("plait"))
AUTHOR = {"NAME": "bench", "EMAIL": "bench@example.org", "DATE": "2000-01-01T00:00:00Z"}


class Fault(NamedTuple):
    """A change of a file that unmakes a fix."""

    title: str
    file: str
    before: str
    after: str


FAULTS = (
    Fault(
        "fastclose msk when linger time is 0 (6.12.88)", PROTOCOL,
        "timeout < 0 ||\n\t    (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)) {", "timeout < 0) {",
    ),
    Fault(
        "pm: in-kernel: always set ID as avail when rm endp (6.12.85)", PM,
        "\t\telse /* mark endp ID as available, e.g. Signal or MPC endp */\n"
        "\t\t\t__set_bit(addr->id, msk->pm.id_avail_bitmap);\n", "",
    ),
    Fault(
        "pm: kernel: flush: do not reset ADD_ADDR limit (6.12.48)", PM,
        "\tWRITE_ONCE(pernet->add_addr_signal_max, 0);\n\tWRITE_ONCE(pernet->local_addr_max, 0);\n\tpernet->addrs = 0;",
        "\tWRITE_ONCE(pernet->add_addr_signal_max, 0);\n\tWRITE_ONCE(pernet->add_addr_accept_max, 0);\n"
        "\tWRITE_ONCE(pernet->local_addr_max, 0);\n\tpernet->addrs = 0;",
    ),
    Fault(
        "pm: in-kernel: always mark signal+subflow endp as used (6.12.85)", PM,
        "\tif (signal_and_subflow && local.addr.id != msk->mpc_endpoint_id)\n\t\tmsk->pm.local_addr_used++;\n\n", "",
    ),
    Fault(
        "restore window probe (6.12.63)", PROTOCOL,
        "\t\tif (snd_una != msk->snd_nxt || skb->len ||\n\t\t    skb != tcp_send_head(ssk)) {",
        "\t\tif (snd_una != msk->snd_nxt || skb->len || true) {",
    ),
    Fault(
        "do not drop partial packets (6.12.94)", PROTOCOL,
        "\tif (!after64(MPTCP_SKB_CB(skb)->end_seq, msk->ack_seq)) {\n"
        "\t\tMPTCP_INC_STATS(sock_net(sk), MPTCP_MIB_DUPDATA);\n\t\tmptcp_drop(sk, skb);\n\t\treturn false;\n\t}\n\n"
        "\t/* Partial packet",
        "\tif (!after64(MPTCP_SKB_CB(skb)->map_seq, msk->ack_seq)) {\n"
        "\t\tMPTCP_INC_STATS(sock_net(sk), MPTCP_MIB_DUPDATA);\n\t\tmptcp_drop(sk, skb);\n\t\treturn false;\n\t}\n\n"
        "\t/* Partial packet",
    ),
    Fault(
        "be sure to send ack when mptcp-level window re-opens (6.12.11)", PROTOCOL,
        "\tcleanup = (space > 0) && (space >= (old_space << 1)) && copied;\n", "\tcleanup = false;\n",
    ),
    Fault(
        "decrement subflows counter on failed passive join (6.12.101)", "net/mptcp/pm.c",
        "\tif (update_subflows)\n\t\t__mptcp_pm_close_subflow(msk);\n",
        "\tif (update_subflows && subflow->request_join)\n\t\t__mptcp_pm_close_subflow(msk);\n",
    ),
    Fault(
        "pm: a lost ADD_ADDR is repeated (6.12.94: ADD_ADDR rtx)", PM,
        "\tif (entry->retrans_times < ADD_ADDR_RETRANS_MAX &&\n\t    !mptcp_pm", "\tif (false &&\n\t    !mptcp_pm",
    ),
    Fault(
        "propagate shutdown to subflows when possible (6.12.57)", PROTOCOL,
        "\t\tslow = lock_sock_fast(ssk);\n\t\ttcp_shutdown(ssk, SEND_SHUTDOWN);\n",
        "\t\tslow = lock_sock_fast(ssk);\n",
    ),
    Fault(
        "schedule rtx timer only after pushing data (6.12.69)", PROTOCOL,
        "\t\tif (!mptcp_rtx_timer_pending(sk))\n\t\t\tmptcp_reset_rtx_timer(sk);\n\n"
        "\t\tif (msk->snd_data_fin_enable &&",
        "\t\tif (msk->snd_data_fin_enable &&",
    ),
    Fault(
        "clear scheduled subflows on retransmit (6.12.63)", PROTOCOL,
        "\tmptcp_for_each_subflow(msk, subflow)\n\t\tif (READ_ONCE(subflow->scheduled))\n"
        "\t\t\tmptcp_subflow_set_scheduled(subflow, false);\n}", "}",
    ),
    Fault(
        "drop bogus optimization in __mptcp_check_push() (6.12.63)", PROTOCOL,
        "\t\t__mptcp_subflow_push_pending(sk, ssk, false);\n", "\t\t__mptcp_subflow_push_pending(sk, ssk, true);\n",
    ),
    Fault(
        "pm: fix ADD_ADDR timer infinite retry on option space insufficient (6.12.94)", "net/mptcp/pm.c",
        "\tWRITE_ONCE(msk->pm.addr_signal, add_addr);\n\nout_unlock:",
        "\tif (ret)\n\t\tWRITE_ONCE(msk->pm.addr_signal, add_addr);\n\nout_unlock:",
    ),
    Fault(
        "reset when MPTCP opts are dropped after join (6.12.19)", SUBFLOW,
        "\t\tif (!mptcp_try_fallback(ssk, MPTCP_MIB_DSSFALLBACK)) {\n",
        "\t\tif (!mptcp_try_fallback(ssk, MPTCP_MIB_DSSFALLBACK) && !subflow->mp_join) {\n",
    ),
    Fault(
        "prevent excessive coalescing on receive (6.12.15)", PROTOCOL,
        "\t    ((to->len + from->len) > (sk->sk_rcvbuf >> 3)) ||\n", "",
    ),
    Fault(
        "Fix data stream corruption in the address announcement (6.12.21)", OPTIONS,
        '\tpr_debug("drop other suboptions\\n");\n\topts->suboptions = 0;\n', "",
    ),
    Fault(
        "fix retransmission loop when csum is enabled (6.12.94)", PROTOCOL,
        "\tif (after64(dfrag->already_sent + dfrag->data_seq, msk->snd_nxt))\n"
        "\t\tWRITE_ONCE(msk->snd_nxt, dfrag->already_sent + dfrag->data_seq);\n", "",
    ),
    Fault(
        "avoid unneeded subflow-level drops (6.12.63)", OPTIONS,
        "\ttp->rcv_wnd += mptcp_rcv_wnd - subflow->rcv_wnd_sent;\n\tsubflow->rcv_wnd_sent = mptcp_rcv_wnd;\n",
        "\tsubflow->rcv_wnd_sent = mptcp_rcv_wnd;\n",
    ),
    Fault(
        "fix missing wakeups in edge scenarios (6.12.94)", PROTOCOL,
        "\tif (ret && mptcp_epollin_ready(sk))\n\t\tsk->sk_data_ready(sk);\n\treturn ret;\n", "\treturn ret;\n",
    ),
    Fault(
        "only reset subflow errors when propagated (6.12.69)", PROTOCOL,
        "\tcase TCP_CLOSE_WAIT:\n\t\tWRITE_ONCE(sk->sk_err, EPIPE);\n\t\tbreak;\n"
        "\tcase TCP_CLOSE:\n\t\treturn;\n\tdefault:\n"
        "\t\tWRITE_ONCE(sk->sk_err, ECONNRESET);\n",
        "\tdefault:\n\t\tbreak;\n",
    ),
    Fault(
        "handle first subflow closing consistently (6.12.94)", PROTOCOL,
        "\tneed_push = (flags & MPTCP_CF_PUSH) && __mptcp_retransmit_pending_data(sk);\n",
        "\tneed_push = dispose_it && (flags & MPTCP_CF_PUSH) && __mptcp_retransmit_pending_data(sk);\n",
    ),
    Fault(
        "pm: in-kernel: a removed address ends its subflows (6.12.19: removal under msk socket lock)", PM,
        "\t\t\tif (rm_type == MPTCP_MIB_RMADDR && remote_id != rm_id)\n",
        "\t\t\tif (rm_type == MPTCP_MIB_RMADDR && (remote_id != rm_id || subflow->request_join))\n",
    ),
    Fault(
        "fix ack generation for fallback msk, fix premature close (6.12.63)", PROTOCOL,
        "\t\t\tWRITE_ONCE(mptcp_sk(sk)->snd_una, mptcp_sk(sk)->snd_nxt);\n\t\t\tmptcp_schedule_work(sk);\n", "",
    ),
)  # fmt: skip


def plant(tree: Path, number: int) -> str:
    """Write the branch of a fault without a working tree, and return its name."""
    fault, name = FAULTS[number], f"plait-fault-{number}"
    environment = {f"GIT_{role}_{key}": AUTHOR[key] for role in ("AUTHOR", "COMMITTER") for key in AUTHOR}
    with tempfile.TemporaryDirectory() as scratch:
        environment["GIT_INDEX_FILE"] = f"{scratch}/index"

        def git(*arguments: str, text: str | None = None) -> str:
            return subprocess.run(
                ["git", *arguments], cwd=tree, env=os.environ | environment, input=text, text=True,
                capture_output=True, check=True,
            ).stdout  # fmt: skip

        content = git("show", f"HEAD:{fault.file}")
        assert content.count(fault.before) == 1, fault.title
        text = content.replace(fault.before, fault.after)
        blob = git("hash-object", "-w", "--no-filters", "--stdin", text=text).strip()
        git("read-tree", "HEAD")
        git("update-index", "--add", "--cacheinfo", f"100644,{blob},{fault.file}")
        state = git("write-tree").strip()
        commit = git("commit-tree", state, "-p", "HEAD", "-m", fault.title).strip()
        git("update-ref", f"refs/heads/{name}", commit)
    return name


def build(tree: Path, ref: str, name: str) -> None:
    """Build the kernel of a branch."""
    words = [PLAIT, "kernel", "build", "--tree", str(tree), "--ref", ref, "--name", name]
    subprocess.run(words, check=True, capture_output=True)


def hunted(name: str, number: int, minutes: float, jobs: int) -> str:
    """Search the fault in its kernel, and return the line of the table."""
    began, began_s = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        command = [
            *(
                PLAIT,
                "hunt",
                "--kernel",
                name,
                "--not-in",
                SOUND,
                "--minutes",
                str(minutes),
                "--jobs",
                str(jobs),
            ),
            *("--out", folder, "--seed", str(1 + 100_000 * number)),
        ]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        files = sorted(Path(folder).glob("*.yaml"))
        texts = [path.read_text() for path in files]
    ended_s = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = ended_s.ru_utime + ended_s.ru_stime - began_s.ru_utime - began_s.ru_stime
    cases = re.search(r"^(\d+) cases?,", answer.stdout, re.MULTILINE)
    print("\n".join((f"#{number}", *texts, answer.stdout[-2000:])), file=sys.stderr, flush=True)
    took_s = time.monotonic() - began
    shown = f"{cases[1] if cases else '?'} cases, {took_s:.0f} s, {processor_s:.0f} s of processor time"
    if not texts:
        return f"| {FAULTS[number].title} | no | {shown} | | |"
    found = re.search(r"^  seed \d+, after (\d+) s", answer.stdout, re.MULTILINE)
    events = len(re.findall(r"\bdo:", texts[0]))
    violated = texts[0].splitlines()[0].removeprefix("# ").partition(": ")
    after = f"found after {found[1]} s; {shown}" if found else shown
    return f"| {FAULTS[number].title} | yes | {after} | {events} | {violated[0]}: {violated[2][:70]} |"


def main() -> None:
    """Search the faults of the command line, or twenty."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tree", type=Path)
    parser.add_argument("number", type=int, nargs="*")
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--draw", type=int, default=1)
    options = parser.parse_args()
    others = range(CHOSEN, len(FAULTS))
    drawn = Random(options.draw).sample(others, 20 - CHOSEN)
    build(options.tree.resolve(), "HEAD", SOUND)
    print("| fix that the fault unmakes | found | after | events | violation |", flush=True)
    for number in options.number or [*range(CHOSEN), *sorted(drawn)]:
        name = plant(options.tree.resolve(), number)
        build(options.tree.resolve(), name, name)
        print(hunted(name, number, options.minutes, options.jobs), flush=True)


if __name__ == "__main__":
    main()
