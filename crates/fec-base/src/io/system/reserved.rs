//! Names that Windows keeps for itself, or changes in silence: an output under such a name would be written to a
//! device, to a hidden stream of another file, or to a file of another name.

/// The reason why a file cannot have this name on Windows; `None` if it can.
pub(crate) fn why_not(name: &str) -> Option<&'static str> {
    let is_forbidden = |c: char| c < ' ' || matches!(c, '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*');
    if name.is_empty() {
        Some("it has no name")
    } else if name.chars().any(is_forbidden) {
        Some("no name on Windows has control characters, nor any of < > : \" / \\ | ? *")
    } else if name.ends_with(['.', ' ']) {
        Some("Windows takes dots and spaces off the end of a name")
    } else if is_device(name) {
        Some("Windows keeps this name for a device, with any ending")
    } else {
        None
    }
}

/// Tells whether a name is that of a device. An ending, and spaces before it, do not matter, nor do capitals.
fn is_device(name: &str) -> bool {
    const ALONE: [&str; 7] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"];
    let stem = name.split('.').next().unwrap_or_default().trim_end_matches(' ').to_uppercase();
    let is_numbered = |kind| {
        let number = stem.strip_prefix(kind).map(|rest| rest.chars().collect::<Vec<char>>());
        // Windows takes superscripts of Latin-1 for digits.
        matches!(number.as_deref(), Some(['0'..='9' | '¹' | '²' | '³']))
    };
    ALONE.contains(&stem.as_str()) || is_numbered("COM") || is_numbered("LPT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused_and_all_others_are_not() {
        let refused = [
            "",
            ".",
            "..",
            "a.",
            "a ",
            "a. ",
            "...",
            "con",
            "CON",
            "Con.txt",
            "nul.tar.gz",
            "nul .txt",
            "prn",
            "aux.",
            "aux.h",
            "com1",
            "COM9.log",
            "com0",
            "lpt1",
            "LPT³",
            "com¹.txt",
            "conin$",
            "CONOUT$.x",
            "clock$",
            "a:b",
            "c:",
            "file::$DATA",
            "a/b",
            "a\\b",
            "a|b",
            "what?",
            "a*",
            "<a",
            "a>",
            "\"a\"",
            "a\nb",
            "\0",
            "a\u{1f}",
        ];
        for name in refused {
            assert!(why_not(name).is_some(), "{name:?}");
        }
        let fine = [
            "a",
            "a.b",
            ".hidden",
            " a",
            "..a",
            "console",
            "nu",
            "null",
            "com",
            "com10",
            "com12.txt",
            "xcon",
            "con-1",
            "lpt",
            "lpt44",
            "auxiliary",
            "größe",
            "a b",
            "a;b",
            "a'b",
            "a\u{7f}",
            "日本.txt",
            "x.con",
            "payload.000.shard",
        ];
        for name in fine {
            assert_eq!(why_not(name), None, "{name:?}");
        }
    }
}
