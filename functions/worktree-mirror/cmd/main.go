// Command cmd serves the function worktree-mirror.
package main

import (
	worktreemirror "github.com/slipway-dev/slipway/functions/worktree-mirror"
	"github.com/slipway-dev/slipway/shared/serve"
)

func main() { serve.Main(worktreemirror.New()) }
