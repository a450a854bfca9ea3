// The agent alone, as it is put into images: the program's roles for
// containers without the control plane that the program holds.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
)

func main() {
	// The first process of a container is sent no signal that it does not ask
	// for.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := agent.Run(ctx, os.Args[1:], os.Stdout, os.Stderr, clients.Role(time.Now, nil), agent.Try(time.Now))
	stop()
	os.Exit(code)
}
