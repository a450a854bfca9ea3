package lint

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// format is what a text is read as.
type format int

const (
	unknownFormat format = iota
	yamlFormat
	sysctlFormat
	tunedFormat
	haproxyFormat
	shellFormat
	cloudConfigFormat
	proseFormat
)

// Patterns that tell what a text is.
var (
	yamlObject     = regexp.MustCompile(`(?m)^\s*(- )?("?apiVersion"?|"?kind"?)\s*:`)
	yamlKey        = regexp.MustCompile(`(?m)^[A-Za-z][\w./-]*:( |$)`)
	sysctlKeyLine  = regexp.MustCompile(`(?m)^-?(net|vm|kernel|fs|user|dev|sunrpc|abi|debug)[./][\w.*/-]+[ \t]*=`)
	tunedSection   = regexp.MustCompile(`(?m)^\[(main|sysctl|bootloader|cpu|scheduler|variables)\]\s*$`)
	sectionLine    = regexp.MustCompile(`(?m)^\[[^\]\n]+\]\s*$`)
	haproxySection = regexp.MustCompile(`(?m)^(global|defaults|frontend|backend|listen)\b`)
	haproxyWord    = regexp.MustCompile(`(?m)^\s*(cpu-map|nbthread|nbproc|tune\.bufsize|tune\.maxrewrite)\s+\S`)
	fence          = regexp.MustCompile("(?m)^ {0,3}(```|~~~)")
	commandLine    = regexp.MustCompile(`(?m)^\s*(\[[^\]\n]*\])?[$#] (sudo )?(oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|echo|ping|cat|tee|virtctl|export)\b`)
	bareCommand    = regexp.MustCompile(`(?m)^(sudo )?((oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|ping|virtctl)( +-|\s+\S)|(cat|tee) +[<>])`)
	templateAction = regexp.MustCompile(`\{\{.*?\}\}`)
	ownFile        = regexp.MustCompile(`(?m)^schema:\s*"?plimsoll/|^jobs:(?s:.*)\b(objectTemplate|jobIterations|jobType):`)
)

// configuration reports whether files of this ending may be configurations. The
// sources of programs have pieces of them in quotes.
func configuration(ext string) bool {
	switch ext {
	case "", ".yaml", ".yml", ".json", ".ign", ".txt", ".conf", ".cfg", ".ini", ".env", ".in", ".tmpl", ".tpl", ".template", ".j2", ".manifest",
		".bu", ".properties", ".parm", ".sed", ".base":
		return true
	}
	return len(ext) > 1 && ext[1] >= '0' && ext[1] <= '9' // 99.8-arp
}

// formatOf tells what a text is, by its name and by what stands in it.
func formatOf(t *text) format {
	base := strings.ToLower(path.Base(t.name))
	ext := path.Ext(base)
	data := t.data
	if len(data) > 64<<10 {
		data = data[:64<<10] // enough to tell
	}
	directory := path.Base(path.Dir(t.name))
	switch {
	case strings.HasPrefix(data, "#cloud-config") || base == "user-data":
		return cloudConfigFormat
	case shebang.MatchString(data), ext == ".sh", ext == ".bash":
		return shellFormat
	case base == "sysctl.conf", directory == "sysctl.d", ext == ".sysctl":
		return sysctlFormat
	case base == "haproxy.cfg", base == "haproxy.config":
		return haproxyFormat
	case base == "tuned.conf":
		return tunedFormat
	case isPage(ext), ext == ".txt" && !t.snippet && isProse(data):
		return proseFormat
	case t.parent == nil && !configuration(ext):
		return unknownFormat
	case t.snippet && beginsWithCommand(data):
		return shellFormat
	case ownFile.MatchString(data):
		return unknownFormat // plimsoll run --dry-run and kube-burner check it
	case fence.MatchString(data) && !t.snippet && !strings.HasPrefix(ext, ".y") && ext != ".json":
		return proseFormat
	case yamlObject.MatchString(data), ext == ".yaml", ext == ".yml", ext == ".json", ext == ".ign":
		return yamlFormat
	case tunedSection.MatchString(data) && (sysctlKeyLine.MatchString(data) || strings.Contains(data, "include") || strings.Contains(data, "summary")):
		return tunedFormat
	case haproxySection.MatchString(data) && (strings.Contains(data, "maxconn") || strings.Contains(data, "bind ") || strings.Contains(data, "timeout ") || haproxyWord.MatchString(data)):
		return haproxyFormat
	case commandLine.MatchString(data):
		return shellFormat
	case sysctlKeyLine.MatchString(data) && !bareCommand.MatchString(data):
		return sysctlFormat
	case t.snippet && haproxyWord.MatchString(data):
		return haproxyFormat
	case bareCommand.MatchString(data) && (t.snippet || ext == "" || ext == ".txt"):
		return shellFormat
	case strings.TrimSpace(data) != "" && (data[0] == '{' || data[0] == '[' && !sectionLine.MatchString(data)): // [section] is no list
		return yamlFormat
	case t.snippet && (yamlKey.MatchString(data) || looksLikeYAML(data)):
		return yamlFormat
	case ext == ".txt":
		return proseFormat
	}
	return unknownFormat
}

