package objects

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

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// frame is a mapping on the way to a value.
type frame struct {
	reading.Value
	typ reflect.Type
	key string // under which the way goes on
}

// Fit compares a document with its type.
type Fit struct {
	Out  *report.Report
	Doc  *reading.Doc
	What string // the kind, for messages: "a VirtualMachine"
	// unknown handles a key that the type does not have, if it can, and reports whether it did.
	unknown func(f frame, e reading.Entry) bool
	whole   bool // required fields may not be missing
	frames  []frame
}

// Fits compares a value with a type; what names the kind in messages.
func Fits(out *report.Report, v reading.Value, what string, t reflect.Type) {
	c := &Fit{Out: out, Doc: v.Doc, What: what}
	c.Check(v, t)
}

// Check compares a value with a type.
func (c *Fit) Check(v reading.Value, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	l := schema.LeafOf(t)
	switch k := t.Kind(); {
	case reading.IsNull(v.Node), v.Node.Kind == strictyaml.Scalar && reading.HasHole(v.Node.Text):
		// Without a value there is nothing to check.
	case l != schema.NoLeaf:
		c.leaf(v, l)
	case k == reflect.Struct && v.Node.Kind == strictyaml.Mapping:
		c.structure(v, t)
	case k == reflect.Map && v.Node.Kind == strictyaml.Mapping:
		for _, e := range v.Entries() {
			c.Check(e.Value, t.Elem())
		}
	case k == reflect.Struct || k == reflect.Map:
		c.wants(v, "a mapping")
	case (k == reflect.Slice || k == reflect.Array) && v.Node.Kind == strictyaml.List:
		for _, item := range v.Items() {
			c.Check(item, t.Elem())
		}
	case k == reflect.Slice || k == reflect.Array:
		c.wants(v, "a list")
	case v.Node.Kind != strictyaml.Scalar || !holds(t, v.Node.Value()):
		c.wants(v, scalarWord(t))
	default:
		if allowed := c.Out.Values(t); allowed != nil {
			c.OneOf(v, allowed)
		}
	}
}

func (c *Fit) wants(v reading.Value, wanted string) {
	fix := "write " + wanted
	var edits []reading.Edit
	n := v.Node
	found := n.Describe()
	if b, isBool := n.Value().(bool); isBool && n.Text != fmt.Sprint(b) {
		found = fmt.Sprintf("%s, which Kubernetes reads as %v", n.Text, b)
	}
	start, end, ok := v.ScalarRange()
	switch text, isText := n.Value().(string); {
	case isText && !n.Plain && ok && readsAs(text, wanted):
		// In quotes a number is text.
		fix = "remove the quotes"
		edits = []reading.Edit{{Text: c.Doc.Text, Start: start, End: end, With: text}}
	case wanted == "text" && n.Kind == strictyaml.Scalar && n.Plain:
		fix = fmt.Sprintf("put it in quotes: %q", n.Text)
		if ok {
			edits = []reading.Edit{{Text: c.Doc.Text, Start: start, End: end, With: fmt.Sprintf("%q", n.Text)}}
		}
	}
	c.Out.Find("wrong-type", v.At(), fix, fmt.Sprintf("%s wants %s, found %s", lastOf(v.Path), wanted, found), edits...)
}

// readsAs reports whether a text without its quotes is of the wanted type.
func readsAs(unquoted, wanted string) bool {
	root, _ := reading.Single(&reading.Text{Data: unquoted})
	if root.Node == nil {
		return false
	}
	switch root.Node.Value().(type) {
	case bool:
		return wanted == "true or false"
	case int64, uint64:
		return strings.Contains(wanted, "number")
	case float64:
		return wanted == "a number"
	}
	return false
}

func (c *Fit) leaf(v reading.Value, l schema.Leaf) {
	n := v.Node
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
			c.Out.Find("bad-quantity", v.At(), quantityHint(text), fmt.Sprintf("%s is not a quantity: %q", lastOf(v.Path), text))
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
			c.Out.Find("wrong-type", v.At(), "encode it: base64 -w0", fmt.Sprintf("%s wants text in base64", lastOf(v.Path)))
		}
	}
}

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

