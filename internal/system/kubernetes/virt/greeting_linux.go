package virt

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// greeting fills got with a server's first bytes. Booting machines refuse thousands of calls a second: a
// bare socket that is read after a moment takes half the CPU of net's, which makes three times as many
// system calls. Without data by then, it waits as a file does.
func greeting(ctx context.Context, from netip.AddrPort, got []byte, patience time.Duration) error {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(from.Port()), Addr: from.Addr().As4()}); err != nil && err != syscall.EINPROGRESS {
		return errors.Join(os.NewSyscallError("connect", err), syscall.Close(fd))
	}
	time.Sleep(time.Millisecond)
	n, err := syscall.Read(fd, got)
	if n = max(n, 0); n == len(got) || err != nil && err != syscall.EAGAIN {
		return errors.Join(os.NewSyscallError("read", err), syscall.Close(fd))
	}
	f := os.NewFile(uintptr(fd), from.String())
	defer f.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if deadline, ok := ctx.Deadline(); ok {
		if err := f.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	_, err = io.ReadFull(f, got[n:])
	return err
}
