package kind

// AnnotationInstallation, on an object that a function made, is the UID of the
// namespace kube-system of the management cluster that it was made from: what
// another installation made is told from one's own by it.
const AnnotationInstallation = "slipway.dev/installation"
