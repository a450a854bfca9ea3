package virt

import (
	"bytes"
	"crypto/ed25519"
	"strings"

	"golang.org/x/crypto/ssh"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// cloudInit returns the files of a real guest's seed from user data: a script, or the SSH keys and commands
// of a cloud-config. Like cloud-init it leaves out what it cannot read.
func cloudInit(userData []byte) map[string][]byte {
	files := make(map[string][]byte)
	if bytes.HasPrefix(userData, []byte("#!")) {
		files["script"] = userData
	}
	if !bytes.HasPrefix(userData, []byte("#cloud-config")) {
		return files
	}
	var config struct {
		Keys struct {
			Host string `json:"ed25519_private"`
		} `json:"ssh_keys"`
		Authorized []string `json:"ssh_authorized_keys"`
		Run        []any    `json:"runcmd"`
	}
	if yaml.Unmarshal(userData, &config) != nil {
		return files
	}
	if key, err := ssh.ParseRawPrivateKey([]byte(config.Keys.Host)); err == nil {
		if key, is := key.(*ed25519.PrivateKey); is {
			files["host-key"] = ssh.Marshal(struct {
				Type string
				Key  []byte
			}{ssh.KeyAlgoED25519, *key})
		}
	}
	if len(config.Authorized) > 0 {
		files["authorized-keys"] = []byte(strings.Join(config.Authorized, "\n") + "\n")
	}
	if len(config.Run) > 0 {
		files["script"] = []byte("#!/bin/sh\n" + commands(config.Run))
	}
	return files
}

// commands returns lines of a shell: a text as it is, a list word by word.
func commands(run []any) string {
	var lines strings.Builder
	for _, command := range run {
		switch command := command.(type) {
		case string:
			lines.WriteString(command)
		case []any:
			for _, word := range command {
				if word, is := word.(string); is {
					lines.WriteString("'" + strings.ReplaceAll(word, "'", `'\''`) + "' ")
				}
			}
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
