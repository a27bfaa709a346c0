// Package releaseimporter is the function release-importer: it imports the disk
// image of a Talos release and offers it to the machines of every tenant.
//
// # What wakes it
//
// Changes of Releases, of the image (DataVolumes that carry the label
// dockyards.io/release-name), of DataSources, Roles and RoleBindings by the
// Release's name, and NodePools that come and go: their namespaces are who may use
// the image. The resync. An event is only a key (keys.go).
//
// # What it does
//
// For a Release of type TalosInstaller whose status.latestURL is there, all in its
// own namespace:
//
//  1. A DataVolume <release>-<version> imports the image. One of that name with
//     another URL stays as it is: the image is then called
//     <release>-<version>-<hash of the URL>.
//  2. A DataSource <release> leads to the image. It is made, and pointed elsewhere,
//     only when an import has succeeded.
//  3. A Role <release> allows to clone from the namespace, and a RoleBinding
//     <release> grants that to the service accounts of each namespace that has
//     NodePools, to nobody else.
//  4. The image that the DataSource has left is marked slipway.dev/superseded, and
//     removed when no DataSource leads to it and no clone of it is under way. So is
//     an image that the function has made and that another version has overtaken
//     before it was offered.
//
// # What holds
//
//   - An image is never imported again, changed, or given a checksum. What is added
//     to an existing one is the label, the annotation that asks for its volume at
//     once, and the owner reference, where they are missing.
//   - Only images that are marked, or that the function has made itself (the server
//     notes that), are removed: none that was superseded before the function came.
//   - What belongs to somebody else is left alone: an object is the Release's if it
//     has an owner reference to it, or none at all and what upstream would have
//     written. A RoleBinding is never bound to a foreign Role.
//   - A Release has no conditions: what a person should notice is a Kubernetes Event
//     on it (ImportStarted, ImageReady, ImageRemoved; ImportFailed, InvalidSpec,
//     NameConflict, WaitingForDataVolume, ErrorReconciling).
//   - A Release that is being deleted creates nothing; what it owns is collected.
//   - At the fixpoint nothing is written.
//
// Objects are made by create and changed by merge patch under the resourceVersion
// that was read, in the fields named above alone: what upstream's field manager
// owns besides stays its own.
//
// # Rights
//
// Beside the reads and writes above, the function holds the right that it grants,
// datavolumes/source create: an API server lets nobody grant what he does not have.
// It may delete all that it makes: what was made for a Release that went meanwhile
// goes again, and API servers with the admission plugin
// OwnerReferencesPermissionEnforcement let nobody else add an owner.
package releaseimporter
