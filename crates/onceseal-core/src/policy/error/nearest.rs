//! The word that was probably meant.

/// The candidate most like `word`, if one is like it at all: what was probably meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
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

/// How many insertions, deletions, replacements and exchanges of neighbours make one
/// of the other (optimal string alignment).
fn distance(word: &[char], candidate: &str) -> usize {
    let other: Vec<char> = candidate.to_lowercase().chars().collect();
    let mut rows = vec![(0..=word.len()).collect::<Vec<usize>>()];
    for (i, c) in other.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, w) in word.iter().enumerate() {
            let mut least = (rows[i][j] + usize::from(w != c)).min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *w == other[i - 1] && *c == word[j - 1] {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[other.len()][word.len()]
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
