//! What becomes of acknowledged commits where a server is lost, by who follows it and
//! whom commits wait for.

/// What becomes of acknowledged commits where the server is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failover {
    /// Nothing may take its place: they are where its disk is.
    None,
    /// They are on a standby too.
    Synchronous,
    /// A standby may take its place without the last of them.
    Asynchronous,
}

/// Whether commits may wait for a standby of this name, where
/// `synchronous_standby_names` is that: `[FIRST] n (names)`, `ANY n (names)` or names.
/// See "Synchronous Replication" in PostgreSQL's manual.
pub(super) fn is_named(setting: &str, standby: &str) -> bool {
    names(setting).iter().any(|name| name == "*" || name.eq_ignore_ascii_case(standby))
}

/// The names in it; `*` stands for all.
fn names(setting: &str) -> Vec<String> {
    let (mut names, mut name, mut quoted, mut is_quoted) = (Vec::new(), String::new(), false, false);
    let mut letters = setting.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => name.extend(letters.next()),
            '"' => (quoted, is_quoted) = (!quoted, true),
            _ if quoted => name.push(letter),
            // What stands before it says how many are waited for.
            '(' => (names, name, is_quoted) = (Vec::new(), String::new(), false),
            ',' | ')' => names.push((std::mem::take(&mut name), std::mem::take(&mut is_quoted))),
            _ if letter.is_whitespace() => {}
            _ => name.push(letter),
        }
    }
    names.push((name, is_quoted));
    names.retain(|(name, _)| !name.is_empty());
    // In quotes it is a name like any other.
    names.into_iter().filter(|(name, is_quoted)| !(*is_quoted && name == "*")).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_for_whom_the_setting_names() {
        for (setting, standby, named) in [
            ("", "a", false),
            ("a", "a", true),
            ("A, b", "a", true),
            ("a,b", "c", false),
            ("*", "anybody", true),
            ("FIRST 1 (a, b)", "b", true),
            ("FIRST 1 (a, b)", "first1", false),
            ("ANY 2 (\"x y\", \"q\"\"q\")", "x y", true),
            ("ANY 2 (\"x y\", \"q\"\"q\")", "q\"q", true),
            ("2 (*)", "c", true),
            ("any 1 (s(, t)", "t", true),
            ("first 1 (\"a,b\", c)", "a,b", true),
            ("first 1 (\"a,b\", c)", "b", false),
            ("\"*\"", "c", false),
        ] {
            assert_eq!(is_named(setting, standby), named, "{standby} in {setting}");
        }
    }
}
