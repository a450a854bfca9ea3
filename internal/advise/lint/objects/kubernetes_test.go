package objects

import (
	"path"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"

	"plimsoll.dev/plimsoll/internal/advise/lint/linttest"
)

// lookAt looks at a file as package lint does: at user data, an installation's
// configuration, an Ignition configuration, or objects. Each line of a file
// that ends in .labels is a label that a command gives: KIND NAME KEY=VALUE, with
// * for all of the kind. A file that
// ends in .shape is held against shape.
func lookAt(out *report.Report, t *reading.Text) {
	switch path.Ext(t.Name) {
	case ".userdata":
		CheckUserData(out, t)
		return
	case ".labels":
		for n := 1; n < len(t.Lines); n++ {
			words := strings.Fields(t.Line(n))
			key, value, _ := strings.Cut(words[2], "=")
			out.Labels = append(out.Labels, report.Labelled{
				Kind: words[0], Name: strings.Trim(words[1], "*"), Key: key, Value: value, At: t.Place(n, 1),
				Replace: func(string) []reading.Edit { return nil },
			})
		}
		return
	}
	docs, problems := reading.Documents(t.Name, t.Data)
	out.Unreadable(t, problems)
	for _, d := range docs {
		root := reading.Value{Doc: &reading.Doc{Text: t}, Node: d.Root}
		switch path.Ext(t.Name) {
		case ".install":
			CheckInstallConfig(out, root)
		case ".ign":
			IgnitionConfig(out, root, "")
		case ".shape":
			fitsShape(out, root)
		default:
			LookAtObject(out, root)
		}
	}
}

func lookAcross(out *report.Report) {
	AcrossPools(out)
	AcrossClones(out)
	AcrossSubnets(out)
}

func tables() []linttest.Table {
	return []linttest.Table{
		objects(), shapes(), machines(), migrations(), dataVolumes(), clones(), cloudInits(), userData(),
		pools(), poolLabelsOf(), kubelets(), machineConfigs(), ignitions(), networks(), podLimits(),
	}
}

func TestObjects(t *testing.T) { looks().Check(t, objects()) }

// objects hold what is asked of objects of any kind.
func objects() linttest.Table {
	return linttest.Table{File: "a.yaml", Rows: []linttest.Row{
		{
			Why:   "an object without a name is refused",
			Fires: "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {labels: {a: b}}\nspec: {}\n",
			Want:  `a.yaml:3:1: error: a StorageProfile without a name [missing-name]`,
			But:   "the server makes a name of generateName; a KubeletConfiguration has none",
			Near:  "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata: {generateName: a-}\nspec: {}\n---\napiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n",
		},
		{
			Why:   "objects in a list are looked at, too",
			Fires: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: cdi.kubevirt.io/v1beta1\n  kind: StorageProfile\n  spec: {}\n",
			Want:  `a.yaml:4:3: error: a StorageProfile without a name [missing-name]`,
			But:   "Kubernetes' own kinds are left to its API server",
			Near:  "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n",
		},
		{
			Why:   "a list of a kind and a template hold objects, too",
			Fires: "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfileList\nitems:\n- apiVersion: cdi.kubevirt.io/v1beta1\n  kind: StorageProfile\n  spec: {}\n---\napiVersion: template.openshift.io/v1\nkind: Template\nobjects:\n- apiVersion: cdi.kubevirt.io/v1beta1\n  kind: StorageProfile\n  spec: {}\n",
			Want: `a.yaml:4:3: error: a StorageProfile without a name [missing-name]
a.yaml:11:3: error: a StorageProfile without a name [missing-name]`,
			But:  "an item that is not a mapping is left to the API server",
			Near: "apiVersion: v1\nkind: List\nitems: [a]\n",
		},
		{
			Why:   "a StorageProfile is for the whole cluster",
			Fires: "apiVersion: cdi.kubevirt.io/v1beta1\nkind: StorageProfile\nmetadata:\n  name: a\n  namespace: b\nspec: {}\n",
			Want:  `a.yaml:5:3: warning: a StorageProfile has no namespace [cluster-scoped]`,
			But:   "a DataVolume has a namespace",
			Near:  "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata:\n  name: a\n  namespace: b\nspec: {}\n",
		},
		{
			Why:   "the node has no such kernel setting: the pod is refused",
			Fires: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  securityContext:\n    sysctls:\n    - name: net.core.somaxcon\n      value: \"1024\"\n",
			Want:  `a.yaml:7:13: error: the kernel has no key net.core.somaxcon [sysctl-key]`,
			But:   "it has this one",
			Near:  "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n  securityContext:\n    sysctls:\n    - name: net.core.somaxconn\n      value: \"1024\"\n",
		},
		{
			Why:   "a profile of tuned is looked at by package host",
			Fires: "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\nspec:\n  profile: [{name: mine-a}]\n  recommend: [{profile: mine-b}]\n",
			Want:  `a.yaml:6:25: error: profile mine-b does not exist in this file [bad-value]`,
			But:   "it names the profile that it makes",
			Near:  "apiVersion: tuned.openshift.io/v1\nkind: Tuned\nmetadata: {name: a}\nspec:\n  profile: [{name: mine-a}]\n  recommend: [{profile: mine-a}]\n",
		},
	}}
}

