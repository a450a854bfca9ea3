//go:build !linux

package virt

import (
	"context"
	"io"
	"net"
	"net/netip"
	"time"
)

// greeting fills got with a server's first bytes.
func greeting(ctx context.Context, from netip.AddrPort, got []byte, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", from.String())
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetReadDeadline(deadline); err != nil {
			return err
		}
	}
	_, err = io.ReadFull(conn, got)
	return err
}
