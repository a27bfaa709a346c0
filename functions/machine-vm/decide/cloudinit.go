package decide

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-dev/slipway/api/vitistack/v1alpha1"
	"github.com/slipway-dev/slipway/shared/kind"
	"github.com/slipway-dev/slipway/shared/seal"
)

// Limits of cloud-init's data.
const (
	// inlineMax is what KubeVirt takes within a virtual machine.
	inlineMax = 2048
	// secretMax is what a Secret holds.
	secretMax = 1 << 20
)

// noUserData is what a Machine gets that asks for cloud-init and gives nothing.
const noUserData = "#cloud-config\n"

// Fields of a cloud-init source in a virtual machine.
const (
	fieldUserData          = "userData"
	fieldUserDataBase64    = "userDataBase64"
	fieldUserSecret        = "secretRef"
	fieldNetworkData       = "networkData"
	fieldNetworkDataBase64 = "networkDataBase64"
	fieldNetworkSecret     = "networkDataSecretRef"
)

// cloudInit is what a Machine's cloud-init comes to.
type cloudInit struct {
	// source is the field of the volume: cloudInitNoCloud or ConfigDrive.
	source string
	// fields are those of the source. Secret values are tokens.
	fields map[string]any
	// data are the entries of the Secret beside the virtual machine: tokens, or
	// base64. Nil: no such Secret is needed.
	data map[string]string
	// size is the size of data in bytes.
	size int
}

// payload is one of the two parts of cloud-init's data.
type payload struct {
	// value is the data, or its token; base64 tells that the data is encoded.
	value  string
	base64 bool
	// hidden: the data comes from a Secret and may not stand in plain sight.
	hidden bool
}

// part says where one of the two parts comes from and where it goes.
type part struct {
	// inline and encoded are the data in the spec, plain and in base64.
	inline, encoded           string
	inlineField, encodedField string
	// secrets are the references in the order in which they count.
	secrets        []reference
	configMap      *v1alpha1.MachineCloudInitRef
	configMapField string
	// key is that of the data where a reference gives none.
	key string
	// volumeField, volumeEncoded and volumeSecret are fields of the volume.
	volumeField, volumeEncoded, volumeSecret string
}

// reference is a reference of the spec and the field that it stands in.
type reference struct {
	field string
	ref   *v1alpha1.MachineCloudInitRef
}

func userPart(c *v1alpha1.MachineCloudInit) part {
	return part{
		inline: c.UserData, inlineField: fieldUserData, encoded: c.UserDataBase64, encodedField: fieldUserDataBase64,
		secrets:   []reference{{"userDataSecretRef", c.UserDataSecretRef}, {"secretRef", c.SecretRef}},
		configMap: c.UserDataConfigMapRef, configMapField: "userDataConfigMapRef", key: v1alpha1.CloudInitUserDataKey,
		volumeField: fieldUserData, volumeEncoded: fieldUserDataBase64, volumeSecret: fieldUserSecret,
	}
}

func networkPart(c *v1alpha1.MachineCloudInit) part {
	return part{
		inline: c.NetworkData, inlineField: fieldNetworkData, encoded: c.NetworkDataBase64, encodedField: fieldNetworkDataBase64,
		secrets:   []reference{{"networkDataSecretRef", c.NetworkDataSecretRef}},
		configMap: c.NetworkDataConfigMapRef, configMapField: "networkDataConfigMapRef", key: v1alpha1.CloudInitNetworkDataKey,
		volumeField: fieldNetworkData, volumeEncoded: fieldNetworkDataBase64, volumeSecret: fieldNetworkSecret,
	}
}

// resolveCloudInit finds the two parts, each on its own, and where they go.
func (v *view) resolveCloudInit() {
	spec := v.machine.Spec.CloudInit
	if spec == nil || v.adopted() {
		return
	}
	user, ok := v.source(userPart(spec))
	network, networkOK := v.networkData(spec)
	if !ok || !networkOK {
		return
	}
	if user == nil {
		user = &payload{value: noUserData}
	}
	c := &cloudInit{source: "cloudInitNoCloud", fields: map[string]any{}}
	if spec.Type == v1alpha1.CloudInitTypeConfigDrive {
		c.source = "cloudInitConfigDrive"
	}
	v.placePayload(c, userPart(spec), user)
	v.placePayload(c, networkPart(spec), network)
	if c.size > secretMax {
		v.problem(invalid(PartCloudInit, fmt.Sprintf("cloud-init's data has %d bytes: give at most 1 MiB", c.size)))
		return
	}
	v.cloudInit = c
	v.planCloudInitSecret()
}

