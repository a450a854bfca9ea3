package kubeburner

import (
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// functions are what an object template can call: sprig's, and those that the
// format adds. Functions that read the environment or ask the network are left
// out: what a template renders to follows from its input alone.
func functions(fsys fs.FS) template.FuncMap {
	f := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(f, name)
	}
	f["Binomial"] = binomial
	f["IndexToCombination"] = indexToCombination
	f["GetSubnet24"] = subnet24
	f["GetIPAddress"] = addresses
	f["ReadFile"] = func(name string) (string, error) { return readFile(fsys, name) }
	return f
}

// repeatable lists the functions that give the same result for the same
// arguments, always: not the clock, not chance, not the order of a Go map.
func repeatable() map[string]bool {
	names := map[string]bool{}
	for name := range sprig.HermeticTxtFuncMap() {
		names[name] = true
	}
	for _, name := range []string{
		// Sprig counts these as repeatable.
		"ago", "bcrypt", "buildCustomCert", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey",
		"genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
		"htpasswd", "keys", "randInt", "shuffle", "values",
	} {
		delete(names, name)
	}
	for _, name := range []string{
		"Binomial", "IndexToCombination", "GetSubnet24", "GetIPAddress", "ReadFile", "env", "expandenv",
		// Of the template language itself.
		"and", "or", "not", "len", "index", "slice", "print", "printf", "println", "html", "js", "urlquery", "call",
		"eq", "ne", "lt", "le", "gt", "ge",
	} {
		names[name] = true
	}
	return names
}

// configFunctions are functions, and sprig's two that read the environment, which here
// is the one passed in.
func configFunctions(fsys fs.FS, env map[string]string) template.FuncMap {
	f := functions(fsys)
	lookup := func(name string) string { return env[name] }
	f["env"] = lookup
	f["expandenv"] = func(text string) string { return os.Expand(text, lookup) }
	return f
}

// binomial is the number of ways to choose k of n things.
func binomial(n, k int) (int, error) {
	if n < 0 || k < 0 || k > n {
		return 0, fmt.Errorf("cannot choose %d of %d", k, n)
	}
	b := new(big.Int).Binomial(int64(n), int64(k))
	if !b.IsInt64() {
		return 0, fmt.Errorf("choosing %d of %d gives a number above 2^63", k, n)
	}
	return int(b.Int64()), nil
}

// indexToCombination is the combination with that index, from 0, of all
// choices of k of the numbers 0 to n-1 in lexicographic order. into may be nil;
// one of length k is filled and returned.
func indexToCombination(into []int, index, n, k int) ([]int, error) {
	all, err := binomial(n, k)
	if err != nil {
		return nil, err
	}
	if index < 0 || index >= all {
		return nil, fmt.Errorf("there are %d choices of %d of %d, none has the index %d", all, k, n, index)
	}
	if into == nil {
		into = make([]int, k)
	}
	if len(into) != k {
		return nil, fmt.Errorf("a list of %d cannot hold a choice of %d", len(into), k)
	}
	next := 0
	for i := range into {
		for {
			// Choices that go on with next: any k-i-1 of the numbers above it.
			with, err := binomial(n-next-1, k-i-1)
			if err != nil {
				return nil, err
			}
			if index < with {
				break
			}
			index -= with
			next++
		}
		into[i] = next
		next++
	}
	return into, nil
}

// subnet24 is the /24 subnet with that index, from 0: 1.0.0.0/24, 1.0.1.0/24
// and so on to 255.255.255.0/24.
func subnet24(index int) (string, error) {
	if index < 0 || index > 255<<16-1 {
		return "", fmt.Errorf("there is no /24 subnet with the index %d", index)
	}
	return netip.AddrFrom4([4]byte{byte(index>>16) + 1, byte(index >> 8), byte(index), 0}).String() + "/24", nil
}

// addresses is an iteration's share of a list of addresses separated by
// spaces: perIteration of them, iteration counted from 0.
func addresses(list string, iteration, perIteration int) (string, error) {
	all := strings.Split(list, " ")
	if iteration < 0 || perIteration < 0 || perIteration > 0 && iteration >= len(all)/perIteration {
		return "", fmt.Errorf("%d addresses do not reach iteration %d with %d each", len(all), iteration, perIteration)
	}
	return strings.Join(all[iteration*perIteration:(iteration+1)*perIteration], " "), nil
}
