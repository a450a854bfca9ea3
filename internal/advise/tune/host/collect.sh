#!/bin/sh
# Read what 'plimsoll tune host --bundle' uses of this host, and write it to the
# standard output as a tar archive. Nothing is changed.
#   sh collect.sh [SECONDS] > bundle.tar
set -eu
seconds=${1:-10}
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
keep() {
  [ -r "/$1" ] || return 0
  mkdir -p "$d/${1%/*}"
  cat "/$1" > "$d/$1" 2>/dev/null || rm -f "$d/$1"
}
# SYSCTLS
keep proc/net/route
keep proc/meminfo
keep proc/interrupts
for i in /sys/class/net/*; do
  n=sys/class/net/${i##*/}
  # The pods' own ends are many, and nothing of them is used.
  case ${i##*/} in veth* | cali* | lxc*) continue ;; esac
  [ -e "/$n/operstate" ] || continue
  mkdir -p "$d/$n"
  for f in type operstate speed mtu device/numa_node; do keep "$n/$f"; done
  if [ -e "/$n/device" ]; then mkdir -p "$d/$n/device"; fi
  if command -v ethtool > /dev/null; then
    mkdir -p "$d/ethtool"
    ethtool -k "${i##*/}" > "$d/ethtool/${i##*/}.features" 2> /dev/null || true
    ethtool -l "${i##*/}" > "$d/ethtool/${i##*/}.channels" 2> /dev/null || true
  fi
  for q in /$n/queues/*; do if [ -e "$q" ]; then mkdir -p "$d/$n/queues/${q##*/}"; fi; done
done
for i in /sys/devices/system/node/node*; do keep "sys/devices/system/node/${i##*/}/cpulist"; done
mkdir -p "$d/proc/net"
cat /proc/net/softnet_stat > "$d/proc/net/softnet_stat.0"
sleep "$seconds"
cat /proc/net/softnet_stat > "$d/proc/net/softnet_stat.1"
echo "${seconds}s" > "$d/interval"
tar -C "$d" -cf - .
