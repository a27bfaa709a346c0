package perturb

import "testing"

func TestSharesTogetherAreAllRunsOnce(t *testing.T) {
	for i := range 100 {
		taken := 0
		for n := range 7 {
			s := share{n + 1, 7}
			if s.takes(i) {
				taken++
			}
		}
		if taken != 1 {
			t.Errorf("run %d belongs to %d of 7 shares", i, taken)
		}
	}
	for _, text := range []string{"", "1", "0/3", "4/3", "1/0", "a/b", "1/3x", "01/3"} {
		if err := (&share{}).Set(text); err == nil {
			t.Errorf("%q is taken for a share", text)
		}
	}
}
