module github.com/slipway-dev/slipway/ci/licences

go 1.26

require github.com/google/licensecheck v0.3.1
