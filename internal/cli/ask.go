package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// confirm asks the question about a system on the terminal. An answer that is
// not yes is an error, and so is a terminal that is missing; why says what makes
// the question necessary.
func (p *Process) confirm(ctx context.Context, system, why, question string) error {
	if !p.StdinTerminal {
		return usagef("check that it is the right one, and give --yes", "%s %s, and was not confirmed", system, why)
	}
	p.logf("%s\n%s [y/N] ", system, question)
	answer, err := readLine(ctx, p.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return usagef("", "not confirmed: nothing was done")
	}
	return nil
}

// readLine reads one line, unless ctx ends first.
func readLine(ctx context.Context, from io.Reader) (string, error) {
	return await(ctx, func() (string, error) {
		text, err := bufio.NewReader(from).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return text, nil
	})
}

// await waits for a reader that knows no context, or for the end of ctx.
func await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}
