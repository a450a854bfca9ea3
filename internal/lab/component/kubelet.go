package component

import (
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	kubelet "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

// KubeletFaults returns what the kubelet's own validation and its parser of thresholds refuse in a
// KubeletConfiguration, as YAML or JSON with the kubelet's defaults filled in. It leaves out what they would refuse
// in an empty one on this machine.
func KubeletFaults(config []byte) []string {
	const empty = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
	usual := kubeletFaults([]byte(empty))
	return slices.DeleteFunc(kubeletFaults(config), func(fault string) bool { return slices.Contains(usual, fault) })
}

func kubeletFaults(config []byte) (faults []string) {
	_, codecs, err := scheme.NewSchemeAndCodecs()
	if err != nil {
		return nil
	}
	var c kubelet.KubeletConfiguration
	if err := runtime.DecodeInto(codecs.UniversalDecoder(), config, &c); err != nil {
		return nil // a field of the wrong type, which the schema finds
	}
	gates := utilfeature.DefaultFeatureGate.DeepCopy()
	if err := gates.SetFromMap(c.FeatureGates); err != nil {
		faults = append(faults, "featureGates: "+err.Error())
	}
	err = validation.ValidateKubeletConfiguration(&c, gates)
	list := []error{err}
	if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
		list = all.Errors()
	}
	_, err = eviction.ParseThresholdConfig(nil, c.EvictionHard, c.EvictionSoft, c.EvictionSoftGracePeriod, c.EvictionMinimumReclaim)
	for _, err := range append(list, err) {
		if err != nil {
			faults = append(faults, strings.TrimPrefix(err.Error(), "invalid configuration: "))
		}
	}
	return faults
}
