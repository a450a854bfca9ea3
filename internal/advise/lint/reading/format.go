package reading

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Format names what a text is read as.
type Format int

// The formats of texts.
const (
	Unknown Format = iota
	YAML
	Sysctl
	Tuned
	HAProxy
	Shell
	CloudConfig
	Prose
)

// Patterns by which a format is recognised.
var (
	YAMLObject     = regexp.MustCompile(`(?m)^\s*(- )?("?apiVersion"?|"?kind"?)\s*:`)
	yamlKey        = regexp.MustCompile(`(?m)^[A-Za-z][\w./-]*:( |$)`)
	sysctlKeyLine  = regexp.MustCompile(`(?m)^-?(net|vm|kernel|fs|user|dev|sunrpc|abi|debug)[./][\w.*/-]+[ \t]*=`)
	tunedSection   = regexp.MustCompile(`(?m)^\[(main|sysctl|bootloader|cpu|scheduler|variables)\]\s*$`)
	sectionLine    = regexp.MustCompile(`(?m)^\[[^\]\n]+\]\s*$`)
	haproxySection = regexp.MustCompile(`(?m)^(global|defaults|frontend|backend|listen)\b`)
	haproxyWord    = regexp.MustCompile(`(?m)^\s*(cpu-map|nbthread|nbproc|tune\.bufsize|tune\.maxrewrite)\s+\S`)
	fence          = regexp.MustCompile("(?m)^ {0,3}(```|~~~)")
	CommandLine    = regexp.MustCompile(`(?m)^\s*(\[[^\]\n]*\])?[$#] (sudo )?(oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|echo|ping|cat|tee|virtctl|export)\b`)
	bareCommand    = regexp.MustCompile(`(?m)^(sudo )?((oc|kubectl|ceph|sysctl|lvs|gluster|heketi-cli|fio|ping|virtctl)( +-|\s+\S)|(cat|tee) +[<>])`)
	TemplateAction = regexp.MustCompile(`\{\{.*?\}\}`)
	ownFile        = regexp.MustCompile(`(?m)^schema:\s*"?plimsoll/|^jobs:(?s:.*)\b(objectTemplate|jobIterations|jobType):`)
)

// configuration reports whether files with this extension may be configurations; source code quotes some.
func configuration(ext string) bool {
	switch ext {
	case "", ".yaml", ".yml", ".json", ".ign", ".txt", ".conf", ".cfg", ".ini", ".env", ".in", ".tmpl", ".tpl", ".template", ".j2", ".manifest",
		".bu", ".properties", ".parm", ".sed", ".base":
		return true
	}
	return len(ext) > 1 && ext[1] >= '0' && ext[1] <= '9' // 99.8-arp
}

// FormatOf returns a text's format, by its name and contents.
func FormatOf(t *Text) Format {
	base := strings.ToLower(path.Base(t.Name))
	ext := path.Ext(base)
	data := t.Data
	if len(data) > 64<<10 {
		data = data[:64<<10]
	}
	directory := path.Base(path.Dir(t.Name))
	switch {
	case strings.HasPrefix(data, "#cloud-config") || base == "user-data":
		return CloudConfig
	case shebang.MatchString(data), ext == ".sh", ext == ".bash":
		return Shell
	case base == "sysctl.conf", directory == "sysctl.d", ext == ".sysctl":
		return Sysctl
	case base == "haproxy.cfg", base == "haproxy.config":
		return HAProxy
	case base == "tuned.conf":
		return Tuned
	case IsPage(ext), ext == ".txt" && !t.Snippet && !beginsWithCommand(data) && isProse(data):
		return Prose
	case t.Parent == nil && !configuration(ext):
		return Unknown
	case t.Snippet && beginsWithCommand(data):
		return Shell
	case ownFile.MatchString(data):
		return Unknown // plimsoll run --dry-run and kube-burner check it
	case fence.MatchString(data) && !t.Snippet && !strings.HasPrefix(ext, ".y") && ext != ".json":
		return Prose
	case YAMLObject.MatchString(data), ext == ".yaml", ext == ".yml", ext == ".json", ext == ".ign":
		return YAML
	case tunedSection.MatchString(data) && (sysctlKeyLine.MatchString(data) || strings.Contains(data, "include") || strings.Contains(data, "summary")):
		return Tuned
	case haproxySection.MatchString(data) && (strings.Contains(data, "maxconn") || strings.Contains(data, "bind ") || strings.Contains(data, "timeout ") || haproxyWord.MatchString(data)):
		return HAProxy
	case CommandLine.MatchString(data):
		return Shell
	case sysctlKeyLine.MatchString(data) && !bareCommand.MatchString(data):
		return Sysctl
	case t.Snippet && haproxyWord.MatchString(data):
		return HAProxy
	case bareCommand.MatchString(data) && (t.Snippet || ext == "" || ext == ".txt"):
		return Shell
	case strings.TrimSpace(data) != "" && (data[0] == '{' || data[0] == '[' && !sectionLine.MatchString(data)): // not [section]
		return YAML
	case t.Snippet && (yamlKey.MatchString(data) || LooksLikeYAML(data)):
		return YAML
	case ext == ".txt":
		return Prose
	}
	return Unknown
}

// shebang matches the first line of a script for a POSIX shell.
var shebang = regexp.MustCompile(`^#![^\n]*[/ ](sh|bash|dash|ash|ksh|zsh)\b`)

func beginsWithCommand(data string) bool {
	for line := range strings.Lines(data) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		return CommandLine.MatchString(line) || bareCommand.MatchString(line)
	}
	return false
}

// isProse reports whether a text is mostly for people: lines of many words without assignments.
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

// WouldRecognise reports whether a text inside of another is of a known kind.
func WouldRecognise(t *Text) bool {
	switch f := FormatOf(t); f {
	case Unknown, Prose:
		return false
	case YAML:
		return YAMLObject.MatchString(t.Data) || strings.HasSuffix(t.Name, "kubelet.conf")
	case Shell:
		return strings.HasPrefix(t.Data, "#!")
	}
	return true
}

// IsPage reports whether files with this extension are for people.
func IsPage(ext string) bool {
	return slices.Contains([]string{".md", ".markdown", ".adoc", ".asciidoc", ".rst"}, strings.ToLower(ext))
}

// LooksLikeYAML reports whether most lines of a block are keys or items.
func LooksLikeYAML(data string) bool {
	lines, keys := 0, 0
	for line := range strings.Lines(data) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		lines++
		// A colon ends a key only before a space or the end of its line, unlike in file:line: text.
		first, rest, found := strings.Cut(strings.TrimPrefix(line, "- "), ":")
		if found && (rest == "" || rest[0] == ' ') && !strings.ContainsAny(strings.Trim(first, `"'`), " (){}/\\") || strings.HasPrefix(line, "- ") {
			keys++
		}
	}
	return lines >= 4 && keys*5 >= lines*4
}

// ScopeOf names the machine that a text's settings belong to: files of one directory share it.
func ScopeOf(t *Text) string {
	if t.Parent == nil {
		return "directory " + path.Dir(t.File.Name)
	}
	if t.Role != "" {
		return "role " + t.Role
	}
	if t.Snippet {
		line, _ := t.Parent.At(t.Start)
		for p := t; p.Parent != nil; p = p.Parent {
			line, _ = p.Parent.At(p.Start)
		}
		return "block " + t.File.Name + ":" + strconv.Itoa(line)
	}
	return "inside " + t.File.Name + " " + t.Name
}

// Holes writes a hole for each character of a text.
func Holes(s string) string { return strings.Repeat(Hole, utf8.RuneCountInString(s)) }
