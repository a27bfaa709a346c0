package v1alpha3

// AuthenticationConfig is the AuthenticationConfiguration of apiserver.k8s.io as
// it stands in a Cluster.
type AuthenticationConfig struct {
	// apiVersion is that of the configuration.
	// +optional
	APIVersion string `json:"apiVersion,omitempty"`
	// kind is that of the configuration.
	// +optional
	Kind string `json:"kind,omitempty"`
	// jwt are the issuers of tokens, with how each token becomes a user.
	JWT []JWTAuthenticator `json:"jwt"`
	// anonymous says whether requests without a user are let in.
	// +optional
	Anonymous *AnonymousAuthentication `json:"anonymous,omitempty"`
}

// JWTAuthenticator is one issuer of tokens.
type JWTAuthenticator struct {
	// issuer is who signs the tokens.
	Issuer JWTIssuer `json:"issuer"`
	// claimValidationRules are what a token's claims must satisfy.
	// +optional
	ClaimValidationRules []ClaimValidationRule `json:"claimValidationRules,omitempty"`
	// claimMappings are how claims become a user.
	ClaimMappings ClaimMappings `json:"claimMappings"`
	// userValidationRules are what the user must satisfy.
	// +optional
	UserValidationRules []UserValidationRule `json:"userValidationRules,omitempty"`
}

// JWTIssuer is who signs tokens.
type JWTIssuer struct {
	// url is the issuer's name in tokens.
	URL string `json:"url"`
	// discoveryURL is where its keys are found, if not under url.
	// +optional
	DiscoveryURL string `json:"discoveryURL,omitempty"`
	// certificateAuthority is a PEM bundle that the issuer's certificate is
	// checked against.
	// +optional
	CertificateAuthority string `json:"certificateAuthority,omitempty"`
	// audiences are whom tokens must be meant for.
	Audiences []string `json:"audiences"`
	// audienceMatchPolicy says how audiences are compared.
	// +optional
	AudienceMatchPolicy string `json:"audienceMatchPolicy,omitempty"`
	// egressSelectorType says which way requests to the issuer take.
	// +optional
	EgressSelectorType string `json:"egressSelectorType,omitempty"`
}

// ClaimValidationRule is what a token's claims must satisfy.
type ClaimValidationRule struct {
	// claim is a claim's name.
	// +optional
	Claim string `json:"claim,omitempty"`
	// requiredValue is what the claim must be.
	// +optional
	RequiredValue string `json:"requiredValue,omitempty"`
	// expression is a rule in CEL.
	// +optional
	Expression string `json:"expression,omitempty"`
	// message is said when the rule does not hold.
	// +optional
	Message string `json:"message,omitempty"`
}

// ClaimMappings are how claims become a user.
type ClaimMappings struct {
	// username is the user's name.
	Username PrefixedClaimOrExpression `json:"username"`
	// groups are the user's groups.
	// +optional
	Groups PrefixedClaimOrExpression `json:"groups,omitzero"`
	// uid is the user's identity.
	// +optional
	UID ClaimOrExpression `json:"uid,omitzero"`
	// extra are further attributes of the user.
	// +optional
	Extra []ExtraMapping `json:"extra,omitempty"`
}

// PrefixedClaimOrExpression is a claim or a rule in CEL, with what goes before
// its value.
type PrefixedClaimOrExpression struct {
	// claim is a claim's name.
	// +optional
	Claim string `json:"claim,omitempty"`
	// prefix goes before the claim's value. Absent is different from empty.
	// +optional
	Prefix *string `json:"prefix,omitempty"`
	// expression is a rule in CEL.
	// +optional
	Expression string `json:"expression,omitempty"`
}

// ClaimOrExpression is a claim or a rule in CEL.
type ClaimOrExpression struct {
	// claim is a claim's name.
	// +optional
	Claim string `json:"claim,omitempty"`
	// expression is a rule in CEL.
	// +optional
	Expression string `json:"expression,omitempty"`
}

// ExtraMapping is one further attribute of a user.
type ExtraMapping struct {
	// key is the attribute's name.
	Key string `json:"key"`
	// valueExpression is a rule in CEL.
	ValueExpression string `json:"valueExpression"`
}

// UserValidationRule is what a user must satisfy.
type UserValidationRule struct {
	// expression is a rule in CEL.
	Expression string `json:"expression"`
	// message is said when the rule does not hold.
	// +optional
	Message string `json:"message,omitempty"`
}

// AnonymousAuthentication says whether requests without a user are let in.
type AnonymousAuthentication struct {
	// enabled lets them in.
	Enabled bool `json:"enabled"`
	// conditions limit that to paths.
	// +optional
	Conditions []AnonymousCondition `json:"conditions,omitempty"`
}

// AnonymousCondition is one path that requests without a user may ask.
type AnonymousCondition struct {
	// path is compared with the request's.
	Path string `json:"path"`
}
