package image

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed guest.sh
var guestInit []byte

// Files that a real guest boots from, in Guest's directory.
const (
	GuestKernel = "vmlinuz"
	GuestInitrd = "initrd"
	GuestTools  = "tools" // a directory with fio and its libraries, if this machine has it
)

// guestKernelPackage depends on Debian's newest kernel package.
const guestKernelPackage = "linux-image-cloud-amd64"

func guestPackages() []string {
	return []string{"busybox-static", "dropbear-bin", "libtomcrypt1", "libtommath1", "libgmp10", "libcrypt1", "zlib1g", "libc6"}
}

// guestModules lists the parts of the kernel that a guest loads, in this order.
func guestModules() []string {
	return []string{"virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover", "net_failover", "virtio_net", "virtio_blk", "fat", "vfat", "nls_cp437", "nls_ascii"}
}

// GuestKey names the parts of guests: this program's, the packages, and this machine's fio.
func GuestKey() string {
	sum := sha256.New()
	sum.Write(guestInit)
	fmt.Fprint(sum, guestKernelPackage, guestPackages(), guestModules())
	if fio, err := exec.LookPath("fio"); err == nil {
		program, _ := os.ReadFile(fio) // Guest reports the error
		sum.Write(program)
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// Guest makes a kernel and a root file system with an SSH server in dir, out of packages that it downloads
// and removes. Without packages it returns a *NoPackagesError.
func Guest(ctx context.Context, dir string) error {
	if err := makeGuest(ctx, dir); err != nil {
		return fmt.Errorf("make the image of real guests: %w", err)
	}
	return nil
}

func makeGuest(ctx context.Context, dir string) error {
	downloads := filepath.Join(dir, "packages")
	if err := os.MkdirAll(downloads, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(downloads)
	depends, err := exec.CommandContext(ctx, "apt-cache", "depends", guestKernelPackage).Output()
	kernel := regexp.MustCompile(`Depends: (linux-image-\S+)`).FindSubmatch(depends)
	if err != nil || kernel == nil {
		return &NoPackagesError{fmt.Errorf("they hold no %s ('apt-get update' reads what there is)", guestKernelPackage)}
	}
	get := exec.CommandContext(ctx, "apt-get", append([]string{"-o", "APT::Sandbox::User=root", "download", string(kernel[1])}, guestPackages()...)...)
	get.Dir = downloads
	if out, err := get.CombinedOutput(); err != nil {
		return &NoPackagesError{fmt.Errorf("apt-get: %w: %s", err, lastLine(out))}
	}
	packages, err := filepath.Glob(filepath.Join(downloads, "*.deb"))
	if err != nil {
		return err
	}
	var root cpio
	for _, p := range packages {
		if err := unpack(ctx, p, func(h *tar.Header, content io.Reader) error { return root.take(dir, h, content) }); err != nil {
			return err
		}
	}
	for _, name := range guestModules() {
		if !root.modules[name] {
			return &NoPackagesError{fmt.Errorf("%s has no module %s that is not compressed", kernel[1], name)}
		}
	}
	root.file("init", 0o100755, guestInit)
	root.file("TRAILER!!!", 0, nil)
	if err := os.WriteFile(filepath.Join(dir, GuestInitrd), root.Bytes(), 0o600); err != nil {
		return err
	}
	return tools(filepath.Join(dir, GuestTools))
}

func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// cpio is an archive in the form "newc", as a kernel takes its first root.
type cpio struct {
	bytes.Buffer
	files   int
	modules map[string]bool
}

func (c *cpio) file(name string, mode int, content []byte) {
	for dir := path.Dir(name); dir != "." && mode != 0o40755; dir = "." {
		c.directory(dir)
	}
	c.files++
	fmt.Fprintf(c, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
		c.files, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0, name)
	c.pad()
	c.Write(content)
	c.pad()
}

// directory adds a directory with those above it, even if it is there.
func (c *cpio) directory(name string) {
	if above := path.Dir(name); above != "." {
		c.directory(above)
	}
	c.file(name, 0o40755, nil)
}

func (c *cpio) pad() { c.Write(make([]byte, -c.Len()&3)) }

// take adds a file of a package if a guest needs it. The kernel goes to dir.
func (c *cpio) take(dir string, h *tar.Header, content io.Reader) error {
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeSymlink {
		return nil
	}
	name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
	base := path.Base(name)
	if c.modules == nil {
		c.modules = make(map[string]bool)
	}
	module, isModule := strings.CutSuffix(base, ".ko")
	at := slices.Index(guestModules(), module)
	switch {
	case strings.HasPrefix(name, "boot/vmlinuz-"):
		f, err := os.OpenFile(filepath.Join(dir, GuestKernel), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, content)
		return errors.Join(err, f.Close())
	case isModule && at >= 0:
		c.modules[module] = true
		name = fmt.Sprintf("modules/%02d.ko", at)
	case name == "bin/busybox" || name == "usr/bin/busybox" || name == "usr/sbin/dropbear":
		name = "bin/" + base
	case strings.HasPrefix(base, "ld-linux"):
		name = "lib64/" + base
	case strings.Contains(name, "-linux-gnu/") && strings.Contains(base, ".so") && path.Base(path.Dir(name)) != "gconv":
		name = "lib/" + base
	default:
		return nil
	}
	if h.Typeflag == tar.TypeSymlink {
		if path.Base(h.Linkname) == base {
			return nil // a link to the same name in another directory
		}
		c.file(name, 0o120777, []byte(path.Base(h.Linkname)))
		return nil
	}
	data, err := io.ReadAll(content)
	if err == nil {
		c.file(name, 0o100755, data)
	}
	return err
}

// tools copies this machine's fio, if it has one, with its libraries.
func tools(dir string) error {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	program, err := elf.Open(fio)
	if err != nil {
		return err
	}
	defer program.Close()
	files := map[string]string{"fio": fio}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			name, err := io.ReadAll(p.Open())
			if err != nil {
				return err
			}
			files["ld.so"] = strings.TrimRight(string(name), "\x00")
		}
	}
	// ldd runs the program's own loader, which knows where it would look.
	linked, err := exec.Command("ldd", fio).Output()
	if err != nil {
		return fmt.Errorf("find what %s is linked with: %w", fio, err)
	}
	for line := range strings.SplitSeq(string(linked), "\n") {
		if words := strings.Fields(line); len(words) >= 3 && words[1] == "=>" && filepath.IsAbs(words[2]) {
			files[words[0]] = words[2]
		}
	}
	for name, from := range files {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
