#!/bin/busybox sh
# The first process of a real guest: devices, the network, SSH, and then the user
# data of the machine, from where cloud-init's NoCloud reads it.
/bin/busybox --install -s /bin
export PATH=/bin HOME=/root
mount -t devtmpfs none /dev
exec < /dev/console > /dev/console 2>&1
mkdir -p /dev/pts /proc /sys /tmp /root /etc/dropbear /tools /seed /dev/disk/by-id
mount -t devpts none /dev/pts
mount -t proc none /proc
mount -t sysfs none /sys
echo 1 > /proc/sys/vm/overcommit_memory # fio's libraries map more than there is
ln -s /proc/self/fd /dev/fd
for module in /modules/*; do insmod "$module"; done
ip link set lo up
ip link set eth0 up
ip addr add 10.0.2.15/24 dev eth0
echo 'root:*:0:0::/root:/bin/sh' > /etc/passwd
echo /bin/sh > /etc/shells
for disk in /sys/block/vd*; do
	read -r serial < "$disk/serial"
	ln -s "/dev/${disk##*/}" "/dev/disk/by-id/virtio-$serial"
	ln -s "/dev/${disk##*/}1" "/dev/disk/by-id/virtio-$serial-part1"
done
# fio stands on a disk of its own, with what it is linked with.
mount -t vfat -o ro,iocharset=ascii /dev/disk/by-id/virtio-tools-part1 /tools 2>/dev/null &&
	printf '#!/bin/sh\nexec /tools/ld.so --library-path /tools /tools/fio "$@"\n' > /bin/fio && chmod 755 /bin/fio
mount -t vfat -o ro,iocharset=ascii /dev/disk/by-id/virtio-cidata-part1 /seed 2>/dev/null
# Of what cloud-init takes as user data: keys of SSH, and a script.
mkdir -p /root/.ssh
cp /seed/host-key /etc/dropbear/dropbear_ed25519_host_key 2>/dev/null
cp /seed/authorized-keys /root/.ssh/authorized_keys 2>/dev/null
cp /seed/script /tmp/script 2>/dev/null
chmod -R go-rwx /root /etc/dropbear
dropbear -R -E -s
chmod 700 /tmp/script 2>/dev/null && /tmp/script
exec sleep 2147483647
