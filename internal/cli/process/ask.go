package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks the question about a system on the terminal. An answer that is
// not yes is an error, and so is a terminal that is missing; why says what makes
// the question necessary.
func (p *Process) Confirm(ctx context.Context, system, why, question string) error {
	if !p.StdinTerminal {
		return Usagef("check that it is the right one, and give --yes", "%s %s, and was not confirmed", system, why)
	}
	p.Logf("%s\n%s [y/N] ", system, question)
	answer, err := ReadLine(ctx, p.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return Usagef("", "not confirmed: nothing was done")
	}
	return nil
}

// ReadLine reads one line, unless ctx ends first.
func ReadLine(ctx context.Context, from io.Reader) (string, error) {
	return Await(ctx, func() (string, error) {
		text, err := bufio.NewReader(from).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return text, nil
	})
}

// Await waits for a reader that knows no context, or for the end of ctx.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
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
