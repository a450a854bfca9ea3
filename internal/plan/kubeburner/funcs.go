package kubeburner

import (
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"regexp/syntax"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"plimsoll.dev/plimsoll/internal/text/budget"
)

// calls holds the functions that a template may call, and what its execution may spend.
type calls struct {
	template.FuncMap
	budget *budget.Budget
}

// functions returns sprig's functions and the format's own, but none that ask the environment or network.
func functions(fsys fs.FS) calls {
	f := sprig.TxtFuncMap()
	for _, name := range []string{"env", "expandenv", "getHostByName"} {
		delete(f, name)
	}
	return counted(fsys, f, costs())
}

// counted adds the format's functions, and lets all of them spend a budget.
func counted(fsys fs.FS, f template.FuncMap, costs map[string]budget.Cost) calls {
	f["Binomial"] = binomial
	f["IndexToCombination"] = indexToCombination
	f["GetSubnet24"] = subnet24
	f["GetSubnet16"] = func(index int) (string, error) { return within16(index, 0, 16) }
	f["GetSubnet24In16"] = func(index, offset int) (string, error) { return within16(index, offset, 24) }
	f["GetIPAddress"] = addresses
	f["ReadFile"] = func(name string) (string, error) { return readFile(fsys, name) }
	b := new(budget.Budget)
	return calls{b.Functions(f, costs), b}
}

// costs returns the costs of functions that make more than they get, or do more than read it once.
func costs() map[string]budget.Cost {
	numbers := func(args []reflect.Value) (list []float64) {
		for _, a := range args {
			if a.CanInt() {
				list = append(list, float64(a.Int()))
			}
		}
		return list
	}
	length := func(v reflect.Value) float64 {
		for v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		switch v.Kind() {
		case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
			return float64(v.Len())
		}
		return 1
	}
	makes := func(of func(args []reflect.Value) float64) budget.Cost {
		return func(args []reflect.Value) (float64, float64) { return of(args), 0 }
	}
	works := func(work float64) budget.Cost {
		return func([]reflect.Value) (float64, float64) { return 0, work }
	}
	count := func(args []reflect.Value) float64 { return numbers(args)[0] }
	span := func(n []float64, from, to, step int) float64 {
		return math.Abs(n[to]-n[from]) / max(math.Abs(n[step]), 1)
	}
	indented := makes(func(args []reflect.Value) float64 {
		return count(args) * float64(1+strings.Count(args[1].String(), "\n"))
	})
	parts := makes(func(args []reflect.Value) float64 { // split args[1] by args[0]
		return float64(strings.Count(args[1].String(), args[0].String()))
	})
	fromJSON := makes(func(args []reflect.Value) float64 { return length(args[0]) })
	toJSON := makes(func(args []reflect.Value) float64 { return budget.JSON(args...) })
	pairs := func(args []reflect.Value) (float64, float64) { // compare each item with each other
		n := length(args[0])
		if len(args) > 1 {
			return 0, n * length(args[1])
		}
		return 0, n * n
	}
	sorted := func(args []reflect.Value) (float64, float64) { return 0, 20 * length(args[0]) }
	costs := map[string]budget.Cost{
		"repeat": makes(func(args []reflect.Value) float64 { return count(args) * length(args[1]) }),
		"indent": indented, "nindent": indented,
		"until":     makes(count),
		"untilStep": makes(func(args []reflect.Value) float64 { return span(numbers(args), 0, 1, 2) }),
		"seq": makes(func(args []reflect.Value) float64 {
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
		}),
		"replace": makes(func(args []reflect.Value) float64 {
			return length(args[2]) + float64(strings.Count(args[2].String(), args[0].String()))*length(args[1])
		}),
		"join": makes(func(args []reflect.Value) float64 {
			return budget.Text(args[1]) + length(args[1])*length(args[0])
		}),
		"wrapWith": makes(func(args []reflect.Value) float64 {
			return length(args[2]) + (length(args[2])/max(count(args), 1)+1)*length(args[1])
		}),
		"split": parts, "splitList": parts,
		"splitn":   makes(func(args []reflect.Value) float64 { return float64(strings.Count(args[2].String(), args[0].String())) }),
		"fromJson": fromJSON, "mustFromJson": fromJSON,
		"toPrettyJson": toJSON, "mustToPrettyJson": toJSON,
		"uniq": pairs, "mustUniq": pairs, "without": pairs, "mustWithout": pairs, "sortAlpha": sorted,
		"IndexToCombination": func(args []reflect.Value) (float64, float64) { n := numbers(args); return 0, 2 * n[1] * max(n[2], 1) },
	}
	for _, name := range []string{"randAlpha", "randAlphaNum", "randAscii", "randNumeric", "randBytes"} {
		costs[name] = makes(count)
	}
	for name, work := range map[string]float64{
		"bcrypt": 2e6, "htpasswd": 2e6, "derivePassword": 4e6, "genPrivateKey": 4e7, "genCA": 1e7, "genSelfSignedCert": 1e7, "genSignedCert": 1e7,
		"genCAWithKey": 1e6, "genSelfSignedCertWithKey": 1e6, "genSignedCertWithKey": 1e6, "buildCustomCert": 1e5,
	} {
		costs[name] = works(work)
	}
	for _, name := range []string{"regexMatch", "regexFindAll", "regexFind", "regexReplaceAll", "regexReplaceAllLiteral", "regexSplit"} {
		costs[name] = matched
		costs["must"+strings.ToUpper(name[:1])+name[1:]] = matched
	}
	return costs
}

