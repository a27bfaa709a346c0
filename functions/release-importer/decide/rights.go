package decide

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/shared/dockyards"
	"github.com/slipway-dev/slipway/shared/plan"
)

// groupPrefix begins the group of all service accounts of a namespace.
const groupPrefix = "system:serviceaccounts:"

// rights lets the service accounts of every namespace that has NodePools clone the
// image. Nothing is bound to a Role that is somebody else's: it may allow more.
func (v *view) rights() []plan.Entry {
	entries, mine := v.role()
	if !mine {
		return nil
	}
	return append(entries, v.binding()...)
}

func (v *view) role() (entries []plan.Entry, mine bool) {
	wanted := v.newRole()
	role := v.in.Role
	if role == nil {
		return []plan.Entry{v.create(dockyards.Roles, wanted, "images may be cloned from here")}, true
	}
	if dockyards.Going(role) {
		return nil, false // its end wakes us
	}
	have, err := plan.Typed[rbacv1.Role](role)
	same := err == nil && equal(have.Rules, wanted.Rules)
	if !v.ours(role, same) {
		v.conflict(dockyards.Roles, role.GetName())
		return nil, false
	}
	object := role.DeepCopy()
	v.adopt(object)
	if !same {
		object.Object["rules"] = fields(wanted, "rules")
	}
	return patch(dockyards.Roles, role, object, "images may be cloned from here"), true
}

func (v *view) binding() []plan.Entry {
	wanted := v.newBinding()
	binding := v.in.RoleBinding
	if binding == nil {
		wanted.Subjects = subjects(v.namespaces(nil))
		return []plan.Entry{v.create(dockyards.RoleBindings, wanted, "machines of these namespaces clone the image")}
	}
	if dockyards.Going(binding) {
		return nil // its end wakes us
	}
	have, err := plan.Typed[rbacv1.RoleBinding](binding)
	// Another roleRef can never be changed, so this binding serves something else.
	if err != nil || !equal(have.RoleRef, wanted.RoleRef) || !v.ours(binding, true) {
		v.conflict(dockyards.RoleBindings, binding.GetName())
		return nil
	}
	object := binding.DeepCopy()
	v.adopt(object)
	wanted.Subjects = subjects(v.namespaces(have.Subjects))
	if !sameSubjects(have.Subjects, wanted.Subjects) {
		object.Object["subjects"] = fields(wanted, "subjects")
		if len(wanted.Subjects) == 0 {
			delete(object.Object, "subjects")
		}
	}
	return patch(dockyards.RoleBindings, binding, object, "machines of these namespaces clone the image")
}

// namespaces are those that have NodePools, sorted. Pools that are being deleted
// keep a namespace among the subjects, and never bring it there.
func (v *view) namespaces(have []rbacv1.Subject) []string {
	var names []string
	for i := range v.in.NodePools {
		pool := &v.in.NodePools[i]
		if !dockyards.Going(pool) || slices.Contains(have, subject(pool.GetNamespace())) {
			names = append(names, pool.GetNamespace())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func subject(namespace string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: groupPrefix + namespace}
}

func subjects(namespaces []string) []rbacv1.Subject {
	var list []rbacv1.Subject
	for _, ns := range namespaces {
		list = append(list, subject(ns))
	}
	return list
}

// sameSubjects compares two lists regardless of their order.
func sameSubjects(have, want []rbacv1.Subject) bool {
	return len(have) == len(want) && !slices.ContainsFunc(want, func(s rbacv1.Subject) bool { return !slices.Contains(have, s) })
}

func (v *view) newRole() *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: v.in.Release.GetName()},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{dockyards.DataVolumes.Group}, Resources: []string{"datavolumes/source"}, Verbs: []string{"create"},
		}},
	}
}

func (v *view) newBinding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: v.in.Release.GetName()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: dockyards.Roles.Kind, Name: v.in.Release.GetName()},
	}
}

// fields is one field of a typed object as it stands in a manifest.
func fields(typed any, name string) any {
	obj, err := plan.Object(dockyards.Roles, typed)
	if err != nil {
		panic(err) // structs of Kubernetes' own types always convert
	}
	value, _, _ := unstructured.NestedFieldCopy(obj.Object, name)
	return value
}
