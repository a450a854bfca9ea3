package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/lab/machine"
)

// Client is the machine that mounts volumes.
type Client struct {
	*machine.Machine
	*commands
}

// Mounted returns where a volume is mounted at the client.
func (c *Client) Mounted(volume string) string {
	return filepath.Join(c.Dir, clientName, mountsDir, volume)
}

// Mount mounts a volume at the client, and returns where.
func (c *Client) Mount(ctx context.Context, volume string) (string, error) {
	at := c.Mounted(volume)
	err := os.MkdirAll(at, 0o700)
	if err == nil {
		_, err = c.run(ctx, c.Machine, "mount", "-t", "glusterfs", machine.Address(0).String()+":/"+volume, at)
	}
	if err != nil {
		return "", fmt.Errorf("mount volume %s: %w", volume, err)
	}
	return at, nil
}

// Unmount unmounts a volume.
func (c *Client) Unmount(ctx context.Context, volume string) error {
	at := c.Mounted(volume)
	_, err := c.run(ctx, c.Machine, "umount", at)
	if err == nil {
		err = os.Remove(at)
	}
	if err != nil {
		return fmt.Errorf("unmount volume %s: %w", volume, err)
	}
	return nil
}

const controlDir = "/run/fuse" // has the client's connections to FUSE file systems

func (c *Client) mountControl(ctx context.Context) error {
	_, err := c.run(ctx, c.Machine, "mkdir", controlDir)
	if err == nil {
		_, err = c.run(ctx, c.Machine, "mount", "-t", "fusectl", "fusectl", controlDir)
	}
	if err != nil {
		return fmt.Errorf("reach the kernel's FUSE connections: %w", err)
	}
	return nil
}

// Abort ends a mount that hangs: its callers get an error. It does nothing where nothing is mounted.
func (c *Client) Abort(volume string) error {
	mounts, err := c.Mounts()
	if err != nil {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	connection, ok := mounts[volume]
	if !ok {
		return nil
	}
	file := c.Path(filepath.Join(controlDir, strconv.Itoa(connection), "abort"))
	if err := os.WriteFile(file, []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	return nil
}

// Mounts returns the volumes mounted at the client, with the numbers of their FUSE connections.
func (c *Client) Mounts() (map[string]int, error) {
	mounts, err := procfs.GetProcMounts(c.PID())
	if err != nil {
		return nil, fmt.Errorf("read the client's mounts: %w", err)
	}
	found := make(map[string]int)
	for _, m := range mounts {
		volume, ours := strings.CutPrefix(m.MountPoint, c.Mounted("")+"/")
		_, minor, _ := strings.Cut(m.MajorMinorVer, ":")
		if n, err := strconv.Atoi(minor); ours && err == nil {
			found[volume] = n
		}
	}
	return found, nil
}
