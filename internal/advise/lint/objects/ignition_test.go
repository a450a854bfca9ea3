package objects

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

func TestIgnitions(t *testing.T) { looks().Check(t, ignitions()) }

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
func ignitions() linttest.Table {
	const head = "ignition: {version: 3.2.0}\n"
	return linttest.Table{File: "a.ign", Rows: []linttest.Row{
		{
			Why:   "the operator cannot read a configuration without a version",
			Fires: "ignition: {config: {}}\n",
			Want:  `a.ign:1:11: error: an Ignition configuration without a version [ignition-version]`,
			But:   "a fragment may have the version at its top; a template fills it in",
			Near:  "-- a.ign --\nversion: 3.2.0\n-- b.ign --\nignition: {version: \"${VERSION}\"}\n",
		},
		{
			Why: "Ignition's own validation refuses sources, names and links that no rule here knows",
			Fires: head + `storage:
  files:
  - {path: /etc/a, contents: {source: "ftp2://x"}}
  - {path: /etc/b, overwrite: true}
  directories: [{path: a}]
`,
			Want: `a.ign:6:24: error: path: path not absolute [ignition-value]
a.ign:4:39: error: source: invalid url scheme [ignition-value]
a.ign:5:31: error: overwrite: overwrite must be false if source is unspecified [ignition-value]`,
			But:  "these are valid",
			Near: head + "storage: {files: [{path: /etc/a, contents: {source: \"\"}, overwrite: true}]}\n",
		},
		{
			Why: "each version is validated by its own parser: 3.4.0 and 3.5.0 too",
			Fires: `-- a.ign --
ignition: {version: 3.4.0}
storage: {files: [{path: /etc/a, contents: {source: "arn:aws:s3"}}]}
-- b.ign --
ignition: {version: 3.5.0}
storage: {files: [{path: /etc/a, overwrite: true}], luks: [{name: a, device: /a, cex: {enabled: true}, clevis: {tpm2: true}}]}
`,
			Want: `a.ign:2:53: error: source: invalid S3 ARN format [ignition-value]
b.ign:2:45: error: overwrite: overwrite must be false if source is unspecified [ignition-value]`,
			But:  "3.4.0 knows the names of buckets, and a mode with special bits",
			Near: "ignition: {version: 3.4.0}\nstorage: {files: [{path: /etc/a, mode: 2541, contents: {source: \"arn:aws:s3:::bucket/a\"}}]}\n",
		},
		{
			Why:   "there is no such version",
			Fires: "ignition: {version: 3.6.0}\n",
			Want:  `a.ign:1:21: error: Ignition has no version 3.6.0 [ignition-version]`,
			But:   "3.5.0 is the newest",
			Near:  "ignition: {version: 3.5.0}\n",
		},
		{
			Why:   "the operator translates version 2, whose fields are not checked: a note says so",
			Fires: "ignition: {version: 2.2.0}\nnetworkd: {}\n",
			Want:  `a.ign:1:21: note: Ignition 2.2.0 is translated by the operator; its fields are not checked here [ignition-version]`,
			But:   "3.0.0 is the oldest version of 3",
			Near:  "ignition: {version: 3.0.0}\n",
		},
		{
			Why:   "an experimental version is not checked: a note says so",
			Fires: "ignition: {version: 3.6.0-experimental}\n",
			Want:  `a.ign:1:21: note: Ignition 3.6.0-experimental is experimental: its fields are not checked here [ignition-version]`,
			But:   "the stable version is checked",
			Near:  "ignition: {version: 3.4.0}\n",
		},
		{
			Why:   "Ignition refuses a unit without a suffix",
			Fires: head + "systemd: {units: [{name: kubelet}]}\n",
			Want:  `a.ign:2:26: error: the unit kubelet has no suffix [ignition-name]`,
			But:   "a timer has one, and a template may bring it",
			Near:  head + "systemd: {units: [{name: kubelet.timer}, {name: \"${UNIT}\"}]}\n",
		},
		{
			Why:   "octal digits stand there as a decimal number",
			Fires: head + "storage: {files: [{path: /a, mode: 644}]}\n",
			Want:  `a.ign:2:36: error: mode 644 is a decimal number: it means 01204 [file-mode]`,
			But:   "420 is 0644, YAML reads 0644 as octal, and a user may have the number 644",
			Near:  head + "storage: {files: [{path: /a, mode: 420}, {path: /b, mode: 0644, user: {id: 644}}]}\n",
		},
		{
			Why:   "Ignition 3 has no filesystem of a file",
			Fires: head + "storage: {files: [{path: /a, filesystem: root}]}\n",
			Want:  `a.ign:2:30: error: filesystem is a field of Ignition 2, and this is 3.2.0 [ignition-field]`,
			But:   "filesystems are still there",
			Near:  head + "storage: {filesystems: [{device: /dev/vdb, path: /a, format: xfs}], files: [{path: /a}]}\n",
		},
		{
			Why:   "append of a configuration is merge in version 3",
			Fires: "ignition: {version: 3.2.0, config: {append: []}}\n",
			Want:  `a.ign:1:37: error: append is a field of Ignition 2, and this is 3.2.0 [ignition-field]`,
			But:   "append of a file is in version 3, too",
			Near:  head + "storage: {files: [{path: /a, append: [{source: \"data:,a\"}]}]}\n",
		},
		{
			Why:   "version 3.2.0 has no kernelArguments: a later one has",
			Fires: head + "kernelArguments: {shouldExist: [quiet]}\n",
			Want:  `a.ign:2:1: error: the top of the Ignition configuration has no field "kernelArguments" [unknown-field]`,
			But:   "3.3.0 has them, and 3.4.0 has discard",
			Near:  "-- a.ign --\nignition: {version: 3.3.0}\nkernelArguments: {shouldExist: [quiet]}\n-- b.ign --\nignition: {version: 3.4.0}\nstorage: {luks: [{name: a, device: /a, discard: true}]}\n",
		},
		{
			Why:   "cex came with 3.5.0, and discard is of luks alone",
			Fires: "ignition: {version: 3.4.0}\nstorage: {luks: [{name: a, device: /a, cex: {enabled: true}}], files: [{path: /a, discard: true}]}\n",
			Want: `a.ign:2:40: error: storage.luks[0] has no field "cex" [unknown-field]
a.ign:2:83: error: storage.files[0] has no field "discard" [unknown-field]`,
			But:  "3.5.0 has it",
			Near: "ignition: {version: 3.5.0}\nstorage: {luks: [{name: a, device: /a, cex: {enabled: true}}]}\n",
		},
		{
			Why:   "Ignition refuses a path that is not absolute",
			Fires: head + "storage: {files: [{path: etc/a}]}\n",
			Want:  `a.ign:2:26: error: the path etc/a is not absolute [ignition-name]`,
			But:   "a template may bring the slash",
			Near:  head + "storage: {files: [{path: /etc/a}, {path: \"${ETC}/a\"}]}\n",
		},
		{
			Why:   "the content of a file is not base64",
			Fires: head + "storage: {files: [{path: /a, contents: {source: \"data:;base64,@\"}}]}\n",
			Want:  `a.ign:2:49: error: the content of /a cannot be decoded: it is not base64 [ignition-source]`,
			But:   "other URLs are not read",
			Near:  head + "storage: {files: [{path: /a, contents: {source: \"data:;base64,YQ==\"}}, {path: /b, contents: {source: \"https://example.com/@\"}}]}\n",
		},
		{
			Why:   "a URL of data needs a comma and valid escapes",
			Fires: head + "storage: {files: [{path: /a, contents: {source: \"data:a\"}}, {path: /b, contents: {source: \"data:,%z\"}}]}\n",
			Want: `a.ign:2:49: error: the content of /a cannot be decoded: the URL has no comma [ignition-source]
a.ign:2:91: error: the content of /b cannot be decoded: invalid URL escape "%z" [ignition-source]`,
			But:  "these have them",
			Near: head + "storage: {files: [{path: /a, contents: {source: \"data:,a\"}}, {path: /b, contents: {source: \"data:,%20\"}}]}\n",
		},
		{
			Why:   "the content of a file is not gzip",
			Fires: head + "storage: {files: [{path: /a, contents: {compression: gzip, source: \"data:,hello\"}}]}\n",
			Want:  `a.ign:2:68: error: the content of /a cannot be decompressed: unexpected EOF [ignition-source]`,
			But:   "without compression it need not be",
			Near:  head + "storage: {files: [{path: /a, contents: {compression: \"\", source: \"data:,hello\"}}]}\n",
		},
	}}
}
