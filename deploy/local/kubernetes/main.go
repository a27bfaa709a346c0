package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	// The cron jobs' time zones must not depend on the machine's files.
	_ "time/tzdata"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	// What the projects' own main packages link for its side effects: kubectl's
	// ways to log in, JSON logs, and metrics of clients and of the version.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// components maps each name to the function that runs that program on os.Args
// and returns its exit code.
var components = map[string]func() int{
	"etcd":                    func() int { etcdmain.Main(os.Args); return 0 },
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubectl":                 kubectl,
}

func main() {
	name, args, err := pick(os.Args)
	if err != nil {
		usage(os.Stderr, err)
		os.Exit(2)
	}
	// Components read os.Args themselves (kubectl to find its plugins), so they
	// must see the arguments as if started under their own name.
	os.Args = args
	os.Exit(components[name]())
}

// pick returns the component to run and the arguments as that component expects
// them.
func pick(args []string) (string, []string, error) {
	if len(args) == 0 {
		return "", nil, fmt.Errorf("cannot pick a component: no arguments, not even the program's name")
	}
	if name := filepath.Base(args[0]); components[name] != nil {
		return name, args, nil
	}
	if len(args) == 1 {
		return "", nil, fmt.Errorf("cannot pick a component: the first argument must name it")
	}
	if components[args[1]] == nil {
		return "", nil, fmt.Errorf("cannot run component %q: there is none of that name", args[1])
	}
	return args[1], args[1:], nil
}

func usage(w io.Writer, err error) {
	names := slices.Sorted(maps.Keys(components))
	fmt.Fprintf(w, "kube: %v\n\nUsage: kube COMPONENT [flags]\nComponents: %s\n", err, strings.Join(names, ", "))
}

func kubectl() int {
	// The verbosity has to hold while the command is built (plugins, .kuberc),
	// which is before its flags are parsed.
	if _, err := logs.GlogSetter(cmd.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintf(os.Stderr, "kubectl: cannot set the log level: %v\n", err)
		return 1
	}
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		// CheckErr prints the error in kubectl's own form and exits.
		util.CheckErr(err)
	}
	return 0
}