// shebang matches the first line of a script that a shell of POSIX's kind runs.
var shebang = regexp.MustCompile(`^#![^\n]*[/ ](sh|bash|dash|ash|ksh|zsh)\b`)

// beginsWithCommand reports whether the first line that says something is a
// command.
func beginsWithCommand(data string) bool {
	for line := range strings.Lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		return commandLine.MatchString(line) || bareCommand.MatchString(line)
	}
	return false
}

// isProse reports whether a text is mostly for people: lines of many words that
// set nothing.
func isProse(data string) bool {
	lines, sentences := 0, 0
	for line := range strings.Lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines++
		if len(strings.Fields(line)) > 8 && !strings.Contains(line, "=") {
			sentences++
		}
	}
	return sentences*5 > lines
}

// wouldRecognise reports whether a text inside of another is of a known kind.
func wouldRecognise(t *text) bool {
	switch f := formatOf(t); f {
	case unknownFormat, proseFormat:
		return false
	case yamlFormat:
		return yamlObject.MatchString(t.data) || strings.HasSuffix(t.name, "kubelet.conf")
	case shellFormat:
		return strings.HasPrefix(t.data, "#!")
	}
	return true
}

// isPage reports whether files of an ending are for people.
func isPage(ext string) bool {
	return slices.Contains([]string{".md", ".markdown", ".adoc", ".asciidoc", ".rst"}, strings.ToLower(ext))
}

// looksLikeYAML reports whether most lines of a block are keys or items.
func looksLikeYAML(data string) bool {
	lines, keys := 0, 0
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		lines++
		// A colon ends a key before a space or the end of its line only: messages
		// of programs have others (file:line: what).
		first, rest, found := strings.Cut(strings.TrimPrefix(line, "- "), ":")
		if found && (rest == "" || rest[0] == ' ') && !strings.ContainsAny(strings.Trim(first, `"'`), " (){}/\\") || strings.HasPrefix(line, "- ") {
			keys++
		}
	}
	return lines >= 4 && keys*5 >= lines*4
}

// scopeOf names the machine that settings of a text meet on: files of one
// directory do, blocks of a text for people need not.
func scopeOf(t *text) string {
	if t.parent == nil {
		return "directory " + path.Dir(t.file.Name)
	}
	if t.role != "" {
		return "role " + t.role
	}
	if t.snippet {
		line, _ := t.parent.at(t.start)
		for p := t; p.parent != nil; p = p.parent {
			line, _ = p.parent.at(p.start)
		}
		return "block " + t.file.Name + ":" + strconv.Itoa(line)
	}
	return "inside " + t.file.Name + " " + t.name
}

// holes writes as many holes as a text has characters.
func holes(s string) string { return strings.Repeat(hole, utf8.RuneCountInString(s)) }