// Files inside of a ConfigMap or a Secret are handed on if their kind is known.
func TestFilesInsideOfObjects(t *testing.T) {
	const setting = "net.core.somaxconn = 1\n"
	for _, c := range []struct {
		why, text string
		want      []string
	}{
		{"a ConfigMap holds texts", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  9.conf: |\n    " + setting + "  notes: hello\n", []string{"9.conf: " + setting}},
		{"a Secret holds base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  9.conf: bmV0LmNvcmUuc29tYXhjb25uID0gMQo=\n", []string{"9.conf: " + setting}},
		{"a Secret may hold a text as it is", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  9.conf: |\n    " + setting, []string{"9.conf: " + setting}},
		{"data of a Secret that is not base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata:\n  9.conf: |\n    " + setting, nil},
		{"a file of an Ignition configuration", "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: a, labels: {machineconfiguration.openshift.io/role: worker}}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: /etc/sysctl.d/9.conf, contents: {source: \"data:,net.core.somaxconn%20=%201%0A\"}}\n", []string{"/etc/sysctl.d/9.conf of worker: " + setting}},
		{"a file of an Ignition configuration in gzip", "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\nmetadata: {name: a, labels: {machineconfiguration.openshift.io/role: worker}}\nspec:\n  config:\n    ignition: {version: 3.2.0}\n    storage:\n      files:\n      - {path: /a, contents: {compression: gzip, source: \"data:;base64," + zipped(t, setting) + "\"}}\n", []string{"/a of worker: " + setting}},
		{"a file that cloud-init writes", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  userData: |\n    #cloud-config\n    write_files:\n    - path: /etc/sysctl.d/9.conf\n      content: |\n        " + setting + "    - path: /etc/sysctl.d/8.conf\n      encoding: b64\n      content: YQ==\n", []string{"/etc/sysctl.d/9.conf: " + setting}},
	} {
		var handed []string
		out := &report.Report{Tables: report.NewTables(), Look: func(_ *report.Report, inner *reading.Text) {
			name := inner.Name
			if inner.Role != "" {
				name += " of " + inner.Role
			}
			handed = append(handed, name+": "+inner.Data)
		}}
		lookAt(out, reading.NewText(reading.Input{Name: "a.yaml", Data: []byte(c.text)}))
		wrong := c.want == nil // then the API server refuses it, too
		if !slices.Equal(handed, c.want) || (len(out.Findings) > 0) != wrong || len(out.Problems) > 0 {
			t.Errorf("%s: handed on %q, want %q (%v %v)", c.why, handed, c.want, out.Findings, out.Problems)
		}
	}
}

// looks returns how this package looks at the texts of its tables.
func looks() linttest.Looks { return linttest.Looks{At: lookAt, Across: lookAcross} }

func TestEveryRuleHasARow(t *testing.T) { looks().EveryLineFires(t, tables()) }
