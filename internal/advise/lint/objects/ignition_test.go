package objects

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"
)

func TestIgnitions(t *testing.T) { ignitions().check(t) }

// zipped is a text in gzip and base64.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// ignitions hold Ignition configurations.
func ignitions() table {
	const head = "ignition: {version: 3.2.0}\n"
	return table{"a.ign", []row{
		{
			why:   "the operator cannot read a configuration without a version",
			fires: "ignition: {config: {}}\n",
			want:  `a.ign:1:11: error: an Ignition configuration without a version [ignition-version]`,
			but:   "a fragment may have the version at its top; a template fills it in",
			near:  "-- a.ign --\nversion: 3.2.0\n-- b.ign --\nignition: {version: \"${VERSION}\"}\n",
		},
		{
			why:   "there is no such version",
			fires: "ignition: {version: 3.6.0}\n",
			want:  `a.ign:1:21: error: there is no Ignition 3.6.0 [ignition-version]`,
			but:   "3.5.0 is the newest",
			near:  "ignition: {version: 3.5.0}\n",
		},
		{
			why:   "the operator translates version 2, whose fields are not checked: a note says so",
			fires: "ignition: {version: 2.2.0}\nnetworkd: {}\n",
			want:  `a.ign:1:21: note: Ignition 2.2.0 is translated by the operator; its fields are not checked here [ignition-version]`,
			but:   "3.0.0 is the oldest version of 3",
			near:  "ignition: {version: 3.0.0}\n",
		},
		{
			why:   "an experimental version is not checked: a note says so",
			fires: "ignition: {version: 3.6.0-experimental}\n",
			want:  `a.ign:1:21: note: Ignition 3.6.0-experimental is experimental: its fields are not checked here [ignition-version]`,
			but:   "the stable version is checked",
			near:  "ignition: {version: 3.4.0}\n",
		},
		{
			why:   "Ignition refuses a unit without a suffix",
			fires: head + "systemd: {units: [{name: kubelet}]}\n",
			want:  `a.ign:2:26: error: the unit kubelet has no suffix [ignition-name]`,
			but:   "a timer has one, and a template may bring it",
			near:  head + "systemd: {units: [{name: kubelet.timer}, {name: \"${UNIT}\"}]}\n",
		},
		{
			why:   "octal digits stand there as a decimal number",
			fires: head + "storage: {files: [{path: /a, mode: 644}]}\n",
			want:  `a.ign:2:36: error: mode 644 is a decimal number: it means 01204 [file-mode]`,
			but:   "420 is 0644, YAML reads 0644 as octal, and a user may have the number 644",
			near:  head + "storage: {files: [{path: /a, mode: 420}, {path: /b, mode: 0644, user: {id: 644}}]}\n",
		},
		{
			why:   "Ignition 3 has no filesystem of a file",
			fires: head + "storage: {files: [{path: /a, filesystem: root}]}\n",
			want:  `a.ign:2:30: error: filesystem is a field of Ignition 2, and this is 3.2.0 [ignition-field]`,
			but:   "filesystems are still there",
			near:  head + "storage: {filesystems: [{device: /dev/vdb, path: /a}], files: [{path: /a}]}\n",
		},
		{
			why:   "append of a configuration is merge in version 3",
			fires: "ignition: {version: 3.2.0, config: {append: []}}\n",
			want:  `a.ign:1:37: error: append is a field of Ignition 2, and this is 3.2.0 [ignition-field]`,
			but:   "append of a file is in version 3, too",
			near:  head + "storage: {files: [{path: /a, append: [{source: \"data:,a\"}]}]}\n",
		},
		{
			why:   "version 3.2.0 has no kernelArguments: a later one has",
			fires: head + "kernelArguments: {shouldExist: [quiet]}\n",
			want:  `a.ign:2:1: error: the top of the Ignition configuration has no field "kernelArguments" [unknown-field]`,
			but:   "3.3.0 has them, and 3.4.0 has discard",
			near:  "-- a.ign --\nignition: {version: 3.3.0}\nkernelArguments: {shouldExist: [quiet]}\n-- b.ign --\nignition: {version: 3.4.0}\nstorage: {luks: [{name: a, device: /a, discard: true}]}\n",
		},
		{
			why:   "cex came with 3.5.0, and discard is of luks alone",
			fires: "ignition: {version: 3.4.0}\nstorage: {luks: [{name: a, device: /a, cex: {enabled: true}}], files: [{path: /a, discard: true}]}\n",
			want: `a.ign:2:40: error: storage.luks[0] has no field "cex" [unknown-field]
a.ign:2:83: error: storage.files[0] has no field "discard" [unknown-field]`,
			but:  "3.5.0 has it",
			near: "ignition: {version: 3.5.0}\nstorage: {luks: [{name: a, device: /a, cex: {enabled: true}}]}\n",
		},
		{
			why:   "Ignition refuses a path that is not absolute",
			fires: head + "storage: {files: [{path: etc/a}]}\n",
			want:  `a.ign:2:26: error: the path etc/a is not absolute [ignition-name]`,
			but:   "a template may bring the slash",
			near:  head + "storage: {files: [{path: /etc/a}, {path: \"${ETC}/a\"}]}\n",
		},
		{
			why:   "the content of a file is not base64",
			fires: head + "storage: {files: [{path: /a, contents: {source: \"data:;base64,@\"}}]}\n",
			want:  `a.ign:2:49: error: the content of /a cannot be decoded: it is no base64 [ignition-source]`,
			but:   "base64 may lack its padding, and other URLs are not read",
			near:  head + "storage: {files: [{path: /a, contents: {source: \"data:;base64,YQ\"}}, {path: /b, contents: {source: \"https://example.com/@\"}}]}\n",
		},
		{
			why:   "a URL of data needs a comma and valid escapes",
			fires: head + "storage: {files: [{path: /a, contents: {source: \"data:a\"}}, {path: /b, contents: {source: \"data:,%z\"}}]}\n",
			want: `a.ign:2:49: error: the content of /a cannot be decoded: the URL has no comma [ignition-source]
a.ign:2:91: error: the content of /b cannot be decoded: invalid URL escape "%z" [ignition-source]`,
			but:  "these have them",
			near: head + "storage: {files: [{path: /a, contents: {source: \"data:,a\"}}, {path: /b, contents: {source: \"data:,%20\"}}]}\n",
		},
		{
			why:   "the content of a file is not gzip",
			fires: head + "storage: {files: [{path: /a, contents: {compression: gzip, source: \"data:,hello\"}}]}\n",
			want:  `a.ign:2:68: error: the content of /a cannot be decompressed: unexpected EOF [ignition-source]`,
			but:   "without compression it need not be",
			near:  head + "storage: {files: [{path: /a, contents: {compression: \"\", source: \"data:,hello\"}}]}\n",
		},
	}}
}
