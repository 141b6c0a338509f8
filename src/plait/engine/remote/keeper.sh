# The keeper: what plait starts on a remote host through ssh. It obeys orders on its standard input, starts the agent,
# and leaves nothing behind. A janitor waits until every process of the session has ended, however that happened
# (`kill -9`, a broken connection). It then undoes what the journal lists, and removes the folder.
#
# Before the keeper changes a setting, it writes the old value to the journal, on this host's disk.
# Answers are lines that begin with a word: hello, send, ok, failed, ended, file, none. POSIX sh; arguments are numbers
# and words that plait has checked.
set -u
umask 077
ulimit -f 2097152 2>/dev/null # a file has at most 1 GiB
export LC_ALL=C
PATH=$PATH:/usr/sbin:/sbin
patience=60 # seconds without an order, after which the connection counts as broken

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

undo() {
    [ -s "$1/journal" ] || return 0
    tac "$1/journal" >"$1/undo" && while IFS=' ' read -r kind name value; do
        case $kind in
            sysctl) printf '%s\n' "$value" | as_root tee "/proc/sys/$name" >/dev/null ;;
            endpoint) as_root ip mptcp endpoint delete id "$name" ;;
            # shellcheck disable=SC2086 # the words are separate arguments
            limits) as_root ip mptcp limits set $name $value ;;
        esac
    done <"$1/undo"
    : >"$1/journal"
}

if [ "${1-}" = janitor ]; then
    read -r _ # ends when no process of the session is left
    undo "$2"
    rm -rf -- "$2"
    exit
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/plait-XXXXXXXXXX") || exit 1
mkfifo "$folder/alive" && exec 9<>"$folder/alive" || exit 1
setsid sh -c "$KEEPER" keeper janitor "$folder" <"$folder/alive" >/dev/null 2>&1 9>&- &

journal() {
    printf '%s\n' "$*" >>"$folder/journal" && sync "$folder/journal"
}

answer() {
    if [ "$1" = 0 ]; then echo ok; else echo "failed $(tail -n 1 "$folder/why" 2>/dev/null | cut -c 1-300)"; fi
}

receive() { # NAME BYTES: the next BYTES of the input become the file
    rm -f "$folder/$1"
    echo send
    timeout "$patience" head -c "$2" >"$folder/$1"
}

limits() {
    as_root ip mptcp limits show
}

change() { # KIND NAME VALUE..
    kind=$1 name=$2
    shift 2
    case $kind in
        sysctl)
            old=$(cat "/proc/sys/$name") && journal sysctl "$name" "$old" &&
                printf '%s\n' "$*" | as_root tee "/proc/sys/$name"
            ;;
        limits)
            # shellcheck disable=SC2046,SC2086 # the words are separate arguments
            old=$(limits) && journal limits $old && as_root ip mptcp limits set $name "$@"
            ;;
        endpoint) journal endpoint "$name" && as_root ip mptcp endpoint add "$@" id "$name" ;;
    esac
}

facts() {
    echo "machine $(uname -m)"
    echo "kernel $(uname -r)"
    for name in net/mptcp/enabled net/mptcp/scheduler net/ipv4/tcp_congestion_control; do
        [ -r "/proc/sys/$name" ] && echo "$name $(cat "/proc/sys/$name")"
    done
    echo "load $(cut -d ' ' -f 1 /proc/loadavg)"
    echo "python $(python3 -I -S -B -c 'import ctypes, sys; print(".".join(map(str, sys.version_info[:3])))' 2>/dev/null)"
    as_root true 2>/dev/null && echo "root yes"
    return 0
}

echo "hello 1 $folder"
# `read` takes one byte at a time, so that nothing of what follows a line is lost.
while order=$(timeout "$patience" sh -c 'IFS= read -r line && printf %s "$line"'); do
    # shellcheck disable=SC2086 # an order is a list of words
    set -- $order
    case ${1-} in
        alive) echo ok ;;
        agent) # BYTES SHA256
            receive agent.gz "$2" 2>"$folder/why"
            if [ "$(sha256sum <"$folder/agent.gz" | cut -c 1-64)" = "$3" ]; then
                gzip -dc <"$folder/agent.gz" >"$folder/agent" 2>"$folder/why" && chmod 700 "$folder/agent"
                answer $?
            else
                echo "failed the agent arrived damaged"
            fi
            ;;
        facts)
            facts
            echo ok
            ;;
        read) # NAMES..: the values of settings below /proc/sys
            shift
            for name in "$@"; do
                [ -r "/proc/sys/$name" ] && echo "$name $(tr '\t' ' ' <"/proc/sys/$name")"
            done
            echo ok
            ;;
        change)
            shift
            change "$@" >/dev/null 2>"$folder/why"
            answer $?
            ;;
        restore)
            undo "$folder" >/dev/null 2>"$folder/why"
            answer $?
            ;;
        trial) # BYTES ARGUMENTS..
            shift
            rm -rf "$folder/job" && mkdir "$folder/job"
            receive job/plan.json "$1"
            shift
            "$folder/agent" --job "$folder/job" --on-order "$@" 2>"$folder/job/console.log"
            echo "ended $?"
            ;;
        fetch) # NAME: a file of the trial
            if [ -f "$folder/job/$2" ]; then
                echo "file $(wc -c <"$folder/job/$2")"
                timeout "$patience" cat "$folder/job/$2"
            else
                echo none
            fi
            ;;
        bye) break ;;
    esac
done
undo "$folder" >/dev/null 2>&1
rm -rf -- "$folder"
echo ok
