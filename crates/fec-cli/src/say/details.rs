//! The lines below a verdict. A report shows a few lines of each kind, and all with -v.

use fec_base::names::{bytes, counted};
use fec_base::ranges::RangeList;

/// Most ranges of a file that the text lists.
const RANGES: usize = 4;

/// Lines of each kind, in order.
#[derive(Debug, Default)]
pub(crate) struct Details {
    kinds: Vec<Vec<String>>,
}

impl Details {
    /// Lines that are shown without -v.
    pub(crate) const FEW: usize = 10;

    /// Adds the lines of a kind.
    pub(crate) fn add(&mut self, lines: impl IntoIterator<Item = String>) {
        self.kinds.push(lines.into_iter().collect());
    }

    /// The lines, indented. Unless `is_all`, each kind gets one line before any kind gets another.
    pub(crate) fn describe(&self, is_all: bool) -> String {
        let total: usize = self.kinds.iter().map(Vec::len).sum();
        let shown = self.shown(if is_all { total } else { Details::FEW });
        let few = self.kinds.iter().zip(&shown).flat_map(|(lines, shown)| &lines[..*shown]);
        let mut out: String = few.map(|line| format!("  {line}\n")).collect();
        match total - shown.iter().sum::<usize>() {
            0 => {}
            more => out.push_str(&format!("  and {more} more; -v lists all\n")),
        }
        out
    }

    /// How many lines of each kind fit into `room` lines.
    fn shown(&self, mut room: usize) -> Vec<usize> {
        let mut shown = vec![0; self.kinds.len()];
        loop {
            let before = room;
            for (shown, lines) in shown.iter_mut().zip(&self.kinds) {
                if room > 0 && *shown < lines.len() {
                    (*shown, room) = (*shown + 1, room - 1);
                }
            }
            if room == before {
                return shown;
            }
        }
    }
}

/// The damaged ranges of a file, as text.
pub(crate) fn ranges(damage: &RangeList, state: &str) -> String {
    let list = damage.list();
    if list.is_empty() || state == "missing" {
        return String::new();
    }
    let first: Vec<String> =
        list.iter().take(RANGES).map(|range| format!("{}..{}", range.start, range.end)).collect();
    match list.len().saturating_sub(RANGES) {
        0 => format!(": bytes {}", first.join(", ")),
        more => {
            format!(
                ": bytes {} and {}, {} in all",
                first.join(", "),
                counted(more, "more place"),
                bytes(damage.bytes())
            )
        }
    }
}

/// A number with its noun.
pub(crate) fn count(count: u64, one: &str, several: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {several}") }
}

#[cfg(test)]
mod tests {
    use super::Details;

    #[test]
    fn each_kind_is_shown_before_one_is_shown_whole() {
        let mut details = Details::default();
        for (kind, count) in [("a", 30), ("b", 1), ("c", 0), ("d", 3)] {
            details.add((0..count).map(|nth| format!("{kind}{nth}")));
        }
        let shown = details.describe(false);
        let words: Vec<&str> = shown.lines().map(str::trim).collect();
        assert_eq!(words[..10], ["a0", "a1", "a2", "a3", "a4", "a5", "b0", "d0", "d1", "d2"]);
        assert_eq!(words[10..], ["and 24 more; -v lists all"]);
        assert_eq!(details.describe(true).lines().count(), 34);
    }
}
