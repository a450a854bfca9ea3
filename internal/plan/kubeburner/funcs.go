package kubeburner

import (
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/bits"
	"net/netip"
	"os"
	"reflect"
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
	bounded(f)
	f["Binomial"] = binomial
	f["IndexToCombination"] = indexToCombination
	f["GetSubnet24"] = subnet24
	f["GetSubnet16"] = func(index int) (string, error) { return within16(index, 0, 16) }
	f["GetSubnet24In16"] = func(index, offset int) (string, error) { return within16(index, offset, 24) }
	f["GetIPAddress"] = addresses
	f["ReadFile"] = func(name string) (string, error) { return readFile(fsys, name) }
	return f
}

// maxListed bounds the items of one list.
const maxListed = 1_000_000

// bounded has functions refuse what would fill the memory: by their numbers before they
// are called, and by what they give, of which a template could make ever more.
func bounded(f template.FuncMap) {
	maps.Copy(f, template.FuncMap{
		"print": fmt.Sprint, "printf": fmt.Sprintf, "println": fmt.Sprintln,
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
	})
	numbers := func(args []reflect.Value) (list []float64) {
		for _, a := range args {
			if a.CanInt() {
				list = append(list, float64(a.Int()))
			}
		}
		return list
	}
	count := func(args []reflect.Value) float64 { return numbers(args)[0] }
	times := func(args []reflect.Value) float64 { return count(args) * float64(args[1].Len()) }
	lines := func(args []reflect.Value) float64 {
		return count(args) * float64(1+strings.Count(args[1].String(), "\n"))
	}
	span := func(n []float64, from, to, step int) float64 {
		return math.Abs(n[to]-n[from]) / max(math.Abs(n[step]), 1)
	}
	makes := map[string]func(args []reflect.Value) float64{
		"repeat": times, "indent": lines, "nindent": lines, "until": count,
		"randAlpha": count, "randAlphaNum": count, "randAscii": count, "randNumeric": count, "randBytes": count,
		"untilStep": func(args []reflect.Value) float64 { return span(numbers(args), 0, 1, 2) },
		"seq": func(args []reflect.Value) float64 {
			list := make([]float64, args[0].Len())
			for i := range list {
				list[i] = float64(args[0].Index(i).Int())
			}
			switch n := append(list, 1); len(list) {
			case 1:
				return span(n, 1, 0, 1)
			case 2:
				return span(n, 0, 1, 2)
			case 3:
				return span(n, 0, 2, 1)
			}
			return 0
		},
	}
	for name, of := range f {
		f[name] = bound(reflect.ValueOf(of), makes[name])
	}
}

// bound is a function that refuses to make too much; makes, which may be nil, is how many
// bytes or items arguments ask for.
func bound(of reflect.Value, makes func(args []reflect.Value) float64) any {
	kind := of.Type()
	in := make([]reflect.Type, kind.NumIn())
	for i := range in {
		in[i] = kind.In(i)
	}
	result, failure := kind.Out(0), reflect.TypeFor[error]()
	bounds := func(kind reflect.Kind) int {
		if kind == reflect.String {
			return maxRendered
		}
		return maxListed
	}
	refused := func(n float64, most int) []reflect.Value {
		err := fmt.Errorf("it would make %.0f bytes or items, and at most %d are made", n, most)
		return []reflect.Value{reflect.Zero(result), reflect.ValueOf(&err).Elem()}
	}
	call := of.Call
	if kind.IsVariadic() {
		call = of.CallSlice
	}
	return reflect.MakeFunc(reflect.FuncOf(in, []reflect.Type{result, failure}, kind.IsVariadic()), func(args []reflect.Value) []reflect.Value {
		if makes != nil {
			if n, most := makes(args), bounds(result.Kind()); n > float64(most) {
				return refused(n, most)
			}
		}
		out := call(args)
		made := out[0]
		if made.Kind() == reflect.Interface {
			made = made.Elem()
		}
		switch made.Kind() {
		case reflect.String, reflect.Slice, reflect.Map:
			if most := bounds(made.Kind()); made.Len() > most {
				return refused(float64(made.Len()), most)
			}
		}
		if len(out) == 1 {
			out = append(out, reflect.Zero(failure))
		}
		return out
	}).Interface()
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
		"Binomial", "IndexToCombination", "GetSubnet24", "GetSubnet16", "GetSubnet24In16", "GetIPAddress", "ReadFile", "env", "expandenv",
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
	k = min(k, n-k)
	b := uint64(1)
	for i := 1; i <= k; i++ { // each at least doubles it
		hi, lo := bits.Mul64(b, uint64(n-k+i))
		if hi < uint64(i) {
			b, _ = bits.Div64(hi, lo, uint64(i))
		}
		if hi >= uint64(i) || b > math.MaxInt64 {
			return 0, fmt.Errorf("choosing %d of %d gives a number above 2^63", k, n)
		}
	}
	return int(b), nil
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

// within16 is a subnet of the /16 subnet with that index, from 0 (1.0.0.0/16, 1.1.0.0/16
// and so on to 255.255.0.0/16): itself, or the /24 one with that offset in it. These
// functions are those of kube-burner-ocp.
func within16(index, offset, bits int) (string, error) {
	if index < 0 || index >= 255<<8 || offset < 0 || offset > 255 {
		return "", fmt.Errorf("there is no /%d subnet with the index %d and the offset %d", bits, index, offset)
	}
	address := netip.AddrFrom4([4]byte{byte(index>>8 + 1), byte(index), byte(offset), 0})
	return netip.PrefixFrom(address, bits).String(), nil
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
