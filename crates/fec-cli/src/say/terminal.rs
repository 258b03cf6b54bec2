//! The width of report lines, and text that is harmless on a terminal.

use crate::system::border::Screen;
use fec_base::names::show_bytes;

/// Columns of a terminal that does not tell its width.
const USUAL: usize = 80;

/// Least columns: no table is legible in fewer.
const NARROWEST: usize = 40;

/// The columns of a line that goes to `out`, from COLUMNS or from the terminal. `None` for files and pipes, where lines
/// are not folded.
pub(crate) fn width(out: &impl Screen) -> Option<usize> {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let of_terminal = || out.columns().filter(|columns| *columns > 0).unwrap_or(USUAL);
    let columns = told.filter(|columns| *columns > 0).or_else(|| out.is_terminal().then(of_terminal));
    columns.map(|columns: usize| columns.max(NARROWEST))
}

/// The text with all control characters but line ends and tabs escaped, so a terminal obeys none of it.
pub(crate) fn harmless(text: &str) -> String {
    text.split_inclusive(['\n', '\t'])
        .map(|part| match part.strip_suffix(['\n', '\t']) {
            Some(line) => show_bytes(line.as_bytes()) + &part[line.len()..],
            None => show_bytes(part.as_bytes()),
        })
        .collect()
}

/// Breaks lines that are wider than `out` between words, if `out` has a width. Continuation lines are indented further.
/// A line to be copied, indented behind a line that ends in a colon, stays whole.
pub(crate) fn folded(text: &str, out: &impl Screen) -> String {
    width(out).map_or_else(|| text.to_owned(), |columns| fold(text, columns))
}

fn fold(text: &str, columns: usize) -> String {
    let mut folded = String::with_capacity(text.len() + text.len() / 16);
    let mut introduced = None;
    for line in text.lines() {
        let words = line.trim_start_matches(' ');
        let indent = line.len() - words.len();
        let is_command = introduced.is_some_and(|before| indent > before);
        if !is_command {
            introduced = line.ends_with(':').then_some(indent);
        }
        if is_command || line.chars().count() <= columns {
            folded.push_str(line);
            folded.push('\n');
            continue;
        }
        folded.extend(std::iter::repeat_n(' ', indent));
        let mut used = indent;
        for (nth, word) in words.split(' ').enumerate() {
            let len = word.chars().count();
            if nth > 0 && used + 1 + len > columns {
                folded.push('\n');
                folded.extend(std::iter::repeat_n(' ', indent + 2));
                used = indent + 2;
            } else if nth > 0 {
                folded.push(' ');
                used += 1;
            }
            folded.push_str(word);
            used += len;
        }
        folded.push('\n');
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_obeyed() {
        let text = "a\x1b[2J\u{9b}31m\u{202e}b\x07\r\n\t  größe 🦀\n";
        let shown = "a\\u{1b}[2J\\u{9b}31m\\u{202e}b\\u{7}\\r\n\t  größe 🦀\n";
        assert_eq!(harmless(text), shown);
        assert_eq!(harmless("as it is\n\n  indented"), "as it is\n\n  indented");
    }

    #[test]
    fn lines_break_between_words_and_commands_do_not() {
        let said =
            "one two three four\n  five six seven eight:\n    fec repair --undo FILE --revert x\n  done\n";
        let expected = "one two three\n  four\n  five six seven\n    eight:\n    fec repair --undo FILE --revert x\n  done\n";
        assert_eq!(fold(said, 17), expected);
        assert_eq!(fold("0123456789abcdef0123\n", 10), "0123456789abcdef0123\n");
        assert_eq!(fold("a 0123456789abcdef0123\n", 10), "a\n  0123456789abcdef0123\n");
    }
}
