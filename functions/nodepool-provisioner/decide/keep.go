package decide

import (
	"strings"

	"github.com/slipway-dev/slipway/shared/dockyards"
)

// effects are what the config map makes of machines.
type effects struct {
	env     proxies
	servers []string
}

// keptEffects are the effects of the config map as it is, and of what it once said:
// a key that is absent may be one that somebody has yet to write, so what stands in
// the live patches stays. A key with an empty value takes the effect away.
func (v *view) keptEffects() effects {
	live := liveEffects(v.storedPatches())
	now := effects{}
	var absent []string
	for _, proxy := range []struct {
		key        string
		live, want **string
	}{
		{dockyards.KeyHTTPProxy, &live.env.HTTP, &now.env.HTTP},
		{dockyards.KeyHTTPSProxy, &live.env.HTTPS, &now.env.HTTPS},
		{dockyards.KeyNoProxy, &live.env.No, &now.env.No},
	} {
		if value, present := v.in.Config.Value(proxy.key); present {
			*proxy.want = &value
			continue
		}
		if *proxy.want = *proxy.live; *proxy.live != nil {
			absent = append(absent, proxy.key)
		}
	}
	servers, present := v.in.Config.NTPServers()
	if !present && len(live.servers) > 0 {
		servers = live.servers
		absent = append(absent, dockyards.KeyNTPServers)
	}
	now.servers = servers
	if len(absent) > 0 {
		v.config.note("absent from the config map, so kept as it was: %s", strings.Join(absent, ", "))
	}
	return now
}

// liveEffects reads the effects out of stored patches, the later ones last.
func liveEffects(patches []string) effects {
	found := effects{}
	for _, patch := range patches {
		data, _ := parse(patch)
		fields, ok := data.(map[string]any)
		if !ok {
			continue
		}
		for name, field := range map[string]**string{
			"http_proxy": &found.env.HTTP, "https_proxy": &found.env.HTTPS, "no_proxy": &found.env.No,
		} {
			if value, ok := at(fields, "machine", "env", name).(string); ok {
				*field = &value
			}
		}
		if servers := texts(fields, "ntp", "servers"); text(fields, "kind") == timeKind && len(servers) > 0 {
			found.servers = servers
		}
	}
	return found
}

// Concealed are the values of the config map, and of what it once said, that no text
// for people may hold.
func Concealed(config dockyards.Config, patches []string) []string {
	var values []string
	for _, key := range []string{dockyards.KeyHTTPProxy, dockyards.KeyHTTPSProxy, dockyards.KeyNoProxy, dockyards.KeyNTPServers} {
		if value, ok := config.Value(key); ok && value != "" {
			values = append(values, value)
		}
	}
	servers, _ := config.NTPServers()
	live := liveEffects(patches)
	for _, value := range []*string{live.env.HTTP, live.env.HTTPS, live.env.No} {
		if value != nil && *value != "" {
			values = append(values, *value)
		}
	}
	return append(append(values, servers...), live.servers...)
}
