package fault

import (
	"fmt"
	"strings"
)

// HTTP status codes that decisions know. Package net/http has them too, but
// decisions stay away from it.
const (
	Unauthorized       = 401
	Forbidden          = 403
	badGateway         = 502
	serviceUnavailable = 503
	gatewayTimeout     = 504
)

// texts are the words that belong to status codes.
var texts = map[int]string{
	badGateway: " Bad Gateway", serviceUnavailable: " Service Unavailable", gatewayTimeout: " Gateway Timeout",
	Forbidden: " Forbidden", 429: " Too Many Requests", 500: " Internal Server Error",
}

// causes tell the ways in which a server does not answer apart, by words that Go's
// network packages use. The first that fits counts.
var causes = []struct{ contains, says string }{
	{"certificate has expired or is not yet valid", "its certificate has expired, or is not valid yet"},
	{"certificate signed by unknown authority", "its certificate is signed by an authority that the kubeconfig does not name"},
	{"certificate is valid for", "its certificate is for another name or address"},
	{"certificate is not valid for", "its certificate is for another name or address"},
	{"cannot validate certificate", "its certificate is for another name or address"},
	{"x509:", "its certificate is not accepted"},
	{"remote error: tls:", "it does not accept the client certificate of the kubeconfig"},
	{"server gave HTTP response to HTTPS client", "it does not speak TLS"},
	{"tls:", "no TLS connection comes about"},
	{"connection refused", "it refuses connections"},
	{"no such host", "its host name is not known"},
	{"no route to host", "there is no way to its host"},
	{"network is unreachable", "there is no way to its host"},
	{"deadline exceeded", "it gives no answer in time"},
	{"Timeout exceeded", "it gives no answer in time"},
	{"timeout", "it gives no answer in time"},
}

// Cause says why a server could not be asked, in words that stay the same as long as
// the cause does. The message of a fault holds ports, times and the request that
// happened to be the first: a status that quoted it would never come to rest.
func (f *Fault) Cause() string {
	switch code := f.Answered(); code {
	case 0:
	case Unauthorized:
		return "it does not accept the credentials of the kubeconfig (401 Unauthorized)"
	default:
		return fmt.Sprintf("it answers %d%s", code, texts[code])
	}
	for _, known := range causes {
		if strings.Contains(f.Message, known.contains) {
			return known.says
		}
	}
	return "the connection breaks"
}

// Answered is the HTTP status that the server gave; 0 for none. One that was given
// to an earlier request of the same call stands in the message.
func (f *Fault) Answered() int {
	if f.Code != 0 {
		return f.Code
	}
	for _, code := range []int{Unauthorized, badGateway, serviceUnavailable, gatewayTimeout} {
		if strings.Contains(f.Message, fmt.Sprintf("answered %d ", code)) {
			return code
		}
	}
	return 0
}
