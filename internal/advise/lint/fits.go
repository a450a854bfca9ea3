package lint

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// frame is a mapping on the way to a value.
type frame struct {
	value
	typ reflect.Type
	key string // under which the way goes on
}

// fit is one look whether a document fits its shape.
type fit struct {
	out  *report
	doc  *doc
	what string // the kind, for messages: "a VirtualMachine"
	// unknown is asked about a key that the type does not have, before anything
	// is said of it; it reports whether it has said so itself.
	unknown func(f frame, e entry) bool
	whole   bool // nothing that is required may be missing
	frames  []frame
}

// fits holds a value against a type; what names the kind in messages.
func fits(out *report, v value, what string, t reflect.Type) {
	c := &fit{out: out, doc: v.doc, what: what}
	c.check(v, t)
}

// check holds a value against a type.
func (c *fit) check(v value, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	l := schema.LeafOf(t)
	switch k := t.Kind(); {
	case isNull(v.node), v.node.Kind == strictyaml.Scalar && hasHole(v.node.Text):
		// A key without a value says nothing.
	case l != schema.NoLeaf:
		c.leaf(v, l)
	case k == reflect.Struct && v.node.Kind == strictyaml.Mapping:
		c.structure(v, t)
	case k == reflect.Map && v.node.Kind == strictyaml.Mapping:
		for _, e := range v.entries() {
			c.check(e.value, t.Elem())
		}
	case k == reflect.Struct || k == reflect.Map:
		c.wants(v, "a mapping")
	case (k == reflect.Slice || k == reflect.Array) && v.node.Kind == strictyaml.List:
		for _, item := range v.items() {
			c.check(item, t.Elem())
		}
	case k == reflect.Slice || k == reflect.Array:
		c.wants(v, "a list")
	case v.node.Kind != strictyaml.Scalar || !holds(t, v.node.Value()):
		c.wants(v, scalarWord(t))
	default:
		if allowed := c.out.Values(t); allowed != nil {
			c.oneOf(v, allowed)
		}
	}
}

func (c *fit) wants(v value, wanted string) {
	fix := "write " + wanted
	var edits []edit
	n := v.node
	found := n.Describe()
	if b, isBool := n.Value().(bool); isBool && n.Text != fmt.Sprint(b) {
		found = fmt.Sprintf("%s, which Kubernetes reads as %v", n.Text, b)
	}
	start, end, ok := v.scalarRange()
	switch text, isText := n.Value().(string); {
	case isText && !n.Plain && ok && readsAs(text, wanted):
		// In quotes a number is text.
		fix = "remove the quotes"
		edits = []edit{{c.doc.text, start, end, text}}
	case wanted == "text" && n.Kind == strictyaml.Scalar && n.Plain:
		fix = fmt.Sprintf("put it in quotes: %q", n.Text)
		if ok {
			edits = []edit{{c.doc.text, start, end, fmt.Sprintf("%q", n.Text)}}
		}
	}
	c.out.find("wrong-type", v.at(), fix, fmt.Sprintf("%s wants %s, found %s", lastOf(v.path), wanted, found), edits...)
}

// readsAs reports whether a text without its quotes is what is wanted.
func readsAs(unquoted, wanted string) bool {
	root, _ := single(&text{data: unquoted})
	if root.node == nil {
		return false
	}
	switch root.node.Value().(type) {
	case bool:
		return wanted == "true or false"
	case int64, uint64:
		return strings.Contains(wanted, "number")
	case float64:
		return wanted == "a number"
	}
	return false
}

func (c *fit) leaf(v value, l schema.Leaf) {
	n := v.node
	if l == schema.Anything {
		return
	}
	if n.Kind != strictyaml.Scalar {
		c.wants(v, string(l))
		return
	}
	text := n.Text
	switch l {
	case schema.Quantity:
		if _, err := resource.ParseQuantity(text); err != nil {
			c.out.find("bad-quantity", v.at(), quantityHint(text), fmt.Sprintf("%s is no quantity: %q", lastOf(v.path), text))
		}
	case schema.IntOrString:
		switch n.Value().(type) {
		case int64, string:
		default:
			c.wants(v, string(l))
		}
	case schema.TimeStamp:
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			c.wants(v, "a time such as 2026-01-31T10:00:00Z")
		}
	case schema.Duration:
		if _, err := time.ParseDuration(text); err != nil {
			c.wants(v, string(l))
		}
	case schema.Bytes64:
		if _, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), "")); err != nil {
			c.out.find("wrong-type", v.at(), "encode it: base64 -w0", fmt.Sprintf("%s wants text in base64", lastOf(v.path)))
		}
	}
}

