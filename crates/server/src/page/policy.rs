//! The style and the script of the page, and the Content Security Policy that allows them.

#[cfg(feature = "fips")]
use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, prelude::BASE64_STANDARD};
#[cfg(not(feature = "fips"))]
use ring::digest::{SHA256, digest};

/// The style of the page.
pub const STYLE: &str = include_str!("page.css");

/// Its script.
pub const SCRIPT: &str = include_str!("page.js");

/// Returns the policy in the document: nothing is loaded and nothing is sent. The empty `data:` image keeps browsers from
/// asking for an icon. Trusted types make the browser itself refuse to parse text as markup.
pub fn of_document() -> String {
    format!(
        "default-src 'none'; script-src '{}'; style-src '{}'; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE)
    )
}

/// Returns the policy in the header of a response. It also forbids frames: browsers ignore that in a document.
pub fn of_response() -> String {
    format!("{}; frame-ancestors 'none'", of_document())
}

fn hash(text: &str) -> String {
    format!("sha256-{}", BASE64_STANDARD.encode(digest(&SHA256, text.as_bytes())))
}
