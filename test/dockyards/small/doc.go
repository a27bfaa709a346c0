// Package small shows the three small functions of Dockyards on a real API server,
// each under its own account: organization-onboarder, node-capacity and
// release-importer.
package small
