package caller

import (
	"fmt"
	"os"
	"strings"
)

// Authorization is the header that tells the broker who this process is: that of the
// token in the file which the environment names, empty if it names none. The file is
// read each time: its token is renewed.
func Authorization(getenv func(string) string) (string, error) {
	path := getenv(EnvTokenFile)
	if path == "" {
		return "", nil
	}
	token, err := os.ReadFile(path) //nolint:gosec // the manifest names the file
	if err != nil {
		return "", fmt.Errorf("cannot read the token that %s names: %w", EnvTokenFile, err)
	}
	return "Bearer " + strings.TrimSpace(string(token)), nil
}
