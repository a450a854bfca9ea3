package virt

import (
	"crypto/ed25519"
	"encoding/pem"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// What a real guest is given of user data: what cloud-init would take, and nothing
// of what it would leave.
func TestCloudInit(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	file := strconv.Quote(string(pem.EncodeToMemory(block)))
	// As Dropbear has it: the name of the type, and the seed with the public key, each
	// after its length.
	dropbear := "\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x40" + string(key.Seed()) + string(public)
	for _, c := range []struct {
		why, data string
		want      map[string]string
	}{
		{"nothing", "", nil},
		{"a script", "#!/bin/sh\necho a\n", map[string]string{"script": "#!/bin/sh\necho a\n"}},
		{"the host's key", "#cloud-config\nssh_keys: {ed25519_private: " + file + "}\n", map[string]string{"host-key": dropbear}},
		{"a host's key that is none", "#cloud-config\nssh_keys: {ed25519_private: \"a\\nb\"}\n", nil},
		{"who may log in", "#cloud-config\nssh_authorized_keys: [a, b]\n", map[string]string{"authorized-keys": "a\nb\n"}},
		{"commands", "#cloud-config\nruncmd:\n- [echo, \"it's\", '$(a; b)']\n- |\n  for x in 1; do\n    echo $x\n  done\n", map[string]string{"script": "#!/bin/sh\n'echo' 'it'\\''s' '$(a; b)' \nfor x in 1; do\n  echo $x\ndone\n\n"}},
		{"a cloud-config that is no YAML", "#cloud-config\nruncmd: [a\n", nil},
		{"a cloud-config of other types", "#cloud-config\nruncmd: {a: b}\n", nil},
		{"what is not run here", "#include\nhttp://127.0.0.1/evil\n", nil},
		{"a cloud-config that does not say so", "runcmd: [a]\n", nil},
	} {
		got := cloudInit([]byte(c.data))
		var names []string
		for name, data := range got {
			names = append(names, name)
			if string(data) != c.want[name] {
				t.Errorf("%s: %s is %q, want %q", c.why, name, data, c.want[name])
			}
		}
		if len(names) != len(c.want) {
			t.Errorf("%s: the files %v, want %d", c.why, slices.Sorted(slices.Values(names)), len(c.want))
		}
		for _, name := range names {
			if strings.ContainsAny(name, "/.") {
				t.Errorf("%s: a file is called %q", c.why, name)
			}
		}
	}
}
