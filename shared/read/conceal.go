package read

// Conceal keeps values that are read as they are, and are still nobody's business,
// out of every error text and log line of this reconcile.
func (r *Reader) Conceal(values ...string) {
	for _, value := range values {
		r.vault.Conceal(value)
	}
}
