package main

import "github.com/spf13/cobra"

func consoleCommand(*options) *cobra.Command { return &cobra.Command{Use: "console"} }
