//! Image references, by the grammar of the distribution
//! project (`reference.Parse`).

/// The service version of an image reference: its tag, `tag@digest`,
/// or its digest. `None` for a reference with neither, or an invalid one.
pub fn version(image: &str) -> Option<&str> {
    let Parts { name, tag, digest } = Parts::of(image)?;
    if tag.is_some() { Some(&image[name.len() + 1..]) } else { digest }
}

/// Whether it is a valid reference.
pub fn is_reference(image: &str) -> bool {
    Parts::of(image).is_some()
}

/// The parts of a valid reference.
struct Parts<'i> {
    name: &'i str,
    tag: Option<&'i str>,
    digest: Option<&'i str>,
}

impl<'i> Parts<'i> {
    fn of(image: &'i str) -> Option<Self> {
        let (named, digest) = match image.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (image, None),
        };
        let name_start = named.rfind('/').map_or(0, |slash| slash + 1);
        let colon = named[name_start..].rfind(':').map(|at| name_start + at);
        let (name, tag) = match colon {
            Some(at) => (&named[..at], Some(&named[at + 1..])),
            None => (named, None),
        };
        let is_valid = is_name(name) && tag.is_none_or(is_tag) && digest.is_none_or(is_digest);
        is_valid.then_some(Self { name, tag, digest })
    }
}

/// The maximum length of a name without its registry.
const LONGEST_PATH: usize = 255;

fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((domain, path)) if is_domain(domain) => path,
        _ => name,
    };
    path.len() <= LONGEST_PATH && path.split('/').all(is_component)
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, rest)) => {
                let port = rest.strip_prefix(':');
                let hex = |byte: u8| byte.is_ascii_hexdigit() || byte == b':';
                let fits = !address.is_empty() && address.bytes().all(hex);
                return fits && (rest.is_empty() || port.is_some_and(is_port));
            }
            None => return false,
        },
        None => match domain.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (domain, None),
        },
    };
    let label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    host.split('.').all(label) && port.is_none_or(is_port)
}

fn is_port(port: &str) -> bool {
    !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Lower-case letters and digits, separated by one of `.`, `_`, `__` or any number of `-`.
fn is_component(component: &str) -> bool {
    let word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    let separators = bytes.split(|byte| word(byte)).filter(|run| !run.is_empty());
    let mut parted =
        separators.map(|run| matches!(run, b"." | b"_" | b"__") || run.iter().all(|&byte| byte == b'-'));
    word(first) && word(last) && parted.all(|fits| fits)
}

fn is_tag(tag: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let rest = |byte: u8| word(byte) || byte == b'.' || byte == b'-';
    (1..=128).contains(&tag.len()) && word(tag.as_bytes()[0]) && tag.bytes().all(rest)
}

fn is_digest(digest: &str) -> bool {
    let (hex, length) = match digest.split_once(':') {
        Some(("sha256", hex)) => (hex, 64),
        Some(("sha384", hex)) => (hex, 96),
        Some(("sha512", hex)) => (hex, 128),
        _ => return false,
    };
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    hex.len() == length && hex.bytes().all(lower)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_tag_or_the_digest() {
        let digest = format!("sha256:{}", "0a".repeat(32));
        let both = format!("app:1@{digest}");
        let alone = format!("registry.example.com:5000/team/app@{digest}");
        for (image, expected) in [
            ("app:1.4.2", Some("1.4.2")),
            ("registry.example.com:5000/team/app:1.4.2", Some("1.4.2")),
            ("registry.example.com:5000/team/app", None),
            ("localhost:5000", Some("5000")),
            ("UPPER/app:1", Some("1")),
            ("Upper:1", None),
            ("app", None),
            ("", None),
            ("app:", None),
            ("app:.dot", None),
            ("app@sha256:short", None),
            ("a__b/c--d.e:1", Some("1")),
            ("a___b:1", None),
            ("[fd00::1]:5000/app:2", Some("2")),
            (&both, Some(&both[4..])),
            (&alone, Some(&digest)),
        ] {
            assert_eq!(version(image), expected, "{image}");
        }
    }

    #[test]
    fn a_reference_needs_neither_tag_nor_digest() {
        for (image, is_valid) in [
            ("app", true),
            ("registry.example.com:5000/team/app:1.4.2", true),
            ("", false),
            (" app:1", false),
            ("app:", false),
            ("https://registry.example.com/app:1", false),
        ] {
            assert_eq!(is_reference(image), is_valid, "{image}");
        }
    }
}
