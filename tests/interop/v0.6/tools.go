//go:build tools

// The real programs that the tests run against; only their versions are kept here.
package tools

import (
	_ "github.com/tailscale/tailcat/cmd/tailcat"
	_ "tailscale.com/cmd/derper"
)
