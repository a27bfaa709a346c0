package dockyards

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Keys of the config map that functions read.
const (
	KeyExternalURL     = "externalURL"
	KeyPublicNamespace = "publicNamespace"
	KeyHTTPProxy       = "dockyards-kubevirt.env.HTTP_PROXY"
	KeyHTTPSProxy      = "dockyards-kubevirt.env.HTTPS_PROXY"
	KeyNoProxy         = "dockyards-kubevirt.env.NO_PROXY"
	KeyNTPServers      = "dockyards-kubevirt.ntp.servers"
)

// defaultPublicNamespace holds the WorkloadTemplates where the config map names
// no other namespace.
const defaultPublicNamespace = "dockyards-public"

// Config is the config map as it was read. Its values never stand in a log, a
// condition or an event.
type Config struct {
	// Found tells whether the config map exists.
	Found bool
	data  map[string]string
}

// ReadConfig takes the config map as read; nil for one that does not exist.
// Values that are no strings cannot stand in one.
func ReadConfig(obj *unstructured.Unstructured) Config {
	if obj == nil {
		return Config{}
	}
	c := Config{Found: true, data: map[string]string{}}
	data, _, _ := unstructured.NestedMap(obj.Object, "data")
	for key, value := range data {
		if text, ok := value.(string); ok {
			c.data[key] = text
		}
	}
	return c
}

// Value is the value of a key, and whether the key is there: a key that is
// present with an empty value is another thing than one that is absent.
func (c Config) Value(key string) (string, bool) {
	value, ok := c.data[key]
	return value, ok
}

// PublicNamespace is the namespace of the WorkloadTemplates.
func (c Config) PublicNamespace() string {
	if ns := c.data[KeyPublicNamespace]; ns != "" {
		return ns
	}
	return defaultPublicNamespace
}

// NTPServers are the time servers in their order, trimmed, without empty or
// repeated ones, and whether the key is there.
func (c Config) NTPServers() (servers []string, present bool) {
	value, present := c.data[KeyNTPServers]
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); item != "" && !slices.Contains(servers, item) {
			servers = append(servers, item)
		}
	}
	return servers, present
}

// Hostname is the host of externalURL, in lower case, without port, path,
// query, user and trailing dot; a bare host is accepted. Empty without an
// error: the config map names none.
func (c Config) Hostname() (string, error) {
	text := strings.TrimSpace(c.data[KeyExternalURL])
	if text == "" {
		return "", nil
	}
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("config map key %s is no URL", KeyExternalURL)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if _, err := netip.ParseAddr(host); err == nil {
		return "", fmt.Errorf("the host of config map key %s is an address, under which no names can be", KeyExternalURL)
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		return "", fmt.Errorf("the host of config map key %s is no DNS name", KeyExternalURL)
	}
	return host, nil
}
