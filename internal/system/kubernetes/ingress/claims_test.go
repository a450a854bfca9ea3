package ingress

import (
	"net/http"
	"strings"
	"testing"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

func TestWhatAPlanSaysOfClaims(t *testing.T) {
	for _, tt := range []struct {
		why    string
		params map[string]string
		arm    map[string]string // the parameters of a second one
		check  func(*settings) bool
		says   string // of the error
	}{
		{"the default class", nil, nil, func(s *settings) bool {
			return s.way() == "claims of 1Gi of storage class (default)" && s.image == "registry.example/team/plimsoll-fio:latest" && s.io.job.Reads() && !s.io.job.Writes() && s.unit() == "IOs"
		}, ""},
		{"a class and a size", map[string]string{"class": "gp3", "claim": "20Gi", "clients": "4"}, nil, func(s *settings) bool {
			return s.way() == "claims of 20Gi of storage class gp3" && s.least == 4 && s.most == 4
		}, ""},
		{"a size that is none", map[string]string{"claim": "3 apples"}, nil, nil, "claim"},
		{"a file that is larger than its claim", map[string]string{"claim": "100Mi"}, nil, nil, "is larger than the claim, 100Mi"},
		{"arms of different patterns", nil, map[string]string{"rw": "randwrite"}, func(s *settings) bool { return true }, ""},
		{"arms of different classes", nil, map[string]string{"class": "gp3"}, nil, "class and claim cannot differ"},
		{"arms of different claims", nil, map[string]string{"claim": "2Gi"}, nil, "class and claim cannot differ"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var arms []plan.Arm
			if tt.arm != nil {
				arms = []plan.Arm{{Name: "a"}, {Name: "b", Params: tt.arm}}
			}
			all, err := read(requestOf(t, Claims{}.Declare(), tt.params, arms...), volumesOf)
			switch {
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("%v, want %q", err, tt.says)
			case tt.says == "" && (err != nil || !tt.check(all[""])):
				t.Errorf("%+v, %v", all[""], err)
			}
		})
	}
}

// The class is found before anything is made, and a claim goes with its pod.
func TestStorageClasses(t *testing.T) {
	class := func(name string, standard bool) storagev1.StorageClass {
		c := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: name + ".csi"}
		if standard {
			c.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
		}
		return c
	}
	for _, tt := range []struct {
		why, class string
		code       int // of the list, 0 for success
		list       []storagev1.StorageClass
		chosen, by string // the class and its provisioner
		says       string // the error
	}{
		{"the default", "", 0, []storagev1.StorageClass{class("slow", false), class("fast", true)}, "fast", "fast.csi", ""},
		{"another one", "slow", 0, []storagev1.StorageClass{class("slow", false), class("fast", true)}, "slow", "slow.csi", ""},
		{"none is the default", "", 0, []storagev1.StorageClass{class("slow", false)}, "", "", "the cluster has no default storage class"},
		{"a typo", "slwo", 0, []storagev1.StorageClass{class("slow", false)}, "", "", `the cluster has no storage class "slwo"`},
		{"a user who may not list classes", "mine", http.StatusForbidden, nil, "mine", "", ""},
	} {
		t.Run(tt.why, func(t *testing.T) {
			i := opened(t, Claims{}, requestOf(t, Claims{}.Declare(), map[string]string{"class": tt.class}), func(w http.ResponseWriter, r *http.Request) {
				if tt.code != 0 {
					answer(t, w, tt.code, metav1.Status{Status: metav1.StatusFailure, Code: int32(tt.code), Reason: metav1.StatusReasonForbidden})
					return
				}
				answer(t, w, http.StatusOK, storagev1.StorageClassList{Items: tt.list})
			})
			v := i.arms[""].io
			err := i.findClass(t.Context(), v)
			if tt.says != "" {
				if err == nil || !strings.Contains(err.Error(), tt.says) {
					t.Errorf("%v, want %q", err, tt.says)
				}
				return
			}
			if err != nil || v.class != tt.chosen || v.provisioner != tt.by {
				t.Fatalf("%+v, %v", v, err)
			}
			pod := i.clientJob(3).Spec.Template.Spec
			template := pod.Volumes[0].Ephemeral.VolumeClaimTemplate
			if *template.Spec.StorageClassName != tt.chosen || template.Labels[api.LabelRun] != "r" || template.Spec.Resources.Requests.Storage().String() != "1Gi" ||
				pod.SecurityContext.FSGroup == nil || !*pod.SecurityContext.RunAsNonRoot || pod.Containers[0].VolumeMounts[0].MountPath != "/data" {
				t.Errorf("the clients' pod: %+v", pod)
			}
			v.bare = true
			if volume := i.clientJob(1).Spec.Template.Spec.Volumes[0]; volume.EmptyDir == nil || volume.Ephemeral != nil {
				t.Errorf("in a lab without a class: %+v", volume)
			}
		})
	}
}
