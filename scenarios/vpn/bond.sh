#!/bin/sh
# One side of two bonded lines, for vpn-bonding.yaml and vpn-kinds.yaml. Ends with a file `ready`, and stays. Environment:
#   SIDE      home (which connects) or cloud (which is connected to, and is told the rest by home)
#   FIBRE     tunnels over the first line, 10.0.0.0/24
#   VDSL      tunnels over the second line, 10.0.1.0/24
#   LINES     what the tunnels are: softether, wireguard, openvpn (over TCP), gre
#   BOND      what runs across them: softether, openvpn (one connection each, in Multipath TCP), none
# Tunnel N is 10.8.N.0/24, the bond 10.9.0.0/24; home has .1, cloud .2. Both sides share /tmp.
set -u
case $SIDE in home) me=1 other=2 ;; cloud) me=2 other=1 ;; *) echo "SIDE is home or cloud, not $SIDE"; exit 2 ;; esac

wait_for() { # COMMAND...: until it succeeds, for 20 s at most
  tries=0
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1))
    if [ $tries -ge 200 ]; then echo "gave up waiting for: $*"; exit 1; fi
    sleep 0.1
  done
}
listening() { ss -H -ltn "sport = :$1" | grep -q .; }

# --- SoftEther: a server, its hubs, one cascade connection and one TAP device for each ---------------------
softether_server() { # PORT WRAPPER...: each server has state and log folders of its own
  port=$1; shift
  mkdir -p /run/softether
  PORT=$port unshare --mount sh -c '
    for folder in /var/lib /var/log /run/softether; do mount -t tmpfs tmpfs $folder; mkdir -p $folder/softether; done
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
    exec "$@"' - "$@" /usr/libexec/softether/vpnserver/vpnserver start
  wait_for listening "$port"
}
softether_hub() { # NAME PORT ADDRESS: the commands that make it
  echo "HubCreate $1 /PASSWORD:plait"
  echo "Hub $1"
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
softether_apply() { # PORT: the commands of standard input; home's once the cloud's hubs are there, for it would try again only seconds later
  cat > "softether-$1"
  if [ "$SIDE" = home ]; then wait_for test -e "/tmp/cloud-$1"; fi
  vpncmd localhost:"$1" /SERVER /IN:"softether-$1" > "softether-$1.log" || { cat "softether-$1.log"; exit 1; }
  if [ "$SIDE" = cloud ]; then cat /dev/null > "/tmp/cloud-$1"; fi
}

# --- OpenVPN over TCP: one connection a tunnel, a static key ------------------------------------------------
openvpn_tunnel() { # DEVICE PORT REMOTE-ADDRESS ADDRESS PEER WRAPPER...
  device=$1; port=$2; remote=$3; address=$4; peer=$5; shift 5
  if [ "$SIDE" = cloud ]; then role="--proto tcp-server"; else role="--proto tcp-client --remote $remote --connect-retry 1 2"; fi
  # shellcheck disable=SC2086 # the role is several words
  "$@" openvpn --daemon --log "$PWD/$device.log" --dev "$device" --dev-type tun --port "$port" $role \
    --ifconfig "$address" "$peer" --secret /tmp/openvpn.key \
    --cipher AES-256-CBC --sndbuf 0 --rcvbuf 0
}

# --- The tunnels --------------------------------------------------------------------------------------------
if [ "$SIDE" = home ]; then
  echo "FIBRE=$FIBRE VDSL=$VDSL LINES=$LINES BOND=$BOND" > /tmp/bond.new; mv /tmp/bond.new /tmp/bond
else
  wait_for test -e /tmp/bond
  . /tmp/bond
fi
remotes=""
i=0; while [ $i -lt "$FIBRE" ]; do remotes="$remotes 10.0.0"; i=$((i + 1)); done
i=0; while [ $i -lt "$VDSL" ]; do remotes="$remotes 10.0.1"; i=$((i + 1)); done
tunnels=$((FIBRE + VDSL))
case $LINES:$BOND in
*openvpn*) if [ "$SIDE" = cloud ]; then openvpn --genkey secret /tmp/openvpn.new; mv /tmp/openvpn.new /tmp/openvpn.key
  else wait_for test -s /tmp/openvpn.key; fi ;;
esac
case $LINES in softether) softether_server 5555 ;; esac
i=0
for net in $remotes; do
  i=$((i + 1))
  case $LINES in
  softether) softether_hub "line$i" 5555 "$net.2" ;;
  wireguard)
    wg genkey > "wg$i"; wg pubkey < "wg$i" > "/tmp/$SIDE-wg$i.new"; mv "/tmp/$SIDE-wg$i.new" "/tmp/$SIDE-wg$i"
    if [ "$SIDE" = home ]; then far=cloud; else far=home; fi
    wait_for test -s "/tmp/$far-wg$i"
    ip link add "line$i" type wireguard
    wg set "line$i" listen-port $((51820 + i)) private-key "wg$i" peer "$(cat "/tmp/$far-wg$i")" \
      endpoint "$net.$other:$((51820 + i))" allowed-ips 10.8.$i.0/24 ;;
  openvpn) openvpn_tunnel "line$i" $((1194 + i)) "$net.2" 10.8.$i.$me 10.8.$i.$other ;;
  gre) ip link add "line$i" type gre key $i local "$net.$me" remote "$net.$other" ;;
  esac
done > commands
if [ "$LINES" = softether ]; then softether_apply 5555 < commands; fi
ip mptcp endpoint flush
ip mptcp limits set subflow $((tunnels + 1)) add_addr_accepted $((tunnels + 1))
i=0
for net in $remotes; do
  i=$((i + 1)); device=line$i
  if [ "$LINES" = softether ]; then device=tap_line$i; fi
  wait_for ip link show "$device"
  if [ "$LINES" = openvpn ]; then wait_for sh -c "ip -4 address show dev $device | grep -q inet"
  else ip address add 10.8.$i.$me/24 dev "$device"; ip link set "$device" up; fi
  if [ "$SIDE" = home ]; then role=subflow; else role=signal; fi
  if [ $i -gt 1 ]; then ip mptcp endpoint add 10.8.$i.$me dev "$device" $role; fi
done

# --- What runs across them ----------------------------------------------------------------------------------
case $BOND in
softether) softether_server 6666 mptcpize run
  softether_hub bond 6666 10.8.1.2 | softether_apply 6666
  wait_for ip link show tap_bond
  ip address add 10.9.0.$me/24 dev tap_bond ;;
openvpn) openvpn_tunnel bond 1194 10.8.1.2 10.9.0.$me 10.9.0.$other mptcpize run ;;
none) ;;
esac
cat /dev/null > ready
while :; do sleep 3600; done
