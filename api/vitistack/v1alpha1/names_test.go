package v1alpha1

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

// objectName draws names that an API server accepts for an object, with a good
// share of the longest ones.
func objectName() *rapid.Generator[string] {
	label := `[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`
	return rapid.OneOf(
		rapid.StringMatching(label),
		rapid.StringMatching(label+`(\.`+label+`){3,6}`),
		rapid.Custom(func(t *rapid.T) string {
			labels := []string{
				rapid.StringMatching(`[a-z0-9]{63}`).Draw(t, "first"),
				rapid.StringMatching(`[a-z0-9]{63}`).Draw(t, "second"),
				rapid.StringMatching(`[a-z0-9]{63}`).Draw(t, "third"),
				rapid.StringMatching(`[a-z0-9]{40,61}`).Draw(t, "fourth"),
			}
			return strings.Join(labels, ".")
		}),
	).Filter(func(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 })
}

func diskName() *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?`)
}

func TestNamesOfChildrenAreNamesForEveryMachine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		machine, disk := objectName().Draw(t, "machine"), diskName().Draw(t, "disk")
		for what, name := range map[string]string{
			"VirtualMachine":             VirtualMachineName(DefaultVMNamePrefix, machine),
			"unprefixed VirtualMachine":  VirtualMachineName("", machine),
			"claim":                      ClaimName(machine, disk),
			"image":                      ISOName(machine),
			"cloud-init Secret":          CloudInitName(machine),
			"attachment":                 AttachmentName(machine),
			"attachment of a VLAN":       VLANAttachmentName(4094),
			"record":                     RecordName(machine),
			"claim of an unnamed disk":   ClaimName(machine, DiskName("", 0)),
			"claim of a later such disk": ClaimName(machine, DiskName("", 41)),
		} {
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
				t.Errorf("%s %q of Machine %q is no name: %v", what, name, machine, errs)
			}
		}
		if errs := validation.IsValidLabelValue(LabelValue(machine)); len(errs) > 0 {
			t.Errorf("label value %q of Machine %q is none: %v", LabelValue(machine), machine, errs)
		}
	})
}

func TestShortKeepsWhatFitsAndNeverExceedsTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[-a-zA-Z0-9_.]{0,300}`).Draw(t, "s")
		limit := rapid.IntRange(0, 300).Draw(t, "limit")
		got := Short(s, limit)
		switch {
		case len(got) > limit:
			t.Errorf("Short(%q, %d) has %d bytes", s, limit, len(got))
		case len(s) <= limit && got != s:
			t.Errorf("Short(%q, %d) = %q although it fits", s, limit, got)
		case got != Short(s, limit):
			t.Errorf("Short(%q, %d) is different each time", s, limit)
		case Short(got, limit) != got:
			t.Errorf("Short(%q, %d) is shortened again", s, limit)
		}
	})
}

func TestLongNamesThatBeginAlikeStayApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.SampledFrom([]int{MaxNameLength, MaxLabelValueLength}).Draw(t, "limit")
		head := rapid.StringMatching(fmt.Sprintf(`[a-z0-9]{%d}`, limit)).Draw(t, "head")
		tails := rapid.SliceOfNDistinct(rapid.StringMatching(`[-a-z0-9.]{0,9}[a-z0-9]`), 2, 20, rapid.ID[string]).Draw(t, "tails")
		seen := map[string]string{}
		for _, tail := range tails {
			name := Short(head+tail, limit)
			if other, taken := seen[name]; taken {
				t.Fatalf("%q and %q are both %q", head+tail, other, name)
			}
			seen[name] = head + tail
		}
	})
}

func TestNames(t *testing.T) {
	long := strings.Repeat("m", MaxNameLength)
	cases := map[string]struct {
		reason    string
		got, want string
	}{
		"VirtualMachineIsPrefixed": {
			reason: "the name that the seed documents give",
			got:    VirtualMachineName(DefaultVMNamePrefix, "basic-vm"), want: "vm-basic-vm",
		},
		"ClaimIsMachineAndDisk": {
			reason: "the name that the seed documents give",
			got:    ClaimName("custom-vm", "data"), want: "custom-vm-data",
		},
		"ImageHasASuffix": {
			reason: "upstream's name",
			got:    ISOName("web"), want: "web-iso",
		},
		"CloudInitHasASuffix": {
			reason: "upstream's name",
			got:    CloudInitName("web"), want: "web-cloudinit",
		},
		"VLANAttachmentNamesItsVLAN": {
			reason: "upstream's name",
			got:    VLANAttachmentName(0), want: "vlan0",
		},
		"FirstUnnamedDiskIsRoot": {
			reason: "a disk without a name still needs one",
			got:    DiskName("", 0), want: "root",
		},
		"LaterUnnamedDiskIsNumbered": {
			reason: "a disk without a name still needs one",
			got:    DiskName("", 2), want: "disk2",
		},
		"NamedDiskKeepsItsName": {
			reason: "a name that is given is used",
			got:    DiskName("data", 0), want: "data",
		},
		"LongNameEndsWithItsDigest": {
			reason: "242 bytes, a dash, ten digits of the SHA-256 of \"vm-\" and 253 times m",
			got:    VirtualMachineName(DefaultVMNamePrefix, long),
			want:   "vm-" + strings.Repeat("m", 239) + "-5a108bdedc",
		},
		"SeparatorsBeforeTheDigestGo": {
			reason: "the cut falls into \"-_.\", which must not end a label before a dash",
			got:    LabelValue(strings.Repeat("a", 50) + "-_." + strings.Repeat("b", 50)),
			want:   strings.Repeat("a", 50) + "-df8451f2a1",
		},
		"NoRoomForABeginning": {
			reason: "a limit of eleven leaves ten digits",
			got:    Short("abcdefghijkl", 11), want: "d682ed4ca4",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%s\ngot  %q\nwant %q", tc.reason, tc.got, tc.want)
			}
		})
	}
}
