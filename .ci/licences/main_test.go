package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const mit = `MIT License

Copyright (c) 2026 Somebody

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

func TestOnlyAllowedTextsPass(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, problem string }{
		"MIT":     {"it is allowed", mit, ""},
		"GPL":     {"it is not", "SPDX-License-Identifier: GPL-3.0-only\n" + "This program is free software: you can redistribute it and/or modify it under the terms of the GNU General Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any later version.", "GPL"},
		"Unknown": {"a person has to look at it", "You may look at this on Sundays only.", "no text of a licence"},
		"Mixed":   {"most of it is something else", mit + strings.Repeat("Yet nobody may use this for any purpose at all, ever, anywhere. ", 60), "no text of a licence"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "LICENSE")
			if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			v, err := classify(file)
			if err != nil || (tc.problem == "") != (v.problem == "") || !strings.Contains(v.problem, tc.problem) {
				t.Errorf("%s: got %+v, %v", tc.reason, v, err)
			}
		})
	}
}

func TestTheNearestTextCounts(t *testing.T) {
	module := t.TempDir()
	inner := filepath.Join(module, "third_party", "x")
	if err := os.MkdirAll(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := nearest(inner, module); got != "" {
		t.Errorf("there is none, and %s was found", got)
	}
	for _, file := range []string{filepath.Join(module, "license.md"), filepath.Join(inner, "COPYING")} {
		if err := os.WriteFile(file, []byte(mit), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]string{inner: filepath.Join(inner, "COPYING"), filepath.Dir(inner): filepath.Join(module, "license.md"), module: filepath.Join(module, "license.md")} {
		if got := nearest(dir, module); got != want {
			t.Errorf("for %s counts %s, want %s", dir, got, want)
		}
	}
}
