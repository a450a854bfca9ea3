package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/conn"
	"golang.zx2c4.com/wireguard/device"
	"golang.zx2c4.com/wireguard/tun"
	"golang.zx2c4.com/wireguard/wgctrl"
	"golang.zx2c4.com/wireguard/wgctrl/wgtypes"

	"plimsoll.dev/plimsoll/internal/proc"
)

// Component is the name of WireGuard in user space among the program's components.
const Component = "wireguard"

const (
	wireguardPort = 51820
	tunDevice     = "/dev/net/tun"
	tunHandle     = 3                // the TUN interface's file in the component
	carrierBound  = 10 * time.Second // until a carrier carries
)

// wireguard joins client and server by the kernel's WireGuard, or else a program of each side.
func (n *network) wireguard() error {
	if err := n.cable(); err != nil {
		return err
	}
	var keys [2]wgtypes.Key
	for i := range keys {
		var err error
		if keys[i], err = wgtypes.GeneratePrivateKey(); err != nil {
			return fmt.Errorf("draw a key: %w", err)
		}
	}
	for i, e := range n.ends() {
		err := n.links[e.m].LinkAdd(&netlink.Wireguard{LinkAttrs: n.attributes(tunnelName, n.inner())})
		switch {
		case err == nil:
			err = e.configureKernel(keys[i], keys[1-i].PublicKey())
		case errors.Is(err, unix.EOPNOTSUPP):
			err = n.carryWireGuard(e, keys[i], keys[1-i].PublicKey())
		}
		if err != nil {
			return fmt.Errorf("make a WireGuard interface: %w", err)
		}
	}
	return n.finishTunnel(tunnelName)
}

// configureKernel tells an interface of the kernel its key and its peer.
func (e end) configureKernel(own, peer wgtypes.Key) error {
	return e.m.InNetwork(func() error {
		client, err := wgctrl.New()
		if err != nil {
			return err
		}
		defer client.Close()
		port, everywhere := wireguardPort, net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
		return client.ConfigureDevice(tunnelName, wgtypes.Config{PrivateKey: &own, ListenPort: &port, Peers: []wgtypes.PeerConfig{{
			PublicKey: peer, Endpoint: &net.UDPAddr{IP: net.ParseIP(e.peer), Port: port}, AllowedIPs: []net.IPNet{everywhere},
		}}})
	})
}

// carryWireGuard makes a TUN interface and starts the program that carries, with it as an open file.
func (n *network) carryWireGuard(e end, own, peer wgtypes.Key) error {
	var file *os.File
	err := e.m.InNetwork(func() error {
		fd, err := unix.Open(tunDevice, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", tunDevice, err)
		}
		file = os.NewFile(uintptr(fd), tunDevice)
		request, err := unix.NewIfreq(tunnelName)
		if err == nil {
			request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
			err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
		}
		return err
	})
	if file != nil {
		defer file.Close()
	}
	if err != nil {
		return err
	}
	if err := n.fit(e.m, tunnelName); err != nil {
		return err
	}
	n.carried = moduleVersion("golang.zx2c4.com/wireguard")
	cmd := e.m.Command(n.executable, "component", Component)
	cmd.Env = append(cmd.Env, "GOMAXPROCS="+strconv.Itoa(len(e.cpus)))
	cmd.ExtraFiles = []*os.File{file}
	cmd.Stdin = strings.NewReader(fmt.Sprintf("private_key=%x\nlisten_port=%d\npublic_key=%x\nendpoint=%s:%d\nallowed_ip=0.0.0.0/0\n", own[:], wireguardPort, peer[:], e.peer, wireguardPort))
	user := proc.Least()
	p, err := n.carry(e.m, cmd, "WireGuard in user space", &user, e.cpus)
	if err != nil {
		return err
	}
	// Its socket is what it opens last.
	return p.Await(context.Background(), carrierBound, func() error {
		return e.m.InNetwork(func() error {
			c, err := net.ListenUDP("udp4", &net.UDPAddr{Port: wireguardPort})
			if err != nil {
				return nil
			}
			c.Close()
			return errors.New("it does not listen yet")
		})
	})
}

// moduleVersion names a Go module of this program with its version.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return path + " " + m.Version
			}
		}
	}
	return path
}

// CarryWireGuard runs WireGuard in user space until it fails: it reads its configuration as WireGuard's
// tools write it, and has the TUN interface as its fourth open file.
func CarryWireGuard(in io.Reader) error {
	tunnel, _, err := tun.CreateUnmonitoredTUNFromFD(tunHandle)
	if err != nil {
		return fmt.Errorf("take the TUN interface: %w", err)
	}
	d := device.NewDevice(tunnel, conn.NewDefaultBind(), device.NewLogger(device.LogLevelError, "wireguard: "))
	if err := d.IpcSetOperation(in); err != nil {
		return fmt.Errorf("read WireGuard's configuration: %w", err)
	}
	if err := d.Up(); err != nil {
		return fmt.Errorf("set WireGuard up: %w", err)
	}
	<-d.Wait()
	return errors.New("WireGuard has ended")
}
