//! Checks whether the webhook's service account has the permissions that it needs.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use serde_json::Value;

use super::result::{CheckResult, Code};
use crate::cluster::{
    object::{Account, ManagedNames},
    reader::{Asked, FailedRequest},
    running::Release,
};
use otel_webhook_server::{subject::Subject, tls::managed};
use otel_webhook_store::{cluster, watch};

/// A permission that the webhook needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// API group.
    pub group: String,
    /// Plural name of the kind.
    pub resource: String,
    /// The verbs.
    pub verbs: Vec<String>,
    /// The name of the object; none for all objects.
    pub object: Option<String>,
    /// The namespace; none for all namespaces.
    pub namespace: Option<String>,
}

/// The verbs of a needed permission that the account lacks.
#[derive(Debug)]
pub struct NeedReview {
    /// The needed permission.
    pub need: Need,
    /// The verbs that are not allowed.
    pub missing: Vec<String>,
}

impl Account {
    /// Returns the `SubjectAccessReview` of a verb.
    pub fn question(&self, need: &Need, verb: &str) -> SubjectAccessReview {
        let Self { namespace, name } = self;
        let groups = [
            "system:serviceaccounts",
            &format!("system:serviceaccounts:{namespace}"),
            "system:authenticated",
        ];
        SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(format!("system:serviceaccount:{namespace}:{name}")),
                groups: Some(groups.map(str::to_owned).to_vec()),
                resource_attributes: Some(ResourceAttributes {
                    group: Some(need.group.clone()),
                    resource: Some(need.resource.clone()),
                    verb: Some(verb.to_owned()),
                    name: need.object.clone(),
                    namespace: need.namespace.clone(),
                    ..ResourceAttributes::default()
                }),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        }
    }
}

