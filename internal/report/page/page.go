// Package page writes the sections of package view as one page that needs nothing else, and that a
// browser lets reach nothing else.
package page

import (
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// templates are the page and its parts.
//
//go:embed *.html
var templates embed.FS

// The bundle comes from ui/, by `make ui`.
//
//go:embed assets/report.js
var script string

//go:embed assets/report.css
var style string

// Write writes a page with the data of its charts.
func Write(w io.Writer, p view.Page) error {
	encoded, err := record.Encode(p.Data, "") // escapes <, > and &: no text can end the element
	if err != nil {
		return err
	}
	t, err := template.New("page.html").Funcs(view.Words()).Funcs(template.FuncMap{"named": named, "soft": soft, "fold": fold, "unsure": isUnsure}).ParseFS(templates, "*.html")
	if err != nil {
		return err
	}
	packed := template.HTML("")
	if p.Objects != nil {
		packed = template.HTML(p.Objects.Text)
	}
	var html strings.Builder
	err = t.Execute(&html, struct {
		view.Page
		Style        template.CSS
		Script, Data template.JS
		Packed       template.HTML
		Policy       string
	}{
		p, template.CSS(style), template.JS(script), template.JS(redact.VisibleJSON(encoded)), packed,
		"default-src 'none'; script-src " + HashSource(script) + "; style-src " + HashSource(style) + "; img-src data:; base-uri 'none'; form-action 'none'",
	})
	if err == nil {
		_, err = io.WriteString(w, redact.Visible(html.String()))
	}
	return err
}

// namedTable is a table with a name for those who cannot see it, and the class of each column.
type namedTable struct {
	view.Table
	Name string
}

func named(t view.Table, name string) namedTable { return namedTable{t, name} }

// Class returns the class of a cell: figures are to the right, except in the first column.
func (t namedTable) Class(column int) string {
	switch {
	case column > 0 && t.Align[column] == 'r':
		return "n"
	case column > 0:
		return "wrap"
	}
	return ""
}

// soft lets a browser break a name after slashes, as it does after hyphens. Text of several words breaks
// between them.
func soft(text string) any {
	if !strings.Contains(text, "/") || strings.ContainsAny(text, " \u00a0") {
		return text
	}
	return template.HTML(strings.ReplaceAll(template.HTMLEscapeString(text), "/", "/<wbr>"))
}

// figures is a list of figures of which a cell shows some.
type figures struct {
	Shown string
	Rest  []string
}

// fold returns a list of figures, of which a cell shows four at once.
func fold(list string) figures {
	const few = 4
	all := strings.Split(list, ", ")
	if len(all) <= few+1 { // "and 1 more" would save nothing
		return figures{Shown: list}
	}
	return figures{strings.Join(all[:few], ", "), all[few:]}
}

// isUnsure reports whether a line's level held and was not confirmed.
func isUnsure(l *result.LoadLine, v slo.Verdict) bool {
	return l != nil && l.Level != nil && v != slo.Pass
}

// HashSource lets one text run as script or style, and no other.
func HashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
