//! `rbac`: prints the roles that the server and the controller need. Each rule is next to the code that sends the requests.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use clap::{ArgAction, Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    names::{dns_name, label},
    output::{Failure, finish},
};
use otel_webhook_controller as controller;
use otel_webhook_server::tls::managed;
use otel_webhook_store::{
    cluster,
    manifest::{self, Style},
    watch,
};

/// Flags of `rbac`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "flags, each of which may be given or not")]
pub struct RbacArgs {
    /// Name of the service account and the roles
    #[arg(long, env = "OTEL_WEBHOOK_SERVICE_ACCOUNT", default_value = "otel-webhook", value_name = "NAME",
        value_parser = dns_name)]
    name: String,

    /// Namespace of the service account
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACE", default_value = "otel-webhook", value_name = "NAMESPACE",
        value_parser = label)]
    namespace: String,

    /// Secret of `serve --tls-managed`; without it, print the roles for certificates from files
    #[arg(long, env = "OTEL_WEBHOOK_TLS_MANAGED", value_name = "SECRET", value_parser = dns_name,
        requires = "webhook_configuration")]
    tls_managed: Option<String>,

    /// Print the role of `serve --watch-nodes` and `serve --delivery=auto` as well
    #[arg(long, env = "OTEL_WEBHOOK_WATCH_NODES")]
    watch_nodes: bool,

    /// Webhook configurations of `serve --webhook-configuration`
    #[arg(long, env = "OTEL_WEBHOOK_WEBHOOK_CONFIGURATION", value_name = "NAME", value_delimiter = ',',
        requires = "tls_managed", value_parser = dns_name)]
    webhook_configuration: Vec<String>,

    /// Print the role of `serve --conversion-service` as well, which may patch the CRD of Instrumentation
    #[arg(long, env = "OTEL_WEBHOOK_CONVERSION", requires = "tls_managed")]
    conversion: bool,

    /// Print the roles of `controller` as well; its service account has the name with the suffix -controller
    #[arg(long, env = "OTEL_WEBHOOK_CONTROLLER")]
    controller: bool,

    /// Lease of `controller --lease`
    #[arg(long, env = "OTEL_WEBHOOK_LEASE", value_name = "NAME", default_value = "otel-webhook-controller",
        requires = "controller", value_parser = dns_name)]
    lease: String,

    /// Let the controller watch the metadata of workloads, as `controller --mistakes` does
    #[arg(long, env = "OTEL_WEBHOOK_MISTAKES", value_name = "BOOL", default_value_t = true, action = ArgAction::Set)]
    mistakes: bool,

    /// Let the controller restart workloads that consent, as `controller --restarts` does. Prints the
    /// ValidatingAdmissionPolicy, too, by which it changes nothing but two annotations of workloads
    #[arg(long, env = "OTEL_WEBHOOK_RESTARTS", requires = "controller")]
    restarts: bool,

    /// Print no ValidatingAdmissionPolicy, for an API server that has none (Kubernetes 1.29): with the token of the
    /// controller, all fields of workloads can be changed
    #[arg(long, env = "OTEL_WEBHOOK_RESTARTS_WITHOUT_POLICY", requires = "restarts")]
    restarts_without_policy: bool,

    /// ConfigMap of `controller --restarts-config-map`
    #[arg(long, env = "OTEL_WEBHOOK_RESTARTS_CONFIG_MAP", value_name = "NAME", requires = "restarts",
        default_value = "otel-webhook-restarts", value_parser = dns_name)]
    restarts_config_map: String,

    /// Namespaces of `controller --namespaces`: print roles in these in place of one for all namespaces
    #[arg(long, env = "OTEL_WEBHOOK_NAMESPACES", value_name = "LIST", value_delimiter = ',',
        requires = "controller", value_parser = label)]
    namespaces: Vec<String>,

    /// Print only this list of rules; without --tls-managed it contains the placeholders CONFIGURATION and SECRET,
    /// without --controller the placeholder LEASE, and without --restarts the placeholder CONFIGMAP
    #[arg(long, env = "OTEL_WEBHOOK_RULES", value_enum, value_name = "LIST")]
    rules: Option<Rules>,
}

