//! Checks whether a namespace's pod security level accepts a container's security context,
//! by the Pod Security Standards of Kubernetes.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::text::{Object, Text, object_or_default};

/// Capabilities that a container can add at the level `baseline`.
const BASELINE: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// Those at the level `restricted`.
const RESTRICTED: [&str; 1] = ["NET_BIND_SERVICE"];

/// Types of `SELinux` that are confined.
const SELINUX_TYPES: [&str; 5] =
    ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/// A level that rejects anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Rejects known privilege escalations.
    Baseline,
    /// Rejects everything that is not hardened.
    Restricted,
}

impl Level {
    /// The level of a namespace's label; `None` for one that accepts everything.
    pub fn of(label: &str) -> Option<Self> {
        match label {
            "baseline" => Some(Self::Baseline),
            "restricted" => Some(Self::Restricted),
            _ => None,
        }
    }

    /// The first field of a container's security context that the level rejects, together with the
    /// context of its pod.
    pub fn rejects(self, container: &Value, pod: Option<&RawValue>) -> Option<&'static str> {
        let container = Context::read(container);
        let of_pod = pod.and_then(|pod| Object::<Context<'_>>::deserialize(pod).ok());
        let of_pod = of_pod.map(|context| context.0).unwrap_or_default();
        container.beyond_baseline().or_else(|| {
            let is_restricted = self == Self::Restricted;
            is_restricted.then(|| container.not_restricted(&of_pod)).flatten()
        })
    }
}