// matched is the cost of a regular expression: each byte of the text may meet each instruction.
func matched(args []reflect.Value) (makes, work float64) {
	text := args[1].String()
	parsed, err := syntax.Parse(args[0].String(), syntax.Perl)
	if err != nil {
		return 0, 0 // the function reports the error
	}
	instructions := 0
	if program, err := syntax.Compile(parsed.Simplify()); err == nil {
		instructions = len(program.Inst)
	}
	work = float64(instructions) * (float64(len(text))/4 + 10)
	if len(args) < 3 || args[2].Kind() != reflect.String || work > budget.MostWork {
		return 0, work
	}
	// A replacement for each match, with references to parts of it.
	found := 0
	if of, err := regexp.Compile(args[0].String()); err == nil {
		found = len(of.FindAllStringIndex(text, -1))
	}
	by := args[2].String()
	return float64(len(text))*float64(1+strings.Count(by, "$")) + float64(found)*float64(len(by)), 2 * work
}

// repeatable lists the functions that always give the same result for the same arguments.
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
		// Functions of the template language.
		"and", "or", "not", "len", "index", "slice", "print", "printf", "println", "html", "js", "urlquery", "call",
		"eq", "ne", "lt", "le", "gt", "ge",
	} {
		names[name] = true
	}
	return names
}

// configFunctions returns functions with sprig's two that read the environment, here the given one.
func configFunctions(fsys fs.FS, env map[string]string) calls {
	f := sprig.TxtFuncMap()
	delete(f, "getHostByName")
	lookup := func(name string) string { return env[name] }
	f["env"] = lookup
	f["expandenv"] = func(text string) string { return os.Expand(text, lookup) }
	longest := 0
	for _, value := range env {
		longest = max(longest, len(value))
	}
	of := costs()
	of["expandenv"] = func(args []reflect.Value) (makes, work float64) {
		text := args[0].String()
		return float64(len(text)) + float64(strings.Count(text, "$"))*float64(longest), 0
	}
	return counted(fsys, f, of)
}

// binomial returns the number of ways to choose k of n things.
func binomial(n, k int) (int, error) {
	if n < 0 || k < 0 || k > n {
		return 0, fmt.Errorf("cannot choose %d of %d", k, n)
	}
	k = min(k, n-k)
	b := uint64(1)
	for i := 1; i <= k; i++ { // each round at least doubles it
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

// indexToCombination returns a combination by its index, from 0, of k of the numbers 0 to n-1 in
// lexicographic order. It fills into, of length k, unless that is nil.
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
			// Choices with next: any k-i-1 of the numbers above it.
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

// within16 returns the /16 subnet with an index from 0, or a /24 subnet in it, as kube-burner-ocp does.
func within16(index, offset, bits int) (string, error) {
	if index < 0 || index >= 255<<8 || offset < 0 || offset > 255 {
		return "", fmt.Errorf("there is no /%d subnet with the index %d and the offset %d", bits, index, offset)
	}
	address := netip.AddrFrom4([4]byte{byte(index>>8 + 1), byte(index), byte(offset), 0})
	return netip.PrefixFrom(address, bits).String(), nil
}

// subnet24 returns the /24 subnet with an index, from 0: 1.0.0.0/24, 1.0.1.0/24 and so on to 255.255.255.0/24.
func subnet24(index int) (string, error) {
	if index < 0 || index > 255<<16-1 {
		return "", fmt.Errorf("there is no /24 subnet with the index %d", index)
	}
	return netip.AddrFrom4([4]byte{byte(index>>16) + 1, byte(index >> 8), byte(index), 0}).String() + "/24", nil
}

// addresses returns an iteration's share of a list of addresses separated by spaces; iterations count from 0.
func addresses(list string, iteration, perIteration int) (string, error) {
	all := strings.Split(list, " ")
	if iteration < 0 || perIteration < 0 || perIteration > 0 && iteration >= len(all)/perIteration {
		return "", fmt.Errorf("%d addresses do not reach iteration %d with %d each", len(all), iteration, perIteration)
	}
	return strings.Join(all[iteration*perIteration:(iteration+1)*perIteration], " "), nil
}
