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

/// Whom commits wait for, as `synchronous_standby_names` says: `[FIRST] n (names)`,
/// `ANY n (names)`, or names, of which one is waited for. See "Synchronous Replication"
/// in PostgreSQL's manual.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Waited {
    /// So many of them; 0: for nobody.
    pub(super) most: usize,
    names: Vec<String>,
    is_anybody: bool,
}

impl Waited {
    pub(super) fn of(setting: &str) -> Waited {
        let mut waited = Waited { most: 1, names: Vec::new(), is_anybody: false };
        let (mut name, mut quoted, mut is_quoted) = (String::new(), false, false);
        let mut letters = setting.chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '"' if quoted && letters.peek() == Some(&'"') => name.extend(letters.next()),
                '"' => (quoted, is_quoted) = (!quoted, true),
                _ if quoted => name.push(letter),
                '(' => {
                    let digits = name.trim_start_matches(|letter: char| !letter.is_ascii_digit());
                    waited.most = digits.parse().unwrap_or(1);
                    name.clear();
                }
                ',' | ')' => waited.add(std::mem::take(&mut name), std::mem::take(&mut is_quoted)),
                _ if letter.is_whitespace() => {}
                _ => name.push(letter),
            }
        }
        waited.add(name, is_quoted);
        if waited.names.is_empty() && !waited.is_anybody {
            waited.most = 0;
        }
        waited
    }

    fn add(&mut self, name: String, is_quoted: bool) {
        match name.as_str() {
            "" => {}
            // In quotes it is a name like any other.
            "*" if !is_quoted => self.is_anybody = true,
            _ => self.names.push(name),
        }
    }

    /// Whether it may be this one.
    pub(super) fn may_be(&self, standby: &str) -> bool {
        self.is_anybody || self.names.iter().any(|name| name.eq_ignore_ascii_case(standby))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_wait_for_whom_the_setting_names_and_for_so_many() {
        for (setting, most, standby, may_be) in [
            ("", 0, "a", false),
            ("a", 1, "a", true),
            ("A, b", 1, "a", true),
            ("a,b", 1, "c", false),
            ("*", 1, "anybody", true),
            ("FIRST 1 (a, b)", 1, "b", true),
            ("FIRST 1 (a, b)", 1, "first1", false),
            ("first 12(\"a,b\", c)", 12, "a,b", true),
            ("first 12(\"a,b\", c)", 12, "b", false),
            ("ANY 2 (\"x y\", \"q\"\"q\")", 2, "x y", true),
            ("ANY 2 (\"x y\", \"q\"\"q\")", 2, "q\"q", true),
            ("2 (*)", 2, "c", true),
            ("\"*\"", 1, "c", false),
        ] {
            let waited = Waited::of(setting);
            assert_eq!((waited.most, waited.may_be(standby)), (most, may_be), "{standby} in {setting}");
        }
    }
}
