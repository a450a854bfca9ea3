package redact

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Secrets are values that are known to be secret: they are masked wherever they
// stand, besides what Message masks. Nil knows none. It may be used by several
// goroutines.
type Secrets struct {
	mu     sync.RWMutex
	forms  []string          // each value as texts may have it, the longest first
	hidden map[string]string // values by what stands for them
}

const (
	// hiddenPrefix begins what stands for a value; a hash follows.
	hiddenPrefix = "(secret:pbkdf2:"
	// rounds make a guess dear, and cost a run a tenth of a second or two.
	rounds = 600_000
	// minValue is the shortest value that is masked within a text; shorter ones occur in too many
	// other words.
	minValue = 4
)

// Hide remembers a value and gives what stands for it on record. Equal values of
// the same name have the same, so that records can be compared; to guess a value
// by it costs rounds of hashing for each guess. What Hide gave before stays.
func (s *Secrets) Hide(name, value string) (string, error) {
	if IsHidden(value) {
		return value, nil
	}
	sum, err := pbkdf2.Key(sha256.New, value, []byte("plimsoll "+name), rounds, 16)
	if err != nil {
		return "", fmt.Errorf("hide %s: %w", name, err)
	}
	stands := hiddenPrefix + hex.EncodeToString(sum) + ")"
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.hidden[stands]; ok {
		return stands, nil
	}
	if s.hidden == nil {
		s.hidden = make(map[string]string)
	}
	s.hidden[stands] = value
	s.add(value)
	return stands, nil
}

// secretName are the ends of names of values that are secret.
var secretName = regexp.MustCompile(`(?i)(passw(or)?d|pwd|passphrase|token|secret|credentials?|key)$`)

// IsSecretName reports whether what has that name is likely to be secret itself.
func IsSecretName(name string) bool { return secretName.MatchString(name) }

// IsHidden reports whether a text stands for a secret.
func IsHidden(text string) bool {
	return strings.HasPrefix(text, hiddenPrefix) && strings.HasSuffix(text, ")")
}

// Reveal returns the value that a text stands for, and any other text as it is. Known
// is false where the value was not given to this process.
func (s *Secrets) Reveal(text string) (value string, known bool) {
	if !IsHidden(text) {
		return text, true
	}
	if s == nil {
		return "", false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	value, known = s.hidden[text]
	return value, known
}

// add adds the forms of a value. A URL is secret for what is secret in it.
func (s *Secrets) add(value string) {
	values := []string{value}
	if u, err := url.Parse(value); err == nil && u.User != nil {
		password, _ := u.User.Password()
		values = append(values, password, u.User.String())
	}
	for _, v := range values {
		escaped, _ := json.Marshal(v)
		for _, form := range []string{v, string(escaped[1 : len(escaped)-1]), url.QueryEscape(v), url.PathEscape(v), strings.Trim(fmt.Sprintf("%q", v), `"`),
			base64.StdEncoding.EncodeToString([]byte(v)), strings.ReplaceAll(v, "'", `'\''`)} {
			if len(form) >= minValue && !slices.Contains(s.forms, form) {
				s.forms = append(s.forms, form)
			}
		}
	}
	slices.SortFunc(s.forms, func(a, b string) int { return len(b) - len(a) })
}

// values masks the values that are known.
func (s *Secrets) values(text string) string {
	if s == nil {
		return text
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, form := range s.forms {
		text = strings.ReplaceAll(text, form, Masked)
	}
	return text
}

// Message masks as the function Message does, and the values that are known.
func (s *Secrets) Message(text string) string { return Message(s.values(text)) }

// JSON masks the texts of an encoded document as Message does, and those of a key
// that is called a password. Where there is nothing to mask it is data itself.
func (s *Secrets) JSON(data []byte) []byte {
	if !s.mayHold(data) {
		return data
	}
	return texts(data, func(key []byte, text string) string {
		if text != "" && !IsHidden(text) && key != nil && password.MatchString(string(key)+"=x") {
			return Masked
		}
		return s.Message(text)
	})
}

// texts changes the texts of an encoded document, each with its key, nil for none.
// Where nothing is changed it is data itself.
func texts(data []byte, change func(key []byte, text string) string) []byte {
	var out, key []byte
	done := 0
	for at := 0; at < len(data); {
		if data[at] != '"' {
			if data[at] == ',' || data[at] == '}' {
				key = nil
			}
			at++
			continue
		}
		end := at + 1
		for end < len(data) && data[end] != '"' {
			if data[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(data))
		var text string
		if end < len(data) && data[end] == ':' {
			key = data[at+1 : end-1]
		} else if json.Unmarshal(data[at:end], &text) == nil {
			if changed := change(key, text); changed != text {
				quoted, _ := json.Marshal(changed) // a string
				out = append(append(out, data[done:at]...), quoted...)
				done = end
			}
		}
		at = end
	}
	if done == 0 {
		return data
	}
	return append(out, data[done:]...)
}

// mayHold reports whether JSON can hold anything to be masked.
func (s *Secrets) mayHold(data []byte) bool { return s.Holds(data) || suspicious(string(data)) }

// Holds reports whether a text has a value that is known.
func (s *Secrets) Holds(text []byte) bool {
	if s == nil {
		return false
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.forms, func(form string) bool { return bytes.Contains(text, []byte(form)) })
}
