package answer

import "plimsoll.dev/plimsoll/docs"

// Source names the document or page of a rule.
type Source struct {
	ID      string `json:"id"`                // a row of a source document, such as V12, or the short name of an official page
	Title   string `json:"title"`             // the document or page
	Address string `json:"address,omitempty"` // of an official page
	Says    string `json:"says,omitempty"`    // the rule in short
}

// sourceOf finds a source by its id on the page that explains them. A test finds unknown ids.
func sourceOf(id string) Source {
	switch row := docs.Source(id); len(row) {
	case 1:
		document := docs.Source(id[:1]) // its number and title
		return Source{ID: id, Title: document[len(document)-1], Says: row[0]}
	case 3:
		return Source{id, row[0], row[1], row[2]}
	}
	return Source{ID: id, Title: "unknown source " + id}
}