/// Whether a container's security context makes it privileged.
pub fn is_privileged(container: &Value) -> bool {
    Context::read(container).privileged == Some(true)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context<'a> {
    privileged: Option<bool>,
    allow_privilege_escalation: Option<bool>,
    run_as_non_root: Option<bool>,
    run_as_user: Option<i64>,
    #[serde(borrow)]
    proc_mount: Text<'a>,
    #[serde(deserialize_with = "object_or_default")]
    capabilities: Capabilities<'a>,
    #[serde(deserialize_with = "object_or_default")]
    seccomp_profile: Profile<'a>,
    #[serde(deserialize_with = "object_or_default")]
    app_armor_profile: Profile<'a>,
    #[serde(deserialize_with = "object_or_default")]
    se_linux_options: SeLinux<'a>,
    #[serde(deserialize_with = "object_or_default")]
    windows_options: Windows,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Capabilities<'a> {
    #[serde(borrow)]
    add: Option<Vec<Text<'a>>>,
    drop: Option<Vec<Text<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Profile<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct SeLinux<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    user: Text<'a>,
    role: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Windows {
    host_process: Option<bool>,
}

impl<'a> Context<'a> {
    /// An unreadable value is treated as not set: the API server rejects it.
    fn read(value: &'a Value) -> Self {
        Object::<Self>::deserialize(value).map(|object| object.0).unwrap_or_default()
    }

    fn beyond_baseline(&self) -> Option<&'static str> {
        let SeLinux { kind, user, role } = &self.se_linux_options;
        let is_confined = SELINUX_TYPES.contains(&&**kind) && user.is_empty() && role.is_empty();
        let unconfined = |profile: &Profile<'_>| &*profile.kind == "Unconfined";
        [
            (self.privileged == Some(true), "privileged"),
            (self.adds_beyond(&BASELINE), "capabilities.add"),
            (!["", "Default"].contains(&&*self.proc_mount), "procMount"),
            (unconfined(&self.seccomp_profile), "seccompProfile.type"),
            (unconfined(&self.app_armor_profile), "appArmorProfile.type"),
            (!is_confined, "seLinuxOptions"),
            (self.windows_options.host_process == Some(true), "windowsOptions.hostProcess"),
        ]
        .into_iter()
        .find_map(|(is_rejected, field)| is_rejected.then_some(field))
    }

    fn not_restricted(&self, pod: &Context<'_>) -> Option<&'static str> {
        let drops_all = self.capabilities.drop.iter().flatten().any(|dropped| &**dropped == "ALL");
        let non_root = self.run_as_non_root.or(pod.run_as_non_root);
        let seccomp = [&self.seccomp_profile.kind, &pod.seccomp_profile.kind];
        let seccomp = seccomp.into_iter().find(|kind| !kind.is_empty());
        let is_profiled = seccomp.is_some_and(|kind| ["RuntimeDefault", "Localhost"].contains(&&**kind));
        [
            (self.allow_privilege_escalation != Some(false), "allowPrivilegeEscalation"),
            (!drops_all, "capabilities.drop"),
            (self.adds_beyond(&RESTRICTED), "capabilities.add"),
            (non_root != Some(true), "runAsNonRoot"),
            (self.run_as_user == Some(0), "runAsUser"),
            (!is_profiled, "seccompProfile.type"),
        ]
        .into_iter()
        .find_map(|(is_rejected, field)| is_rejected.then_some(field))
    }

    fn adds_beyond(&self, allowed: &[&str]) -> bool {
        self.capabilities.add.iter().flatten().any(|added| !allowed.contains(&&**added))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn rejected(level: Level, container: &Value, pod: &Value) -> Option<&'static str> {
        let pod = pod.to_string();
        level.rejects(container, Some(serde_json::from_str(&pod).expect("JSON")))
    }

    /// A security context that the level `restricted` accepts.
    fn hardened() -> Value {
        json!({
            "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "runAsNonRoot": true,
            "runAsUser": 101, "seccompProfile": {"type": "RuntimeDefault"},
        })
    }

    #[test]
    fn baseline_rejects_what_gives_access_to_the_node() {
        let bare = json!({});
        for (context, field) in [
            (json!({"privileged": true}), "privileged"),
            (json!({"capabilities": {"add": ["CHOWN", "SYS_ADMIN"]}}), "capabilities.add"),
            (json!({"procMount": "Unmasked"}), "procMount"),
            (json!({"seccompProfile": {"type": "Unconfined"}}), "seccompProfile.type"),
            (json!({"appArmorProfile": {"type": "Unconfined"}}), "appArmorProfile.type"),
            (json!({"seLinuxOptions": {"type": "spc_t"}}), "seLinuxOptions"),
            (json!({"seLinuxOptions": {"role": "sysadm_r"}}), "seLinuxOptions"),
            (json!({"windowsOptions": {"hostProcess": true}}), "windowsOptions.hostProcess"),
        ] {
            assert_eq!(rejected(Level::Baseline, &context, &bare), Some(field), "{context}");
        }
        let fine = json!({"runAsUser": 0, "capabilities": {"add": ["CHOWN"]}, "procMount": "Default",
            "seLinuxOptions": {"type": "container_t"}, "privileged": false});
        assert_eq!(rejected(Level::Baseline, &fine, &bare), None);
    }

    #[test]
    fn restricted_rejects_what_is_not_hardened() {
        let bare = json!({});
        assert_eq!(rejected(Level::Restricted, &hardened(), &bare), None);
        for (member, value, field) in [
            ("allowPrivilegeEscalation", Value::Null, "allowPrivilegeEscalation"),
            ("capabilities", json!({"drop": ["NET_RAW"]}), "capabilities.drop"),
            ("capabilities", json!({"drop": ["ALL"], "add": ["CHOWN"]}), "capabilities.add"),
            ("runAsNonRoot", Value::Null, "runAsNonRoot"),
            ("runAsUser", json!(0), "runAsUser"),
            ("seccompProfile", Value::Null, "seccompProfile.type"),
        ] {
            let mut context = hardened();
            context[member] = value;
            assert_eq!(rejected(Level::Restricted, &context, &bare), Some(field), "{context}");
        }
    }

    #[test]
    fn the_pods_security_context_applies_to_its_containers() {
        let pod = json!({"runAsNonRoot": true, "seccompProfile": {"type": "Localhost"}});
        let mut context = hardened();
        for member in ["runAsNonRoot", "seccompProfile"] {
            context[member] = Value::Null;
        }
        assert_eq!(rejected(Level::Restricted, &context, &pod), None);
        context["runAsNonRoot"] = json!(false);
        assert_eq!(rejected(Level::Restricted, &context, &pod), Some("runAsNonRoot"));
    }

    #[test]
    fn other_values_are_no_level() {
        assert_eq!(["privileged", "", "Restricted"].map(Level::of), [None; 3]);
    }
}
