package burner

import (
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/documents"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// AddServer adds the flags that name a server for documents.
func AddServer(flags *pflag.FlagSet, s *documents.Server) {
	flags.StringVar(&s.URL, "es-server", "", "`URL` of an OpenSearch or Elasticsearch that the documents are sent to")
	flags.StringVar(&s.Index, "es-index", "", "`name` of the index there")
}

// CheckServer refuses a server without an index, the other way round, and what is neither.
func CheckServer(cmd *cobra.Command, s documents.Server) error {
	if _, given := process.FirstChanged(cmd, "es-server", "es-index"); !given {
		return nil
	}
	if s.URL == "" || s.Index == "" {
		return process.Usagef("for example --es-server https://search:9200 --es-index ripsaw-kube-burner", "--es-server and --es-index go together")
	}
	if err := s.Check(); err != nil {
		return process.Usagef("", "--es-server, --es-index: %w", err)
	}
	return nil
}

// NewImportCommand sends documents that were written to files.
func NewImportCommand(p *process.Process, stop *process.Interrupts) *cobra.Command {
	var tarball, directory string
	server := documents.Server{Client: new(http.Client)}
	cmd := &cobra.Command{
		Use:   "import --tarball FILE --es-server URL --es-index NAME",
		Short: "Send documents of files to an OpenSearch or Elasticsearch",
		Long: `Send documents, which kube-burner or a run of this program has written, to an index.
Each has an ID of what it says: what is sent twice stands there once.`,
		Args: process.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (tarball == "") == (directory == "") {
				return process.Usagef("", "name either --tarball or --metrics-directory")
			}
			if server.URL == "" {
				return process.Usagef("for example --es-server https://search:9200 --es-index ripsaw-kube-burner", "where to? --es-server is missing")
			}
			if err := CheckServer(cmd, server); err != nil {
				return err
			}
			name := tarball + directory
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
				return process.Usagef(nearest.File(name), "there is no %s", name)
			}
			sent := p.WaitFor("sending the documents")
			n, err := server.Send(stop.Soft, documents.Stored(name))
			sent()
			if err == nil && n == 0 {
				err = process.Usagef("", "%s has no documents: want files of JSON arrays", name)
			}
			if err == nil {
				p.Printf("%d documents sent to the index %s\n", n, server.Index)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tarball, "tarball", "", "the documents, a `file`")
	flags.StringVar(&directory, "metrics-directory", "", "the documents, a `directory` of files")
	AddServer(flags, &server)
	return cmd
}
