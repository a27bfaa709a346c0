package serve

import (
	"github.com/KimMachineGun/automemlimit/memlimit"
	"k8s.io/apimachinery/pkg/api/resource"
)

// memoryShare is the part of a container's memory limit that Go's heap is kept to.
const memoryShare = 0.9

// KeepToMemoryLimit lets the garbage collector work harder rather than cross the
// container's memory limit: many events at once leave garbage that is not worth a
// restart. Where there is no limit, or GOMEMLIMIT is set, nothing changes.
func KeepToMemoryLimit() {
	_, _ = memlimit.SetGoMemLimitWithOpts(memlimit.WithRatio(memoryShare), memlimit.WithProvider(memlimit.FromCgroup))
}

// MemoryTarget is what KeepToMemoryLimit makes of a container's memory limit, in bytes,
// for GOMEMLIMIT where there is no container; 0 if the limit is no quantity.
func MemoryTarget(limit string) int64 {
	quantity, err := resource.ParseQuantity(limit)
	if err != nil {
		return 0
	}
	return int64(memoryShare * float64(quantity.Value()))
}
