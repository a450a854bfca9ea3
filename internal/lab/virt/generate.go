//go:build ignore

// Generate writes crds.json.gz, the definitions of the resources that a lab with virtual machines serves, and those of
// the Gateway API for the load of gateways, without descriptions. It makes those of KubeVirt and its importer from the
// program's modules, and takes the others from files of the modules named here.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	generator   = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0"
	openshift   = "github.com/openshift/api@v0.0.0-20260213204242-d34f11c515b3"
	gateways    = "sigs.k8s.io/gateway-api@v1.4.0" // that of the Traefik in tools/traefik
	snapshotter = "github.com/kubernetes-csi/external-snapshotter/client/v8@v8.7.0"
)

// An entry adds to controller-gen's definition what KubeVirt's operator adds when it installs it.
type entry struct {
	file    string
	status  bool // has the subresource status
	short   []string
	columns string // more columns of "kubectl get": NAME=PATH, separated by spaces
}

func main() {
	made, err := os.MkdirTemp("", "crds-")
	check(err)
	defer os.RemoveAll(made)
	run("go", "run", generator, "crd:allowDangerousTypes=true,maxDescLen=0",
		"paths=kubevirt.io/api/core/v1", "paths=kubevirt.io/api/snapshot/v1beta1", "paths=kubevirt.io/api/clone/v1beta1",
		"paths=kubevirt.io/containerized-data-importer-api/pkg/apis/core/v1beta1", "output:crd:dir="+made)
	machine := filepath.Join(module(openshift), "machineconfiguration/v1/zz_generated.crd-manifests/0000_80_machine-config_01_")
	config := filepath.Join(module(openshift), "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_")
	snapshots := filepath.Join(module(snapshotter), "config/crd/snapshot.storage.k8s.io_")
	kubevirt, cdi := filepath.Join(made, "kubevirt.io_"), filepath.Join(made, "cdi.kubevirt.io_")
	write("crds.json.gz", []entry{
		{kubevirt + "virtualmachines", true, []string{"vm", "vms"}, "Status=.status.printableStatus Ready=.status.conditions[?(@.type=='Ready')].status"},
		{kubevirt + "virtualmachineinstances", false, []string{"vmi", "vmis"}, "Phase=.status.phase IP=.status.interfaces[0].ipAddress NodeName=.status.nodeName Ready=.status.conditions[?(@.type=='Ready')].status"},
		{kubevirt + "virtualmachineinstancemigrations", true, []string{"vmim", "vmims"}, "Phase=.status.phase VMI=.spec.vmiName"},
		{kubevirt + "kubevirts", true, []string{"kv", "kvs"}, "Phase=.status.phase"},
		{filepath.Join(made, "snapshot.kubevirt.io_virtualmachinesnapshots"), true, []string{"vmsnapshot", "vmsnapshots"}, "Phase=.status.phase ReadyToUse=.status.readyToUse"},
		{filepath.Join(made, "snapshot.kubevirt.io_virtualmachinerestores"), true, []string{"vmrestore", "vmrestores"}, "Complete=.status.complete"},
		{filepath.Join(made, "clone.kubevirt.io_virtualmachineclones"), true, []string{"vmclone", "vmclones"}, "Phase=.status.phase"},
		{cdi + "cdis", false, nil, ""}, {cdi + "cdiconfigs", false, nil, ""}, {cdi + "datavolumes", true, nil, ""},
		{cdi + "datasources", true, nil, ""}, {cdi + "storageprofiles", true, nil, ""},
		{snapshots + "volumesnapshots", true, nil, ""}, {snapshots + "volumesnapshotcontents", true, nil, ""},
		{snapshots + "volumesnapshotclasses", false, nil, ""},
		{machine + "machineconfigs.crd", false, nil, ""}, {machine + "machineconfigpools-Default.crd", true, nil, ""},
		{config + "clusterversions-Default.crd", true, nil, ""}, {config + "clusteroperators.crd", true, nil, ""},
	})
	gateway := filepath.Join(module(gateways), "config/crd/standard/gateway.networking.k8s.io_")
	var standard []entry
	for _, kind := range []string{"gatewayclasses", "gateways", "httproutes", "grpcroutes", "referencegrants", "backendtlspolicies"} {
		standard = append(standard, entry{file: gateway + kind})
	}
	write("../../system/kubernetes/ingress/gateway.json.gz", standard)
}

func write(file string, entries []entry) {
	var all []apiextensions.CustomResourceDefinition
	for _, e := range entries {
		all = append(all, e.read())
	}
	text, err := json.Marshal(all)
	check(err)
	var compressed bytes.Buffer
	w, err := gzip.NewWriterLevel(&compressed, gzip.BestCompression)
	check(err)
	_, err = w.Write(text)
	check(err)
	check(w.Close())
	check(os.WriteFile(file, compressed.Bytes(), 0o644))
}

func (e entry) read() (crd apiextensions.CustomResourceDefinition) {
	data, err := os.ReadFile(e.file + ".yaml")
	check(err)
	check(yaml.UnmarshalStrict(data, &crd))
	if e.short != nil {
		crd.Spec.Names.ShortNames = e.short
	}
	crd.Status = apiextensions.CustomResourceDefinitionStatus{}
	crd.Spec.Versions = slices.DeleteFunc(crd.Spec.Versions, func(v apiextensions.CustomResourceDefinitionVersion) bool { return !v.Served })
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if e.status && v.Subresources == nil {
			v.Subresources = &apiextensions.CustomResourceSubresources{Status: &apiextensions.CustomResourceSubresourceStatus{}}
		}
		for _, column := range strings.Fields(e.columns) {
			name, path, _ := strings.Cut(column, "=")
			v.AdditionalPrinterColumns = append(v.AdditionalPrinterColumns, apiextensions.CustomResourceColumnDefinition{Name: name, Type: "string", JSONPath: path})
		}
		if e.columns != "" {
			v.AdditionalPrinterColumns = append(v.AdditionalPrinterColumns, apiextensions.CustomResourceColumnDefinition{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"})
		}
		strip(v.Schema.OpenAPIV3Schema, true)
	}
	return crd
}

// strip removes descriptions. As in KubeVirt's definitions, the metadata of templates keep everything.
func strip(s *apiextensions.JSONSchemaProps, root bool) {
	s.Description = ""
	for name, property := range s.Properties {
		if name == "metadata" && !root && property.Type == "object" && len(property.Properties) == 0 {
			property.XPreserveUnknownFields, property.Nullable = new(true), true
		}
		strip(&property, false)
		s.Properties[name] = property
	}
	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema, false)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		strip(s.AdditionalProperties.Schema, false)
	}
}

// module returns the directory of a module, which the program need not be built with.
func module(name string) string {
	var found struct{ Dir string }
	check(json.Unmarshal(run("go", "mod", "download", "-json", name), &found))
	return found.Dir
}

func run(name string, args ...string) []byte {
	out, err := exec.Command(name, args...).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		err = fmt.Errorf("%s: %w: %s", name, err, failed.Stderr)
	}
	check(err)
	return out
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