/// The lists of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rules {
    /// Of the cluster role, in every certificate mode
    Cluster,
    /// Of the additional cluster role for `--watch-nodes`
    Nodes,
    /// Of the Role for the Lease of the controller, in the webhook's namespace
    Namespace,
    /// Of the additional cluster role for managed certificates
    ManagedCluster,
    /// Of the Role for managed certificates, in the webhook's namespace
    ManagedNamespace,
    /// Of the additional cluster role for managed certificates if the webhook converts between versions
    ManagedConversion,
    /// Of the cluster role of the controller
    Controller,
    /// Of the Role of the controller, in the namespace of its Lease
    ControllerNamespace,
    /// Of the additional cluster role of a controller that reports mistakes in workloads
    ControllerMistakes,
    /// Of the additional cluster role of a controller that restarts workloads
    ControllerRestarts,
    /// Of the additional Role for it, in the namespace of its Lease
    ControllerRestartsNamespace,
}

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  Create the service account and its roles, for certificates from files:
    otel-webhook rbac | kubectl apply --server-side -f -
  Print them for a self-managed certificate:
    otel-webhook rbac --tls-managed otel-webhook-certificates --webhook-configuration otel-webhook
  Create them for the webhook and the controller:
    otel-webhook rbac --controller | kubectl apply --server-side -f -
  Let the controller restart workloads that consent:
    otel-webhook rbac --controller --restarts | kubectl apply --server-side -f -
  Let the controller watch two namespaces only:
    otel-webhook rbac --controller --namespaces shop,billing | kubectl apply --server-side -f -
  Print the rules only, for your own role:
    otel-webhook rbac --rules cluster";

/// The specification of the policy of restarts, which the chart has, too.
const RESTARTS_POLICY: &str = include_str!("../charts/otel-webhook/files/restarts-policy.yaml");

/// The order of verbs.
const VERBS: [&str; 6] = ["get", "list", "watch", "create", "patch", "update"];

/// Runs the subcommand.
///
/// # Errors
/// If the output cannot be written.
pub fn run(args: &RbacArgs) -> Result<ExitCode, Failure> {
    let text = match args.rules {
        Some(rules) => yaml(&args.list(rules)),
        None => args.documents().iter().map(yaml).collect::<Vec<_>>().join("---\n"),
    };
    finish(io::stdout().write_all(text.as_bytes()), ExitCode::SUCCESS)
}

impl RbacArgs {
    fn list(&self, rules: Rules) -> Value {
        let mut list = match rules {
            Rules::Cluster => merged(watch::rules().into_iter().chain(cluster::rules())),
            Rules::Nodes => watch::node_rules().into(),
            Rules::Namespace => watch::lease_rules().into(),
            Rules::ManagedCluster => managed::cluster_rules().into(),
            Rules::ManagedNamespace => managed::namespace_rules().into(),
            Rules::ManagedConversion => managed::conversion_rules().into(),
            Rules::Controller => merged(watch::rules().into_iter().chain(controller::rules())),
            Rules::ControllerNamespace => {
                merged(controller::lease_rules().into_iter().chain(watch::lease_rules()))
            }
            Rules::ControllerMistakes => controller::mistake_rules().into(),
            Rules::ControllerRestarts => controller::restart_rules().into(),
            Rules::ControllerRestartsNamespace => controller::restart_namespace_rules().into(),
        };
        for rule in &mut list {
            match (rule["resourceNames"][0].as_str(), &self.tls_managed) {
                (Some("CONFIGURATION"), Some(_)) => rule["resourceNames"] = json!(self.webhook_configuration),
                (Some("SECRET"), Some(secret)) => rule["resourceNames"] = json!([secret]),
                (Some("LEASE"), _) if self.controller => rule["resourceNames"] = json!([self.lease]),
                (Some("CONFIGMAP"), _) if self.restarts => {
                    rule["resourceNames"] = json!([self.restarts_config_map]);
                }
                _ => {}
            }
        }
        list.into()
    }

