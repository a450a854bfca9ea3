package host

import (
	"path"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
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

func tables() []linttest.Table {
	return []linttest.Table{settings(), together(), profiles(), proxies()}
}

func TestSettings(t *testing.T)         { looks().Check(t, settings()) }
func TestSettingsTogether(t *testing.T) { looks().Check(t, together()) }
func TestProfiles(t *testing.T)         { looks().Check(t, profiles()) }
func TestProxies(t *testing.T)          { looks().Check(t, proxies()) }

// settings hold lines of sysctl files that are wrong alone.
func settings() linttest.Table {
	return linttest.Table{File: "sysctl.conf", Rows: []linttest.Row{
		{
			Why:   "sysctl skips a line without a value",
			Fires: "  vm.swappiness 10\n",
			Want:  `sysctl.conf:1:3: error: the line is not a setting: "vm.swappiness 10" [sysctl-value]`,
			But:   "a dash excludes the key from a pattern; comments and empty lines set nothing; a template fills in a line",
			Near:  "-vm.swappiness\n# vm.swappiness 10\n; vm.swappiness 10\n\n${SETTINGS}\n",
		},
		{
			Why:   "a node that does not forward packets cuts its pods off",
			Fires: "net.ipv4.ip_forward = 0\n",
			Want:  `sysctl.conf:1:23: warning: net.ipv4.ip_forward is 0 [ip-forward]`,
			But:   "1 forwards",
			Near:  "net.ipv4.ip_forward = 1\n",
		},
		{
			Why:   "the kernel gets the comment as a part of the value",
			Fires: "vm.swappiness = 10 # default 60\nvm.dirty_ratio = 20\t; percent\n",
			Want: `sysctl.conf:1:20: warning: the value is "10 # default 60", comment and all [sysctl-comment]
sysctl.conf:2:21: warning: the value is "20\t; percent", comment and all [sysctl-comment]`,
			But:  "a mark without a space before it is a part of a value",
			Near: "kernel.core_pattern = |/bin/handler;%p#%u\n",
		},
		{
			Why:   "Linux removed the key: loading the file fails",
			Fires: "net.ipv4.tcp_tw_recycle = 1\n",
			Want:  `sysctl.conf:1:1: warning: the kernel no longer has net.ipv4.tcp_tw_recycle [sysctl-key]`,
			But:   "its neighbour tcp_tw_reuse is still there",
			Near:  "net.ipv4.tcp_tw_reuse = 1\n",
		},
		{
			Why:   "the kernel wants three numbers",
			Fires: "net.ipv4.tcp_rmem = 4096 131072\n",
			Want:  `sysctl.conf:1:21: error: net.ipv4.tcp_rmem is "4096 131072", and wants 3 numbers [sysctl-value]`,
			But:   "three numbers may stand behind tabs",
			Near:  "net.ipv4.tcp_rmem = 4096\t131072\t6291456\n",
		},
		{
			Why:   "the kernel wants one number",
			Fires: "vm.swappiness = 10 20\n",
			Want:  `sysctl.conf:1:17: error: vm.swappiness is "10 20", and wants one number [sysctl-value]`,
			But:   "a key of which the number of values is unknown may have any",
			Near:  "fs.dentry-state = 10 20\n",
		},
		{
			Why:   "the kernel does not read units",
			Fires: "net.core.somaxconn = 4k\n",
			Want:  `sysctl.conf:1:22: error: net.core.somaxconn is "4k", which is not a whole number [sysctl-value]`,
			But:   "the kernel reads hexadecimal numbers, and a script fills in a variable",
			Near:  "net.core.somaxconn = 0x1000\nnet.core.netdev_max_backlog = $BACKLOG\n",
		},
		{
			Why:   "a value below the lower bound is refused",
			Fires: "kernel.pid_max = 300\n",
			Want:  `sysctl.conf:1:18: error: kernel.pid_max is 300 [sysctl-value]`,
			But:   "the bounds themselves are allowed",
			Near:  "-- a/sysctl.conf --\nkernel.pid_max = 301\n-- b/sysctl.conf --\nkernel.pid_max = 4194304\n",
		},
		{
			Why:   "a value above the upper bound is refused",
			Fires: "kernel.pid_max = 4194305\n",
			Want:  `sysctl.conf:1:18: error: kernel.pid_max is 4194305 [sysctl-value]`,
			But:   "a negative number is within the bounds of this key",
			Near:  "kernel.panic = -1\n",
		},
		{
			Why:   "without window scaling no connection has more than 64 KiB under way",
			Fires: "net.ipv4.tcp_window_scaling=0\n",
			Want:  `sysctl.conf:1:29: warning: net.ipv4.tcp_window_scaling is 0 [window-scaling]`,
			But:   "1 is the default; timestamps may be off",
			Near:  "net.ipv4.tcp_window_scaling=1\nnet.ipv4.tcp_timestamps=0\n",
		},
		{
			Why:   "no key begins with nett",
			Fires: "nett.core.somaxconn = 1024\n",
			Want:  `sysctl.conf:1:1: error: unknown key nett.core.somaxconn [sysctl-key]`,
			But:   "a module of its own may have any key",
			Near:  "lustre.nett.somaxconn = 1024\n",
		},
		{
			Why:   "one letter is missing",
			Fires: "vm.swapiness = 10\n",
			Want:  `sysctl.conf:1:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			But:   "a key of a newer kernel is not close to a known one",
			Near:  "vm.something_of_next_year = 10\n",
		},
		{
			Why:   "the key is known elsewhere: somaxconn belongs to net.core",
			Fires: "net.ipv4.somaxconn = 1024\n",
			Want:  `sysctl.conf:1:1: error: the kernel has no key net.ipv4.somaxconn [sysctl-key]`,
			But:   "slashes may stand for dots, and a pattern with a star is not one key",
			Near:  "net/core/somaxconn = 1024\nnet.ipv4.conf.*.rp_filtre = 1\n",
		},
		{
			Why:   "slashes may stand for dots: the kernel does not read units there, too",
			Fires: "net/core/somaxconn = 4k\n",
			Want:  `sysctl.conf:1:22: error: net/core/somaxconn is "4k", which is not a whole number [sysctl-value]`,
			But:   "the number has no unit; a word without a dot is not a key",
			Near:  "net/core/somaxconn = 4096\nwords = 4k\n",
		},
		{
			But:  "a family of keys has no key of its own name, and any may be meant",
			Near: "vm.overcommit = 1\n",
		},
		{
			Why:   "an interface has no such setting",
			Fires: "net.ipv4.conf.eth0.rp_filtr = 1\n",
			Want:  `sysctl.conf:1:1: error: the kernel has no key net.ipv4.conf.eth0.rp_filtr [sysctl-key]`,
			But:   "interfaces have any name, with dots where slashes separate",
			Near:  "net.ipv4.conf.eth0.rp_filter = 1\nnet/ipv4/conf/eth0.100/rp_filter = 1\n",
		},
	}}
}

// together hold settings that are wrong beside each other.
func together() linttest.Table {
	return linttest.Table{File: "sysctl.conf", Rows: []linttest.Row{
		{
			Why:   "the file that is loaded last wins",
			Fires: "-- d/10.conf --\nvm.swappiness = 10\n-- d/20.conf --\nvm.swappiness = 60\n",
			Want:  `d/20.conf:1:1: warning: vm.swappiness is 60 here, and 10 in d/10.conf:1 [sysctl-twice]`,
			But:   "the same value twice is one value, and another directory is another machine",
			Near:  "-- d/10.conf --\nvm.swappiness = 10\n-- d/20.conf --\nvm/swappiness =  10\n-- e/10.conf --\nvm.swappiness = 60\n",
		},
		{
			But:  "two interfaces have a setting each",
			Near: "net.ipv4.conf.eth0.rp_filter = 1\nnet.ipv4.conf.eth1.rp_filter = 0\n",
		},
		{
			Why:   "the first port lies above the last",
			Fires: "net.ipv4.ip_local_port_range = 60999 32768\n",
			Want:  `sysctl.conf:1:32: error: net.ipv4.ip_local_port_range is 60999 32768 [sysctl-order]`,
			But:   "equal numbers rise far enough",
			Near:  "net.ipv4.tcp_rmem = 4096 131072 131072\n",
		},
		{
			Why:   "the default is larger than the bound",
			Fires: "net.core.rmem_default = 425984\nnet.core.rmem_max = 212992\nnet.ipv4.tcp_rmem = 4096 131072 212992\n",
			Want:  `sysctl.conf:1:25: error: net.core.rmem_default is 425984, above net.core.rmem_max, which is 212992 [sysctl-order]`,
			But:   "the default may be as large as the bound",
			Near:  "net.core.rmem_default = 212992\nnet.core.rmem_max = 212992\nnet.ipv4.tcp_rmem = 4096 131072 212992\n",
		},
		{
			Why:   "background writing never begins",
			Fires: "vm.dirty_ratio = 5\nvm.dirty_background_ratio = 10\n",
			Want:  `sysctl.conf:2:29: error: vm.dirty_background_ratio is 10, above vm.dirty_ratio, which is 5 [sysctl-order]`,
			But:   "what is not set has a default that is not judged, and a script fills in a number",
			Near:  "-- a/sysctl.conf --\nvm.dirty_background_ratio = 10\n-- b/sysctl.conf --\nvm.dirty_background_ratio = 10\nvm.dirty_ratio = $1\n",
		},
		{
			Why:   "TCP has a bound of its own, which stays at 6 MiB",
			Fires: "net.core.rmem_max = 16777216\n",
			Want:  `sysctl.conf:1:1: warning: net.core.rmem_max is 16777216, and net.ipv4.tcp_rmem is not set [sysctl-tcp-buffers]`,
			But:   "TCP's own bound is set as well",
			Near:  "net.core.rmem_max = 16777216\nnet.ipv4.tcp_rmem = 4096 131072 16777216\n",
		},
		{
			Why:   "TCP's own bound is less than half",
			Fires: "net.core.wmem_max = 16777216\nnet.ipv4.tcp_wmem = 4096 16384 8388607\n",
			Want:  `sysctl.conf:2:21: warning: net.core.wmem_max is 16777216, and TCP's own bound net.ipv4.tcp_wmem ends at 8388607 [sysctl-tcp-buffers]`,
			But:   "half of it is enough: programs ask for twice what they use",
			Near:  "net.core.wmem_max = 16777216\nnet.ipv4.tcp_wmem = 4096 16384 8388608\n",
		},
		{
			Why:   "gc_thresh2 keeps its default of 512, below gc_thresh1",
			Fires: "net.ipv4.neigh.default.gc_thresh1 = 513\n",
			Want:  `sysctl.conf:1:37: error: gc_thresh1 is 513, and gc_thresh2 stays at its default of 512: entries are collected at the lower bound already [sysctl-order]`,
			But:   "512 is not above the default of gc_thresh2",
			Near:  "net.ipv4.neigh.default.gc_thresh1 = 512\n",
		},
		{
			Why:   "gc_thresh3 is below gc_thresh2: no entry is made above it",
			Fires: "net.ipv6.neigh.default.gc_thresh2 = 1024\nnet.ipv6.neigh.default.gc_thresh3 = 1023\n",
			Want:  `sysctl.conf:1:37: error: gc_thresh2 is 1024, and gc_thresh3 is 1023: no entry is made above that [sysctl-order]`,
			But:   "each family has a table of its own",
			Near:  "net.ipv6.neigh.default.gc_thresh2 = 4096\nnet.ipv6.neigh.default.gc_thresh3 = 8192\nnet.ipv4.neigh.default.gc_thresh3 = 1024\n",
		},
		{
			Why:   "the bound that is set lies below a default",
			Fires: "net.ipv4.neigh.default.gc_thresh3 = 511\n",
			Want:  `sysctl.conf:1:37: error: gc_thresh2 is 512, and gc_thresh3 is 511: no entry is made above that [sysctl-order]`,
			But:   "it is as high as the default",
			Near:  "net.ipv4.neigh.default.gc_thresh3 = 512\n",
		},
	}}
}

// profiles hold profiles of tuned, and of the operator that carries them.
func profiles() linttest.Table {
	return linttest.Table{File: "a.tuned", Rows: []linttest.Row{
		{
			Why:   "the section sysctl of a profile is written to the kernel",
			Fires: "[main]\nsummary=x\n[sysctl]\nvm.swapiness=10\n",
			Want:  `a.tuned:4:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			But:   "another section has keys of its own; a comment sets nothing",
			Near:  "[main]\nsummary=x\n[variables]\nvm.swapiness=10\n[sysctl]\n# vm.swapiness=10\n; vm.swapiness=10\n",
		},
		{
			Why:   "type tells the plug-in, whatever the section is called",
			Fires: "[mine]\nvm.swapiness=10\ntype=sysctl\n",
			Want:  `a.tuned:2:1: error: the kernel has no key vm.swapiness [sysctl-key]`,
			But:   "type takes the section to another plug-in",
			Near:  "[sysctl]\nvm.swapiness=10\ntype=script\n",
		},
		{
			Why:   "a value of a profile has the bounds of the kernel",
			Fires: "[sysctl]\nvm.dirty_ratio=>101 # percent\n",
			Want:  `a.tuned:2:16: error: vm.dirty_ratio is 101 [sysctl-value]`,
			But:   "tuned cuts the comment, the quotes and the comparison off, and fills in variables",
			Near:  "[sysctl]\nvm.dirty_ratio=>\"40\" # percent\nvm.dirty_background_ratio=${ratio}\nvm.swapines${s}=10\n",
		},
		{
			Why:   "no profile has that name: the node keeps its profile",
			Fires: "-- tuned.yaml --\nspec:\n  profile:\n  - name: custom-ceph\n  recommend:\n  - profile: custom-cephs\n",
			Want:  `tuned.yaml:5:14: error: profile custom-cephs does not exist in this file [bad-value]`,
			But:   "the operator brings profiles of its own, another object may have others, and a template fills in names",
			Near:  "-- tuned.yaml --\nspec:\n  profile:\n  - name: custom-ceph\n  - name: openshift-nodes\n  recommend:\n  - profile: custom-ceph\n  - profile: openshift-node\n  - profile: gpu\n  - profile: custom-cep${X}\n",
		},
	}}
}

// proxies hold configurations of HAProxy.
func proxies() linttest.Table {
	return linttest.Table{File: "haproxy.cfg", Rows: []linttest.Row{
		{
			Why:   "HAProxy starts a thread per CPU, and puts all on CPU 0",
			Fires: "global\n    cpu-map 1 0\n",
			Want:  `haproxy.cfg:2:13: warning: cpu-map 1 0: HAProxy has a thread for each CPU by default, and all of them are put on CPU 0 [haproxy-cpu-map]`,
			But:   "each thread gets a CPU, or the process gets several",
			Near:  "global\n    cpu-map auto:1/1-4 0-3\n    cpu-map 1/1 0\n    cpu-map 1 0-3\n    # cpu-map 1 0\n",
		},
		{
			Why:   "four threads run on one CPU",
			Fires: "global\n    nbthread 4\n    cpu-map auto:1 2 # one\n",
			Want:  `haproxy.cfg:3:13: warning: cpu-map auto:1 2: HAProxy has 4 threads, and all of them are put on CPU 2 [haproxy-cpu-map]`,
			But:   "one thread needs one CPU",
			Near:  "global\n    nbthread 1\n    cpu-map 1 0\n",
		},
		{
			But:  "each of two processes has one thread and one CPU",
			Near: "global\n    nbproc 2\n    cpu-map 1 0\n    cpu-map 2 1\n",
		},
	}}
}

// looks returns how this package looks at the texts of its tables.
func looks() linttest.Looks { return linttest.Looks{At: lookAt, Across: lookAcross} }

func TestEveryRuleHasARow(t *testing.T) { looks().EveryLineFires(t, tables()) }
