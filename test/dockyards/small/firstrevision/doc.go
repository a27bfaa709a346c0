// Package firstrevision shows the three small functions of Dockyards on an API server
// with the first revision of the group's definitions, as live systems still have it.
package firstrevision
