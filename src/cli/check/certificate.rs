//! Whether API servers trust the certificate that the webhook serves.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::{
    registration::{Backend, Hook},
    result::{CheckResult, Code},
};
use crate::tls::trust::{Bundle, Distrust, ShownChain};

/// The certificate behind a backend, or why it is not known.
pub type Shown = Result<ShownChain, String>;

/// What is to be said of the certificates that the webhooks are called by; of
/// several that are called alike, once.
pub fn results(hooks: &[Hook], shown: &BTreeMap<String, Shown>, now: Timestamp) -> Vec<CheckResult> {
    let mut results: Vec<CheckResult> = Vec::new();
    for hook in hooks {
        let Some(shown) = shown.get(&origin(&hook.backend)) else { continue };
        let found = result(hook, shown, now);
        if !results.contains(&found) {
            results.push(found);
        }
    }
    results
}

/// What tells backends apart that have certificates of their own.
pub fn origin(backend: &Backend) -> String {
    match backend {
        Backend::Service { namespace, name, .. } => format!("{namespace}/{name}"),
        Backend::Url(url) => {
            let uri = url.parse::<hyper::Uri>().unwrap_or_default();
            uri.authority().map_or_else(|| url.clone(), ToString::to_string)
        }
    }
}

fn result(hook: &Hook, shown: &Shown, now: Timestamp) -> CheckResult {
    of(hook, shown, now).about(hook.subject())
}

fn of(hook: &Hook, shown: &Shown, now: Timestamp) -> CheckResult {
    if hook.bundle.is_empty() {
        let message = "has no caBundle: API servers trust the webhook by the authorities of their machines";
        let advice = "let cert-manager's cainjector, managed mode or the chart write it; see certs/README.md";
        return CheckResult::new(Code::BundleMissing, message).advise(advice);
    }
    let bundle = match Bundle::from_pem(&hook.bundle) {
        Ok(bundle) => bundle,
        Err(problem) => {
            let message = format!("the caBundle cannot be read: {problem}");
            let advice = "write certificates in PEM, encoded as base64 once";
            return CheckResult::new(Code::BundleUnreadable, message).advise(advice);
        }
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(reason) => {
            let message =
                format!("whether the caBundle fits the serving certificate was not checked: {reason}");
            return CheckResult::new(Code::CertificateNotChecked, message);
        }
    };
    if let Err(distrust) = bundle.judge(shown, &name(&hook.backend), now) {
        return CheckResult::new(Code::CertificateNotTrusted, distrust.to_string()).advise(advice(&distrust));
    }
    let until = shown.leaf.not_after;
    if shown.is_nearly_over(now) {
        let message = format!("the certificate ends at {until} and has not been renewed");
        let advice =
            "look at who renews it: cert-manager's Certificate, or the webhook's log in managed mode";
        return CheckResult::new(Code::CertificateNearlyOver, message).advise(advice);
    }
    CheckResult::new(
        Code::CertificateTrusted,
        format!("API servers trust the certificate; it is valid until {until}"),
    )
}

/// The name that an API server calls the backend by.
fn name(backend: &Backend) -> String {
    match backend {
        Backend::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
        Backend::Url(url) => {
            let url = url.parse::<hyper::Uri>().unwrap_or_default();
            url.host().unwrap_or_default().trim_matches(['[', ']']).to_owned()
        }
    }
}

fn advice(distrust: &Distrust) -> &'static str {
    match distrust {
        Distrust::Expired { .. } | Distrust::NotYetValid { .. } => {
            "renew it; the webhook takes a new one within a second"
        }
        Distrust::OtherName { .. } => "issue it for the name that API servers call",
        Distrust::AuthorityExpired | Distrust::OtherAuthority => {
            "put the authority of the serving certificate into the caBundle"
        }
        Distrust::Unfit(_) => "issue one for servers; certs/README.md has examples",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::registration::tests::registration, *};
    use crate::{cli::check::registration::Registration, tls::SelfSigned};

    const NAME: &str = "otel-webhook.otel-webhook.svc";

    fn registered(bundle: Option<&str>) -> Registration {
        registration(&[], |mutating, _| {
            mutating["webhooks"].as_array_mut().expect("webhooks").truncate(1);
            if let Some(bundle) = bundle {
                use base64::{Engine, prelude::BASE64_STANDARD};
                mutating["webhooks"][0]["clientConfig"]["caBundle"] = json!(BASE64_STANDARD.encode(bundle));
            }
        })
    }

    fn pair(name: &str) -> (String, Shown) {
        let made = SelfSigned::generate(&[name]).expect("a pair");
        (
            made.ca_pem,
            ShownChain::from_pem(made.certificate_pem.as_bytes()).map_err(|error| error.to_string()),
        )
    }

    fn said(bundle: Option<&str>, shown: &Shown, now: Timestamp) -> (Code, String) {
        let registration = registered(bundle);
        let found = result(registration.pods().next().expect("one"), shown, now);
        (found.code, found.line())
    }

    #[test]
    fn the_right_bundle_is_told_from_each_wrong_one() {
        let now = Timestamp::now();
        let (ca, shown) = pair(NAME);
        assert_eq!(said(Some(&ca), &shown, now).0, Code::CertificateTrusted);
        for (bundle, shown, code, words) in [
            (None, &shown, Code::BundleMissing, "has no caBundle"),
            (Some("text"), &shown, Code::BundleUnreadable, "the caBundle cannot be read: has no certificate"),
            (Some(&*pair(NAME).0), &shown, Code::CertificateNotTrusted, "put the authority"),
            (Some(&*ca), &Err("no pod".to_owned()), Code::CertificateNotChecked, "was not checked: no pod"),
        ] {
            let (found, line) = said(bundle, shown, now);
            assert_eq!(found, code, "{line}");
            assert!(line.contains(words), "{line}");
        }
        let (ca, other) = pair("other.svc");
        let (code, line) = said(Some(&ca), &other, now);
        assert_eq!(code, Code::CertificateNotTrusted);
        assert!(line.contains("is not for otel-webhook.otel-webhook.svc; it is for other.svc"), "{line}");
    }

    #[test]
    fn one_that_ends_soon_or_has_ended_is_found_before_and_after() {
        let (ca, shown) = pair(NAME);
        let end = shown.as_ref().expect("readable").leaf.not_after;
        let second = jiff::SignedDuration::from_secs(1);
        assert_eq!(said(Some(&ca), &shown, end - second).0, Code::CertificateNearlyOver);
        let (code, line) = said(Some(&ca), &shown, end + second);
        assert_eq!(code, Code::CertificateNotTrusted);
        assert!(line.contains("the certificate expired at "), "{line}");
    }

    #[test]
    fn a_url_is_called_by_its_host() {
        assert_eq!(name(&Backend::Url("https://[::1]:9443/mutate-v1-pod".to_owned())), "::1");
        assert_eq!(name(&Backend::Url("https://webhook.example.com/x".to_owned())), "webhook.example.com");
    }
}
