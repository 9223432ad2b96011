//! Values that are wrong: refused before anything is sent, with the name of the field.

use crate::helm::{HELMS, template};

/// What is given, and words of the refusal: the field, and what would be right.
const REFUSED: &[(&[&str], &[&str])] = &[
    (&["replicaCount=two"], &["/replicaCount", "want integer"]),
    (&["replicas=2"], &["additional properties 'replicas' not allowed"]),
    (&["registration.pod.failurePolicy=Fail"], &["/registration", "'pod' not allowed"]),
    (&["image.tag=12"], &["/image/tag", "want string"]),
    (&["image.digest=latest"], &["/image/digest", "sha256"]),
    (&["image.pullPolicy=always"], &["/image/pullPolicy", "'Always', 'IfNotPresent', 'Never'"]),
    (&["certificates.mode=self-signed"], &["/certificates/mode", "'managed', 'cert-manager', 'files'"]),
    (&["certificates.managed.lifetime=1y"], &["/certificates/managed/lifetime", "[dhms]"]),
    (&["certificates.certManager.duration=90d"], &["/certificates/certManager/duration", "(h|m|s)"]),
    (&["certificates.certManager.issuerRef.kind=Issuer"], &["/certificates/certManager/issuerRef", "name"]),
    (&["certificates.mode=files"], &["certificates.files.secretName is required"]),
    (
        &["certificates.mode=files", "certificates.files.secretName=own"],
        &["certificates.files.caBundle is required"],
    ),
    (
        &["certificates.mode=files", "certificates.files.secretName=own", "certificates.files.caBundle=bm8="],
        &["certificates.files.caBundle has no certificate in it", "PEM"],
    ),
    (
        &["certificates.clientCA.names={kube-apiserver}"],
        &["certificates.clientCA.names", "certificates.clientCA.secretName"],
    ),
    (&["certificates.clientCA.names={a\\,b}"], &["/certificates/clientCA/names/0", "pattern"]),
    (
        &["certificates.clientCA.secretName=ca", "defaultInstrumentation.enabled=true"],
        &["certificates.clientCA.testSecretName is required", "defaultInstrumentation.enabled"],
    ),
    (&["registration.url=http://192.0.2.7"], &["/registration/url", "https://"]),
    (&["registration.pods.shape=some"], &["/registration/pods/shape", "'all', 'annotated'"]),
    (&["registration.pods.failurePolicy=Warn"], &["/registration/pods/failurePolicy", "'Ignore', 'Fail'"]),
    (&["registration.pods.timeoutSeconds=31"], &["/registration/pods/timeoutSeconds", "30"]),
    (&["registration.workloads.timeoutSeconds=0"], &["/registration/workloads/timeoutSeconds", "1"]),
    (
        &["registration.pods.namespaceSelector.matchExpressions[0].operator=Is"],
        &[
            "/registration/pods/namespaceSelector/matchExpressions/0",
            "'In', 'NotIn', 'Exists', 'DoesNotExist'",
        ],
    ),
    (
        &["registration.pods.matchConditions[0].name=only"],
        &["/registration/pods/matchConditions/0", "missing property 'expression'"],
    ),
    (&["injection.languages={java,no-language}"], &["/injection/languages/1", "'nodejs'"]),
    (&["injection.languages=java"], &["/injection/languages", "want array"]),
    (&["injection.crossNamespace=none"], &["/injection/crossNamespace", "'allow', 'granted', 'deny'"]),
    (&["injection.delivery=mount"], &["/injection/delivery", "'initContainer', 'imageVolume', 'auto'"]),
    (&["injection.watchNodes=some"], &["/injection/watchNodes", "want boolean"]),
    (&["injection.imageVolumesFrom=1.34"], &["/injection/imageVolumesFrom", "'1.35', '1.36'"]),
    (&["injection.initContainersPrivileged=no"], &["/injection/initContainersPrivileged", "'allow', 'deny'"]),
    (&["rbac.aggregateRoles=edit"], &["/rbac/aggregateRoles", "want boolean"]),
    (&["injection.agentSizes.go=1Mi"], &["/injection/agentSizes", "'go' not allowed"]),
    (&["injection.agentSizes.java=0Mi"], &["/injection/agentSizes/java", "does not match pattern"]),
    (
        &["injection.helperContainers={My_Proxy}"],
        &["/injection/helperContainers/0", "does not match pattern"],
    ),
    (&["injection.maxPodSize=0Mi"], &["/injection/maxPodSize", "does not match pattern"]),
    (
        &["injection.maxInstrumentationSize=large"],
        &["/injection/maxInstrumentationSize", "does not match pattern"],
    ),
    (&["injection.maxInstrumentationsTotal=-1Mi"], &["/injection/maxInstrumentationsTotal"]),
    (&["webhook.maxReviewMemory=7"], &["/webhook/maxReviewMemory", "8"]),
    (&["webhook.maxReviewMemory=32Mi"], &["/webhook/maxReviewMemory", "want integer"]),
    (&["injection.images.sdk=own:1"], &["/injection/images", "'sdk' not allowed"]),
    (&["injection.imageRegistry=https://mirror"], &["/injection/imageRegistry"]),
    (&["defaultInstrumentation.existing=default"], &["/defaultInstrumentation/existing"]),
    (
        &["defaultInstrumentation.existing=a/b", "defaultInstrumentation.enabled=true"],
        &["defaultInstrumentation.existing", "defaultInstrumentation.enabled"],
    ),
    (&["webhook.port=70000"], &["/webhook/port", "65,535"]),
    (&["webhook.port=8080"], &["webhook.port and admin.port are both 8080"]),
    (&["metricsService.port=0"], &["/metricsService/port", "1"]),
    (&["networkPolicy.egress.apiServerPorts={https}"], &["/networkPolicy/egress/apiServerPorts/0"]),
    (&["networkPolicy.webhookFrom=all"], &["/networkPolicy/webhookFrom", "want array"]),
    (&["dnsPolicy=None"], &["dnsPolicy is None", "dnsConfig.nameservers"]),
    (&["dnsConfig.servers={192.0.2.53}"], &["/dnsConfig", "'servers' not allowed"]),
    (&["strategy.type=Replace"], &["/strategy/type", "'RollingUpdate', 'Recreate'"]),
    (&["service.port=https"], &["/service/port", "want integer"]),
    (&["podDisruptionBudget.maxUnavailable=half"], &["/podDisruptionBudget/maxUnavailable"]),
    (&["extraArgs={serve}"], &["/extraArgs/0", "--"]),
    (&["extraEnv[0].value=1"], &["/extraEnv/0", "missing property 'name'"]),
    (&["controller.enabled=no"], &["/controller/enabled", "want boolean"]),
    (&["admin.port=8081"], &["controller.pagePort and admin.port are both 8081"]),
    (&["controller.hostNetwork=true"], &["/controller", "'hostNetwork' not allowed"]),
    (&["controller.restarts.enabled=yes"], &["/controller/restarts/enabled", "want boolean"]),
    (&["controller.restarts.settle=60"], &["/controller/restarts/settle", "want string"]),
    (&["controller.restarts.observe=1y"], &["/controller/restarts/observe", "[dhms]"]),
    (&["controller.restarts.atOnce=0"], &["/controller/restarts/atOnce", "1"]),
    (&["controller.restarts.perMinute=all"], &["/controller/restarts/perMinute", "want integer"]),
    (&["controller.restarts.pace=slow"], &["/controller/restarts", "'pace' not allowed"]),
    (&["controller.extraArgs={controller}"], &["/controller/extraArgs/0", "--"]),
    (
        &["controller.podDisruptionBudget.minAvailable=half"],
        &["/controller/podDisruptionBudget/minAvailable"],
    ),
    (
        &["prometheusRule.podsOutdatedFor=week"],
        &["/prometheusRule/podsOutdatedFor", "does not match pattern"],
    ),
    (&["prometheusRule.disabled={Watchdog}"], &["/prometheusRule/disabled/0", "OtelWebhookAbsent"]),
    (&["logs.format=xml"], &["/logs/format", "'json', 'text'"]),
    (&["commonLabels.team=1"], &["/commonLabels/team", "want string"]),
];

#[test]
fn a_value_that_is_wrong_is_refused_with_its_name() {
    for helm in HELMS {
        for (values, words) in REFUSED {
            let args: Vec<_> = values.iter().flat_map(|value| ["--set", value]).collect();
            let Err(complaint) = template(helm, &args) else { panic!("{helm} takes {values:?}") };
            for word in *words {
                assert!(complaint.contains(word), "{helm} says of {values:?} without {word:?}: {complaint}");
            }
        }
    }
}

#[test]
fn a_kubernetes_that_is_too_old_is_refused() {
    for helm in HELMS {
        let complaint = template(helm, &["--kube-version", "1.28.15"]).expect_err("too old");
        assert!(complaint.contains(">=1.29.0-0"), "{complaint}");
        // Clouds put their own words behind the version.
        template(helm, &["--kube-version", "1.29.0-gke.1"]).expect("new enough");
        template(helm, &["--kube-version", "2.1.0"]).expect("newer");
    }
}
