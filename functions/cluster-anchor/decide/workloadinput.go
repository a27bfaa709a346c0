package decide

import (
	"errors"
	"maps"
)

// Where the address stands in the input of the ingress Workload. All other input is
// other people's.
const (
	inputService = "service"
	inputAddress = "loadBalancerIP"
)

// mergeInput is an input with the address set, or taken out where ip is empty. Nil
// is no input.
func mergeInput(input any, ip string) (any, error) {
	fields, isMap := input.(map[string]any)
	if !isMap && input != nil {
		if ip == "" {
			return input, nil // there is no address in it
		}
		return nil, errors.New("spec.input is no object: make it one, or remove it")
	}
	service, isMap := fields[inputService].(map[string]any)
	if !isMap && fields[inputService] != nil {
		if ip == "" {
			return input, nil
		}
		return nil, errors.New("spec.input.service is no object: make it one, or remove it")
	}
	fields, service = maps.Clone(fields), maps.Clone(service)
	if ip != "" {
		if fields == nil {
			fields = map[string]any{}
		}
		if service == nil {
			service = map[string]any{}
		}
		service[inputAddress] = ip
		fields[inputService] = service
		return fields, nil
	}
	if _, has := service[inputAddress]; !has {
		return input, nil
	}
	delete(service, inputAddress)
	fields[inputService] = service
	if len(service) == 0 {
		delete(fields, inputService)
	}
	if len(fields) == 0 {
		return nil, nil
	}
	return fields, nil
}