// quantityHint guesses what was meant by a quantity that is none.
func quantityHint(text string) string {
	number := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit := strings.TrimSpace(text[len(number):])
	for _, known := range []string{"Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "m", "k", "M", "G", "T", "P", "E"} {
		if strings.EqualFold(unit, known) || strings.EqualFold(unit, known+"B") {
			return fmt.Sprintf("write %s%s", strings.TrimSpace(number), known)
		}
	}
	return "write a number with a unit of Kubernetes: m, k, M, G, T, Ki, Mi, Gi, Ti"
}

// holds reports whether a type of scalars can hold a value.
func holds(t reflect.Type, v any) (ok bool) {
	zero := reflect.Zero(t)
	switch t.Kind() {
	case reflect.String:
		_, ok = v.(string)
		return ok
	case reflect.Bool:
		_, ok = v.(bool)
		return ok
	case reflect.Float32, reflect.Float64:
		switch v.(type) {
		case int64, uint64, float64:
			return true
		}
		return false
	}
	if f, ok := v.(float64); ok {
		if f != math.Trunc(f) || math.Abs(f) >= 1<<53 {
			return false
		}
		v = int64(f)
	}
	switch v := v.(type) {
	case int64:
		if zero.CanUint() {
			return v >= 0 && !zero.OverflowUint(uint64(v))
		}
		return !zero.OverflowInt(v)
	case uint64: // above the range of int64
		return zero.CanUint() && !zero.OverflowUint(v)
	}
	return false
}

// oneOf holds a text against the values that there are.
func (c *fit) oneOf(v value, allowed []string) {
	text := v.node.Text
	if slices.Contains(allowed, text) || text == "" || c.doc.templated && hasHole(text) {
		return
	}
	fix := "write one of " + strings.Join(allowed, ", ")
	var edits []edit
	for _, a := range allowed {
		if strings.EqualFold(a, text) {
			fix = "write " + a
			edits = v.replace(a)
		}
	}
	if len(edits) == 0 {
		if near, ok := nearest.Word(text, allowed); ok {
			fix = fmt.Sprintf("did you mean %s? There is: %s", near, strings.Join(allowed, ", "))
		}
	}
	if extra := valueHints()[lastOf(v.path)+"="+text]; extra != "" {
		fix += ". " + extra
	}
	c.out.find("bad-value", v.at(), fix, fmt.Sprintf("%s cannot be %q", lastOf(v.path), text), edits...)
}

// within holds a number against bounds: pairs of the least and the most.
func (c *fit) within(v value, n int64, bounds string) {
	var words []string
	for pair := range slices.Chunk(strings.Fields(bounds), 2) {
		low, _ := strconv.ParseInt(pair[0], 10, 64)
		high, _ := strconv.ParseInt(pair[1], 10, 64)
		switch {
		case n >= low && n <= high:
			return
		case high == math.MaxInt32:
			words = append(words, fmt.Sprintf("at least %d", low))
		case high-low <= 1:
			words = append(words, strings.Join(slices.Compact(pair), " or "))
		default:
			words = append(words, fmt.Sprintf("%d to %d", low, high))
		}
	}
	c.out.find("bad-value", v.at(), "write "+strings.Join(words, ", or "), fmt.Sprintf("%s cannot be %d", lastOf(v.path), n))
}

// scalarWord names what a scalar of this type can be.
func scalarWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number that is not negative"
	}
	return "a whole number"
}

// lastOf is the last key of a path, for messages.
func lastOf(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 && !strings.HasSuffix(path, `"]`) {
		return path[i+1:]
	}
	return path
}

