//! Directives of a web server's configuration.
//!
//! Values come from annotations, labels and Instrumentations. One value must never be read as another directive,
//! so a value is quoted where the server would read more than one argument, or the end of the directive. Both
//! servers read `\"` and `\\` in double quotes. A value that needs no quotes is written as the operator writes it.

use std::borrow::Cow;

use otel_webhook_api::is_directive_name;

/// The syntax of a server's configuration.
pub struct Syntax {
    /// The end of a directive.
    pub end: &'static str,
    /// Characters with a meaning outside quotes, besides spaces, quotes and backslashes.
    pub special: &'static [char],
    /// The maximum length of a value in bytes: a longer directive does not fit into the server's buffer.
    pub longest: usize,
}

/// The arguments of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// The whole value is one argument, as in all directives of the module.
    One,
    /// Spaces separate arguments, as in directives of the server that an Instrumentation sets.
    Several,
}

impl Syntax {
    /// Apache HTTPD: a directive ends with its line. A line of 2.2 has at most 8,192 bytes.
    pub const HTTPD: Self = Self { end: "\n", special: &[], longest: 8000 };

    /// nginx. A parameter has to fit into a buffer of 4,096 bytes.
    pub const NGINX: Self = Self { end: ";\n", special: &[';', '{', '}', '#'], longest: 4000 };

    /// The line of a directive.
    ///
    /// # Errors
    /// Why it cannot be written, as the end of a sentence about the directive.
    pub fn line(&self, name: &str, value: &str, arguments: Arguments) -> Result<String, &'static str> {
        if !is_directive_name(name) {
            return Err("has a name that is not valid; valid: letters, digits and _");
        }
        if value.contains(char::is_control) {
            return Err("has a control character in its value; valid: one line of text");
        }
        if value.len() > self.longest {
            return Err("has a value that is too long for the server's configuration");
        }
        Ok([name, " ", &self.value(value, arguments), self.end].concat())
    }

    fn value(&self, value: &str, arguments: Arguments) -> String {
        let mut text = String::with_capacity(value.len());
        let mut rest = value.trim_end_matches(' ');
        let behind = &value[rest.len()..];
        loop {
            let word = rest.trim_start_matches(' ');
            text.push_str(&rest[..rest.len() - word.len()]);
            let end = if arguments == Arguments::One { word.len() } else { word_end(word) };
            text.push_str(&self.argument(&word[..end]));
            rest = &word[end..];
            if rest.is_empty() {
                return text + behind;
            }
        }
    }

    /// One argument, in quotes if it needs them.
    fn argument<'v>(&self, value: &'v str) -> Cow<'v, str> {
        let is_special =
            |one: char| one.is_whitespace() || "\"'\\".contains(one) || self.special.contains(&one);
        let is_plain = !value.is_empty() && !value.contains(is_special);
        if is_plain || closing_quote(value) == Some(value.len()) {
            return Cow::Borrowed(value);
        }
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        Cow::Owned(["\"", &escaped, "\""].concat())
    }
}

/// The end of the first argument of a value.
fn word_end(value: &str) -> usize {
    let quoted = closing_quote(value).filter(|&end| value[end..].is_empty() || value[end..].starts_with(' '));
    quoted.or_else(|| value.find(' ')).unwrap_or(value.len())
}

/// The position behind the closing quote of a value that begins with a quote.
fn closing_quote(value: &str) -> Option<usize> {
    let mut letters = value.char_indices();
    let (_, quote) = letters.next().filter(|(_, first)| ['"', '\''].contains(first))?;
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            end if end == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(syntax: &Syntax, value: &str, arguments: Arguments) -> String {
        let line = syntax.line("Name", value, arguments).expect("it can be written");
        line.strip_prefix("Name ")
            .and_then(|line| line.strip_suffix(syntax.end))
            .expect("a directive")
            .to_owned()
    }

    #[test]
    fn plain_values_are_written_as_they_are() {
        for plain in [
            "ON",
            " ON",
            "ON ",
            "http://$(OTEL_NODE_IP):4317/?a=b&c",
            "<<SID-PLACEHOLDER>>",
            "a-1.b_c",
            "\u{fc}",
        ] {
            for (syntax, arguments) in
                [(&Syntax::HTTPD, Arguments::One), (&Syntax::NGINX, Arguments::Several)]
            {
                assert_eq!(value(syntax, plain, arguments), plain);
            }
        }
        assert_eq!(value(&Syntax::HTTPD, "a;b{c}#d", Arguments::One), "a;b{c}#d");
    }

    #[test]
    fn other_values_are_one_quoted_argument() {
        for (given, expected) in [
            ("", r#""""#),
            ("two words", r#""two words""#),
            (r#"a"b"#, r#""a\"b""#),
            ("it's", r#""it's""#),
            (r"a\", r#""a\\""#),
            (r#"a" "b"#, r#""a\" \"b""#),
            (r#""a" x "b""#, r#""\"a\" x \"b\"""#),
            (r#""a\""#, r#""\"a\\\"""#),
        ] {
            assert_eq!(value(&Syntax::HTTPD, given, Arguments::One), expected);
            assert_eq!(value(&Syntax::NGINX, given, Arguments::One), expected);
        }
        for (given, expected) in [
            ("a;load_module", r#""a;load_module""#),
            ("a}", r#""a}""#),
            ("a{", r#""a{""#),
            ("#a", r##""#a""##),
            ("${a}", r#""${a}""#),
        ] {
            assert_eq!(value(&Syntax::NGINX, given, Arguments::One), expected);
        }
    }

    #[test]
    fn a_value_that_is_quoted_is_not_quoted_again() {
        for quoted in [r#""a b""#, r"'a; b'", r#""a\"b\\""#, r#"" ""#] {
            assert_eq!(value(&Syntax::HTTPD, quoted, Arguments::One), quoted);
            assert_eq!(value(&Syntax::NGINX, quoted, Arguments::Several), quoted);
        }
    }

    #[test]
    fn each_of_several_arguments_is_quoted() {
        for (given, expected) in [
            ("warn otel:trace", "warn otel:trace"),
            (r#"a  "b c" d;e"#, r#"a  "b c" "d;e""#),
            (r#"a"b c"#, r#""a\"b" c"#),
            (r#""a"b c"#, r#""\"a\"b" c"#),
            ("a; }", r#""a;" "}""#),
        ] {
            assert_eq!(value(&Syntax::NGINX, given, Arguments::Several), expected);
        }
    }

    #[test]
    fn what_no_quotes_can_hold_is_rejected() {
        for (name, value, problem) in [
            ("A b", "", "has a name that is not valid"),
            ("", "", "has a name that is not valid"),
            ("A\nB", "", "has a name that is not valid"),
            ("<Location", "", "has a name that is not valid"),
            ("A", "b\nLoadModule c", "has a control character in its value"),
            ("A", "b\rc", "has a control character in its value"),
            ("A", "b\0", "has a control character in its value"),
            ("A", &"a".repeat(9000), "has a value that is too long"),
        ] {
            for syntax in [&Syntax::HTTPD, &Syntax::NGINX] {
                let found = syntax.line(name, value, Arguments::One).expect_err(name);
                assert!(found.starts_with(problem), "{found}");
            }
        }
    }
}
