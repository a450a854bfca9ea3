package network

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
)

// ipsecPrograms are those of strongSwan, which encrypts where the kernel does not.
func ipsecPrograms() []proc.Program {
	list := []proc.Program{
		{Name: "charon", Package: "strongswan-charon", Asks: "--version", Look: there("/usr/lib/ipsec/charon")},
		{Name: "swanctl", Package: "strongswan-swanctl"},
		{Name: "kernel-libipsec", Package: "libcharon-extra-plugins", Look: there("/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so")},
		{Name: "openssl plugin", Package: "libstrongswan-standard-plugins", Look: there("/usr/lib/ipsec/plugins/libstrongswan-openssl.so")},
	}
	for i := range list {
		list[i].For = "path=ipsec"
	}
	return list
}

// there looks for a file at its own place.
func there(file string) func() string {
	return func() string {
		if _, err := os.Stat(file); err != nil {
			return ""
		}
		return file
	}
}

const (
	// ipsecName is the interface's that strongSwan makes.
	ipsecName = "ipsec0"
	// userTakes is what it takes of the MTU besides the kernel's ESP: headers of IPv4
	// and UDP.
	userTakes = 28
	// mostCharon is the largest packet that it reads from its interface.
	mostCharon = 1400
)

// carryIPsec has strongSwan encrypt what goes to an interface of its own: a program of
// each side, in UDP, since the kernel takes no ESP.
func (n *network) carryIPsec() error {
	if n.cipher == cipherNull {
		return &system.UnableError{Err: fmt.Errorf("this kernel has no %s, and strongSwan in its stead always encrypts", n.kind.needs), Hint: "--set cipher=" + cipherGCM}
	}
	paths, missing := proc.Look("path=ipsec", "", ipsecPrograms())
	if err := missing.Err(); err != nil {
		return system.Lacking(fmt.Errorf("this kernel has no %s, and strongSwan is not there in its stead: %w", n.kind.needs, err), "")
	}
	found, err := ipsecPrograms()[0].Find(context.Background(), "")
	if err != nil {
		return err
	}
	n.carried = "strongSwan " + found.Version + " (kernel-libipsec)"
	n.kind.takes = max(n.kind.takes+userTakes, n.mtu-mostCharon)
	tell := func(i int, args ...string) error {
		dir := filepath.Join(n.keep, "ipsec"+strconv.Itoa(i))
		cmd := n.ends()[i].m.Command(paths["swanctl"], append(args, "--uri", "unix://"+filepath.Join(dir, "control"))...)
		cmd.Env = append(cmd.Env, "STRONGSWAN_CONF="+filepath.Join(dir, "strongswan.conf"))
		return run(n.ends()[i].m, cmd, nil)
	}
	for i, e := range n.ends() {
		dir := filepath.Join(n.keep, "ipsec"+strconv.Itoa(i))
		if err := e.writeIPsec(dir); err != nil {
			return err
		}
		cmd := e.m.Command(paths["charon"], "--use-syslog", "no")
		cmd.Env = append(cmd.Env, "STRONGSWAN_CONF="+filepath.Join(dir, "strongswan.conf"))
		p, err := n.carry(e.m, cmd, "charon", nil, e.cpus)
		if err != nil {
			return err
		}
		err = p.Await(context.Background(), carrierBound, func() error {
			conn, err := net.Dial("unix", filepath.Join(dir, "control"))
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			err = tell(i, "--load-all", "--file", filepath.Join(dir, "swanctl.conf"))
		}
		if err != nil {
			return fmt.Errorf("start strongSwan: %w", err)
		}
		link, err := n.links[e.m].LinkByName(ipsecName)
		if err == nil {
			err = n.links[e.m].LinkSetMTU(link, n.inner())
		}
		if err != nil {
			return fmt.Errorf("set the MTU of %s: %w", ipsecName, err)
		}
	}
	if err := n.finishTunnel(ipsecName); err != nil {
		return err
	}
	if err := tell(0, "--initiate", "--child", "path", "--timeout", "10"); err != nil {
		return fmt.Errorf("have strongSwan agree on keys: %w", err)
	}
	return nil
}

// writeIPsec writes what strongSwan reads of one side.
func (e end) writeIPsec(dir string) error {
	address := map[string]string{clientLink: clientEnd, serverLink: serverEnd}
	err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
	for name, text := range map[string]string{
		"strongswan.conf": fmt.Sprintf(`charon {
  load = random nonce openssl kdf kernel-libipsec kernel-netlink socket-default vici
  install_routes = no
  filelog { stderr { default = 0 } }
  plugins { vici { socket = unix://%s/control } }
}
swanctl { load = openssl random nonce }
`, dir),
		"swanctl.conf": fmt.Sprintf(`connections { path {
  version = 2
  local_addrs = %[1]s
  remote_addrs = %[2]s
  encap = yes
  proposals = aes128gcm16-prfsha256-x25519
  local { auth = psk
    id = %[1]s }
  remote { auth = psk
    id = %[2]s }
  children { path { local_ts = %[3]s/32
    remote_ts = %[4]s/32
    esp_proposals = aes128gcm16 } }
} }
secrets { ike { secret = "nobody else sees it" } }
`, e.own, e.peer, address[e.own], address[e.peer]),
	} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("write what strongSwan reads: %w", err)
	}
	return nil
}
