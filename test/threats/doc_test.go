// Package threats holds docs/threat-model.md against the repository: every test that a
// claim names is there, and what it says of rights is what the functions declare.
package threats
