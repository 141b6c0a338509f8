# shellcheck shell=sh
# The keeper: what plait starts on a remote host through ssh. It obeys orders on its standard input, starts the agent,
# and leaves nothing behind. A janitor waits until every process of the session has ended, however that happened
# (`kill -9`, a broken connection). It then restores the settings, and removes the folder.
#
# The agent changes settings and restores them (agent/src/settings). Once it may change any, it also waits for the end
# of the session as root, so that the settings return if the janitor was killed or may no longer use sudo.
# Answers are lines that begin with a word: hello, send, ok, failed, ended. Before `ok` come the lines that an order
# asks for, and after that of `fetch` the files. POSIX sh; arguments are numbers and words that plait has checked.
set -uf
umask 077
ulimit -f 2097152 2>/dev/null # a file has at most 1 GiB
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
patience=60 # seconds without an order, after which the connection counts as broken
root=
[ "$(id -u)" = 0 ] || root='sudo -n'

undo() { # FOLDER
    [ -e "$1/configured" ] || return 0
    for _ in 1 2 3; do
        why=$($root "$1/agent" --settings restore "$1" 2>&1 </dev/null) && rm -f "$1/configured" && return 0
    done
    return 1
}

if [ "${1-}" = janitor ]; then
    trap '' HUP INT TERM
    read -r _ # ends when no process of the session is left
    exec </dev/null # the pipe without a reader shows that
    undo "$2"
    rm -rf -- "$2"
    exit
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/plait-XXXXXXXXXX") || exit 1
mkfifo "$folder/alive" && exec 9<>"$folder/alive" || exit 1
setsid sh -c "$KEEPER" keeper janitor "$folder" <"$folder/alive" >/dev/null 2>&1 9>&- &

answer() { # CODE: the reason of a failure is in $why
    if [ "$1" = 0 ]; then echo ok; else echo "failed $(printf %s "$why" | tail -n 1 | cut -c 1-1000)"; fi
}

receive() { # NAME BYTES: the next BYTES of the input become the file
    rm -f "$folder/$1"
    echo send
    # What does not fit on the disk is read all the same: it must not count as orders.
    why=$(timeout "$patience" head -c "$2" | {
        { cat >"$folder/$1"; } 2>&1
        code=$?
        cat >/dev/null
        exit "$code"
    }) && return
    why="writing to $folder: $why; make room there, or set TMPDIR to a folder with room"
    return 1
}

unpack() { # SHA256
    if [ "$(sha256sum <"$folder/agent.gz" | cut -c 1-64)" != "$1" ]; then
        why='the agent arrived damaged'
        return 1
    fi
    why=$({ gzip -dc <"$folder/agent.gz" >"$folder/agent"; } 2>&1) && chmod 700 "$folder/agent" && return
    why="writing to $folder: $why; make room there, or set TMPDIR to a folder with room"
    return 1
}

watched=no
configure() {
    : >"$folder/configured"
    if [ "$watched" = no ]; then
        # shellcheck disable=SC2086 # `sudo -n` is two words, and root needs none
        setsid $root "$folder/agent" --settings watch "$folder" <"$folder/alive" >/dev/null 2>&1 9>&- &
        watched=yes
    fi
    why=$($root "$folder/agent" --settings configure "$folder" 2>&1 </dev/null)
}

said() { # VERB: the agent changes settings that stay, and says what it did
    why=$($root "$folder/agent" --settings "$1" "$folder" 2>&1 >"$folder/said" </dev/null)
    code=$?
    head -n 190 "$folder/said" | cut -c 1-1000 | sed 's/^/said /'
    more=$(($(wc -l <"$folder/said") - 190))
    [ "$more" -le 0 ] || echo "said and $more more"
    return "$code"
}

values() { # NAMES..: the values of settings below /proc/sys, which gives them only to those who read all at once
    (cd /proc/sys && grep -s '' /dev/null "$@") | sed 's/:/ /' | tr '\t' ' '
}

