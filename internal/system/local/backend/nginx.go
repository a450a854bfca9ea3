package backend

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"

	"plimsoll.dev/plimsoll/internal/proc"
)

// NginxProgram describes nginx on this machine.
func NginxProgram() proc.Program {
	return proc.Program{Name: "nginx", Package: "nginx-light", For: "router", Optional: "for backend=nginx", Asks: "-v", Version: nginxVersion}
}

var nginxVersion = regexp.MustCompile(`nginx/(\S+)`)

// Nginx is an installed nginx.
type Nginx proc.Found

// FindNginx finds nginx on this machine.
func FindNginx(ctx context.Context) (Nginx, error) {
	found, err := NginxProgram().Find(ctx, "")
	return Nginx(found), err
}

// nginxText serves one page for every path, in one process: a worker would survive a killed master.
const nginxText = `daemon off;
master_process off;
worker_rlimit_nofile 16384;
pid run/%[1]s.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
    access_log off;
    sendfile on;
    tcp_nopush on;
    open_file_cache max=16;
    keepalive_requests 1000000000;
    keepalive_timeout 300s;
    client_body_temp_path run/%[1]s.tmp;
    proxy_temp_path run/%[1]s.tmp;
    fastcgi_temp_path run/%[1]s.tmp;
    uwsgi_temp_path run/%[1]s.tmp;
    scgi_temp_path run/%[1]s.tmp;
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

// Command writes a Spec of only pages to files in a directory, whose names begin with name, and returns
// the command that serves them, with run/ for other files.
func (n Nginx) Command(dir, name string, s Spec) (*exec.Cmd, error) {
	config := fmt.Sprintf(nginxText, name, s.Certificate, s.Key, s.Plain, s.Secure)
	for file, text := range map[string][]byte{name: []byte(config), name + ".html": page(cmp.Or(s.Mark, Mark), s.PageSize)} {
		if err := proc.Least().Write(filepath.Join(dir, file), text); err != nil {
			return nil, fmt.Errorf("write what nginx serves: %w", err)
		}
	}
	return exec.Command(n.Path, "-p", dir+"/", "-c", name), nil
}
