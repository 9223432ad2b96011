// Command cert-manager runs as much of cert-manager, in one process, as a test of
// its use for webhook certificates needs: issuers of the kinds CA and selfSigned,
// certificates, and the injection of a CA into webhook configurations.
//
// It is not cert-manager's own main package because that one is in modules that
// are not published. Nothing here validates: cert-manager's admission webhook
// cannot be imported.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	certmanager "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"

	// Imported for their registration of a controller or of a kind of issuer.
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
)

const workersPerController = 2

func main() {
	// controller-runtime has brought the flag -kubeconfig.
	flag.Parse()
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, "cert-manager:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	mgr, err := newManager(config)
	if err != nil {
		return fmt.Errorf("manager: %w", err)
	}
	if err := addControllers(ctx, mgr); err != nil {
		return fmt.Errorf("controllers: %w", err)
	}
	err = cainjector.RegisterAllInjectors(ctx, mgr, cainjector.SetupOptions{
		EnableCertificatesDataSource: true,
		EnabledReconcilersFor: map[string]bool{
			cainjector.MutatingWebhookConfigurationName:   true,
			cainjector.ValidatingWebhookConfigurationName: true,
		},
	})
	if err != nil {
		return fmt.Errorf("injectors: %w", err)
	}
	return mgr.Start(ctx)
}

func newManager(config *rest.Config) (manager.Manager, error) {
	// What is before the slash becomes the field manager of injected bundles.
	config.UserAgent = "cert-manager-cainjector/test"
	if err := certmanager.AddToScheme(scheme.Scheme); err != nil {
		return nil, err
	}
	return ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{
			// The injector watches the metadata of Secrets; a cache of whole
			// ones would be another watch, which may lag behind that.
			DisableFor: []client.Object{&corev1.Secret{}},
		}},
	})
}

// addControllers leaves it to the manager to run cert-manager's own controllers,
// so that the first failure of any ends the program.
func addControllers(ctx context.Context, mgr manager.Manager) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:    flag.Lookup("kubeconfig").Value.String(),
		IssuerOptions: controller.IssuerOptions{ClusterResourceNamespace: "cert-manager"},
		// cert-manager's defaults. They are set by its flags, which are not used here.
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	for name, construct := range controller.Known() {
		built, err := construct(factory)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			return built.Run(workersPerController, ctx)
		}))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	// Only now do the informers that they share know what to watch.
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	return nil
}
