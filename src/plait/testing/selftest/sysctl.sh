#!/bin/bash
# Define `sysctl -q NAME=VALUE..` for bash without a program: scripts of packetdrill set dozens of values before each
# test, and starting a program takes a guest some 8 ms of processor time. bash reads this file by BASH_ENV.
# All other calls, and those that fail, go to the program, so that its messages and exit codes remain.

plait_set_values() { # NAME=VALUE..
    local setting path
    for setting; do
        path=${setting%%=*}
        path=/proc/sys/${path//./\/}
        [[ $setting =~ ^[a-z0-9_.]+=.+$ && -w $path ]] || return
        printf '%s\n' "${setting#*=}" 2>/dev/null >"$path" || return
    done
}

sysctl() {
    { [ "${1-}" = -q ] && [ $# -gt 1 ] && plait_set_values "${@:2}"; } || command sysctl "$@"
}
