package kubeburner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/itchyny/gojq"
)

// Conditions are all that must hold of an object's status for the object to count as ready.
type Conditions []condition

type condition struct {
	StatusPath
	code *gojq.Code
}

// Asks reports whether the options wait for more than the pods of an object.
func (w *WaitOptions) Asks() bool {
	return w.states() || w.Kind != "" || len(w.LabelSelector) > 0
}

// states reports whether the options say what being ready means.
func (w *WaitOptions) states() bool { return len(w.CustomStatusPaths) > 0 || w.ForCondition != "" }

// Awaits reports whether an entry's objects of a kind are waited for: with options all of which what being ready
// means is known, without those that kube-burner waits for and whose pods are not followed here.
func (w *WaitOptions) Awaits(kind string) bool {
	_, known := readyOf(kind)
	return w.states() || known && (w.Asks() || !followed(kind))
}

// followed reports whether an object of a kind is ready once its pods are, which are followed.
func followed(kind string) bool {
	return slices.Contains([]string{"Pod", "Deployment", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Node"}, kind)
}

// Conditions returns the options' own conditions, or those by which objects of a kind are ready.
func (w *WaitOptions) Conditions(kind string) (Conditions, error) {
	paths := slices.Clone(w.CustomStatusPaths)
	if w.ForCondition != "" {
		paths = append(paths, conditionPath(w.ForCondition))
	}
	if len(paths) == 0 {
		of, known := readyOf(kind)
		if !known {
			return nil, fmt.Errorf("what being ready means for a %s is unknown: say it in customStatusPaths", kind)
		}
		paths = []StatusPath{of}
	}
	var list Conditions
	for _, p := range paths {
		query, err := gojq.Parse(p.Key)
		if err != nil {
			return nil, fmt.Errorf("the jq expression %q is not valid: %w", p.Key, err)
		}
		if what := beyondJQ(query); what != "" {
			return nil, fmt.Errorf("the jq expression %q is not allowed: %s", p.Key, what)
		}
		code, err := gojq.Compile(query)
		if err != nil {
			return nil, fmt.Errorf("the jq expression %q is not valid: %w", p.Key, err)
		}
		list = append(list, condition{p, code})
	}
	return list, nil
}

func conditionPath(name string) StatusPath {
	return StatusPath{Key: "(.conditions[]? | select(.type == " + strconv.Quote(name) + ")).status", Value: "True"}
}

// mostMade bounds the parts of an expression that may double a value's size.
const mostMade = 8

// askingFunctions lists the functions of jq for conditions: none makes much of little, loops, or reads more.
func askingFunctions() []string {
	return []string{"all", "any", "add", "ascii_downcase", "contains", "empty", "endswith", "first", "flatten", "has", "in", "index", "inside", "isempty", "keys", "last", "length", "map", "max", "min", "not", "select",
		"sort", "sort_by", "split", "startswith", "test", "to_entries", "tonumber", "tostring", "true", "false", "null", "type", "unique", "values"}
}

// beyondJQ says what in an expression could take unbounded memory or time: plans may be strangers'.
func beyondJQ(query *gojq.Query) (what string) {
	made := 0
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch {
		case what != "" || v.Kind() == reflect.Pointer && v.IsNil():
			return
		case v.Kind() == reflect.Pointer:
			switch node := v.Interface().(type) {
			case *gojq.Func:
				if node.Name == "$ENV" || !strings.HasPrefix(node.Name, "$") && !slices.Contains(askingFunctions(), node.Name) {
					what = fmt.Sprintf("function %q; known are %s", node.Name, strings.Join(askingFunctions(), ", "))
				}
			case *gojq.FuncDef, *gojq.Reduce, *gojq.Foreach, *gojq.Label, *gojq.Import:
				what = "it defines functions, loops or imports"
			case *gojq.Query:
				switch node.Op {
				case gojq.OpAdd, gojq.OpComma:
					made++
				case gojq.OpMul, gojq.OpAssign, gojq.OpModify, gojq.OpUpdateAdd, gojq.OpUpdateSub, gojq.OpUpdateMul, gojq.OpUpdateDiv, gojq.OpUpdateMod, gojq.OpUpdateAlt:
					what = "operator " + node.Op.String()
				}
			case *gojq.Array, *gojq.Object:
				made++
			case *gojq.String:
				if len(node.Queries) > 0 {
					made++
				}
			case *gojq.Term:
				if node.Format != "" {
					what = "format " + node.Format
				}
			}
			if made > mostMade {
				what = fmt.Sprintf("it makes more than %d values", mostMade)
			}
			walk(v.Elem())
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				walk(v.Field(i))
			}
		case v.Kind() == reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		}
	}
	walk(reflect.ValueOf(query))
	return what
}

func readyOf(kind string) (p StatusPath, known bool) {
	switch kind {
	case "Pod", "VirtualMachine", "VirtualMachineInstance", "DataSource", "Node":
		return conditionPath("Ready"), true
	case "Deployment":
		return conditionPath("Available"), true
	case "CustomResourceDefinition": // the next job may need its kind
		return conditionPath("Established"), true
	case "ReplicaSet", "ReplicationController", "StatefulSet", "VirtualMachineInstanceReplicaSet":
		return StatusPath{Key: ".replicas == .readyReplicas", Value: "true"}, true
	case "DaemonSet":
		return StatusPath{Key: ".numberReady == .desiredNumberScheduled", Value: "true"}, true
	case "Job":
		return conditionPath("Complete"), true
	case "PersistentVolumeClaim":
		return StatusPath{Key: ".phase", Value: "Bound"}, true
	case "DataVolume":
		return StatusPath{Key: ".phase", Value: "Succeeded"}, true
	case "Build":
		return StatusPath{Key: ".phase", Value: "Complete"}, true
	case "VolumeSnapshot":
		return StatusPath{Key: ".readyToUse", Value: "true"}, true
	}
	return p, false
}

// Bounds of one expression over one status.
const (
	jqPatience = time.Second
	jqResults  = 1000
)

// Unmet returns the first condition that a status does not meet, with the value found, or "". It returns an
// error for an expression that will always fail; a missing value may still come.
func (c Conditions) Unmet(ctx context.Context, status any) (string, error) {
	for i := range c {
		unmet, err := c[i].unmet(ctx, status)
		if err != nil {
			return "", fmt.Errorf("the jq expression %q fails: %w", c[i].Key, err)
		}
		if unmet != "" {
			return unmet, nil
		}
	}
	return "", nil
}

func (c *condition) unmet(ctx context.Context, status any) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, jqPatience)
	defer cancel()
	results := c.code.RunWithContext(ctx, status)
	found := ""
	for range jqResults {
		v, more := results.Next()
		if !more {
			break
		}
		if err, failed := v.(error); failed {
			switch {
			case ctx.Err() != nil:
				return "", errors.New("it gave nothing for " + jqPatience.String())
			case strings.Contains(err.Error(), "null"):
				return c.Key + " is not there", nil
			}
			return "", err
		}
		text := fmt.Sprint(v)
		if text == c.Value {
			return "", nil
		}
		if v != nil {
			found = text
		}
	}
	return fmt.Sprintf("%s is %s, not %s", c.Key, cmp.Or(found, "not there"), c.Value), nil
}
