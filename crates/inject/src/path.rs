//! Paths in a container, as strings.

/// Cleans a path: removes `.`, a name before a `..`, and repeated
/// slashes; `.` if nothing is left.
pub fn clean(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
        let up = name == "..";
        if up && names.last().is_some_and(|last| *last != "..") {
            names.pop();
        } else if !up || !absolute {
            names.push(name);
        }
    }
    match (absolute, names.is_empty()) {
        (true, _) => format!("/{}", names.join("/")),
        (false, true) => ".".to_owned(),
        (false, false) => names.join("/"),
    }
}

/// The cleaned folder of a path, and the last name in it; `/` if it has none.
pub fn split(path: &str) -> (String, &str) {
    let folder = path.rfind('/').map_or("", |slash| &path[..=slash]);
    let trimmed = path.trim_end_matches('/');
    let file = trimmed.rsplit('/').next().filter(|file| !file.is_empty()).unwrap_or("/");
    (clean(folder), file)
}

/// Whether a cleaned path is a folder or file below the root
/// and below its start.
pub fn is_below_something(path: &str) -> bool {
    !matches!(path, "/" | "." | "..") && !path.starts_with("../")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_cleaned_and_split() {
        for (path, folder, file) in [
            ("/etc/nginx/nginx.conf", "/etc/nginx", "nginx.conf"),
            ("/etc/nginx/", "/etc/nginx", "nginx"),
            ("/etc//nginx//n.conf", "/etc/nginx", "n.conf"),
            ("/etc/nginx/../ngx/./n.conf", "/etc/ngx", "n.conf"),
            ("conf/n.conf", "conf", "n.conf"),
            ("n.conf", ".", "n.conf"),
            ("/n.conf", "/", "n.conf"),
            ("/../n.conf", "/", "n.conf"),
            ("../../n.conf", "../..", "n.conf"),
            ("a/../../n.conf", "..", "n.conf"),
            ("/", "/", "/"),
            ("", ".", "/"),
        ] {
            assert_eq!(split(path), (folder.to_owned(), file), "{path:?}");
        }
    }

    #[test]
    fn paths_outside_of_their_start_are_recognised() {
        for path in ["/", ".", "..", "../etc", "../.."] {
            assert!(!is_below_something(path), "{path}");
        }
        for path in ["/etc", "conf", "..conf", "nginx.conf"] {
            assert!(is_below_something(path), "{path}");
        }
    }
}
