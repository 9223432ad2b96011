use super::*;

fn args(managed: bool) -> RbacArgs {
    RbacArgs {
        name: "otel-webhook".to_owned(),
        namespace: "monitoring".to_owned(),
        watch_nodes: false,
        tls_managed: managed.then(|| "certificates".to_owned()),
        webhook_configuration: vec!["one".to_owned(), "two".to_owned()],
        controller: managed,
        lease: "leader".to_owned(),
        restarts: managed,
        restarts_config_map: "ledger".to_owned(),
        namespaces: Vec::new(),
        rules: None,
    }
}

#[test]
fn rules_without_resource_names_only_read_and_exclude_secrets() {
    let lists = [Rules::Cluster, Rules::ManagedCluster, Rules::ManagedNamespace];
    for rule in lists.iter().flat_map(|list| args(true).list(*list).as_array().cloned().expect("a list")) {
        let verbs = rule["verbs"].as_array().expect("verbs").iter();
        let all_known = verbs.clone().all(|verb| VERBS.iter().any(|known| verb == known));
        assert!(all_known, "{rule}");
        if rule.get("resourceNames").is_none() {
            let reads = verbs.clone().all(|verb| ["get", "list", "watch"].iter().any(|read| verb == read));
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
        assert_eq!(roles.iter().filter(has_rules).count(), 2, "{roles:?}");
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
    let ledger = |args: &RbacArgs| args.list(Rules::ControllerRestartsNamespace)[1]["resourceNames"].clone();
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
    let controller = [&["ServiceAccount"], &managed[..], &managed].concat();
    assert_eq!(kinds(&args(true)), [&files[..], &managed, &lease, &controller].concat());
    let documents = args(true).documents();
    let (webhook, controller) = documents.split_at(files.len() + managed.len() + lease.len());
    for (documents, account) in [(webhook, "otel-webhook"), (controller, "otel-webhook-controller")] {
        let subjects = documents.iter().filter_map(|document| document["subjects"][0]["name"].as_str());
        assert!(
            subjects.clone().count() > 1 && subjects.clone().all(|name| name == account),
            "{documents:?}"
        );
    }
}
