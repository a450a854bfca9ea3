package kubernetes

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/image"
)

// Job describes a Kubernetes job that runs this program in the cluster that it loads.
type Job struct {
	Account Account // its namespace and its name are the job's too
	Image   string
	Args    []string // of the program
	Flags   []string // further ones, which a chart takes from its values
	Record  string   // run directory, below image.SelfData
	Size    string   // bound of the record, as Kubernetes writes quantities
}

// Manifest returns the job with its account as commented YAML for kubectl apply, and with its namespace
// unless the account keeps to an existing one. A pod of the job passes Pod Security "restricted". Its first
// container makes the run; the second holds the volume until the record was copied, since no file of a pod
// can be read once all containers have ended.
func (j Job) Manifest() string {
	j.Args = slices.Concat(j.Args, j.Flags)
	return j.manifest("")
}

// Chart returns the files of a Helm chart of the job, by their paths. Image, size and further flags are its
// values; its rights follow from these flags.
func (j Job) Chart(version string) map[string][]byte {
	values := fmt.Sprintf("image: %q\nsize: %s # that the record may have\n# Flags of 'plimsoll limit'. Others may need other rights, which a chart of 'plimsoll job --chart' has.\nflags:", j.Image, j.Size)
	if len(j.Flags) == 0 {
		values += " []"
	}
	for _, flag := range j.Flags {
		values += fmt.Sprintf("\n- %q", flag)
	}
	j.Image, j.Size = "{{ .Values.image }}", "{{ .Values.size }}"
	return map[string][]byte{
		"Chart.yaml":         fmt.Appendf(nil, "apiVersion: v2\nname: %s\ndescription: Searches for the load line of %s from within the cluster\nversion: %s\nappVersion: %[3]q\n", j.Account.Name, j.Account.Workload, version),
		"values.yaml":        []byte(values + "\n"),
		"templates/job.yaml": []byte(j.manifest("{{- range .Values.flags }}\n        - {{ quote . }}\n{{- end }}\n")),
	}
}

// manifest returns the job, with more among the arguments of its run.
func (j Job) manifest(more string) string {
	a := j.Account
	name, space := scalar(a.Name), scalar(a.Namespace)
	of := fmt.Sprintf("kubectl -n %s %%s job/%s -c %%s", a.Namespace, a.Name)
	var b strings.Builder
	fmt.Fprintf(&b, `# A job that loads the cluster that it runs in: kubectl apply -f FILE starts it, kubectl delete -f FILE
# removes it. These commands follow its log and copy the record out; the second waits for the end of the run:
#   %s
#   mkdir run && %s -- /plimsoll job copy %s | tar -x -C run
# The pod ends once the record was copied, or an hour after the run. The job fails if the run's exit code
# is not 0.
`, fmt.Sprintf(of, "logs -f", "run"), fmt.Sprintf(of, "exec", "record"), j.Record)
	if a.Keeps == "" {
		fmt.Fprintf(&b, "apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {pod-security.kubernetes.io/enforce: restricted}}\n---\n", space)
	}
	b.WriteString(a.Manifest())
	fmt.Fprintf(&b, `---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      serviceAccountName: %[1]s
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}} # the image names user 65532
      containers:
`, name, space)
	j.container(&b, "run", "500m", "256Mi", j.Args, more)
	j.container(&b, "record", "10m", "64Mi", []string{"job", "keep", j.Record}, "")
	fmt.Fprintf(&b, "      volumes:\n      - {name: data, emptyDir: {sizeLimit: %s}}\n", j.Size)
	return b.String()
}

// container writes a container of the job.
func (j Job) container(b *strings.Builder, name, cpu, memory string, args []string, more string) {
	fmt.Fprintf(b, `      - name: %s
        image: %q
        imagePullPolicy: IfNotPresent
        args:
`, name, j.Image)
	for _, arg := range args {
		fmt.Fprintf(b, "        - %q\n", arg)
	}
	b.WriteString(more)
	fmt.Fprintf(b, `        resources: {requests: {cpu: %s, memory: %s}, limits: {memory: 512Mi}}
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: data, mountPath: %s}]
`, cpu, memory, image.SelfData)
}