// structure holds a mapping against a struct.
func (c *fit) structure(v value, t reflect.Type) {
	set := c.out.Of(t)
	c.frames = append(c.frames, frame{value: v, typ: t})
	top := len(c.frames) - 1
	for _, e := range v.entries() {
		c.frames[top].key = e.key()
		f, known := set.Get(e.key())
		if !known {
			if !hasHole(e.key()) {
				c.unknownKey(c.frames[top], e, set)
			}
			continue
		}
		whole := c.whole
		c.whole = whole && f.Name != "status" // which the server writes
		c.check(e.value, f.Type)
		c.whole = whole
		if f.Values != nil {
			c.oneOf(e.value, f.Values)
		}
		if n, ok := e.node.Value().(int64); ok && f.Bounds != "" {
			c.within(e.value, n, f.Bounds)
		}
	}
	c.frames = c.frames[:top]
	for _, f := range set.List {
		// A name has a rule of its own.
		if c.whole && f.Required && f.Name != "name" && v.get(f.Name).node == nil {
			c.out.find("missing-field", v.at(), "write it; a patch of an object needs it not", fmt.Sprintf("%s has no %s, which is required", cmp.Or(v.path, c.what), f.Name))
		}
	}
}

// unknownKey says of a key that its type does not have what was meant by it.
func (c *fit) unknownKey(f frame, e entry, set *schema.Fields) {
	if c.unknown != nil && c.unknown(f, e) || c.cloudInitLevel(f, e) {
		return
	}
	names := set.Names()
	where := f.path
	if where == "" {
		where = "the top of " + c.what
	}
	// Written in other letters.
	for _, name := range names {
		if name != e.key() && strings.EqualFold(name, e.key()) {
			var edits []edit
			if f.node.Get(name) == nil {
				edits = e.rename(name)
			}
			c.out.find("unknown-field", e.keyAt(), "write "+name, fmt.Sprintf("%s has no field %q: it is written %s", where, e.key(), name), edits...)
			return
		}
	}
	// At the wrong level: a mapping on the way here, or one of theirs, has it.
	if c.misplaced(f, e, where) {
		return
	}
	fix := "remove it"
	if near, ok := nearest.Word(e.key(), names); ok {
		fix = fmt.Sprintf("did you mean %s?", near)
		if isNull(e.node) {
			fix += " It has no value either."
		}
	} else if len(names) > 0 && len(names) <= 12 {
		fix = "there is: " + strings.Join(names, ", ")
	}
	c.out.find("unknown-field", e.keyAt(), fix, fmt.Sprintf("%s has no field %q", where, e.key()))
}

// spot is a mapping that a misplaced key belongs into.
type spot struct {
	up   frame    // the mapping on the way to the key from which the spot is reached
	keys []string // the way down from there; none when it is that mapping itself
	path string
	typ  reflect.Type // of the key there
}

// misplaced finds where a key belongs that stands at the wrong level: in one of
// the mappings around it or in one of theirs, whichever is nearest.
func (c *fit) misplaced(f frame, e entry, where string) bool {
	spots := c.spots(e)
	const most = 3
	if len(spots) == 0 || len(spots) > most {
		return false // it could be anywhere
	}
	paths := make([]string, len(spots))
	for i, s := range spots {
		paths[i] = s.path
		if s.path == "" {
			paths[i] = "the top"
		}
	}
	fix := "it belongs into " + strings.Join(paths, " or ")
	if len(spots[0].keys) == 0 {
		fix = "move it up to " + paths[0]
	}
	var edits []edit
	if len(spots) == 1 {
		s := spots[0]
		if to := s.up.node.Get(s.keys...); to != nil && to.Kind == strictyaml.Mapping {
			child := s.up.key
			if len(s.keys) > 0 {
				child = ""
			}
			if existing := to.Get(e.key()); existing != nil {
				fix = fmt.Sprintf("remove it: %s stands in %s already, on line %d", e.key(), paths[0], fileLine(c.doc.text.place(existing.Line, 1)))
				if sameScalar(existing, e.node) {
					edits = f.remove(e.key())
				}
			} else {
				edits = f.moveEntry(e.key(), to, child)
			}
		}
	}
	// What stands in it is looked at as if it stood there; a value that is
	// wrong is not moved along.
	before := len(c.out.findings)
	if len(spots) == 1 {
		c.check(e.value, spots[0].typ)
	}
	if len(c.out.findings) > before && e.node.Kind == strictyaml.Scalar {
		edits = nil
	}
	c.out.find("wrong-level", e.keyAt(), fix, fmt.Sprintf("%s has no field %q: it is a field of %s", where, e.key(), strings.Join(paths, " and of ")), edits...)
	return true
}

