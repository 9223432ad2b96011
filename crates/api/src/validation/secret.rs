//! Values that look like credentials. A heuristic: it only warns, and never shows the value.

/// Words in the name of a variable with a credential.
const WORDS: [&str; 7] = ["PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY", "CREDENTIALS"];

/// Pairs of such words.
const PAIRS: [&str; 4] = ["API_KEY", "ACCESS_KEY", "PRIVATE_KEY", "LICENSE_KEY"];

/// Last words of names of variables with a reference to a credential, such as a path.
const POINTERS: [&str; 6] = ["FILE", "PATH", "DIR", "NAME", "URL", "ENABLED"];

/// Prefixes of well-known kinds of credentials.
const PREFIXES: [&str; 9] =
    ["Bearer ", "Basic ", "-----BEGIN ", "ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-", "xoxp-"];

/// Headers that carry credentials.
const HEADERS: [&str; 6] = ["authorization", "api-key", "apikey", "api_key", "token", "secret"];

/// Whether a variable's value looks like a credential.
pub fn is_credential(name: &str, value: &str) -> bool {
    // `$(NAME)` refers to another variable, which may have its value from a Secret.
    if value.is_empty() || value.contains("$(") {
        return false;
    }
    let name = name.to_uppercase().replace(['-', '.'], "_");
    is_named_so(&name)
        || PREFIXES.iter().any(|prefix| value.starts_with(prefix))
        || value.to_lowercase().contains("password=")
        || has_password(value)
        || (name.ends_with("_HEADERS") && has_secret_header(value))
}

fn is_named_so(name: &str) -> bool {
    let words: Vec<_> = name.split('_').collect();
    let is_pointer = words.last().is_some_and(|last| POINTERS.contains(last));
    let is_word = words.iter().any(|word| WORDS.iter().any(|known| word.ends_with(known)));
    !is_pointer && (is_word || PAIRS.iter().any(|pair| name.ends_with(pair)))
}

/// Whether a URL contains a password.
pub fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    let user = authority.and_then(|authority| authority.rsplit_once('@'));
    user.and_then(|(user, _)| user.split_once(':'))
        .is_some_and(|(_, password)| !password.is_empty() && !password.contains("$("))
}

fn has_secret_header(value: &str) -> bool {
    value.split(',').filter_map(|header| header.split_once('=')).any(|(header, value)| {
        let header = header.to_lowercase();
        !value.trim().is_empty() && HEADERS.iter().any(|known| header.contains(known))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_recognised_by_name_or_by_value() {
        for (name, value) in [
            ("DB_PASSWORD", "x"),
            ("db.password", "x"),
            ("MYPASSWORD", "1"),
            ("VENDOR_API_KEY", "x"),
            ("NEW_RELIC_LICENSE_KEY", "x"),
            ("A", "Bearer abc"),
            ("URL", "http://user:pass@host"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,Authorization=Basic%20abc"),
            ("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.keyStorePassword=x"),
        ] {
            assert!(is_credential(name, value), "{name}");
        }
        for (name, value) in [
            ("DB_PASSWORD", ""),
            ("DB_PASSWORD", "$(FROM_SECRET)"),
            ("TOKEN_FILE", "/var/run/token"),
            ("MAX_TOKENS", "100"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=shop"),
            ("URL", "http://host:1/a@b"),
            ("A", "always_on"),
            ("PRIMARY_KEY", "id"),
        ] {
            assert!(!is_credential(name, value), "{name}");
        }
    }
}
