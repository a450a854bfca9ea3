package host

import (
	"path"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

func lookAt(out *report.Report, t *reading.Text) {
	switch path.Ext(t.Name) {
	case ".cfg":
		HAProxyFile(out, t)
	case ".tuned":
		TunedProfile(out, t)
	case ".yaml":
		root, problems := reading.Single(t)
		out.Unreadable(t, problems)
		CheckTuned(out, root.Get("spec"))
	default:
		SysctlFile(out, t)
	}
}

func lookAcross(out *report.Report) { AcrossSettings(out) }

func tables() []table { return []table{settings(), together(), profiles(), proxies()} }

func TestSettings(t *testing.T)         { settings().check(t) }
func TestSettingsTogether(t *testing.T) { together().check(t) }
func TestProfiles(t *testing.T)         { profiles().check(t) }
func TestProxies(t *testing.T)          { proxies().check(t) }

// settings hold lines of sysctl files that are wrong alone.
func settings() table {
	return table{"sysctl.conf", []row{
		{
			why:   "sysctl skips a line without a value",
			fires: "  vm.swappiness 10\n",
			want:  `sysctl.conf:1:3: error: the line is no setting: "vm.swappiness 10" [sysctl-value]`,
			but:   "a dash excludes the key from a pattern; comments and empty lines set nothing; a template fills in a line",
			near:  "-vm.swappiness\n# vm.swappiness 10\n; vm.swappiness 10\n\n${SETTINGS}\n",
		},
		{
			why:   "the kernel gets the comment as a part of the value",
			fires: "vm.swappiness = 10 # default 60\nvm.dirty_ratio = 20\t; percent\n",
			want: `sysctl.conf:1:20: warning: the value is "10 # default 60", comment and all [sysctl-comment]
sysctl.conf:2:21: warning: the value is "20\t; percent", comment and all [sysctl-comment]`,
			but:  "a mark without a space before it is a part of a value",
			near: "kernel.core_pattern = |/bin/handler;%p#%u\n",
		},
		{
			why:   "Linux removed the key: loading the file fails",
			fires: "net.ipv4.tcp_tw_recycle = 1\n",
			want:  `sysctl.conf:1:1: warning: the kernel no longer has net.ipv4.tcp_tw_recycle [sysctl-key]`,
			but:   "its neighbour tcp_tw_reuse is still there",
			near:  "net.ipv4.tcp_tw_reuse = 1\n",
		},
		{
			why:   "the kernel wants three numbers",
			fires: "net.ipv4.tcp_rmem = 4096 131072\n",
			want:  `sysctl.conf:1:21: error: net.ipv4.tcp_rmem is "4096 131072", and wants 3 numbers [sysctl-value]`,
			but:   "three numbers may stand behind tabs",
			near:  "net.ipv4.tcp_rmem = 4096\t131072\t6291456\n",
		},
		{
			why:   "the kernel wants one number",
			fires: "vm.swappiness = 10 20\n",
			want:  `sysctl.conf:1:17: error: vm.swappiness is "10 20", and wants one number [sysctl-value]`,
			but:   "a key of which the number of values is not known may have any",
			near:  "fs.dentry-state = 10 20\n",
		},
		{
			why:   "the kernel does not read units",
			fires: "net.core.somaxconn = 4k\n",
			want:  `sysctl.conf:1:22: error: net.core.somaxconn is "4k", which is no whole number [sysctl-value]`,
			but:   "the kernel reads hexadecimal numbers, and a script fills in a variable",
			near:  "net.core.somaxconn = 0x1000\nnet.core.netdev_max_backlog = $BACKLOG\n",
		},
		{
			why:   "a value below the lower bound is refused",
			fires: "kernel.pid_max = 300\n",
			want:  `sysctl.conf:1:18: error: kernel.pid_max is 300 [sysctl-value]`,
			but:   "the bounds themselves are allowed",
			near:  "-- a/sysctl.conf --\nkernel.pid_max = 301\n-- b/sysctl.conf --\nkernel.pid_max = 4194304\n",
		},
		{
			why:   "a value above the upper bound is refused",
			fires: "kernel.pid_max = 4194305\n",
			want:  `sysctl.conf:1:18: error: kernel.pid_max is 4194305 [sysctl-value]`,
			but:   "a negative number is within the bounds of this key",
			near:  "kernel.panic = -1\n",
		},
		{
			why:   "without window scaling no connection has more than 64 KiB under way",
			fires: "net.ipv4.tcp_window_scaling=0\n",
			want:  `sysctl.conf:1:29: warning: net.ipv4.tcp_window_scaling is 0 [window-scaling]`,
			but:   "1 is the default; timestamps may be off",
			near:  "net.ipv4.tcp_window_scaling=1\nnet.ipv4.tcp_timestamps=0\n",
		},
		{
			why:   "no key begins with nett",
			fires: "nett.core.somaxconn = 1024\n",
			want:  `sysctl.conf:1:1: error: there is no key nett.core.somaxconn [sysctl-key]`,
			but:   "a module of its own may have any key",
			near:  "lustre.nett.somaxconn = 1024\n",
		},
		{
			why:   "one letter is missing",
			fires: "vm.swapiness = 10\n",
			want:  `sysctl.conf:1:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			but:   "a key of a newer kernel is not close to a known one",
			near:  "vm.something_of_next_year = 10\n",
		},
		{
			why:   "the key is known elsewhere: somaxconn belongs to net.core",
			fires: "net.ipv4.somaxconn = 1024\n",
			want:  `sysctl.conf:1:1: error: the kernel has no key net.ipv4.somaxconn [sysctl-key]`,
			but:   "slashes may stand for dots, and a pattern with a star is not one key",
			near:  "net/core/somaxconn = 1024\nnet.ipv4.conf.*.rp_filtre = 1\n",
		},
		{
			why:   "slashes may stand for dots: the kernel does not read units there, too",
			fires: "net/core/somaxconn = 4k\n",
			want:  `sysctl.conf:1:22: error: net/core/somaxconn is "4k", which is no whole number [sysctl-value]`,
			but:   "the number has no unit; a word without a dot is no key",
			near:  "net/core/somaxconn = 4096\nwords = 4k\n",
		},
		{
			but:  "a family of keys has no key of its own name, and any may be meant",
			near: "vm.overcommit = 1\n",
		},
		{
			why:   "an interface has no such setting",
			fires: "net.ipv4.conf.eth0.rp_filtr = 1\n",
			want:  `sysctl.conf:1:1: error: the kernel has no key net.ipv4.conf.eth0.rp_filtr [sysctl-key]`,
			but:   "interfaces have any name, with dots where slashes separate",
			near:  "net.ipv4.conf.eth0.rp_filter = 1\nnet/ipv4/conf/eth0.100/rp_filter = 1\n",
		},
	}}
}

// together hold settings that are wrong beside each other.
func together() table {
	return table{"sysctl.conf", []row{
		{
			why:   "the file that is loaded last wins",
			fires: "-- d/10.conf --\nvm.swappiness = 10\n-- d/20.conf --\nvm.swappiness = 60\n",
			want:  `d/20.conf:1:1: warning: vm.swappiness is 60 here, and 10 in d/10.conf:1 [sysctl-twice]`,
			but:   "the same value twice is one value, and another directory is another machine",
			near:  "-- d/10.conf --\nvm.swappiness = 10\n-- d/20.conf --\nvm/swappiness =  10\n-- e/10.conf --\nvm.swappiness = 60\n",
		},
		{
			but:  "two interfaces have a setting each",
			near: "net.ipv4.conf.eth0.rp_filter = 1\nnet.ipv4.conf.eth1.rp_filter = 0\n",
		},
		{
			why:   "the first port lies above the last",
			fires: "net.ipv4.ip_local_port_range = 60999 32768\n",
			want:  `sysctl.conf:1:32: error: net.ipv4.ip_local_port_range is 60999 32768 [sysctl-order]`,
			but:   "equal numbers rise far enough",
			near:  "net.ipv4.tcp_rmem = 4096 131072 131072\n",
		},
		{
			why:   "the default is larger than the bound",
			fires: "net.core.rmem_default = 425984\nnet.core.rmem_max = 212992\nnet.ipv4.tcp_rmem = 4096 131072 212992\n",
			want:  `sysctl.conf:1:25: error: net.core.rmem_default is 425984, above net.core.rmem_max, which is 212992 [sysctl-order]`,
			but:   "the default may be as large as the bound",
			near:  "net.core.rmem_default = 212992\nnet.core.rmem_max = 212992\nnet.ipv4.tcp_rmem = 4096 131072 212992\n",
		},
		{
			why:   "background writing never begins",
			fires: "vm.dirty_ratio = 5\nvm.dirty_background_ratio = 10\n",
			want:  `sysctl.conf:2:29: error: vm.dirty_background_ratio is 10, above vm.dirty_ratio, which is 5 [sysctl-order]`,
			but:   "what is not set has a default that is not judged, and a script fills in a number",
			near:  "-- a/sysctl.conf --\nvm.dirty_background_ratio = 10\n-- b/sysctl.conf --\nvm.dirty_background_ratio = 10\nvm.dirty_ratio = $1\n",
		},
		{
			why:   "TCP has a bound of its own, which stays at 6 MiB",
			fires: "net.core.rmem_max = 16777216\n",
			want:  `sysctl.conf:1:1: warning: net.core.rmem_max is 16777216, and net.ipv4.tcp_rmem is not set [sysctl-tcp-buffers]`,
			but:   "TCP's own bound is set as well",
			near:  "net.core.rmem_max = 16777216\nnet.ipv4.tcp_rmem = 4096 131072 16777216\n",
		},
		{
			why:   "TCP's own bound is less than half",
			fires: "net.core.wmem_max = 16777216\nnet.ipv4.tcp_wmem = 4096 16384 8388607\n",
			want:  `sysctl.conf:2:21: warning: net.core.wmem_max is 16777216, and TCP's own bound net.ipv4.tcp_wmem ends at 8388607 [sysctl-tcp-buffers]`,
			but:   "half of it is enough: programs ask for twice what they use",
			near:  "net.core.wmem_max = 16777216\nnet.ipv4.tcp_wmem = 4096 16384 8388608\n",
		},
		{
			why:   "gc_thresh2 keeps its default of 512, below gc_thresh1",
			fires: "net.ipv4.neigh.default.gc_thresh1 = 513\n",
			want:  `sysctl.conf:1:37: error: gc_thresh1 is 513, and gc_thresh2 stays at its default of 512: entries are collected at the lower bound already [sysctl-order]`,
			but:   "512 is not above the default of gc_thresh2",
			near:  "net.ipv4.neigh.default.gc_thresh1 = 512\n",
		},
		{
			why:   "gc_thresh3 is below gc_thresh2: no entry is made above it",
			fires: "net.ipv6.neigh.default.gc_thresh2 = 1024\nnet.ipv6.neigh.default.gc_thresh3 = 1023\n",
			want:  `sysctl.conf:1:37: error: gc_thresh2 is 1024, and gc_thresh3 is 1023: no entry is made above that [sysctl-order]`,
			but:   "each family has a table of its own",
			near:  "net.ipv6.neigh.default.gc_thresh2 = 4096\nnet.ipv6.neigh.default.gc_thresh3 = 8192\nnet.ipv4.neigh.default.gc_thresh3 = 1024\n",
		},
		{
			why:   "the bound that is set lies below a default",
			fires: "net.ipv4.neigh.default.gc_thresh3 = 511\n",
			want:  `sysctl.conf:1:37: error: gc_thresh2 is 512, and gc_thresh3 is 511: no entry is made above that [sysctl-order]`,
			but:   "it is as high as the default",
			near:  "net.ipv4.neigh.default.gc_thresh3 = 512\n",
		},
	}}
}

// profiles hold profiles of tuned, and of the operator that carries them.
func profiles() table {
	return table{"a.tuned", []row{
		{
			why:   "the section sysctl of a profile is written to the kernel",
			fires: "[main]\nsummary=x\n[sysctl]\nvm.swapiness=10\n",
			want:  `a.tuned:4:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			but:   "another section has keys of its own; a comment sets nothing",
			near:  "[main]\nsummary=x\n[variables]\nvm.swapiness=10\n[sysctl]\n# vm.swapiness=10\n; vm.swapiness=10\n",
		},
		{
			why:   "type tells the plug-in, whatever the section is called",
			fires: "[mine]\nvm.swapiness=10\ntype=sysctl\n",
			want:  `a.tuned:2:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			but:   "type takes the section to another plug-in",
			near:  "[sysctl]\nvm.swapiness=10\ntype=script\n",
		},
		{
			why:   "a value of a profile has the bounds of the kernel",
			fires: "[sysctl]\nvm.dirty_ratio=>101 # percent\n",
			want:  `a.tuned:2:16: error: vm.dirty_ratio is 101 [sysctl-value]`,
			but:   "tuned cuts the comment, the quotes and the comparison off, and fills in variables",
			near:  "[sysctl]\nvm.dirty_ratio=>\"40\" # percent\nvm.dirty_background_ratio=${ratio}\nvm.swapines${s}=10\n",
		},
		{
			why:   "no profile has that name: the node keeps its profile",
			fires: "-- tuned.yaml --\nspec:\n  profile:\n  - name: custom-ceph\n  recommend:\n  - profile: custom-cephs\n",
			want:  `tuned.yaml:5:14: error: there is no profile custom-cephs here [bad-value]`,
			but:   "the operator brings profiles of its own, another object may have others, and a template fills in names",
			near:  "-- tuned.yaml --\nspec:\n  profile:\n  - name: custom-ceph\n  - name: openshift-nodes\n  recommend:\n  - profile: custom-ceph\n  - profile: openshift-node\n  - profile: gpu\n  - profile: custom-cep${X}\n",
		},
	}}
}

// proxies hold configurations of HAProxy.
func proxies() table {
	return table{"haproxy.cfg", []row{
		{
			why:   "HAProxy starts a thread per CPU, and puts all on CPU 0",
			fires: "global\n    cpu-map 1 0\n",
			want:  `haproxy.cfg:2:13: warning: cpu-map 1 0: HAProxy has a thread for each CPU by default, and all of them are put on CPU 0 [haproxy-cpu-map]`,
			but:   "each thread gets a CPU, or the process gets several",
			near:  "global\n    cpu-map auto:1/1-4 0-3\n    cpu-map 1/1 0\n    cpu-map 1 0-3\n    # cpu-map 1 0\n",
		},
		{
			why:   "four threads run on one CPU",
			fires: "global\n    nbthread 4\n    cpu-map auto:1 2 # one\n",
			want:  `haproxy.cfg:3:13: warning: cpu-map auto:1 2: HAProxy has 4 threads, and all of them are put on CPU 2 [haproxy-cpu-map]`,
			but:   "one thread needs one CPU",
			near:  "global\n    nbthread 1\n    cpu-map 1 0\n",
		},
	}}
}