func (v *view) networkData(spec *v1alpha1.MachineCloudInit) (*payload, bool) {
	network, ok := v.source(networkPart(spec))
	if !ok || network != nil || !v.static() {
		return network, ok
	}
	config, ok := v.staticNetwork()
	if !ok {
		return nil, false
	}
	return &payload{value: config}, true
}

// source is the first source that is given. Nil: none is. Not ok: it cannot be
// used, and a problem says why.
func (v *view) source(p part) (*payload, bool) {
	switch {
	case seal.Len(p.inline) > 0:
		return &payload{value: p.inline}, true
	case seal.Len(p.encoded) > 0:
		if !decodes(p.encoded) {
			v.problem(invalid(PartCloudInit, fmt.Sprintf("spec.cloudInit.%s is not base64: encode it, or use %s", p.encodedField, p.inlineField)))
			return nil, false
		}
		return &payload{value: p.encoded, base64: true}, true
	}
	for _, secret := range p.secrets {
		if secret.ref != nil {
			return v.fromSecret(p, secret)
		}
	}
	if p.configMap != nil {
		return v.fromConfigMap(p)
	}
	return nil, true
}

func decodes(encoded string) bool {
	if seal.Is(encoded) {
		_, ok := seal.Decoded(encoded)
		return ok
	}
	_, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil
}

func (v *view) fromSecret(p part, secret reference) (*payload, bool) {
	value, ok := v.lookup("Secret", v.in.Secrets, secret.field, secret.ref, p.key)
	return &payload{value: value, hidden: true}, ok
}

func (v *view) fromConfigMap(p part) (*payload, bool) {
	value, ok := v.lookup("ConfigMap", v.in.ConfigMaps, p.configMapField, p.configMap, p.key)
	return &payload{value: value}, ok
}

// lookup reads one key of a Secret or ConfigMap that the spec names.
func (v *view) lookup(kindName string, objects []unstructured.Unstructured, field string, ref *v1alpha1.MachineCloudInitRef, key string) (string, bool) {
	if ref.Key != "" {
		key = ref.Key
	}
	missing := fmt.Sprintf("%s %q does not exist", kindName, ref.Name)
	if obj := find(objects, ref.Name); obj != nil {
		if value, ok := at(obj.Object, "data", key).(string); ok {
			return value, true
		}
		missing = fmt.Sprintf("%s %q has no key %q", kindName, ref.Name, key)
	}
	v.problem(Problem{
		Part: PartCloudInit, Reason: v1alpha1.ReasonCloudInitSourceNotFound, Waiting: true,
		Message: fmt.Sprintf("%s: create it, or change spec.cloudInit.%s", missing, field),
	})
	return "", false
}

// placePayload puts one part into the virtual machine, or into the Secret
// beside it when it is secret or long.
func (v *view) placePayload(c *cloudInit, p part, data *payload) {
	if data == nil {
		return
	}
	length := data.length()
	switch {
	case !data.hidden && length <= inlineMax && data.base64:
		c.fields[p.volumeEncoded] = data.value
		return
	case !data.hidden && length <= inlineMax:
		c.fields[p.volumeField] = data.value
		return
	}
	if c.data == nil {
		c.data = map[string]string{}
	}
	c.fields[p.volumeSecret] = map[string]any{"name": v1alpha1.CloudInitName(v.id.name)}
	c.data[p.key] = dataValue(data)
	c.size += length
}

// length is the size of the data itself, in bytes.
func (p *payload) length() int {
	if !p.base64 {
		return seal.Len(p.value)
	}
	if content, sealed := seal.Decoded(p.value); sealed {
		return seal.Len(content)
	}
	return len(p.value) / 4 * 3 // of what is not sealed, which only tests hold
}

// dataValue is a part as it stands under a Secret's data: the applier encodes
// what is behind a token, everything else has to be encoded already.
func dataValue(data *payload) string {
	if content, sealed := seal.Decoded(data.value); data.base64 && sealed {
		return content
	}
	if data.base64 || seal.Is(data.value) {
		return data.value
	}
	return base64.StdEncoding.EncodeToString([]byte(data.value))
}

