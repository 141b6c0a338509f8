#!/bin/sh
# One side of two bonded lines, for vpn-bonding.yaml and vpn-kinds.yaml. Ends with a file `ready`, and stays. Environment:
#   SIDE      home (which connects) or cloud (which is connected to, and is told the rest by home)
#   FIBRE     tunnels over the first line, 10.0.0.0/24
#   VDSL      tunnels over the second line, 10.0.1.0/24
#   LINES     what the tunnels are: softether, wireguard, openvpn (over TCP), gre
#   BOND      what runs across them: softether, openvpn (one connection each, in Multipath TCP), none
# Tunnel N is 10.8.N.0/24, the bond 10.9.0.0/24; home has .1, cloud .2. Both sides share /tmp.
set -u

fail() { echo "$SIDE: $*"; exit 1; }
wait_for() { # COMMAND...: until it succeeds, for 9 s at most
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 30 ] || return 1
    sleep 0.3
  done
}
need() { # PACKAGE PROGRAM
  command -v "$2" >/dev/null || fail "LINES=$LINES BOND=$BOND needs $2, which this machine does not have: apt-get install $1"
}
listening() { ss -H -ltn "sport = :$1" | grep -q .; }

# --- SoftEther: a server, its hubs, one cascade connection and one TAP device for each ---------------------
softether_server() { # PORT WRAPPER...: each server has state and log folders of its own
  port=$1; shift
  mkdir -p /run/softether "log-$port"
  LOG=$PWD/log-$port PORT=$port unshare --mount sh -c '
    set -e
    for folder in /var/lib /var/log /run/softether; do mount -t tmpfs tmpfs $folder; mkdir -p $folder/softether; done
    mount --bind "$LOG" /var/log/softether
    cat > /var/lib/softether/vpn_server.config <<CONFIG
declare root
{
	declare DDnsClient
	{
		bool Disabled true
	}
	declare ListenerList
	{
		declare Listener0
		{
			bool DisableDos true
			bool Enabled true
			uint Port $PORT
		}
	}
	declare ServerConfiguration
	{
		bool DisableNatTraversal true
		bool UseKeepConnect false
	}
}
CONFIG
    exec "$@"' - "$@" /usr/libexec/softether/vpnserver/vpnserver start > "start-$port" 2>&1 ||
    softether_failed "$port" "does not start"
  wait_for listening "$port" || softether_failed "$port" "does not listen"
}
softether_failed() { # PORT WHAT
  cat "start-$1" "log-$1"/server_log/* 2>/dev/null
  fail "the SoftEther server of port $1 $2; what it says is above"
}
softether_hub() { # NAME PORT ADDRESS: the commands that make it
  echo "HubCreate $1 /PASSWORD:plait"
  echo "Hub $1"
  echo "ExtOptionSet DisableUdpAcceleration /VALUE:1" # else nothing goes by TCP from ten seconds after the cascade is up
  if [ "$SIDE" = cloud ]; then
    echo "UserCreate bond /GROUP:none /REALNAME:none /NOTE:none"
    echo "UserPasswordSet bond /PASSWORD:plait"
  else
    echo "CascadeCreate up /SERVER:$3:$2 /HUB:$1 /USERNAME:bond"
    echo "CascadePasswordSet up /PASSWORD:plait /TYPE:standard"
    echo "CascadeOnline up"
  fi
  echo "BridgeCreate $1 /DEVICE:$1 /TAP:yes"
}
softether_apply() { # PORT: the commands of standard input; home comes after the cloud, or it would try again only seconds later
  cat > "commands-$1"
  if [ "$SIDE" = home ]; then wait_for test -e "/tmp/cloud-$1" || fail "the cloud has no hubs at port $1"; fi
  vpncmd localhost:"$1" /SERVER /IN:"commands-$1" > "vpncmd-$1" || { cat "vpncmd-$1"; softether_failed "$1" "refuses a command"; }
  if [ "$SIDE" = cloud ]; then cat /dev/null > "/tmp/cloud-$1"; fi
}

# --- OpenVPN over TCP: one connection a tunnel, a static key ------------------------------------------------
openvpn_tunnel() { # DEVICE PORT REMOTE-ADDRESS ADDRESS PEER WRAPPER...
  device=$1; port=$2; remote=$3; address=$4; peer=$5; shift 5
  if [ "$SIDE" = cloud ]; then role="--proto tcp-server"; else role="--proto tcp-client --remote $remote --connect-retry 1 2"; fi
  # shellcheck disable=SC2086 # the role is several words
  "$@" openvpn --daemon --log "$PWD/$device.log" --dev "$device" --dev-type tun --port "$port" $role \
    --ifconfig "$address" "$peer" --secret /tmp/openvpn.key \
    --cipher AES-256-CBC --sndbuf 0 --rcvbuf 0 || { cat "$device.log"; fail "OpenVPN does not start"; }
}

answers() { # ADDRESS DEVICE [PORT]: home waits until the far end of a tunnel answers, and tells what its program says if it does not
  if [ "$SIDE" = cloud ] || wait_for ping -c 1 -W 0.1 "$1"; then return; fi
  if [ -n "${3-}" ]; then softether_failed "$3" "has no tunnel to $1 ($2)"; fi
  cat "$2.log" 2>/dev/null
  fail "nothing answers at $1, the far end of the tunnel $2"
}

# --- The tunnels --------------------------------------------------------------------------------------------
case $SIDE in
home) me=1 other=2 far=cloud
  echo "FIBRE=$FIBRE VDSL=$VDSL LINES=$LINES BOND=$BOND" > /tmp/bond.new; mv /tmp/bond.new /tmp/bond ;;
cloud) me=2 other=1 far=home
  wait_for test -e /tmp/bond || fail "home does not say what it wants"
  . /tmp/bond ;;
*) fail "SIDE is home or cloud" ;;
esac
case $LINES in softether | wireguard | openvpn | gre) ;; *) fail "LINES is softether, wireguard, openvpn or gre, not $LINES" ;; esac
case $BOND in softether | openvpn | none) ;; *) fail "BOND is softether, openvpn or none, not $BOND" ;; esac
need iputils-ping ping
need mptcpize mptcpize
case $LINES:$BOND in *softether*) need softether-vpnserver vpnserver; need softether-vpncmd vpncmd ;; esac
case $LINES:$BOND in *openvpn*) need openvpn openvpn ;; esac
case $LINES in wireguard) need wireguard-tools wg ;; esac

remotes=""
i=0; while [ $i -lt "$FIBRE" ]; do remotes="$remotes 10.0.0"; i=$((i + 1)); done
i=0; while [ $i -lt "$VDSL" ]; do remotes="$remotes 10.0.1"; i=$((i + 1)); done
tunnels=$((FIBRE + VDSL))
case $LINES:$BOND in
*openvpn*) if [ "$SIDE" = cloud ]; then openvpn --genkey secret /tmp/openvpn.new; mv /tmp/openvpn.new /tmp/openvpn.key
  else wait_for test -s /tmp/openvpn.key || fail "the cloud has made no key for OpenVPN"; fi ;;
esac
if [ "$LINES" = softether ]; then softether_server 5555; fi
i=0
for net in $remotes; do
  i=$((i + 1))
  case $LINES in
  softether) softether_hub "line$i" 5555 "$net.2" >> hubs ;;
  wireguard)
    wg genkey > "wg$i"; wg pubkey < "wg$i" > "/tmp/$SIDE-wg$i.new"; mv "/tmp/$SIDE-wg$i.new" "/tmp/$SIDE-wg$i"
    wait_for test -s "/tmp/$far-wg$i" || fail "the $far has made no key for WireGuard"
    ip link add "line$i" type wireguard
    wg set "line$i" listen-port $((51820 + i)) private-key "wg$i" peer "$(cat "/tmp/$far-wg$i")" \
      endpoint "$net.$other:$((51820 + i))" allowed-ips 10.8.$i.0/24 ;;
  openvpn) openvpn_tunnel "line$i" $((1194 + i)) "$net.2" 10.8.$i.$me 10.8.$i.$other ;;
  gre) ip link add "line$i" type gre key $i local "$net.$me" remote "$net.$other" ;;
  esac
done
if [ "$LINES" = softether ]; then softether_apply 5555 < hubs; fi
ip mptcp endpoint flush
ip mptcp limits set subflow $((tunnels + 1)) add_addr_accepted $((tunnels + 1))
i=0
for net in $remotes; do
  i=$((i + 1)); device=line$i port=""
  if [ "$LINES" = softether ]; then device=tap_line$i port=5555; fi
  wait_for ip link show "$device" || fail "there is no device $device"
  if [ "$LINES" = openvpn ]; then wait_for sh -c "ip -4 address show dev $device | grep -q inet"
  else ip address add 10.8.$i.$me/24 dev "$device"; ip link set "$device" up; fi
  if [ "$SIDE" = home ]; then role=subflow; else role=signal; fi
  if [ $i -gt 1 ]; then ip mptcp endpoint add 10.8.$i.$me dev "$device" $role; fi
  answers 10.8.$i.2 "$device" $port
done

# --- What runs across them ----------------------------------------------------------------------------------
case $BOND in
softether) softether_server 6666 mptcpize run
  softether_hub bond 6666 10.8.1.2 | softether_apply 6666
  wait_for ip link show tap_bond || fail "there is no device tap_bond"
  ip address add 10.9.0.$me/24 dev tap_bond
  answers 10.9.0.2 tap_bond 6666 ;;
openvpn) openvpn_tunnel bond 1194 10.8.1.2 10.9.0.$me 10.9.0.$other mptcpize run
  answers 10.9.0.2 bond ;;
none) ;;
esac
cat /dev/null > ready
while :; do sleep 3600; done