func holds(t reflect.Type, v any) bool {
	zero := reflect.Zero(t)
	switch t.Kind() {
	case reflect.String, reflect.Bool:
		return v != nil && reflect.TypeOf(v).Kind() == t.Kind()
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

// OneOf checks a text against the allowed values.
func (c *Fit) OneOf(v reading.Value, allowed []string) {
	text := v.Node.Text
	if slices.Contains(allowed, text) || text == "" || reading.HasHole(text) {
		return
	}
	fix := "write one of " + strings.Join(allowed, ", ")
	var edits []reading.Edit
	for _, a := range allowed {
		if strings.EqualFold(a, text) {
			fix = "write " + a
			edits = v.Replace(a)
		}
	}
	if len(edits) == 0 {
		if near, ok := nearest.Word(text, allowed); ok {
			fix = fmt.Sprintf("did you mean %s? There is: %s", near, strings.Join(allowed, ", "))
		}
	}
	if extra := schema.Hints("values")[lastOf(v.Path)+"="+text]; extra != "" {
		fix += ". " + extra
	}
	c.Out.Find("bad-value", v.At(), fix, fmt.Sprintf("%s cannot be %q", lastOf(v.Path), text), edits...)
}

// within checks a number against bounds: pairs of the least and the most.
func (c *Fit) within(v reading.Value, n int64, bounds string) {
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
	c.Out.Find("bad-value", v.At(), "write "+strings.Join(words, ", or "), fmt.Sprintf("%s cannot be %d", lastOf(v.Path), n))
}

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

func lastOf(path string) string {
	if i := strings.LastIndexByte(path, '.'); i >= 0 && !strings.HasSuffix(path, `"]`) {
		return path[i+1:]
	}
	return path
}

func (c *Fit) structure(v reading.Value, t reflect.Type) {
	set := c.Out.Of(t)
	c.frames = append(c.frames, frame{Value: v, typ: t})
	top := len(c.frames) - 1
	for _, e := range v.Entries() {
		c.frames[top].key = e.Key()
		f, known := set.Get(e.Key())
		if !known {
			if !reading.HasHole(e.Key()) {
				c.unknownKey(c.frames[top], e, set)
			}
			continue
		}
		whole := c.whole
		c.whole = whole && f.Name != "status" // the server writes it
		c.Check(e.Value, f.Type)
		c.whole = whole
		if f.Values != nil {
			c.OneOf(e.Value, f.Values)
		}
		if n, ok := e.Node.Value().(int64); ok && f.Bounds != "" {
			c.within(e.Value, n, f.Bounds)
		}
	}
	c.frames = c.frames[:top]
	for _, f := range set {
		// A missing name has a rule of its own.
		if c.whole && f.Required && f.Name != "name" && v.Get(f.Name).Node == nil {
			c.Out.Find("missing-field", v.At(), "write it; a patch of an object needs it not", fmt.Sprintf("%s has no %s, which is required", cmp.Or(v.Path, c.What), f.Name))
		}
	}
}

func (c *Fit) unknownKey(f frame, e reading.Entry, set schema.Fields) {
	if c.unknown != nil && c.unknown(f, e) || c.cloudInitLevel(f, e) {
		return
	}
	names := set.Names()
	where := f.Path
	where = cmp.Or(where, "the top of "+c.What)
	// In other letters.
	for _, name := range names {
		if name != e.Key() && strings.EqualFold(name, e.Key()) {
			var edits []reading.Edit
			if f.Node.Get(name) == nil {
				edits = e.Rename(name)
			}
			c.Out.Find("unknown-field", e.KeyAt(), "write "+name, fmt.Sprintf("%s has no field %q: it is written %s", where, e.Key(), name), edits...)
			return
		}
	}
	// At the wrong level.
	if c.misplaced(f, e, where) {
		return
	}
	fix := "remove it"
	if near, ok := nearest.Word(e.Key(), names); ok {
		fix = fmt.Sprintf("did you mean %s?", near)
		if reading.IsNull(e.Node) {
			fix += " It has no value either."
		}
	} else if len(names) > 0 && len(names) <= 12 {
		fix = "there is: " + strings.Join(names, ", ")
	}
	c.Out.Find("unknown-field", e.KeyAt(), fix, fmt.Sprintf("%s has no field %q", where, e.Key()))
}

// spot is a mapping where a misplaced key belongs.
type spot struct {
	up   frame    // the mapping on the way to the key from which the spot is reached
	keys []string // the way down from there; nil if it is that mapping itself
	path string
	typ  reflect.Type // of the key there
}

// misplaced finds where a key at the wrong level belongs.
func (c *Fit) misplaced(f frame, e reading.Entry, where string) bool {
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
	var edits []reading.Edit
	if len(spots) == 1 {
		s := spots[0]
		if to := s.up.Node.Get(s.keys...); to != nil && to.Kind == strictyaml.Mapping {
			child := s.up.key
			if len(s.keys) > 0 {
				child = ""
			}
			if existing := to.Get(e.Key()); existing != nil {
				fix = fmt.Sprintf("remove it: %s stands in %s already, on line %d", e.Key(), paths[0], reading.FileLine(c.Doc.Text.Place(existing.Line, 1)))
				if SameScalar(existing, e.Node) {
					edits = f.Remove(e.Key())
				}
			} else {
				edits = f.MoveEntry(e.Key(), to, child)
			}
		}
	}
	// Check the value as if it were there. A wrong value is not moved.
	before := len(c.Out.Findings)
	if len(spots) == 1 {
		c.Check(e.Value, spots[0].typ)
	}
	if len(c.Out.Findings) > before && e.Node.Kind == strictyaml.Scalar {
		edits = nil
	}
	c.Out.Find("wrong-level", e.KeyAt(), fix, fmt.Sprintf("%s has no field %q: it is a field of %s", where, e.Key(), strings.Join(paths, " and of ")), edits...)
	return true
}

// spots finds the nearest mappings that have a key, counting levels up and down alike.
func (c *Fit) spots(e reading.Entry) (nearest []spot) {
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

// below finds the mappings with the key nearest to another, not within lists and maps: any item may be right.
func (c *Fit) below(up frame, e reading.Entry) []spot {
	const deepest = 4
	type step struct {
		typ  reflect.Type
		keys []string
		path string
	}
	seen := map[reflect.Type]bool{up.typ: true}
	level := []step{{up.typ, nil, up.Path}}
	for range deepest + 1 {
		var found []spot
		var next []step
		for _, s := range level {
			set := c.Out.Of(s.typ)
			if f, ok := set.Get(e.Key()); ok && plausible(c.Out.Schemas, e.Node, f.Type) {
				found = append(found, spot{up: up, keys: s.keys, path: s.path, typ: f.Type})
			}
			for _, f := range set {
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
func plausible(s *schema.Schemas, n *reading.Node, t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if reading.IsNull(n) || schema.LeafOf(t) == schema.Anything {
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
		return len(n.Entries) == 0 || slices.ContainsFunc(n.Entries, func(e strictyaml.Entry) bool { _, ok := set.Get(e.Key); return ok })
	case reflect.Map:
		return n.Kind == strictyaml.Mapping
	case reflect.Slice, reflect.Array:
		return n.Kind == strictyaml.List
	case reflect.String, reflect.Bool:
		return holds(t, n.Value())
	}
	return holds(reflect.TypeFor[float64](), n.Value())
}

// SameScalar reports whether two values are the same number, word or text.
func SameScalar(a, b *reading.Node) bool {
	return a.Kind == strictyaml.Scalar && b.Kind == strictyaml.Scalar && a.Value() == b.Value()
}
