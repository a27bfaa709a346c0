// Package dockyards is what the functions that reconcile Dockyards' kinds have
// in common: the resources they read and write, their settings, the config map
// and the look-ups that must come out the same everywhere.
//
// All of it is plain data and pure rules: decisions import it.
package dockyards
