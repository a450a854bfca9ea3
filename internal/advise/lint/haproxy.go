package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

var (
	// haproxyMessage splits a message of HAProxy: severity, line, and the message itself.
	haproxyMessage = regexp.MustCompile(`(?m)^\[(ALERT|WARNING)\]\s+(?:\S+ )?\(\d+\) : (?:config : )?(?:parsing )?(?:\[/dev/stdin:(\d+)\]\s*:?\s*)?(.+)$`)
	quotedWord     = regexp.MustCompile(`'([^' ]+)'`)
	// beyondWord matches words with which haproxy -c reads another file, runs code or looks up a name.
	beyondWord = regexp.MustCompile(`^(ssl|crt.*|ca-.*file|-f|-M|.*file|lua.*|external-check|insecure-.*|ssl-engine|filter|log|user|group|chroot|` +
		`server-state-.*|load-server-state.*|deviceatlas.*|51degrees.*|wurfl.*|parse-resolv-conf|email-alert|default-path|docroot|socket|addr|source|usesrc|socks4|namespace|.*\blua\..*|.*(map|acl)\w*\(.*|.*\$.*)$`)
	numericAddress = regexp.MustCompile(`^(ipv[46]@)?(\*|[0-9.]+|\[[0-9a-fA-F:.]+\]|[0-9a-fA-F:]+:)?(:[0-9+-]+)?$`)
)

// withinItself returns a configuration of which haproxy -c reads no other file, runs no code and looks up no
// name: what could is left out, or put right. cut has the lines that changed.
func withinItself(config string) (text string, cut map[int]bool) {
	cut = make(map[int]bool)
	addresses := map[string]int{"bind": 1, "dispatch": 1, "server": 2, "server-template": 3, "peer": 2, "nameserver": 2, "mailer": 2}
	matchPaths := strings.Fields("acl use_backend use-server http-request http-response http-after-response http-check tcp-request redirect monitor-uri stats option cookie")
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(config, "\r\n", "\n"), "\r", "\n"), "\n")
	for i, line := range lines {
		words := strings.Fields(strings.NewReplacer(`"`, "", "'", "", `\`, "").Replace(line)) // quotes can hide a word
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		kept, at := words, addresses[words[0]]
		if at > 0 && at < len(words) && !numericAddress.MatchString(words[at]) {
			kept = slices.Clone(words)
			kept[at] = "192.0.2.1:1"
		}
		bad := slices.IndexFunc(kept, func(w string) bool { return beyondWord.MatchString(w) && (w != "log" || kept[len(kept)-1] != "global") })
		if !slices.Contains(matchPaths, words[0]) {
			if path := slices.IndexFunc(kept, func(w string) bool { return strings.HasPrefix(w, "/") }); path > 0 && (bad < 0 || path < bad) {
				bad = path
			}
		}
		switch {
		case strings.Contains(line, `\x`), bad >= 0 && (at == 0 || bad <= at):
			kept = nil
		case bad >= 0:
			kept = kept[:bad]
		}
		if !slices.Equal(kept, words) {
			lines[i], cut[i+1] = strings.Join(kept, " "), true
		}
	}
	return strings.Join(lines, "\n"), cut
}

// refusedByHAProxy reports what haproxy -c refuses in whole configurations, unless a rule has found a fault in
// that line.
func refusedByHAProxy(out *report.Report, ask func(config string) (said string, err error)) {
	for _, t := range out.HAProxy {
		if ask == nil {
			return
		}
		unchecked := func(why string) { out.Note("", reading.Place{Text: t}, "not checked by haproxy -c: %s", why) }
		switch {
		case reading.TemplateAction.MatchString(t.Data):
			unchecked("it is a template")
			continue
		case !slices.ContainsFunc(strings.Split(t.Data, "\n"), func(l string) bool { return strings.HasPrefix(l, "global") }):
			unchecked("without a section global it may be a piece of a configuration")
			continue
		}
		text, cut := withinItself(t.Data)
		said, err := ask(text)
		if err != nil {
			unchecked(err.Error())
			continue
		}
		for _, m := range haproxyMessage.FindAllStringSubmatch(said, -1) {
			line, _ := strconv.Atoi(m[2])
			if line == 0 { // a message about the whole names its proxy, or the word that it looks for
				for _, word := range quotedWord.FindAllStringSubmatch(m[3], -1) {
					for n := range t.Lines {
						if slices.Index(strings.Fields(t.Line(n+1)), word[1]) > 0 {
							line = n + 1
							break
						}
					}
				}
			}
			if line == 0 || cut[line] {
				continue // a summary, or what a left out line would have said
			}
			at := t.Place(line, 1+len(t.Line(line))-len(strings.TrimLeft(t.Line(line), " \t")))
			file, fileLine, _, _ := t.Position(line, 1)
			if !slices.ContainsFunc(out.Findings, func(f report.Finding) bool { return f.File == file && f.Line == fileLine }) {
				severity := map[string]report.Severity{"WARNING": report.Warning}[m[1]]
				out.FindAs(severity, "haproxy-config", at, "correct it: haproxy -c says this", strings.TrimSuffix(m[3], "."))
			}
		}
		if len(cut) > 0 {
			unchecked(fmt.Sprintf("in %s it would have read other files, run code or looked up names", plural(len(cut), "line")))
		}
	}
}
