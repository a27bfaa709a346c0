package record

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// Build is the version that the linker was told:
// -ldflags "-X github.com/slipway-dev/slipway/shared/record.Build=v1.2.3".
var Build string

// Version is the version of this program: what the linker was told, else the commit
// that it was built from, else that of the module.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cmp.Or(Build, "unknown")
	}
	revision, modified := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && len(setting.Value) >= 12:
			revision = setting.Value[:12]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			modified = "+changes"
		}
	}
	if revision != "" {
		revision += modified
	}
	return cmp.Or(Build, revision, info.Main.Version, "(devel)")
}

// GoVersion is that of the compiler.
func GoVersion() string { return runtime.Version() }
