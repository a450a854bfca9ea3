package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// InstallNginx is the command that installs nginx.
const InstallNginx = "apt-get install --no-install-recommends nginx-light"

// ErrNoNginx says that there is no nginx.
var ErrNoNginx = errors.New("there is no nginx")

// Nginx is an nginx that is installed.
type Nginx struct{ Path, Version string }

// FindNginx finds the nginx of this machine; ErrNoNginx where there is none.
func FindNginx(ctx context.Context) (Nginx, error) {
	for _, name := range []string{"nginx", "/usr/sbin/nginx", "/usr/local/sbin/nginx"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		text, err := exec.CommandContext(ctx, path, "-v").CombinedOutput()
		_, version, ok := strings.Cut(strings.TrimSpace(string(text)), "nginx/")
		if err != nil || !ok {
			return Nginx{}, fmt.Errorf("ask %s for its version: %q, %w", path, text, err)
		}
		return Nginx{path, version}, nil
	}
	return Nginx{}, ErrNoNginx
}

// nginxText serves one page for every path. One process does all: a worker would
// outlive a master that is killed.
const nginxText = `daemon off;
master_process off;
worker_rlimit_nofile 16384;
pid %[1]s.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=16;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    client_body_temp_path %[1]s.tmp;
    proxy_temp_path %[1]s.tmp;
    fastcgi_temp_path %[1]s.tmp;
    uwsgi_temp_path %[1]s.tmp;
    scgi_temp_path %[1]s.tmp;
    ssl_certificate %[2]s;
    ssl_certificate_key %[3]s;
    server {
        listen %[4]s backlog=4096;
        listen %[5]s ssl backlog=4096;
        root .;
        location / { rewrite ^ /%[1]s.html break; }
    }
}
`

// Command writes what an nginx serves of a Spec to files in a directory, which
// begin with a name, and is the command that serves it from there. The spec must
// ask for pages alone.
func (n Nginx) Command(dir, name string, s Spec) (*exec.Cmd, error) {
	config := fmt.Sprintf(nginxText, name, s.Certificate, s.Key, s.Plain, s.Secure)
	for file, text := range map[string][]byte{name: []byte(config), name + ".html": page(cmp.Or(s.Mark, Mark), s.PageSize)} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			return nil, fmt.Errorf("write what nginx serves: %w", err)
		}
	}
	return exec.Command(n.Path, "-p", dir+"/", "-c", name), nil
}
