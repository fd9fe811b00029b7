//! The word that was probably meant.

/// The candidate most like `word`, if one is like it at all.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const LONGEST: usize = 64;
    let word: Vec<char> = word.to_lowercase().chars().take(LONGEST + 1).collect();
    if word.len() > LONGEST {
        return None;
    }
    let allowed = word.len() / 3 + usize::from(word.len() < 3);
    candidates
        .into_iter()
        .filter(|candidate| candidate.chars().count().abs_diff(word.len()) <= allowed)
        .map(|candidate| (distance(&word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate.to_owned())
}

/// Levenshtein's distance: insertions, deletions and replacements of characters.
fn distance(word: &[char], candidate: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, c) in candidate.to_lowercase().chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, w) in word.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (diagonal + usize::from(*w != c)).min(above + 1).min(row[j] + 1);
            diagonal = above;
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_offered_and_a_far_one_is_not() {
        let known = ["decision", "rules", "when", "lease"];
        for (word, expected) in [
            ("decison", Some("decision")),
            ("Rules", Some("rules")),
            ("wen", Some("when")),
            ("leese", Some("lease")),
            ("four_eyes", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known).as_deref(), expected, "{word}");
        }
        assert_eq!(nearest(&"decision".repeat(100), known), None);
    }
}
