#!/bin/sh
# One end of the office's tunnels, for office-bond.yaml: on each line one between the office's router and the cloud.
# Packets between office and cloud travel inside, so the router does not translate their addresses. Ends with a file
# `ready`, and stays. Environment:
#   TUNNEL   none, gre, wireguard
# The name of the node says which end this is: cable, lte (routers) or cloud. Both sides share /tmp.
set -u

fail() { echo "$NODE: $*"; exit 1; }
wait_for() { # COMMAND...: until it succeeds, for 9 s at most
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || return 1
    sleep 0.3
  done
}
has() { ip -4 -o address show | grep -q "inet $1/"; }
if has 10.0.1.1; then NODE=cloud; elif has 10.0.1.2; then NODE=cable; elif has 10.0.3.2; then NODE=lte
else NODE=unknown; fail "it has no address that this scenario gives; it now has $(ip -4 -o address show | grep -o 'inet [0-9./]*')"; fi

tunnel() { # NAME OUTER-NET OFFICE-NET: over one line, whose cloud end is OUTER-NET.1 and whose office end is OUTER-NET.2
  name=$1; outer=$2; office=$3; port=518${outer##*.}0
  if [ "$NODE" = cloud ]; then me=$outer.1 far=$outer.2 inside=$office.0/24; else me=$outer.2 far=$outer.1 inside=$outer.1/32; fi
  case $TUNNEL in
  gre) ip link add "$name" type gre local "$me" remote "$far" ttl 64 || fail "this kernel has no GRE" ;;
  wireguard)
    command -v wg >/dev/null || fail "TUNNEL=wireguard needs wg, which this machine does not have: apt-get install wireguard-tools"
    wg genkey > "key-$name"; wg pubkey < "key-$name" > "/tmp/$NODE-$name.new"; mv "/tmp/$NODE-$name.new" "/tmp/$NODE-$name"
    if [ "$NODE" = cloud ]; then peer=${name#to-}; else peer=cloud; fi
    wait_for test -s "/tmp/$peer-$name" || fail "$peer has made no key for WireGuard"
    ip link add "$name" type wireguard || fail "this kernel has no WireGuard"
    wg set "$name" listen-port "$port" private-key "key-$name" peer "$(cat "/tmp/$peer-$name")" \
      endpoint "$far:$port" allowed-ips 0.0.0.0/0
    ;;
  esac
  ip link set "$name" up
  if [ "$NODE" = cloud ]; then
    # Packets from the cloud's address on this line go to the office inside.
    ip route replace "$inside" dev "$name" table "$4"
  else
    # Packets from the office go to the cloud inside; those of the tunnel itself go outside.
    ip route add "$inside" dev "$name" table 100
    ip rule add from "$office.0/24" lookup 100 priority 100
  fi
}

case $TUNNEL in
none) ;;
gre | wireguard)
  case $NODE in
  cloud) tunnel to-cable 10.0.1 10.0.0 1001
    tunnel to-lte 10.0.3 10.0.2 1002 ;;
  cable) tunnel to-cable 10.0.1 10.0.0 ;;
  lte) tunnel to-lte 10.0.3 10.0.2 ;;
  esac ;;
*) fail "TUNNEL is none, gre or wireguard, not $TUNNEL" ;;
esac
cat /dev/null > ready
while :; do sleep 3600; done