    fn documents(&self) -> Vec<Value> {
        let (account, namespace) = (&self.name, &self.namespace);
        let mut documents = vec![self.account(account)];
        documents.extend(self.role(account, account, None, &self.list(Rules::Cluster)));
        if self.watch_nodes {
            let name = format!("{account}-nodes");
            documents.extend(self.role(account, &name, None, &self.list(Rules::Nodes)));
        }
        if self.tls_managed.is_some() {
            let name = format!("{account}-certificates");
            documents.extend(self.role(account, &name, None, &self.list(Rules::ManagedCluster)));
            documents.extend(self.role(account, &name, Some(namespace), &self.list(Rules::ManagedNamespace)));
        }
        if self.conversion {
            let name = format!("{account}-conversion");
            documents.extend(self.role(account, &name, None, &self.list(Rules::ManagedConversion)));
        }
        if self.controller {
            documents.extend(self.role(account, account, Some(namespace), &self.list(Rules::Namespace)));
            let account = &format!("{account}-controller");
            documents.push(self.account(account));
            documents.extend(self.scoped(account, account, Rules::Controller));
            let rules = self.list(Rules::ControllerNamespace);
            documents.extend(self.role(account, account, Some(namespace), &rules));
            if self.mistakes {
                documents.extend(self.scoped(
                    account,
                    &format!("{account}-mistakes"),
                    Rules::ControllerMistakes,
                ));
            }
            if self.restarts {
                let name = &format!("{account}-restarts");
                documents.extend(self.scoped(account, name, Rules::ControllerRestarts));
                let rules = self.list(Rules::ControllerRestartsNamespace);
                documents.extend(self.role(account, name, Some(namespace), &rules));
                if !self.restarts_without_policy {
                    documents.extend(self.policy(account, name));
                }
            }
        }
        documents
    }

    /// Returns roles for all namespaces, or for those of --namespaces.
    fn scoped(&self, account: &str, name: &str, rules: Rules) -> Vec<Value> {
        let rules = self.list(rules);
        if self.namespaces.is_empty() {
            return self.role(account, name, None, &rules).into();
        }
        let (mut cluster, mut inside) = (Vec::new(), Vec::new());
        for mut rule in rules.as_array().cloned().unwrap_or_default() {
            if rule["resources"] == json!(["namespaces"]) {
                rule["resourceNames"] = json!(self.namespaces);
                cluster.push(rule);
            } else if rule["resources"] == json!(["mutatingwebhookconfigurations"]) {
                cluster.push(rule);
            } else {
                inside.push(rule);
            }
        }
        let inside = Value::from(inside);
        let own = self.namespaces.iter();
        let mut documents: Vec<_> =
            own.flat_map(|namespace| self.role(account, name, Some(namespace), &inside)).collect();
        if !cluster.is_empty() {
            documents.extend(self.role(account, name, None, &cluster.into()));
        }
        documents
    }

    /// Returns the policy of restarts, and its binding.
    fn policy(&self, account: &str, name: &str) -> [Value; 2] {
        let text = RESTARTS_POLICY.replace("NAMESPACE:ACCOUNT", &format!("{}:{account}", self.namespace));
        let spec: Value = serde_saphyr::from_str(&text).expect("the policy is YAML");
        let (api_version, metadata) = ("admissionregistration.k8s.io/v1", json!({"name": name}));
        let kind = "ValidatingAdmissionPolicy";
        [
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}),
            json!({
                "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "spec": {"policyName": name, "validationActions": ["Deny"]},
            }),
        ]
    }

    fn account(&self, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": self.namespace}})
    }

    /// Returns a Role or a `ClusterRole`, and its binding to a service account.
    fn role(&self, account: &str, name: &str, namespace: Option<&str>, rules: &Value) -> [Value; 2] {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let mut metadata = json!({"name": name});
        if let Some(namespace) = namespace {
            metadata["namespace"] = namespace.into();
        }
        let api_version = "rbac.authorization.k8s.io/v1";
        let account = json!({"kind": "ServiceAccount", "name": account, "namespace": self.namespace});
        [
            json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
                "subjects": [account],
            }),
        ]
    }
}

/// Merges the rules for the same resources.
fn merged(rules: impl Iterator<Item = Value>) -> Vec<Value> {
    let mut merged: Vec<Value> = Vec::new();
    for rule in rules {
        let is_same = |other: &&mut Value| {
            ["apiGroups", "resources", "resourceNames"].iter().all(|field| other[field] == rule[field])
        };
        match merged.iter_mut().find(is_same) {
            Some(other) => {
                let has = |rule: &Value, verb: &str| {
                    rule["verbs"].as_array().is_some_and(|verbs| verbs.iter().any(|one| one == verb))
                };
                let both = VERBS.iter().filter(|verb| has(other, verb) || has(&rule, verb));
                other["verbs"] = both.copied().collect();
            }
            None => merged.push(rule),
        }
    }
    merged
}