// planCloudInitSecret keeps the Secret beside the virtual machine.
func (v *view) planCloudInitSecret() {
	if v.cloudInit.data == nil {
		return
	}
	name := v1alpha1.CloudInitName(v.id.name)
	live := v.in.CloudInit
	if live == nil {
		if secret := v.object(kind.Secrets, v.cloudInitSecret(name)); secret != nil {
			// A typed Secret has no room for tokens.
			secret.Object["data"] = anyMap(v.cloudInit.data)
			v.createObject(kind.Secrets, secret, &v.secrets, "cloud-init's data has to stand beside the virtual machine")
		}
		return
	}
	if v.id.relate(live) != own {
		v.problem(invalid(PartCloudInit, fmt.Sprintf("Secret %q, which cloud-init's data has to go to, belongs to %s: delete it", name, whose(live))))
		return
	}
	if live.GetDeletionTimestamp() != nil {
		v.problem(terminating(PartCloudInit, "Secret", name))
		return
	}
	changed := v.remarked(live)
	hash := plainHash(anyMap(v.cloudInit.data))
	if !sameData(live, v.cloudInit.data, hash) {
		if changed == nil {
			changed = live.DeepCopy()
		}
		changed.Object["data"] = anyMap(v.cloudInit.data)
		changed.SetAnnotations(with(changed.GetAnnotations(), map[string]string{annotationContent: hash}))
	}
	if changed != nil {
		v.patch(v.in.Target.Cluster, kind.Secrets, live, changed, &v.secrets, "cloud-init's source has changed")
	}
}

func (v *view) cloudInitSecret(name string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: v.namespace, Labels: v.labels(),
			Annotations: with(v.annotations(), map[string]string{annotationContent: plainHash(anyMap(v.cloudInit.data))}),
		},
		Type: corev1.SecretTypeOpaque,
	}
	if v.in.Target.Same {
		secret.OwnerReferences = []metav1.OwnerReference{v.ownerReference()}
	}
	return secret
}

func anyMap(data map[string]string) map[string]any {
	all := make(map[string]any, len(data))
	for key, value := range data {
		all[key] = value
	}
	return all
}

// sameData compares what a Secret shall hold with what it holds. Of data that
// is no secret only the hash can be compared, and the length.
func sameData(live *unstructured.Unstructured, data map[string]string, hash string) bool {
	have, _ := at(live.Object, "data").(map[string]any)
	if len(have) != len(data) || live.GetAnnotations()[annotationContent] != hash {
		return false
	}
	for key, want := range data {
		held, _ := have[key].(string)
		if held != want && (seal.Is(want) || !seal.Is(held) || !decodedLen(want, seal.Len(held))) {
			return false
		}
	}
	return true
}

func decodedLen(encoded string, length int) bool {
	raw, err := base64.StdEncoding.DecodeString(encoded)
	return err == nil && len(raw) == length
}

// sameSource compares a cloud-init source with that of a live volume. hashed
// tells that what is no secret was written with the same hash.
func sameSource(want, have map[string]any, hashed bool) bool {
	if len(want) != len(have) {
		return false
	}
	for key, value := range want {
		wanted, isText := value.(string)
		held, _ := have[key].(string)
		switch {
		case !isText:
			if text(value.(map[string]any), "name") != text(have, key, "name") {
				return false
			}
		case wanted == held:
		case seal.Is(wanted) || !seal.Is(held) || !hashed || len(wanted) != seal.Len(held):
			return false
		}
	}
	return true
}

// plainHash is a hash of the values that are no tokens; empty if there are
// none. Live objects show tokens only, so this is how a change of plain data
// is noticed.
func plainHash(fields map[string]any) string {
	hash := sha256.New()
	plain := false
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if value, ok := fields[key].(string); ok && !seal.Is(value) {
			plain = true
			fmt.Fprintf(hash, "%s=%d:%s\n", key, len(value), value)
		}
	}
	if !plain {
		return ""
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// CloudInitNeedsSecret tells, without having read any source, whether the
// Secret beside the virtual machine may be needed.
func CloudInitNeedsSecret(machine *unstructured.Unstructured) bool {
	spec, ok := at(machine.Object, "spec", "cloudInit").(map[string]any)
	if !ok {
		return false
	}
	if len(CloudInitSecrets(machine)) > 0 || len(CloudInitConfigMaps(machine)) > 0 {
		return true
	}
	for _, field := range []string{fieldUserData, fieldUserDataBase64, fieldNetworkData, fieldNetworkDataBase64} {
		if seal.Len(text(spec, field)) > inlineMax {
			return true
		}
	}
	return text(machine.Object, "spec", "network", "networkNamespaceName") != ""
}

// CloudInitSecrets are the Secrets that a Machine's cloud-init names.
func CloudInitSecrets(machine *unstructured.Unstructured) []string {
	return references(machine, "userDataSecretRef", "secretRef", "networkDataSecretRef")
}

// CloudInitConfigMaps are the ConfigMaps that a Machine's cloud-init names.
func CloudInitConfigMaps(machine *unstructured.Unstructured) []string {
	return references(machine, "userDataConfigMapRef", "networkDataConfigMapRef")
}

func references(machine *unstructured.Unstructured, fields ...string) []string {
	var names []string
	for _, field := range fields {
		if name := text(machine.Object, "spec", "cloudInit", field, "name"); name != "" {
			names = appendNew(names, name)
		}
	}
	return names
}
