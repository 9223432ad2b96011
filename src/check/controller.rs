//! Checks whether a controller runs, and whether its service account has the permissions that it needs.

use super::{
    permissions::{Need, NeedReview, missing},
    result::{CheckResult, Code},
};
use crate::cluster::{
    reader::{Asked, FailedRequest},
    running::{RestartFlags, RunningController},
};
use otel_webhook_controller as controller;
use otel_webhook_store::watch;

/// Returns the permissions that the controller needs, from the rules next to its code. Those of its Lease are left
/// out if its name is unknown.
pub fn needs(running: &RunningController) -> Vec<Need> {
    let of_cluster = watch::rules().into_iter().chain(controller::rules());
    let mut needs: Vec<Need> = of_cluster.flat_map(|rule| Need::of_rule(&rule, &[], None)).collect();
    if let Ok((namespace, lease)) = &running.lease {
        let lease = std::slice::from_ref(lease);
        let rules = [&controller::lease_rules()[..], &watch::lease_rules()].concat();
        needs.extend(rules.iter().flat_map(|rule| Need::of_rule(rule, lease, Some(namespace))));
    }
    if let Ok(Some(restarts)) = &running.restarts {
        let rules = controller::restart_rules();
        needs.extend(rules.iter().flat_map(|rule| Need::of_rule(rule, &[], None)));
        let (rules, name) =
            (controller::restart_namespace_rules(), std::slice::from_ref(&restarts.config_map));
        let namespace = Some(&*restarts.namespace);
        needs.extend(rules.iter().flat_map(|rule| Need::of_rule(rule, name, namespace)));
    }
    needs
}

/// Returns the result that no controller was found.
pub fn none() -> CheckResult {
    let message = "no pod of the controller found; without one, pods that run without an agent are reported by this \
                   command only";
    CheckResult::new(Code::NoController, message)
}

/// Returns the results for a controller.
pub fn results(running: &RunningController, answers: &Asked<Vec<NeedReview>>) -> Vec<CheckResult> {
    let RunningController { pods, ready, .. } = running;
    let mut results = vec![if *ready > 0 {
        CheckResult::new(Code::ControllerReady, format!("{ready} of {pods} pods of the controller are ready"))
    } else {
        let message = format!("none of {pods} pods of the controller is ready: it reports nothing");
        let advice = "check its pods and their logs: kubectl get pods, kubectl logs";
        CheckResult::new(Code::ControllerNotReady, message).advise(advice)
    }];
    if let Ok(Some(RestartFlags { is_without_policy: true, .. })) = running.restarts {
        let message = "it restarts workloads, and no ValidatingAdmissionPolicy restricts which of their fields its token can \
                       change (--restarts-without-policy)";
        let advice = "upgrade to Kubernetes 1.30, install the policy that otel-webhook rbac --controller --restarts prints, \
                      and remove the flag";
        results.push(CheckResult::new(Code::RestartsUnrestricted, message).advise(advice));
    }
    match answers {
        Ok(answers) => {
            let advice = match running.restarts {
                Ok(Some(_)) => "install the roles that otel-webhook rbac --controller --restarts prints",
                _ => "install the roles that otel-webhook rbac --controller prints",
            };
            results.extend(missing(&running.account, answers, Code::ControllerPermissionMissing, advice));
        }
        Err(FailedRequest { problem, .. }) => {
            let message = format!("the permissions of the controller could not be checked: {problem}");
            results.push(CheckResult::new(Code::PermissionsNotChecked, message));
        }
    }
    results
        .into_iter()
        .map(|result| if result.subject.is_some() { result } else { result.about(running.pod.clone()) })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{object::Account, running::RestartFlags};
    use otel_webhook_fleet::restart::Pace;
    use otel_webhook_server::subject::Subject;

    fn running(ready: usize) -> RunningController {
        RunningController {
            pod: Subject::new("Pod", "home", "controller-0"),
            account: Account::parse("home/controller").expect("valid"),
            pods: 2,
            ready,
            lease: Ok(("home".to_owned(), "leader".to_owned())),
            is_scoped: false,
            restarts: Ok(None),
        }
    }

    fn lines(ready: usize, answers: Asked<Vec<NeedReview>>) -> Vec<String> {
        results(&running(ready), &answers).iter().map(CheckResult::line).collect()
    }

    #[test]
    fn a_controller_that_is_not_ready_is_a_warning() {
        let ready = lines(1, Ok(Vec::new()));
        assert_eq!(
            ready,
            ["ok       controller    Pod home/controller-0: 1 of 2 pods of the controller are ready"]
        );
        let [line] = &lines(0, Ok(Vec::new()))[..] else { panic!("one result") };
        assert!(line.starts_with("warning  controller    Pod home/controller-0: none of 2 pods"), "{line}");
    }

    #[test]
    fn its_permissions_are_those_of_its_rules_and_of_its_lease() {
        let needs = needs(&running(1));
        let said: Vec<_> = needs.iter().map(|need| format!("{} {need}", need.verbs.join(","))).collect();
        for expected in [
            "get,list,watch pods",
            "patch instrumentations/status.opentelemetry.io",
            "create leases.coordination.k8s.io in namespace home",
            "get,patch leases.coordination.k8s.io leader in namespace home",
            "list,watch leases.coordination.k8s.io leader in namespace home",
        ] {
            assert!(said.iter().any(|said| said == expected), "{expected}: {said:?}");
        }
        let missing = needs.into_iter().map(|need| NeedReview { missing: need.verbs.clone(), need });
        let missing: Vec<_> = missing.filter(|review| review.need.resource == "pods").collect();
        let lines = lines(1, Ok(missing));
        let expected = "warning  controller    ServiceAccount home/controller: may not get, list, watch pods; install \
                        the roles that otel-webhook rbac --controller prints";
        assert_eq!(lines[1], expected);
    }

    #[test]
    fn restarts_need_more_permissions() {
        let restarts = RestartFlags {
            pace: Pace::default(),
            namespace: "home".to_owned(),
            config_map: "ledger".to_owned(),
            is_without_policy: true,
        };
        let restarting = RunningController { restarts: Ok(Some(restarts)), ..running(1) };
        let needs = needs(&restarting);
        let said: Vec<_> = needs.iter().map(|need| format!("{} {need}", need.verbs.join(","))).collect();
        for expected in [
            "get,list,watch,patch deployments.apps",
            "create pods/eviction",
            "create configmaps in namespace home",
            "get,update configmaps ledger in namespace home",
            "list endpointslices.discovery.k8s.io in namespace home",
        ] {
            assert!(said.iter().any(|said| said == expected), "{expected}: {said:?}");
        }
        let missing = needs.into_iter().map(|need| NeedReview { missing: need.verbs.clone(), need });
        let missing: Vec<_> = missing.filter(|review| review.need.resource == "pods/eviction").collect();
        let lines: Vec<_> = results(&restarting, &Ok(missing)).iter().map(CheckResult::line).collect();
        assert!(lines[1].contains("--restarts-without-policy"), "{lines:?}");
        assert!(lines[2].contains("rbac --controller --restarts prints"), "{lines:?}");
    }

    #[test]
    fn unchecked_permissions_are_said_to_be() {
        let failed = FailedRequest { question: String::new(), problem: "forbidden".to_owned() };
        assert!(lines(1, Err(failed))[1].contains("could not be checked: forbidden"));
    }
}