deliver() { # NAMES..: the sizes of those files of the trial that there are, and then what these hold
    cd "$folder/job" 2>/dev/null || { echo "failed $folder/job is gone"; return; }
    for name in "$@"; do
        shift
        [ -f "$name" ] && set -- "$@" "$name"
    done
    sizes=$(wc -c /dev/null "$@") # /dev/null is there, and so a last line with the total
    printf '%s\nok\n' "$sizes"
    total=${sizes##*
}
    total=${total% total}
    [ $# = 0 ] || timeout $((patience + ${total##* } / 16384)) cat "$@" # at less than 16 KiB/s plait gives up
}

facts() {
    echo "machine $(uname -m)"
    echo "kernel $(uname -r)"
    values net/mptcp/enabled net/mptcp/scheduler net/mptcp/available_schedulers net/mptcp/pm_type \
        net/ipv4/tcp_congestion_control net/ipv4/tcp_available_congestion_control \
        net/ipv4/tcp_allowed_congestion_control
    echo "load $(cut -d ' ' -f 1 /proc/loadavg)"
    echo "folder $folder"
    # shellcheck disable=SC2086 # four words; the third is the address of this host that the user's ssh reached
    set -- ${SSH_CONNECTION-} && echo "reached ${3-}"
    df -Pk "$folder" | tail -n 1 | while read -r _ _ _ free _; do echo "disk_kib $free"; done
    grep -E '^MemAvailable:' /proc/meminfo | while read -r _ free _; do echo "memory_kib $free"; done
    capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status) # root in a container may lack CAP_NET_ADMIN
    [ $((0x${capabilities:-0} >> 12 & 1)) = 1 ] && echo "net_admin yes"
    [ -r /sys/kernel/btf/vmlinux ] && echo "btf yes"
    grep -q bpf_struct_ops_mptcp_sched_ops /sys/kernel/btf/vmlinux 2>/dev/null && echo "takes_schedulers yes"
    command -v bpftool >/dev/null && echo "bpftool yes"
    $root true 2>/dev/null && echo "root yes"
    return 0
}

echo "hello 1 $folder"
# `read` takes one byte at a time, so that nothing of what follows a line is lost.
# shellcheck disable=SC2016 # the inner shell expands it
while order=$(timeout "$patience" sh -c 'IFS= read -r line && printf %s "$line"'); do
    # shellcheck disable=SC2086 # an order is a list of words
    set -- $order
    case ${1-} in
        alive) echo ok ;;
        agent) # BYTES SHA256
            receive agent.gz "$2" && unpack "$3"
            answer $?
            ;;
        facts)
            facts
            echo ok
            ;;
        read) # NAMES..: the values of settings below /proc/sys
            shift
            values "$@"
            echo ok
            ;;
        route) # LOCAL REMOTE: the interfaces with the address, and the route of packets that leave from it
            if command -v ip >/dev/null; then
                ip -j address show to "$2" 2>/dev/null || echo '[]'
                ip -j route get "$3" from "$2" 2>/dev/null || echo '[]'
            fi
            echo ok
            ;;
        addresses) # DEVICE: the addresses of an interface
            if command -v ip >/dev/null; then ip -j address show dev "$2" scope global 2>/dev/null; fi
            echo ok
            ;;
        endpoints) # those of MPTCP, if this user may list them
            $root "$folder/agent" --settings show 2>/dev/null </dev/null
            echo ok
            ;;
        configure) # BYTES: make the settings of a trial
            receive wanted.json "$2" && configure
            answer $?
            ;;
        program) # NAME BYTES: the BPF object of an algorithm, for `configure`
            receive "$2.bpf.o" "$3"
            answer $?
            ;;
        apply) # BYTES: make settings that stay
            receive wanted.json "$2" && said apply
            answer $?
            ;;
        undo | preview) # take back what `apply` made, or say what that would be
            said "$1"
            answer $?
            ;;
        restore)
            undo "$folder"
            answer $?
            ;;
        trial) # BYTES ARGUMENTS..
            shift
            rm -rf "$folder/job" && mkdir "$folder/job"
            if receive job/plan.json "$1"; then
                shift
                "$folder/agent" --job "$folder/job" --on-order "$@" 2>"$folder/job/console.log"
                echo "ended $?"
            else
                answer 1
            fi
            ;;
        fetch) # NAMES..: files of the trial
            shift
            (deliver "$@")
            ;;
        bye) break ;;
    esac
done
undo "$folder" >/dev/null 2>&1
rm -rf -- "$folder"
echo ok
