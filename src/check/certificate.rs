//! Checks whether API servers trust the serving certificate of the webhook.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::result::{CheckResult, Code};
use otel_webhook_server::{
    registration::{Backend, Hook},
    tls::trust::{Bundle, Distrust, ShownChain},
};

/// The certificate behind a backend, or why it is not known.
pub type Shown = Result<ShownChain, String>;

/// Returns the results for the certificates of the webhooks. Equal results are returned once.
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

/// Returns a key for the server of a backend: each server has its own certificate.
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
        let message = "has no caBundle: API servers verify the webhook with the CAs of their hosts";
        let advice = "set it by cert-manager's cainjector, by managed certificates or by the chart; see certs/README.md";
        return CheckResult::new(Code::CaBundleMissing, message).advise(advice);
    }
    let bundle = match Bundle::from_pem(&hook.bundle) {
        Ok(bundle) => bundle,
        Err(problem) => {
            let message = format!("caBundle cannot be read: {problem}");
            let advice = "set it to PEM certificates, base64-encoded once";
            return CheckResult::new(Code::CaBundleInvalid, message).advise(advice);
        }
    };
    let shown = match shown {
        Ok(shown) => shown,
        Err(reason) => {
            let message =
                format!("did not check whether caBundle verifies the serving certificate: {reason}");
            return CheckResult::new(Code::CertificateNotChecked, message);
        }
    };
    if let Err(distrust) = bundle.verify(shown, &name(&hook.backend), now) {
        return CheckResult::new(Code::CertificateNotTrusted, distrust.to_string()).advise(advice(&distrust));
    }
    let until = shown.leaf.not_after;
    if shown.is_nearly_over(now) {
        let message = format!("the certificate expires at {until} and was not renewed");
        let advice = "see why it is not renewed: cert-manager's Certificate, or the webhook's log for managed certificates";
        return CheckResult::new(Code::CertificateExpiresSoon, message).advise(advice);
    }
    CheckResult::new(
        Code::CertificateTrusted,
        format!("API servers trust the certificate, which is valid until {until}"),
    )
}

/// Returns the DNS name by which an API server calls the backend.
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
            "renew it; the webhook reloads it within a second"
        }
        Distrust::OtherName { .. } => "issue it for the DNS name that API servers use",
        Distrust::CaExpired | Distrust::OtherCa => "set caBundle to the CA of the serving certificate",
        Distrust::Unfit(_) => "issue a server certificate; see certs/README.md for examples",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::registration::tests::registration, *};
    use otel_webhook_server::{registration::Registration, tls::SelfSigned};

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
    fn each_wrong_bundle_is_reported() {
        let now = Timestamp::now();
        let (ca, shown) = pair(NAME);
        assert_eq!(said(Some(&ca), &shown, now).0, Code::CertificateTrusted);
        for (bundle, shown, code, words) in [
            (None, &shown, Code::CaBundleMissing, "has no caBundle"),
            (Some("text"), &shown, Code::CaBundleInvalid, "caBundle cannot be read: has no certificate"),
            (Some(&*pair(NAME).0), &shown, Code::CertificateNotTrusted, "set caBundle to the CA"),
            (
                Some(&*ca),
                &Err("no pod".to_owned()),
                Code::CertificateNotChecked,
                "verifies the serving certificate: no pod",
            ),
        ] {
            let (found, line) = said(bundle, shown, now);
            assert_eq!(found, code, "{line}");
            assert!(line.contains(words), "{line}");
        }
        let (ca, other) = pair("other.svc");
        let (code, line) = said(Some(&ca), &other, now);
        assert_eq!(code, Code::CertificateNotTrusted);
        assert!(
            line.contains("is not valid for otel-webhook.otel-webhook.svc; it is valid for other.svc"),
            "{line}"
        );
    }

    #[test]
    fn a_certificate_that_expires_soon_or_has_expired_is_reported() {
        let (ca, shown) = pair(NAME);
        let end = shown.as_ref().expect("readable").leaf.not_after;
        let second = jiff::SignedDuration::from_secs(1);
        assert_eq!(said(Some(&ca), &shown, end - second).0, Code::CertificateExpiresSoon);
        let (code, line) = said(Some(&ca), &shown, end + second);
        assert_eq!(code, Code::CertificateNotTrusted);
        assert!(line.contains("the certificate expired at "), "{line}");
    }

    #[test]
    fn the_name_of_a_url_is_its_host() {
        assert_eq!(name(&Backend::Url("https://[::1]:9443/mutate-v1-pod".to_owned())), "::1");
        assert_eq!(name(&Backend::Url("https://webhook.example.com/x".to_owned())), "webhook.example.com");
    }
}
