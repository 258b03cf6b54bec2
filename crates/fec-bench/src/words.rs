//! Words that several reports share: counts with the right plural, speeds, shares, and lines that fit a terminal.

/// `1 thread`, `2 threads`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `1 thread`, `2 threads`.
pub(crate) fn threads(number: usize) -> String {
    count(number as u64, "thread", "threads")
}

/// A rate in Mb/s, in bits and in bytes: `7.6 Gb/s (951 MB/s)`.
pub(crate) fn speed(megabits: f64) -> String {
    format!("{}b/s ({}B/s)", scaled(megabits), scaled(megabits / 8.0))
}

/// A rate with the unit that leaves few digits: `951 M`, `7.6 G`.
pub(crate) fn scaled(millions: f64) -> String {
    match millions {
        99_950.0.. => format!("{:.0} G", millions / 1e3),
        999.5.. => format!("{:.1} G", millions / 1e3),
        9.95.. => format!("{millions:.0} M"),
        _ => format!("{millions:.1} M"),
    }
}

/// A share in whole per cent: `72 %`.
pub(crate) fn per_cent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Cuts a line into lines of at most `width` columns, between words. All but the first are indented by two more than
/// the line. A longer word stays whole.
pub(crate) fn wrap(line: &str, width: Option<usize>) -> String {
    let fits = |text: &str| width.is_none_or(|width| text.chars().count() <= width);
    if fits(line) {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let (mut out, mut current) = (String::new(), " ".repeat(indent));
    let mut is_empty = true;
    for word in line.split_whitespace() {
        let longer = if is_empty { format!("{current}{word}") } else { format!("{current} {word}") };
        if is_empty || fits(&longer) {
            current = longer;
        } else {
            out.push_str(&current);
            out.push('\n');
            current = format!("{}{word}", " ".repeat(indent + 2));
        }
        is_empty = false;
    }
    out + &current
}

/// All lines of a text, cut as by [`wrap`].
pub(crate) fn wrap_all<'a>(lines: impl IntoIterator<Item = &'a String>, width: Option<usize>) -> String {
    lines.into_iter().map(|line| wrap(line, width)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_have_the_unit_that_leaves_few_digits() {
        assert_eq!(speed(10_600.0), "10.6 Gb/s (1.3 GB/s)");
        assert_eq!(speed(7606.0), "7.6 Gb/s (951 MB/s)");
        assert_eq!(speed(54.0), "54 Mb/s (6.8 MB/s)");
        assert_eq!(speed(999.7), "1.0 Gb/s (125 MB/s)");
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!(
            (threads(1), threads(0), threads(2)),
            ("1 thread".into(), "0 threads".into(), "2 threads".into())
        );
    }

    #[test]
    fn lines_are_cut_between_words() {
        let line = "interference: another task ran on the same core";
        assert_eq!(wrap(line, None), line);
        assert_eq!(wrap(line, Some(24)), "interference: another\n  task ran on the same\n  core");
        assert_eq!(wrap("  of an indented line", Some(12)), "  of an\n    indented\n    line");
        assert_eq!(wrap("extraordinarily", Some(4)), "extraordinarily");
        assert_eq!(wrap("ab extraordinarily", Some(4)), "ab\n  extraordinarily");
    }
}
