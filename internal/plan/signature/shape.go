package signature

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Shape returns a message without what differs from object to object; patterns match this form. The names of
// its object become NAME and NAMESPACE, UUIDs and identifiers of at least 16 hexadecimal digits become *. Of
// the scheduler's reasons, "0/20 nodes are available: 3 A, 17 B", the one for the most nodes comes first.
func Shape(message, object string) string {
	message = Unnamed(message, object)
	if strings.HasPrefix(message, "0/") {
		message = sorted(message)
	}
	return withoutIdentifiers(message)
}

// Unnamed replaces the names of an object, "namespace/name", in a message by NAME and NAMESPACE where they
// stand alone. A name of letters only may be a word of the message, such as quota or webhook: it replaces that
// only between quotes, beside a slash or underscore, and after a point or an equals sign.
//
// Objects of other kinds have the form "Kind/namespace/name" or "Kind/name". An API server's answer to a
// request begins with the resource and the object's name, `pods "a-1" is forbidden`, which may be another
// object than the one that asked.
func Unnamed(message, object string) string {
	parts := strings.Split(object, "/")
	if len(parts) == 3 {
		parts = parts[1:]
	}
	if m := refused.FindStringSubmatch(message); m != nil {
		message = replaceWord(message, m[1], "NAME")
	}
	if len(parts) == 1 { // the target has no namespaces
		return replaceWord(message, object, "NAME")
	}
	namespace, name := parts[0], parts[1]
	return replaceWord(replaceWord(message, name, "NAME"), namespace, "NAMESPACE")
}

// refused matches an API server's refusal of a request, also as a controller repeats it.
var refused = regexp.MustCompile(`^(?:Error creating: )?[A-Za-z][-.A-Za-z0-9]* "([^"]+)" (?:already exists|is forbidden|is invalid|not found)\b`)

// replaceWord replaces a name that is no part of a longer one.
func replaceWord(text, word, with string) string {
	if word == "" || !strings.Contains(text, word) {
		return text
	}
	mayBeWord := !strings.ContainsFunc(word, func(c rune) bool { return !unicode.IsLetter(c) })
	var b strings.Builder
	written := 0
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			break
		}
		i += from
		end := i + len(word)
		if i > 0 && inName(text[i-1]) || end < len(text) && inName(text[end]) || mayBeWord && !marked(text, i, end) {
			from = i + 1
			continue
		}
		b.WriteString(text[written:i])
		b.WriteString(with)
		written, from = end, end
	}
	return b.String() + text[written:]
}

// marked reports whether text is quoted, beside a slash or underscore, or after a point or an equals sign.
func marked(text string, i, end int) bool {
	before, after := byte(' '), byte(' ')
	if i > 0 {
		before = text[i-1]
	}
	if end < len(text) {
		after = text[end]
	}
	return strings.IndexByte("/_.=", before) >= 0 || strings.IndexByte("/_", after) >= 0 ||
		before == after && (before == '"' || before == '\'' || before == '`')
}

// inName reports whether names hold such a letter. Points seldom occur in names, and end that of a host.
func inName(c byte) bool {
	return c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// withoutIdentifiers replaces runs of at least 16 hexadecimal digits, also with dashes, by *.
func withoutIdentifiers(text string) string {
	const least = 16
	var b strings.Builder
	written := 0
	for i := 0; i < len(text); {
		if !isHex(text[i]) || i > 0 && inName(text[i-1]) {
			i++
			continue
		}
		end, digits, figures := i, 0, false
		for end < len(text) && (isHex(text[end]) || text[end] == '-') {
			if text[end] != '-' {
				digits++
			}
			figures = figures || '0' <= text[end] && text[end] <= '9'
			end++
		}
		if digits >= least && figures && (end == len(text) || !inName(text[end])) {
			b.WriteString(text[written:i])
			b.WriteByte('*')
			written = end
		}
		i = end
	}
	if written == 0 {
		return text
	}
	return b.String() + text[written:]
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// ReasonCount holds one of the scheduler's reasons and its number of nodes.
type ReasonCount struct {
	Reason string
	Count  int
}

var (
	available = regexp.MustCompile(`^0/(\d+) nodes are available: (.*)$`)
	counted   = regexp.MustCompile(`^(\d+) (.+)$`)
)

// Unschedulable reads "0/20 nodes are available: 17 Too many pods, 3 Insufficient cpu. preemption: ..." into
// its reasons, the one of the most nodes first, and the number of nodes. Other messages yield nothing.
func Unschedulable(message string) (counts []ReasonCount, of int) {
	m := available.FindStringSubmatch(message)
	if m == nil {
		return nil, 0
	}
	of, err := strconv.Atoi(m[1])
	if err != nil {
		return nil, 0
	}
	list, _, _ := strings.Cut(m[2], ". ")
	for part := range strings.SplitSeq(strings.TrimSuffix(list, "."), ", ") {
		m := counted.FindStringSubmatch(part)
		if m == nil {
			// The reason before has a comma, or the text is no reason at all.
			if len(counts) > 0 {
				counts[len(counts)-1].Reason += ", " + part
			}
			continue
		}
		n, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, 0
		}
		counts = append(counts, ReasonCount{m[2], n})
	}
	if len(counts) == 0 {
		return nil, 0
	}
	slices.SortStableFunc(counts, func(a, b ReasonCount) int { return cmp.Compare(b.Count, a.Count) })
	return counts, of
}

// sorted orders the reasons in a scheduler's message as Unschedulable does and drops the rest.
func sorted(message string) string {
	counts, of := Unschedulable(message)
	if counts == nil {
		return message
	}
	var b strings.Builder
	b.WriteString("0/" + strconv.Itoa(of) + " nodes are available: ")
	for i, c := range counts {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(c.Count) + " " + c.Reason)
	}
	return b.String() + "."
}