impl std::fmt::Display for Need {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        if let Some(object) = &self.object {
            write!(f, " {object}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// Returns the permissions that the webhook needs, from the rules next to its code.
pub fn needs(managed: Option<&ManagedNames>, watches_nodes: bool, release: Option<&Release>) -> Vec<Need> {
    let of_nodes = watches_nodes.then(watch::node_rules).into_iter().flatten();
    let always = watch::rules().into_iter().chain(cluster::rules()).chain(of_nodes);
    let mut needs: Vec<Need> = always.flat_map(|rule| Need::of_rule(&rule, &[], None)).collect();
    if let Some(Release { namespace, lease: Some(lease) }) = release {
        let (rules, lease) = (watch::lease_rules(), std::slice::from_ref(lease));
        needs.extend(rules.iter().flat_map(|rule| Need::of_rule(rule, lease, Some(namespace))));
    }
    if let Some(ManagedNames { namespace, secret, configurations, converts }) = managed {
        let secret = std::slice::from_ref(secret);
        let of_cluster = managed::cluster_rules();
        needs.extend(of_cluster.iter().flat_map(|rule| Need::of_rule(rule, configurations, None)));
        let of_namespace = managed::namespace_rules();
        needs.extend(of_namespace.iter().flat_map(|rule| Need::of_rule(rule, secret, Some(namespace))));
        if *converts {
            let (rules, crd) = (managed::conversion_rules(), [managed::CRD.to_owned()]);
            needs.extend(rules.iter().flat_map(|rule| Need::of_rule(rule, &crd, None)));
        }
    }
    needs
}

impl Need {
    /// Returns the permissions of a rule; `names` replace the placeholder in it.
    pub fn of_rule(rule: &Value, names: &[String], namespace: Option<&str>) -> Vec<Self> {
        let list = |field: &str| {
            let items = rule[field].as_array().into_iter().flatten();
            items.filter_map(|item| item.as_str().map(str::to_owned)).collect::<Vec<_>>()
        };
        let is_named = rule["resourceNames"].is_array();
        let objects: Vec<_> = if is_named { names.iter().cloned().map(Some).collect() } else { vec![None] };
        let mut needs = Vec::new();
        for group in list("apiGroups") {
            for resource in list("resources") {
                needs.extend(objects.iter().map(|object| Self {
                    group: group.clone(),
                    resource: resource.clone(),
                    verbs: list("verbs"),
                    object: object.clone(),
                    namespace: namespace.map(str::to_owned),
                }));
            }
        }
        needs
    }
}

/// Returns the warning that the service account is unknown.
pub fn no_account() -> CheckResult {
    let message = "the webhook's service account is unknown, since no pod of the webhook was found";
    CheckResult::new(Code::PermissionsNotChecked, message)
        .advise("set it by --service-account NAMESPACE/NAME")
}

/// Returns the results for an account.
pub fn results(account: &Account, answers: &Asked<Vec<NeedReview>>) -> Vec<CheckResult> {
    let about =
        |result: CheckResult| result.about(Subject::new("ServiceAccount", &account.namespace, &account.name));
    let answers = match answers {
        Ok(answers) => answers,
        Err(FailedRequest { problem, .. }) => {
            let message = format!("its permissions could not be checked: {problem}");
            let advice =
                "to check them, you need the permission to create subjectaccessreviews.authorization.k8s.io";
            return vec![about(CheckResult::new(Code::PermissionsNotChecked, message).advise(advice))];
        }
    };
    let missing =
        missing(account, answers, Code::PermissionMissing, "install the roles that otel-webhook rbac prints");
    if missing.is_empty() {
        let message = "has all permissions that it needs";
        return vec![about(CheckResult::new(Code::PermissionsSuffice, message))];
    }
    missing
}

/// Returns a result for each permission that the account lacks.
pub fn missing(account: &Account, answers: &[NeedReview], code: Code, advice: &str) -> Vec<CheckResult> {
    let missing = answers.iter().filter(|answer| !answer.missing.is_empty());
    let said = missing.map(|NeedReview { need, missing }| {
        let message = format!("may not {} {need}", missing.join(", "));
        let about = Subject::new("ServiceAccount", &account.namespace, &account.name);
        CheckResult::new(code, message).advise(advice).about(about)
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(object: Option<&str>) -> Need {
        Need {
            group: "opentelemetry.io".to_owned(),
            resource: "instrumentations".to_owned(),
            verbs: vec!["get".to_owned(), "watch".to_owned()],
            object: object.map(str::to_owned),
            namespace: object.map(|_| "home".to_owned()),
        }
    }

    fn account() -> Account {
        Account::parse("otel-webhook/otel-webhook").expect("valid")
    }

    fn lines(answers: Asked<Vec<NeedReview>>) -> Vec<String> {
        results(&account(), &answers).iter().map(CheckResult::line).collect()
    }

    #[test]
    fn missing_permissions_are_reported_with_their_verbs() {
        let missing = |object, verbs: &[&str]| NeedReview {
            need: need(object),
            missing: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        };
        let lines =
            lines(Ok(vec![missing(None, &["watch"]), missing(None, &[]), missing(Some("a"), &["get"])]));
        let account = "failure  permissions   ServiceAccount otel-webhook/otel-webhook: may not";
        let starts = [
            format!("{account} watch instrumentations.opentelemetry.io; "),
            format!("{account} get instrumentations.opentelemetry.io a in namespace home; "),
        ];
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().zip(&starts).all(|(line, start)| line.starts_with(start)), "{lines:?}");
    }

    #[test]
    fn unchecked_permissions_are_not_reported_as_sufficient() {
        assert!(lines(Ok(Vec::new()))[0].starts_with("ok       permissions "));
        let failed = FailedRequest { question: String::new(), problem: "forbidden".to_owned() };
        assert!(lines(Err(failed))[0].contains("could not be checked: forbidden"));
    }

    #[test]
    fn access_reviews_have_the_account_and_its_groups() {
        let review = account().question(&need(Some("a")), "get");
        let spec = review.spec;
        assert_eq!(spec.user.as_deref(), Some("system:serviceaccount:otel-webhook:otel-webhook"));
        assert!(spec.groups.expect("groups").contains(&"system:serviceaccounts:otel-webhook".to_owned()));
        let attributes = spec.resource_attributes.expect("attributes");
        assert_eq!((attributes.verb.as_deref(), attributes.name.as_deref()), (Some("get"), Some("a")));
    }

    #[test]
    fn the_needed_permissions_are_those_of_the_rules() {
        let said = |managed: Option<&ManagedNames>| {
            let need = |need: &Need| format!("{} {need}", need.verbs.join(","));
            needs(managed, false, None).iter().map(need).collect::<Vec<_>>()
        };
        let always = said(None);
        assert!(always.contains(&"list,watch instrumentations.opentelemetry.io".to_owned()), "{always:?}");
        assert!(always.contains(&"get jobs.batch".to_owned()), "{always:?}");
        let release = Release { namespace: "home".to_owned(), lease: Some("leader".to_owned()) };
        let with_nodes = needs(None, true, Some(&release));
        let more: Vec<_> = with_nodes[always.len()..]
            .iter()
            .map(|need| format!("{} {need}", need.verbs.join(",")))
            .collect();
        assert_eq!(
            more,
            ["list,watch nodes", "list,watch leases.coordination.k8s.io leader in namespace home"]
        );
        let names = ManagedNames {
            namespace: "home".to_owned(),
            secret: "serving".to_owned(),
            configurations: vec!["one".to_owned()],
            converts: true,
        };
        let more = &said(Some(&names))[always.len()..];
        let own = "get,list,watch,patch mutatingwebhookconfigurations.admissionregistration.k8s.io one";
        assert!(more.contains(&own.to_owned()), "{more:?}");
        let secret = "get,list,watch,create,patch,update secrets serving in namespace home";
        assert!(more.contains(&secret.to_owned()), "{more:?}");
        let crd =
            "get,patch customresourcedefinitions.apiextensions.k8s.io instrumentations.opentelemetry.io";
        assert_eq!(more.last().map(String::as_str), Some(crd));
    }

    #[test]
    fn accounts_are_parsed() {
        for text in ["a", "/a", "a/"] {
            assert!(Account::parse(text).is_err(), "{text}");
        }
    }
}