// spots finds the nearest mappings that have a key: each level up or down
// counts the same.
func (c *fit) spots(e entry) (nearest []spot) {
	least := 0
	seen := make(map[string]bool)
	for i := len(c.frames) - 1; i >= 0; i-- {
		up := c.frames[i]
		distance := len(c.frames) - 1 - i
		if least > 0 && distance > least {
			break
		}
		found := c.below(up, e)
		if len(found) == 0 {
			continue
		}
		if distance += len(found[0].keys); least > 0 && distance > least {
			continue
		}
		if least == 0 || distance < least {
			nearest, least = nil, distance
		}
		for _, s := range found {
			if !seen[s.path] {
				seen[s.path] = true
				nearest = append(nearest, s)
			}
		}
	}
	return nearest
}

// below finds the mappings nearest to another that have the key, itself or below
// it, without going through lists and maps: into which item it should go is not
// known.
func (c *fit) below(up frame, e entry) []spot {
	const deepest = 4
	type step struct {
		typ  reflect.Type
		keys []string
		path string
	}
	seen := map[reflect.Type]bool{up.typ: true}
	level := []step{{up.typ, nil, up.path}}
	for range deepest + 1 {
		var found []spot
		var next []step
		for _, s := range level {
			set := c.out.Of(s.typ)
			if f, ok := set.Get(e.key()); ok && plausible(c.out.Schemas, e.node, f.Type) {
				found = append(found, spot{up: up, keys: s.keys, path: s.path, typ: f.Type})
			}
			for _, f := range set.List {
				inner := f.Type
				for inner.Kind() == reflect.Pointer {
					inner = inner.Elem()
				}
				if inner.Kind() != reflect.Struct || schema.LeafOf(inner) != schema.NoLeaf || seen[inner] || f.Name == "status" {
					continue
				}
				seen[inner] = true
				next = append(next, step{inner, append(slices.Clone(s.keys), f.Name), strictyaml.Key(s.path, f.Name)})
			}
		}
		if len(found) > 0 {
			return found
		}
		level = next
	}
	return nil
}

// plausible reports whether a value is of the kind that a type wants.
func plausible(s *schema.Schemas, n *node, t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isNull(n) || schema.LeafOf(t) == schema.Anything {
		return true
	}
	if schema.LeafOf(t) != schema.NoLeaf {
		return n.Kind == strictyaml.Scalar
	}
	switch t.Kind() {
	case reflect.Struct:
		if n.Kind != strictyaml.Mapping {
			return false
		}
		// At least one of its keys must be known there.
		set := s.Of(t)
		for _, e := range n.Entries {
			if _, ok := set.Get(e.Key); ok {
				return true
			}
		}
		return len(n.Entries) == 0
	case reflect.Map:
		return n.Kind == strictyaml.Mapping
	case reflect.Slice, reflect.Array:
		return n.Kind == strictyaml.List
	case reflect.String, reflect.Bool:
		return holds(t, n.Value())
	}
	return holds(reflect.TypeFor[float64](), n.Value())
}

func sameScalar(a, b *node) bool {
	return a.Kind == strictyaml.Scalar && b.Kind == strictyaml.Scalar && a.Value() == b.Value()
}

// valueHints say more of a value that people write and that there is not, by
// field=value.
func valueHints() map[string]string {
	return map[string]string{
		"evictionStrategy=Restart": "A machine whose disk lives in its container cannot come back as it was: None shuts it down when its node is drained, and a runStrategy of Always starts it anew elsewhere.",
		"evictionStrategy=Delete":  "None shuts the machine down when its node is drained.",
		"runStrategy=Running":      "Always keeps the machine running.",
		"runStrategy=Stopped":      "Halted keeps the machine stopped.",
	}
}
