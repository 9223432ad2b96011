//! The user of added containers in a pod that must not run as root (D41).
//!
//! The images of agents run as root. Where `runAsNonRoot` is true, the kubelet starts no container whose user is root,
//! or is not known by its number.

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use super::text::Object;

/// The user that nothing else names: that of images without root, such as distroless ones.
const NON_ROOT: i64 = 65532;

/// The annotation of a namespace of OpenShift with the users of its pods, such as `1000650000/10000`.
pub const USERS: &str = "openshift.io/sa.scc.uid-range";

/// The user of an added container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// That of the security contexts or of the image; the kubelet accepts it.
    Given,
    /// None is given, and this one has to be set.
    Set(i64),
    /// Root, which the kubelet does not accept.
    Root,
}

/// The security contexts that decide on the user of an added container.
#[derive(Clone, Copy, Debug)]
pub struct Contexts<'c> {
    /// That of the added container.
    pub added: Option<&'c Value>,
    /// That of the target.
    pub target: Option<&'c RawValue>,
    /// That of the pod.
    pub pod: Option<&'c RawValue>,
}

/// What a security context says about users.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Context {
    run_as_non_root: Option<bool>,
    run_as_user: Option<i64>,
    fs_group: Option<i64>,
}

impl Contexts<'_> {
    /// The user, in a namespace whose pods have this one by default.
    pub fn user(self, of_namespace: Option<i64>) -> User {
        let (added, pod) = (Context::of(self.added), Context::of(self.pod));
        if added.run_as_non_root.or(pod.run_as_non_root) != Some(true) {
            return User::Given;
        }
        match added.run_as_user.or(pod.run_as_user) {
            Some(0) => User::Root,
            Some(_) => User::Given,
            None => {
                let of_target = Context::of(self.target).run_as_user.filter(|user| *user != 0);
                User::Set(of_target.or(of_namespace).unwrap_or(NON_ROOT))
            }
        }
    }

    /// Whether the kubelet makes volumes writable for a group of all containers.
    pub fn has_group(self) -> bool {
        Context::of(self.pod).fs_group.is_some()
    }
}

impl Context {
    /// An unreadable context is treated as not set: the API server rejects it.
    fn of<'c>(context: Option<impl serde::Deserializer<'c>>) -> Self {
        let read = context.and_then(|context| Object::<Self>::deserialize(context).ok());
        read.map(|object| object.0).unwrap_or_default()
    }
}

/// The first user of a namespace's range, written as `FIRST/COUNT` or `FIRST-LAST`.
pub fn first_of(range: &str) -> Option<i64> {
    let first: u32 = range.split(['/', '-']).next()?.trim().parse().ok()?;
    i32::try_from(first).ok().filter(|first| *first > 0).map(i64::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(added: &Value, target: &Value, pod: &Value, of_namespace: Option<i64>) -> User {
        let [target, pod] = [target, pod].map(ToString::to_string);
        let raw = |text| Some(serde_json::from_str(text).expect("JSON"));
        Contexts { added: Some(added), target: raw(&target), pod: raw(&pod) }.user(of_namespace)
    }

    #[test]
    fn the_user_is_set_where_the_kubelet_would_not_start_the_image() {
        let (none, strict) = (json!({}), json!({"runAsNonRoot": true}));
        for (added, target, pod, expected) in [
            (&none, &none, &none, User::Given),
            (&strict, &none, &none, User::Set(NON_ROOT)),
            (&none, &none, &strict, User::Set(NON_ROOT)),
            (&Value::Null, &none, &strict, User::Set(NON_ROOT)),
            (&json!({"runAsNonRoot": false}), &none, &strict, User::Given),
            (&strict, &json!({"runAsUser": 7}), &none, User::Set(7)),
            (&strict, &json!({"runAsUser": 0}), &none, User::Set(NON_ROOT)),
            (&strict, &none, &json!({"runAsUser": 7}), User::Given),
            (&json!({"runAsUser": 7}), &none, &strict, User::Given),
            (&json!({"runAsUser": 0}), &none, &strict, User::Root),
            (&json!({"runAsUser": 0}), &none, &none, User::Given),
            (&strict, &none, &json!({"runAsUser": 0}), User::Root),
            (&json!({"runAsNonRoot": "yes"}), &none, &none, User::Given),
        ] {
            assert_eq!(user(added, target, pod, None), expected, "{added} {target} {pod}");
        }
        assert_eq!(user(&strict, &none, &none, Some(9)), User::Set(9), "that of the namespace");
        assert_eq!(
            user(&strict, &json!({"runAsUser": 7}), &none, Some(9)),
            User::Set(7),
            "the target's is first"
        );
    }

    #[test]
    fn a_range_begins_with_its_first_user() {
        for (range, first) in [
            ("1000650000/10000", Some(1_000_650_000)),
            ("1000650000-1000659999", Some(1_000_650_000)),
            ("0/10000", None),
            ("4294967295/1", None),
            ("-1", None),
            ("", None),
            ("any", None),
        ] {
            assert_eq!(first_of(range), first, "{range}");
        }
    }
}
