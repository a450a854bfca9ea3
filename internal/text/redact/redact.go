// Package redact answers one question: what of a text from a cluster may be
// kept? What looks like a secret is masked before it reaches a record. It is
// better that too much goes than too little: a masked word costs a reader some
// thought, a password that was kept costs more.
package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Masked stands in the place of what was masked.
const Masked = "(masked)"

var (
	// A private key, or what of it is there; and any PEM block in Base64, as a
	// kubeconfig has it.
	pemOne    = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	pemBase64 = regexp.MustCompile(`LS0tLS1CRUdJTi[A-Za-z0-9+/=]+`)
	// The lines about one that goes over several.
	pemBegin = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY`)
	pemEnd   = regexp.MustCompile(`-----END [A-Z0-9 ]*PRIVATE KEY`)
	// A line of nothing but Base64 may be one of a key whose first line is
	// not there.
	base64Line = regexp.MustCompile(`^\s*[A-Za-z0-9+/_-]{40,}={0,2}\s*$`)

	// https://user:password@host
	userInfo = regexp.MustCompile(`\b([A-Za-z][A-Za-z0-9+.-]*://)[^\s/@"'<>]+@`)
	// A JSON Web Token, such as that of a service account.
	jwt = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(\.[A-Za-z0-9_-]*)?`)
	// Headers whose whole value is a secret.
	header = regexp.MustCompile(`(?i)\b((?:proxy-)?authorization|(?:set-)?cookie|x-[a-z-]*(?:auth|token|key|secret)[a-z-]*)(\\*["']?\s*[:=]\s*)(\\*["'\[]*)([^"'\r\n\]]+)`)
	bearer = regexp.MustCompile(`(?i)\b(bearer|basic|digest|negotiate)(\s+)[A-Za-z0-9._~+/=-]{8,}`)
	// Keys and tokens that are known by how they begin.
	known = regexp.MustCompile(`\b(AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{30,}|\bsk-[A-Za-z0-9_-]{16,}|\bsha256~[A-Za-z0-9_-]{20,}`)
	// A token that a node joins with. Names of events look like it too.
	bootstrap = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)
	// A name that says what its value is, and the value: quoted, escaped within
	// a quoted text, or up to the next space.
	named = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|passwd|pwd|secret|token|credential|api[_-]?key|access[_-]?key|private[_-]?key|signing[_-]?key|encryption[_-]?key|account[_-]?key|signature|\bsig\b|"auth")[a-z0-9_.-]*)` +
		`(\\*["']?(?:\s+is\s+|\s*(?::=|=>|[:=])\s*))` + value)
	// The same as an option of a command: --password secret.
	option = regexp.MustCompile(`(?i)(--?[a-z0-9-]*(?:passw(?:or)?d|passphrase|secret|token|credential|api-?key|access-?key)[a-z0-9-]*\s+)("(?:[^"\\]|\\.)*"?|'[^']*'?|[^-\s]\S*)`)
	// In a message: only what hardly is anything else.
	password = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|client[_-]?secret|api[_-]?key|access[_-]?key|key-data)[a-z0-9_.-]*)(\\*["']?\s*[:=]\s*)` + value)
	// Messages speak of these, but not before a =.
	assigned = regexp.MustCompile(`(?i)(\b(?:[a-z0-9_.-]*[_.-])?(?:[a-z]*token|[a-z]*secret|credentials?|private[_-]?key|signature|sig|auth))(\\*["']?=)` + value)
	// Or before what is no word.
	opaque = regexp.MustCompile(`(?i)(\btoken)(\\*["']?:\s*)(\\*["']?[a-z0-9+/_.~-]*[0-9][a-z0-9+/_.~=-]*\\*["']?)`)
)

// value matches the value behind a name: quoted, escaped within a quoted text, or up to the
// next space.
const value = `(\\+"(?:[^"\\]|\\[^"])*\\*"?|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\S+)`

// minOpaque is from how many bytes on a word with a digit may be a token.
const minOpaque = 16

// maxLine bounds a line of a log, in bytes.
const maxLine = 4096

// Cut shortens a text that is longer than 4 KiB, by whole words: half a secret may
// not look like one.
func Cut(line string) string {
	if len(line) <= maxLine {
		return line
	}
	line = line[:maxLine]
	return strings.ToValidUTF8(line[:max(strings.LastIndexAny(line, " \t,;&\"'"), 0)], "") + " ..."
}

// Lines masks what looks like a secret in the lines of a log: passwords,
// tokens, keys, headers that authorise, the user part of URLs, and private keys
// over several lines, also where a line of them is all that is there. A line
// that is very long loses its end. N is in how many lines something was masked.
func Lines(lines []string) (masked []string, n int) {
	masked = make([]string, len(lines))
	inKey := false
	for i, line := range lines {
		line = Cut(line)
		// A key that ends here although it did not begin began before the first
		// line.
		if !inKey && pemEnd.MatchString(line) && !pemBegin.MatchString(line) {
			for j := range i {
				if masked[j] != Masked {
					masked[j] = Masked
					n++
				}
			}
			inKey = true
		}
		switch {
		case inKey:
			masked[i] = Masked
			inKey = !pemEnd.MatchString(line)
		case pemBegin.MatchString(line) && !pemEnd.MatchString(line):
			masked[i] = Masked
			inKey = true
		case base64Line.MatchString(line):
			masked[i] = Masked
		default:
			masked[i] = mask(line, true)
		}
		if masked[i] != line {
			n++
		}
	}
	return masked, n
}

// Message masks what looks like a secret in a message: of a component of the
// cluster, or of an error. Such messages speak of tokens and secrets without
// telling them, and signatures are matched against them: only what hardly can
// be anything else goes. What was masked stays as it is.
func Message(text string) string {
	if !suspicious(text) {
		return text
	}
	return mask(text, false)
}

// suspicious reports whether a text can hold anything that Message masks. It
// is much cheaper than to look.
func suspicious(text string) bool {
	if strings.Contains(text, "@") && strings.Contains(text, "://") || strings.Contains(text, "eyJ") || strings.Contains(text, "LS0tLS1CRUdJTi") {
		return true
	}
	lower := strings.ToLower(text)
	for _, hint := range [...]string{"passw", "passphrase", "auth", "cookie", "bearer ", "basic ", "digest ", "negotiate ", "secret", "key", "akia", "asia", "aiza", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "sk-", "sha256~", "token", "credential", "sig=", "signature="} {
		if strings.Contains(lower, hint) {
			return true
		}
	}
	return false
}

// mask masks one text; a line of a log more eagerly than a message.
func mask(line string, eager bool) string {
	line = pemOne.ReplaceAllString(line, Masked)
	line = pemBase64.ReplaceAllString(line, Masked)
	line = userInfo.ReplaceAllString(line, "${1}"+Masked+"@")
	line = header.ReplaceAllString(line, "${1}${2}${3}"+Masked)
	line = bearer.ReplaceAllString(line, "${1}${2}"+Masked)
	line = jwt.ReplaceAllString(line, Masked)
	line = known.ReplaceAllString(line, Masked)
	if eager {
		line = bootstrap.ReplaceAllString(line, Masked)
		line = option.ReplaceAllString(line, "${1}"+Masked)
		return replaceValues(named, line)
	}
	line = opaque.ReplaceAllStringFunc(line, func(found string) string {
		m := opaque.FindStringSubmatch(found)
		if len(m[3]) < minOpaque {
			return found
		}
		return m[1] + m[2] + maskedAs(m[3])
	})
	return replaceValues(assigned, replaceValues(password, line))
}

// replaceValues masks the values of names, of which the expression's third group
// is the value.
func replaceValues(of *regexp.Regexp, line string) string {
	return of.ReplaceAllStringFunc(line, func(found string) string {
		m := of.FindStringSubmatch(found)
		if m[3] == "VALUE" || m[3] == "VALUE)" { // in our own advice
			return found
		}
		if was := strings.TrimLeft(m[3], `\"'`); strings.HasPrefix(was, Masked) || strings.HasPrefix(was, hiddenPrefix) {
			return found
		}
		return m[1] + m[2] + maskedAs(m[3])
	})
}

// maskedAs returns Masked within the quotes of the value, or with the quote that ends the text around
// it and the rest after that.
func maskedAs(value string) string {
	start := value[:len(value)-len(strings.TrimLeft(value, `\"'`))]
	rest := value[len(start):]
	end := rest[len(strings.TrimRight(rest, `\"'`)):]
	if start == "" {
		if end = rest[len(strings.TrimRight(rest, `\"'),;:.]}`)):]; !strings.ContainsAny(end, `"'`) {
			end = ""
		}
		end = strings.TrimLeft(end, "),;:.]}")
	}
	return start + Masked + end
}

// Visible writes what would steer a terminal, or turn the order in which text is
// read, as Go and JSON write it: \u001b for Escape. Lines and tabs stay.
func Visible(text string) string {
	if strings.IndexFunc(text, steers) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, size := 0, 0; i < len(text); i += size {
		var r rune
		switch r, size = utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i]) // some terminals take single bytes
		case r == '\r' && strings.HasPrefix(text[i:], "\r\n"), !steers(r):
			b.WriteString(text[i : i+size])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// VisibleJSON makes the texts of an encoded document visible.
func VisibleJSON(data []byte) []byte {
	return texts(data, func(_ []byte, text string) string { return Visible(text) })
}

// steers reports whether a character does not stand for itself.
func steers(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Screen is a writer to a terminal or its like: what is written is masked as
// messages are, and steers nothing. A document in JSON stays one.
type Screen struct {
	W       io.Writer
	Secrets *Secrets

	mu   sync.Mutex
	rest []byte // of a line whose end has not been written yet
}

// block is from how much text on without the end of its last line more is to
// come: who writes less, such as a question, wants it shown.
const block = 4096

// Write implements io.Writer.
func (s *Screen) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := data
	if len(s.rest) > 0 {
		text = append(s.rest, data...)
		s.rest = nil
	}
	if end := bytes.LastIndexByte(text, '\n') + 1; len(data) >= block && len(text)-end < 1<<20 {
		s.rest = bytes.Clone(text[end:])
		text = text[:end]
	}
	return len(data), s.show(text)
}

// Flush writes what is held back.
func (s *Screen) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := s.rest
	s.rest = nil
	return s.show(rest)
}

func (s *Screen) show(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	_, err := io.WriteString(s.W, Visible(s.masked(text)))
	return err
}

func (s *Screen) masked(text []byte) string {
	if json.Valid(text) {
		return string(s.Secrets.JSON(text))
	}
	if bytes.Contains(text, []byte("{")) && bytes.Count(text, []byte("\n")) > 1 {
		// Perhaps a document on each line.
		var b strings.Builder
		for line := range bytes.Lines(text) {
			b.WriteString(s.masked(line))
		}
		return b.String()
	}
	return s.Secrets.Message(string(text))
}