fn yaml(value: &Value) -> String {
    manifest::write(value, Style { indented_lists: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(managed: bool) -> RbacArgs {
        RbacArgs {
            mistakes: true,
            name: "otel-webhook".to_owned(),
            namespace: "monitoring".to_owned(),
            watch_nodes: false,
            tls_managed: managed.then(|| "certificates".to_owned()),
            webhook_configuration: vec!["one".to_owned(), "two".to_owned()],
            conversion: managed,
            controller: managed,
            lease: "leader".to_owned(),
            restarts: managed,
            restarts_without_policy: false,
            restarts_config_map: "ledger".to_owned(),
            namespaces: Vec::new(),
            rules: None,
        }
    }

    #[test]
    fn rules_without_resource_names_only_read_and_exclude_secrets() {
        let lists =
            [Rules::Cluster, Rules::ManagedCluster, Rules::ManagedNamespace, Rules::ManagedConversion];
        for rule in lists.iter().flat_map(|list| args(true).list(*list).as_array().cloned().expect("a list"))
        {
            let verbs = rule["verbs"].as_array().expect("verbs").iter();
            let all_known = verbs.clone().all(|verb| VERBS.iter().any(|known| verb == known));
            assert!(all_known, "{rule}");
            if rule.get("resourceNames").is_none() {
                let reads =
                    verbs.clone().all(|verb| ["get", "list", "watch"].iter().any(|read| verb == read));
                assert!(reads && rule["resources"] != json!(["secrets"]), "{rule}");
            }
        }
    }

    /// Without restarts it changes no workload, and no Instrumentation but its status.
    #[test]
    fn the_controller_writes_statuses_events_and_its_lease() {
        let written = written(&[Rules::Controller, Rules::ControllerNamespace]);
        let expected = [
            ("patch", "instrumentations/status"),
            ("create", "events"),
            ("create", "leases"),
            ("patch", "leases"),
        ];
        assert_eq!(written, expected.map(|(verb, resource)| (json!(verb), json!([resource]))));
    }

    #[test]
    fn restarts_patch_workloads_evict_pods_and_keep_one_config_map() {
        let written = written(&[Rules::ControllerRestarts, Rules::ControllerRestartsNamespace]);
        let expected = [
            ("patch", json!(["deployments", "statefulsets", "daemonsets"])),
            ("create", json!(["pods/eviction"])),
            ("create", json!(["configmaps"])),
            ("update", json!(["configmaps"])),
        ];
        assert_eq!(written, expected.map(|(verb, resources)| (json!(verb), resources)));
    }

    /// What has no namespace is granted by name, or can only be read by name.
    #[test]
    fn a_controller_of_some_namespaces_has_roles_in_these() {
        let args = RbacArgs { namespaces: vec!["a".to_owned(), "b".to_owned()], ..args(true) };
        let documents = args.documents();
        let of = |kind: &str, namespace: &Value| {
            let is_one = |document: &&Value| {
                let name = document["metadata"]["name"].as_str().unwrap_or_default();
                let is_own = name.starts_with("otel-webhook-controller");
                is_own && document["kind"] == kind && document["metadata"]["namespace"] == *namespace
            };
            documents.iter().filter(is_one).collect::<Vec<_>>()
        };
        for namespace in ["a", "b"] {
            let roles = of("Role", &json!(namespace));
            let has_rules = |role: &&&Value| role["rules"].as_array().is_some_and(|rules| !rules.is_empty());
            assert_eq!(roles.iter().filter(has_rules).count(), 3, "{roles:?}");
        }
        let roles = of("ClusterRole", &Value::Null);
        let [role] = &roles[..] else { panic!("{roles:?}") };
        let resources: Vec<_> = role["rules"].as_array().expect("rules").iter().collect();
        assert_eq!(resources.len(), 2, "{role}");
        assert!(resources.iter().any(|rule| rule["resourceNames"] == json!(["a", "b"])), "{role}");
    }

    /// Returns the verbs that change something, with the resources.
    fn written(lists: &[Rules]) -> Vec<(Value, Value)> {
        let mut written = Vec::new();
        for rules in lists {
            for rule in args(true).list(*rules).as_array().expect("a list") {
                let verbs = rule["verbs"].as_array().expect("verbs").iter();
                let writes = verbs.filter(|verb| !["get", "list", "watch"].iter().any(|read| verb == read));
                written.extend(writes.map(|verb| (verb.clone(), rule["resources"].clone())));
            }
        }
        written
    }

    #[test]
    fn placeholders_are_replaced_by_known_names() {
        let configurations = |args: &RbacArgs| args.list(Rules::ManagedCluster)[0]["resourceNames"].clone();
        assert_eq!(configurations(&args(true)), json!(["one", "two"]));
        assert_eq!(configurations(&args(false)), json!(["CONFIGURATION"]));
        let secret = |args: &RbacArgs| args.list(Rules::ManagedNamespace)[0]["resourceNames"].clone();
        assert_eq!(secret(&args(true)), json!(["certificates"]));
        assert_eq!(secret(&args(false)), json!(["SECRET"]));
        let lease = |args: &RbacArgs| args.list(Rules::ControllerNamespace)[1]["resourceNames"].clone();
        assert_eq!(lease(&args(true)), json!(["leader"]));
        assert_eq!(lease(&args(false)), json!(["LEASE"]));
        assert_eq!(args(true).list(Rules::Namespace)[0]["resourceNames"], json!(["leader"]));
        let ledger =
            |args: &RbacArgs| args.list(Rules::ControllerRestartsNamespace)[1]["resourceNames"].clone();
        assert_eq!(ledger(&args(true)), json!(["ledger"]));
        assert_eq!(ledger(&args(false)), json!(["CONFIGMAP"]));
    }

    #[test]
    fn rules_for_one_resource_are_merged() {
        let list = args(false).list(Rules::Cluster);
        let namespaces: Vec<_> = list
            .as_array()
            .expect("a list")
            .iter()
            .filter(|rule| rule["resources"] == json!(["namespaces"]))
            .collect();
        assert_eq!(namespaces.len(), 1);
        assert_eq!(namespaces[0]["verbs"], json!(["get", "list", "watch"]));
    }

    #[test]
    fn each_mode_has_its_roles() {
        let kinds = |args: &RbacArgs| -> Vec<String> {
            let kind = |document: &Value| document["kind"].as_str().unwrap_or_default().to_owned();
            args.documents().iter().map(kind).collect()
        };
        let files = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding"];
        assert_eq!(kinds(&args(false)), files);
        let managed = ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
        let lease = ["Role", "RoleBinding"];
        let policy = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
        let mistakes = ["ClusterRole", "ClusterRoleBinding"];
        let controller = [&["ServiceAccount"], &managed[..], &mistakes, &managed, &policy].concat();
        let conversion = ["ClusterRole", "ClusterRoleBinding"];
        let webhook = [&files[..], &managed, &conversion, &lease].concat();
        assert_eq!(kinds(&args(true)), [&webhook[..], &controller].concat());
        let without_mistakes = RbacArgs { mistakes: false, ..args(true) };
        assert_eq!(kinds(&without_mistakes).len() + mistakes.len(), kinds(&args(true)).len());
        let without_policy = RbacArgs { restarts_without_policy: true, ..args(true) };
        assert_eq!(kinds(&without_policy), kinds(&args(true))[..kinds(&args(true)).len() - policy.len()]);
        let documents = args(true).documents();
        let [.., policy, binding] = &documents[..] else { panic!("{documents:?}") };
        let condition = policy["spec"]["matchConditions"][0]["expression"].as_str().expect("a condition");
        assert!(
            condition.ends_with("'system:serviceaccount:monitoring:otel-webhook-controller'"),
            "{condition}"
        );
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        let (webhook, controller) = documents.split_at(webhook.len());
        for (documents, account) in [(webhook, "otel-webhook"), (controller, "otel-webhook-controller")] {
            let subjects = documents.iter().filter_map(|document| document["subjects"][0]["name"].as_str());
            assert!(
                subjects.clone().count() > 1 && subjects.clone().all(|name| name == account),
                "{documents:?}"
            );
        }
    }
}
