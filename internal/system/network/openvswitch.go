package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// switchPrograms lists those of Open vSwitch; the first tells its version.
func switchPrograms() []proc.Program {
	list := []proc.Program{{Name: "ovs-vswitchd", Asks: "--version"}, {Name: "ovsdb-server"}, {Name: "ovsdb-tool"}, {Name: "ovs-vsctl"}}
	for i := range list {
		list[i].Package, list[i].For = "openvswitch-switch", "path=ovs"
	}
	return list
}

const (
	switchSchema   = "/usr/share/openvswitch/vswitch.ovsschema"
	switchPatience = "10" // seconds for a switch to obey
	askPatience    = "2"  // seconds for its database to answer
	echoBound      = time.Second
	databaseSocket = "db.sock"
)

type openSwitch struct {
	m       *machine.Machine
	dir     string // its files
	control string // program that tells it what to do
	now     func() time.Time
}

func (s openSwitch) database() string { return "unix:" + filepath.Join(s.dir, databaseSocket) }

// switches joins client and server by an Open vSwitch of each side, with a cable between the two.
func (n *network) switches() error {
	paths, missing := proc.Look("path=ovs", "", switchPrograms())
	if err := missing.Err(); err != nil {
		return system.Lacking(err, "")
	}
	found, err := switchPrograms()[0].Find(context.Background(), "")
	if err != nil {
		return err
	}
	first, second := n.hops[0], n.hops[1]
	n.at = netip.MustParseAddr(serverLink)
	if err := errors.Join(
		n.join(n.client, first, linkName, "near0"), n.join(first, second, "far0", "far0"), n.join(n.server, second, linkName, "near0"),
		n.address(n.client, linkName, clientLink), n.address(n.server, linkName, serverLink),
	); err != nil {
		return err
	}
	dataPath := "netdev"
	if _, err := n.links[first].GenlFamilyGet("ovs_datapath"); err == nil {
		dataPath = "system" // the kernel's
	} else {
		// Its own one takes whole packets alone, with their checksums.
		n.carried = "Open vSwitch " + found.Version + " (netdev)"
		if n.offloads["checksum"] || n.offloads["tso"] {
			return system.ParamMistake("checksum", "checksum=off and tso=off", "Open vSwitch in user space takes no packets without checksums")
		}
		n.offloads["checksum"], n.offloads["tso"] = false, false
	}
	for i, cpus := range [][]int{n.clientCPUs, n.serverCPUs} {
		s := openSwitch{m: n.hops[i], dir: filepath.Join(n.keep, "switch"+strconv.Itoa(i)), control: paths["ovs-vsctl"], now: n.now}
		if err := n.start(s, paths, cpus); err != nil {
			return fmt.Errorf("start an Open vSwitch: %w", err)
		}
		n.switched = append(n.switched, s)
		if err := s.tell(switchPatience, "add-br", bridgeName, "--", "set", "bridge", bridgeName, "datapath_type="+dataPath, "--", "add-port", bridgeName, "near0", "--", "add-port", bridgeName, "far0"); err != nil {
			return fmt.Errorf("join an Open vSwitch: %w", err)
		}
	}
	return nil
}

// start starts a switch and its database, without rights; the switch may keep those for interfaces.
func (n *network) start(s openSwitch, paths map[string]string, cpus []int) error {
	user := proc.Least()
	if err := cmp.Or(os.RemoveAll(s.dir), os.Mkdir(s.dir, 0o700), user.Give(s.dir)); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	file := filepath.Join(s.dir, "conf.db")
	if err := run(s.m, s.m.Command(paths["ovsdb-tool"], "create", file, switchSchema), &user); err != nil {
		return fmt.Errorf("make a database: %w", err)
	}
	switchArgs := []string{s.database()}
	if info, err := os.Stat(tunDevice); err == nil && info.Mode()&0o006 == 0o006 && user.ID != os.Geteuid() && user.Name != "" {
		switchArgs = append(switchArgs, "--user="+user.Name) // else it could not make interfaces
	}
	for _, x := range []struct {
		name string
		as   *proc.User
		args []string
	}{
		{"ovsdb-server", &user, []string{file, "--remote=p" + s.database()}},
		{"ovs-vswitchd", nil, switchArgs},
	} {
		control := filepath.Join(s.dir, x.name+".ctl")
		p, err := n.carry(s.m, s.m.Command(paths[x.name], append(x.args, "--unixctl="+control, "--verbose=console:warn", "--verbose=syslog:off")...), x.name, x.as, cpus)
		if err == nil {
			err = p.Await(context.Background(), carrierBound, func() error { return local.Answers("unix", control) })
		}
		if err == nil && x.as != nil {
			err = s.tell(switchPatience, "--no-wait", "init")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tell has the switch do something, within a number of seconds.
func (s openSwitch) tell(patience string, args ...string) error {
	user := proc.Least()
	return run(s.m, s.m.Command(s.control, append([]string{"--timeout=" + patience, "--db=" + s.database()}, args...)...), &user)
}

// broken returns what whoever tells a switch something hears where its database does not answer, or "".
func (s openSwitch) broken() string {
	if s.answers() != nil {
		if err := s.tell(askPatience, "show"); err != nil {
			return err.Error()
		}
	}
	return ""
}

// answers asks the database for an echo, as it asks its clients.
func (s openSwitch) answers() error {
	conn, err := net.DialTimeout("unix", filepath.Join(s.dir, databaseSocket), echoBound)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(s.now().Add(echoBound))
	if _, err := io.WriteString(conn, `{"method":"echo","params":[],"id":0}`); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func run(m *machine.Machine, cmd *exec.Cmd, as *proc.User) error {
	p, err := m.Start(cmd, proc.How{Name: "a program of the path", As: as})
	if err != nil {
		return err
	}
	err = p.Wait()
	if said := strings.TrimSpace(p.Said()); err != nil && said != "" || strings.Contains(said, "Error detected") { // with exit code 0
		err = errors.New(said)
	}
	return err
}
