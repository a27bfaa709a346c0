package releaseimporter

// used are the settings, among those of all Dockyards functions, that this one
// looks at.
var used = []string{"DATA_VOLUME_STORAGE_CLASS_NAME", "DATA_VOLUME_ACCESS_MODE", "USE_BLOCK_STORAGE", "RELEASE_IMAGE_SIZE"}
