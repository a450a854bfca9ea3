package redact

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestHiddenValuesAreMaskedEverywhere(t *testing.T) {
	s := new(Secrets)
	value := `hu"n/t&er2<'x`
	stands, err := s.Hide("pods password", value)
	if err != nil || !IsHidden(stands) || strings.Contains(stands, "hu") {
		t.Fatalf("%q, %v", stands, err)
	}
	if again, _ := s.Hide("pods password", value); again != stands {
		t.Errorf("the same value of the same name is hidden as %q and %q", stands, again)
	}
	if other, _ := s.Hide("pods token", value); other == stands {
		t.Error("values of two names are told to be the same")
	}
	if kept, _ := s.Hide("pods password", stands); kept != stands {
		t.Errorf("what is hidden is hidden again: %q", kept)
	}
	if got, known := s.Reveal(stands); got != value || !known {
		t.Errorf("%q, %v", got, known)
	}
	if _, known := new(Secrets).Reveal(stands); known {
		t.Error("another process knows the value")
	}
	encoded, _ := json.Marshal(map[string]string{"a": "it is " + value + ", yes"})
	for _, text := range []string{value, "x" + value + "y", string(encoded), "?q=hu%22n%2Ft%26er2%3C%27x", `--set 'a=hu"n/t&er2<'\''x'`, "aHUibi90JmVyMjwneA=="} {
		if got := s.Message(text); strings.Contains(got, "er2") || strings.Contains(got, "aHUi") || !strings.Contains(got, Masked) {
			t.Errorf("%q became %q", text, got)
		}
	}
	if got := string(s.JSON(encoded)); got != `{"a":"it is (masked), yes"}` {
		t.Errorf("JSON: %s", got)
	}
	// A URL is secret for what is secret in it, and short values stand in other
	// texts.
	if _, err := s.Hide("http server", "https://me:pa55word@h/"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Hide("pods pin", "1"); err != nil {
		t.Fatal(err)
	}
	if got := s.Message("refused pa55word on port 1"); got != "refused (masked) on port 1" {
		t.Errorf("%q", got)
	}
}

func TestDocumentsStayWhole(t *testing.T) {
	for _, text := range []string{
		`{"password":"x y","token":"a\"b","list":["https://u:p@h/","password=a\",b",3,null,true],"n":{"Authorization: Bearer abc":"é\u0000"}}`,
		`{"a":"password=\"x\""}`, `{"a":"-----BEGIN RSA PRIVATE KEY-----\nMII"}`, `["token=abc","` + strings.Repeat("x ", 5000) + `password=s"]`, `{"":""}`, `"password=x"`,
	} {
		got := (*Secrets)(nil).JSON([]byte(text))
		if !json.Valid(got) {
			t.Errorf("%s became %s", text, got)
		}
		if again := (*Secrets)(nil).JSON(got); string(again) != string(got) {
			t.Errorf("%s is masked again: %s", got, again)
		}
	}
	if got := string((*Secrets)(nil).JSON([]byte(`{"t":1,"name":"a","error":"secret=hunter2x, no"}`))); got != `{"t":1,"name":"a","error":"secret=(masked) no"}` {
		t.Error(got)
	}
	if got := string((*Secrets)(nil).JSON([]byte(`{"db password":["a b"],"n":1,"of":"x y"}`))); got != `{"db password":["(masked)"],"n":1,"of":"x y"}` {
		t.Error(got)
	}
	whole := []byte(`{"t":123,"kind":"object","object":"ns/pod-1","milestone":"Ready"}`)
	if got := (*Secrets)(nil).JSON(whole); &got[0] != &whole[0] {
		t.Error("what has nothing to be masked is copied")
	}
}
