// Package decide is what release-importer thinks, without a client or a clock:
// which image a Release asks for, what has to be written, what may be removed, and
// what to tell people.
package decide

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// Input is all that a decision is made from.
type Input struct {
	Settings dockyards.Settings
	Release  *unstructured.Unstructured
	// Images are the DataVolumes that are labelled for the Release, that it may ask
	// for, and that the DataSource leads to.
	Images []unstructured.Unstructured
	// DataSource, Role and RoleBinding are those of the Release's name; nil where
	// there is none.
	DataSource, Role, RoleBinding *unstructured.Unstructured
	// NodePools are those of all namespaces.
	NodePools []unstructured.Unstructured
	// Served tells that CDI is installed.
	Served bool
}

// wish is what a Release asks for.
type wish struct{ version, url string }

// wishOf reads a Release. ok is false for one that asks for nothing: of another
// type, without an image, or being deleted. A problem is why what it asks for
// cannot be.
func wishOf(release *unstructured.Unstructured) (w wish, p *problem, ok bool) {
	w.version, _, _ = unstructured.NestedString(release.Object, "status", "latestVersion")
	address, found, _ := unstructured.NestedString(release.Object, "status", "latestURL")
	w.url = address
	switch {
	case dockyards.Going(release), dockyards.ReleaseType(release) != dockyards.TypeTalosInstaller, !found:
		return w, nil, false
	case w.version == "":
		return w, invalid("the Release has an image and no version: status.latestVersion is empty"), true
	case w.url == "":
		return w, invalid("the Release has a version and no image: status.latestURL is empty"), true
	}
	// What it says is not repeated: it may hold a password.
	parsed, err := url.Parse(w.url)
	switch {
	case err != nil || (parsed.Scheme != "http" && parsed.Scheme != "https") || parsed.Host == "":
		return w, invalid("status.latestURL is no URL that begins with http:// or https://"), true
	case len(validation.IsValidLabelValue(release.GetName())) > 0:
		return w, invalid("the Release's name cannot stand in a label: use 63 letters, digits, dots and dashes at most"), true
	case len(validation.IsDNS1123Subdomain(w.hashed(release.GetName()))) > 0:
		return w, invalid("an image cannot be called after the Release and status.latestVersion: use lower case letters, digits, dots and dashes"), true
	}
	return w, nil, true
}

func (w wish) plain(release string) string { return release + "-" + w.version }

func (w wish) hashed(release string) string {
	sum := sha256.Sum256([]byte(w.url))
	return w.plain(release) + "-" + hex.EncodeToString(sum[:4])
}

// Names are those that the image of a Release may have: by its version, and by its
// version and URL where the first one is taken by another URL. ok is false where a
// Release asks for no image that can be.
func Names(release *unstructured.Unstructured) (plain, hashed string, ok bool) {
	w, p, ok := wishOf(release)
	if !ok || p != nil {
		return "", "", false
	}
	return w.plain(release.GetName()), w.hashed(release.GetName()), true
}

// ImageOf is the name of the claim in its own namespace that a DataSource leads to;
// empty for one that leads elsewhere, and for none.
func ImageOf(source *unstructured.Unstructured) string {
	if source == nil {
		return ""
	}
	claim, _, _ := unstructured.NestedMap(source.Object, "spec", "source", "pvc")
	name, _ := claim["name"].(string)
	if ns, _ := claim["namespace"].(string); ns != "" && ns != source.GetNamespace() {
		return ""
	}
	return name
}

// problem is something that a person should notice.
type problem struct {
	reason, message string
	// waiting tells that it may end by itself.
	waiting bool
}

func invalid(message string) *problem { return &problem{reason: reasonInvalidSpec, message: message} }
