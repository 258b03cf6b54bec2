//! Hides secrets that stand in the wrong place: messages end up in logs and on screens.
//!
//! Keys, and passwords in addresses, have a form that gives them away. A passphrase has none. It is assumed where a
//! user may have put one, if no such file exists: a message that tells such a word as a name tells other words in its
//! place. The rest of a message stays whole, even where the passphrase consists of its words.

use fec_base::names::{conceal, show};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The text that replaces a secret.
pub(crate) const HIDDEN: &str = "(hidden)";
/// The beginning of the text that replaces what an option names.
const BEHIND: &str = "(what stands behind ";
/// Least characters of a new passphrase. Shorter words can be repeated.
pub(crate) const SHORTEST: usize = 12;
/// Variables that hold passphrases.
const VARIABLES: [&str; 2] = ["FEC_PASSPHRASE", "FEC_SIGN_PASSPHRASE"];
/// Options that name a file with a secret. A user may give the secret itself instead.
const FILES: [&str; 6] = ["--identity", "-i", "--key-file", "--sign", "--recipients-file", "-R"];
/// Like [`FILES`], but for a passphrase, which looks like any name.
const PASSPHRASE_FILE: &str = "--sign-passphrase-file";
/// This option takes no value, but users often give it one.
const PASSPHRASE: &str = "--passphrase";
/// Options that name what is written or left out, or a store. Messages tell that name, as reports do.
const NAMING: [&str; 10] =
    ["--output", "-o", "--root-file", "--undo", "--state", "--save", "--spool", "--exclude", "--to", "--dir"];
/// Short options that take a value.
const SHORT: &str = "ikjlmortR";
/// Least bytes of a secret in a known form, and of a word that a message must not repeat.
const LEAST: usize = 4;
/// Base64 characters of a minisign public key. A secret key has more.
const PUBLIC_KEY: usize = 56;
/// The algorithms at the start of secret keys with ML-DSA-65, in base64: without a passphrase, and with one.
const HYBRID: &str = "RU0AAEIy";
const ENCRYPTED_HYBRID: &str = "RU1TY0Iy";

/// Most bytes of a message, and of a word in it. Each word is looked at from each of its bytes on.
const LONGEST: usize = 16 << 10;
const LONGEST_WORD: usize = 4096;

/// Conceals the words of the command line that may be secrets. Has to run before any message. If the passphrase of a
/// variable is such a word itself, returns the name of the variable: the word may be the name of a file as well, and
/// could be neither told nor concealed.
pub(crate) fn look() -> Option<&'static str> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let values = values(&words);
    let mut suspects = suspects(&values);
    for variable in VARIABLES {
        let passphrase = std::env::var(variable).unwrap_or_default();
        if passphrase.chars().count() < SHORTEST {
            continue;
        }
        if values.iter().any(|(_, value)| *value == passphrase) {
            return Some(variable);
        }
        let hold = |(option, value): &&(String, &str)| {
            value.contains(&passphrase) && !NAMING.contains(&option.as_str()) && !Path::new(value).exists()
        };
        suspects
            .extend(values.iter().filter(hold).map(|(_, value)| ((*value).to_owned(), HIDDEN.to_owned())));
    }
    // fec protect names the sidecar of a path that is not there.
    let ending = |ending: &'static str| {
        suspects.iter().map(move |(word, instead)| {
            (format!("{word}{ending}").into_bytes(), format!("{instead}{ending}"))
        })
    };
    conceal(ending("").chain(ending(".fecp")).collect());
    None
}

/// The values of a command line, each with the option that it stands behind: a name of an option, or nothing.
fn values(words: &[OsString]) -> Vec<(String, &str)> {
    let mut values = Vec::new();
    let mut before = String::new();
    for word in words {
        let option = std::mem::take(&mut before);
        let Some(word) = word.to_str() else { continue };
        match (word.strip_prefix("--"), word.strip_prefix('-').filter(|rest| !rest.is_empty())) {
            (Some(_), _) => match word.split_once('=') {
                Some((option, value)) => values.push((option.to_owned(), value)),
                None => before = word.to_owned(),
            },
            (None, Some(cluster)) => {
                let Some(at) = cluster.find(|c| SHORT.contains(c)) else { continue };
                let (option, value) = (format!("-{}", &cluster[at..=at]), &cluster[at + 1..]);
                match value.strip_prefix('=').unwrap_or(value) {
                    "" => before = option,
                    value => values.push((option, value)),
                }
            }
            (None, None) => values.push((option, word)),
        }
    }
    values
}

/// The values that may be secrets, judged by where they stand, each with the words in its place.
fn suspects(values: &[(String, &str)]) -> BTreeMap<String, String> {
    let is_signed = values.iter().any(|(option, _)| option == "--sign");
    let is_told = |option: &str| NAMING.contains(&option) || (option == "--signature" && is_signed);
    let suspects = values.iter().filter(|(option, value)| !is_told(option) && is_suspect(option, value));
    let instead = |option: &str| match option {
        option if [PASSPHRASE, PASSPHRASE_FILE].contains(&option) || FILES.contains(&option) => {
            format!("{BEHIND}{option})")
        }
        _ => HIDDEN.to_owned(),
    };
    suspects.map(|(option, value)| ((*value).to_owned(), instead(option))).collect()
}

/// Tells whether the value of an option may be a secret that stands in place of a file.
fn is_suspect(option: &str, value: &str) -> bool {
    if value.is_empty() || value.starts_with('-') || Path::new(value).exists() {
        return false;
    }
    match option {
        PASSPHRASE => !value.starts_with("udp://"),
        PASSPHRASE_FILE => true,
        _ if FILES.contains(&option) => value.chars().count() >= SHORTEST && !is_path(value),
        // A user hardly means several words as a name, unless such a file exists.
        _ => value.chars().count() >= SHORTEST && value.contains(' ') && !value.contains(['.', '/']),
    }
}

/// Tells whether a word looks like the path of a missing file, rather than a key or a passphrase.
fn is_path(word: &str) -> bool {
    let starts = ["/", "./", "../", "~"].iter().any(|start| word.starts_with(start));
    (starts || word.contains('.')) && !word.as_bytes().contains(&b' ')
}

/// The text with at most [`LONGEST`] bytes, and at most [`LONGEST_WORD`] in each word.
fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_WORD {
        return text.into();
    }
    let mut out = String::new();
    for word in text.split_inclusive(|c: char| c.is_ascii_whitespace()) {
        let bare = word.trim_ascii_end();
        let mut end = bare.len().min(LONGEST_WORD);
        while !bare.is_char_boundary(end) {
            end -= 1;
        }
        let (kept, cut) = bare.split_at(end);
        if out.len() + kept.len() > LONGEST {
            out.push('…');
            break;
        }
        match cut {
            "" => out.push_str(word),
            // Words before the name of a host may be a password.
            _ if cut.contains('@') => out.push_str("(hidden)… "),
            _ => out.extend([kept, "… "]),
        }
    }
    out.into()
}

/// The text without keys and passwords, which have a known form.
pub(crate) fn hushed(text: &str) -> String {
    let text = &*bounded(text);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_inside = text[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric());
        let secret = key(rest).or_else(|| if is_inside { None } else { password(rest) });
        match secret {
            Some((kept, len)) => {
                out.push_str(&rest[..kept]);
                out.push_str(HIDDEN);
                at += len;
            }
            None => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    out
}

/// Length of the prefix of `text` whose bytes all satisfy `is_in`.
fn run(text: &str, is_in: impl Fn(u8) -> bool) -> usize {
    text.bytes().take_while(|byte| is_in(*byte)).count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=".contains(&byte)
}

/// A key at the start of the text: how many bytes may be kept of it, and its length.
fn key(text: &str) -> Option<(usize, usize)> {
    let begins = |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with));
    if let Some(name) = ["AGE-SECRET-KEY-", "AGE-PLUGIN-"].into_iter().find(|name| begins(name)) {
        let len = run(text, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
        return (len > name.len() + LEAST).then_some((0, len));
    }
    if let Some(name) = text.strip_prefix("-----BEGIN ").and_then(|text| text.split("-----").next())
        && name.contains("PRIVATE")
    {
        let end = text.find(&format!("-----END {name}-----"));
        return Some((0, end.map_or(text.len(), |end| end + name.len() + "-----END -----".len())));
    }
    if text.starts_with("b3BlbnNzaC1rZXkt") {
        // The key has several lines, whose ends may be escaped.
        return Some((0, run(text, |byte| is_base64(byte) || b"\n\\".contains(&byte))));
    }
    let is_minisign = ["RW", HYBRID, ENCRYPTED_HYBRID].iter().any(|start| text.starts_with(start));
    let len = if is_minisign { run(text, is_base64) } else { 0 };
    (len > PUBLIC_KEY).then_some((0, len))
}

/// A password at the start of the text, in an address or as `NAME=VALUE`: how many bytes may be kept, and how many
/// there are in all.
fn password(text: &str) -> Option<(usize, usize)> {
    let word = run(text, |byte| !byte.is_ascii_whitespace() && !b"'\"".contains(&byte));
    let word = &text[..word];
    let scheme = run(word, |byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    // An address that was taken for a path may have lost a slash.
    let is_known = ["s3", "gs", "az", "http", "https", "udp"].contains(&&word[..scheme]);
    let start = match word[scheme..].strip_prefix(":/") {
        Some(rest) if scheme > 0 && rest.starts_with('/') => scheme + 3,
        Some(_) if is_known => scheme + 2,
        _ => 0,
    };
    let (is_address, behind) = (start > 0, &word[start..]);
    let authority = behind.find('/').unwrap_or(behind.len());
    let host = behind[..authority].rfind('@');
    let user = behind.find(':').filter(|colon| *colon > 0 && !behind[colon + 1..].starts_with("//"));
    // A password may contain a slash.
    let late = user.and_then(|colon| Some(colon + 1 + behind[colon + 1..].find('@')?));
    match (is_address, host, user, late) {
        (true, Some(end), ..) => return Some((start, start + end)),
        (_, _, Some(colon), Some(end)) if end > colon + 1 => return Some((start, start + end)),
        _ => {}
    }
    if let Some(query) = behind.find(['?', '#']).filter(|query| is_address && query + 1 < behind.len()) {
        let has_more = behind[query + 1..].bytes().any(|byte| byte.is_ascii_alphanumeric());
        return has_more.then_some((start + query + 1, word.len()));
    }
    if let Some(option) = unknown_option(behind).filter(|_| is_address) {
        return Some((start + option, word.len()));
    }
    let name = run(word, |byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    let value = word[name..].strip_prefix('=').filter(|value| value.len() >= LEAST)?;
    let lower = word[..name].to_ascii_lowercase();
    let says = ["secret", "token", "passw", "passphrase", "credential", "access_key", "api_key", "apikey"];
    let is_file = lower.ends_with("-file") || value.starts_with(['<', '(']);
    (!is_file && says.iter().any(|says| lower.contains(says))).then_some((name + 1, word.len()))
}

/// The offset of the first part behind an address that is no known option.
fn unknown_option(address: &str) -> Option<usize> {
    const KNOWN: [&str; 4] = ["domain=", "endpoint=", "region=", "profile="];
    let mut commas = address.match_indices(',').map(|(at, _)| at + 1);
    commas.find(|at| {
        let rest = &address[*at..];
        run(rest, |byte| byte.is_ascii_alphanumeric()) >= LEAST
            && !KNOWN.iter().any(|known| rest.starts_with(known))
    })
}

/// Tells whether a refused option value can be repeated in the message.
pub(crate) fn value_is_harmless(option: &str, value: &str) -> bool {
    /// Options whose values are keys and roots. The values of other options are short.
    const KEYS: [&str; 4] = ["--root ", "--signer ", "--recipient ", "--passphrase"];
    let file = value.strip_prefix('@').unwrap_or(value);
    let is_name =
        !file.is_empty() && (Path::new(file).exists() || (file.len() < value.len() && is_path(file)));
    if option == PASSPHRASE {
        return is_name;
    }
    let is_key = KEYS.iter().any(|key| option.starts_with(key));
    // A root stands in a file of any name; a passphrase hardly begins so.
    let is_root_file = option.starts_with("--root ") && file.len() < value.len() && !file.contains(' ');
    is_name
        || (is_root_file && hushed(value) == value)
        || (is_key && is_path(value))
        || (!is_key && repeatable(value).is_some())
}

/// The value, if it is too short for a passphrase and can be repeated.
pub(crate) fn repeatable(value: &str) -> Option<String> {
    (value.chars().count() < SHORTEST).then(|| hushed(&show(value)))
}

/// Tells whether something is hidden in a text: a command in it cannot be run.
pub(crate) fn hides(text: &str) -> bool {
    text.contains(HIDDEN) || text.contains(BEHIND) || hushed(text) != text
}

/// Tells whether a text repeats a word of a value.
pub(crate) fn repeats(text: &str, value: &str) -> bool {
    let words = value.split(|c: char| !c.is_alphanumeric()).chain([value]);
    words.filter(|word| word.len() >= LEAST).any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn keys_are_hidden_wherever_they_stand() {
        let minisign = format!("RWRTY0Iy{}", "Ab3+/".repeat(40));
        let openssh = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\nQyNTUxOQAAACDx\n-----END OPENSSH PRIVATE KEY-----";
        let cut = "-----BEGIN OPENSSH PRIVATE KEY-----\\nb3BlbnNzaC1rZXktdjEAAAAA\\nQyNTUxOQAAACDx";
        for secret in [
            "AGE-SECRET-KEY-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZS23V9CCRYDPK8QARC0SKCALHU",
            "age-secret-key-1qqqsyqcyq5rqwzqfpg9scrgwpugpzysnzs23v9ccrydpk8qarc0skcalhu",
            "AGE-SECRET-KEY-PQ-1QQQSYQCYQ5RQWZQFPG9SCRGWPUGPZYSNZ",
            "AGE-PLUGIN-YUBIKEY-1QQQSYQCYQ5R",
            minisign.as_str(),
            &minisign.replacen("RWRTY0Iy", HYBRID, 1),
            &minisign.replacen("RWRTY0Iy", ENCRYPTED_HYBRID, 1),
            openssh,
            cut,
            &cut[37..],
        ] {
            for text in [
                format!("read {secret}: No such file"),
                format!("untrusted comment: x\\n{secret}"),
                format!("x/{secret}"),
            ] {
                let said = hushed(&text);
                assert!(said.contains(HIDDEN), "{said}");
                assert!(!said.contains(&secret[secret.len() - 12..secret.len() - 4]), "{said}");
                assert!(!said.contains("QyNT"), "{said}");
            }
        }
    }

    #[test]
    fn passwords_and_tokens_in_addresses_are_hidden() {
        for (text, said) in [
            ("s3://user:hunter2@bucket/x: no", "s3://(hidden)@bucket/x: no"),
            ("https://hunter2@host/x", "https://(hidden)@host/x"),
            ("s3://AKIA:hun/ter2@bucket", "s3://(hidden)@bucket"),
            ("'https://host/x?sig=hunter2&a=b'", "'https://host/x?(hidden)'"),
            ("https://host/x#hunter2", "https://host/x#(hidden)"),
            ("user:hunter2@host:/x", "(hidden)@host:/x"),
            ("udp://me:hunter2@1.2.3.4:99", "udp://(hidden)@1.2.3.4:99"),
            ("AWS_SECRET_ACCESS_KEY=hunter2", "AWS_SECRET_ACCESS_KEY=(hidden)"),
            ("FEC_PASSPHRASE=hunter2", "FEC_PASSPHRASE=(hidden)"),
            ("s3:/bucket,hunter2.fecp", "s3:/bucket,(hidden)"),
            ("s3://bucket,domain=a,hunter2", "s3://bucket,domain=a,(hidden)"),
        ] {
            assert_eq!(hushed(text), said);
        }
    }

    #[test]
    fn what_is_no_secret_is_said() {
        let root = "3216f8b26a72a60658322c74c5f07b1d4beb97efd77cee97f120ae541a75f0e8";
        for text in [
            "read photos/a b.jpg: No such file or directory (os error 2)",
            "s3://bucket/a@b,endpoint=http://127.0.0.1:9000: is it right?",
            "udp://[::1]:5000: why?",
            "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3 is a public key",
            "an identity begins with AGE-SECRET-KEY-1",
            "--sign-passphrase-file=FILE: read user@host:x",
            "write {} for the path of each:\n  -o '{}.shards/'",
            root,
        ] {
            assert_eq!(hushed(text), text);
        }
    }

    /// The work is bounded as the text is: somebody else may have written it.
    #[test]
    fn long_texts_and_words_are_cut() {
        for word in ["a", ":", "RW", "é", "s3://", "-----BEGIN ", "x=", "a@"] {
            for before in ["", "s3://user:hunter2", "token="] {
                let text = format!("read {before}{}: no", word.repeat(60_000));
                let said = hushed(&text);
                assert!(said.len() <= LONGEST + HIDDEN.len() + 8, "{word}: {}", said.len());
                let longest = said.split_ascii_whitespace().map(str::len).max().unwrap();
                assert!(longest <= LONGEST_WORD + HIDDEN.len() + 8, "{word}: {longest}");
                assert!(said.contains('…') || said.contains(HIDDEN), "{word}");
            }
        }
        let long = "word ".repeat(10_000);
        let said = hushed(&long);
        assert!(said.len() <= LONGEST + 4 && said.ends_with('…'), "{}", said.len());
        // A password is hidden, although the name of the host is cut off.
        let address = format!("s3://user:{}@host", "hunter2".repeat(1000));
        assert!(!hushed(&address).contains("hunter2"));
        // A path may have 4095 bytes.
        let path = format!("read {}: No such file", "x".repeat(4095));
        assert_eq!(hushed(&path), path);
    }

    #[test]
    fn a_passphrase_is_what_stands_in_its_place() {
        let all = |line: &[&str]| suspects(&values(&words(line))).into_keys().collect::<Vec<_>>();
        assert_eq!(all(&["decode", "--passphrase", "hunter2", "x.fec"]), ["hunter2"]);
        assert_eq!(all(&["decode", "--passphrase=hunter2"]), ["hunter2"]);
        assert_eq!(all(&["decode", "--passphrase", "2"]), ["2"]);
        assert_eq!(all(&["encode", "--sign-passphrase-file", "hunter2"]), ["hunter2"]);
        assert_eq!(all(&["decode", "-i", "correct horse battery"]), ["correct horse battery"]);
        assert_eq!(all(&["decode", "--key-file=0123456789abcdef"]), ["0123456789abcdef"]);
        for line in [&["-R", "0123456789abcdef"][..], &["-R0123456789abcdef"], &["-fqR=0123456789abcdef"]] {
            assert_eq!(all(line), ["0123456789abcdef"]);
        }
        assert_eq!(all(&["decode", "x.fec", "correct horse battery"]), ["correct horse battery"]);
        assert_eq!(all(&["decode", "x.fec", "-q", "correct horse battery"]), ["correct horse battery"]);
        let none: [&[&str]; 9] = [
            &["decode", "--passphrase", "-q"],
            &["decode", "--passphrase", "/dev/null"],
            &["decode", "--passphrase", "udp://239.0.0.1:5000"],
            &["decode", "-i", "keys/mine.txt"],
            &["decode", "-i", "mine"],
            &["decode", "x.fec", "holiday-photos", "my photos.fec"],
            &["decode", "x.fec", "-o", "photos of my holidays"],
            &["decode", "x.fec", "-fo", "photos of my holidays"],
            &["encode", "x", "--sign", "k", "--signature", "photos of my holidays"],
        ];
        for line in none {
            assert!(all(line).is_empty(), "{line:?}");
        }
    }

    /// The lists say what clap knows: every short option with a value, and names that are options of some command.
    #[test]
    fn lists_of_options_are_those_of_the_command_line() {
        use clap::CommandFactory;
        fn visit(command: &clap::Command, short: &mut BTreeSet<char>, names: &mut BTreeSet<String>) {
            for argument in command.get_arguments() {
                if argument.get_action().takes_values() {
                    short.extend(argument.get_short());
                }
                names.extend(argument.get_long().map(|long| format!("--{long}")));
                names.extend(argument.get_short().map(|short| format!("-{short}")));
            }
            command.get_subcommands().for_each(|command| visit(command, short, names));
        }
        let (mut short, mut names) = (BTreeSet::new(), BTreeSet::new());
        visit(&crate::line::Cli::command(), &mut short, &mut names);
        assert_eq!(SHORT.chars().collect::<BTreeSet<_>>(), short);
        for name in FILES.iter().chain(&NAMING).chain(&[PASSPHRASE, PASSPHRASE_FILE]) {
            assert!(names.contains(*name), "{name}");
        }
    }

    #[test]
    fn a_cause_that_repeats_a_value_is_known() {
        assert!(repeats("correct horse: not one of random, ge", "correct horse:battery staple"));
        assert!(repeats("write it with %, as in 12345%", "12345"));
        assert!(!repeats("a root is 64 hexadecimal digits", "a"));
    }

    #[test]
    fn long_values_are_not_repeated() {
        assert_eq!(repeatable("1 lot").as_deref(), Some("1 lot"));
        assert_eq!(repeatable("correct horse battery"), None);
        let is_shown = |value: &str| value_is_harmless("--root <HEX|@FILE>", value);
        for shown in ["@roots/a.txt", "keys/a.pub", "/dev/null", "@/dev/null"] {
            assert!(is_shown(shown), "{shown}");
        }
        assert!(!value_is_harmless("--passphrase", "hunter.2"));
        for hidden in ["hunter2", "correct horse battery", "@correct horse battery", &"ab".repeat(31)] {
            assert!(!is_shown(hidden), "{hidden}");
        }
        assert!(value_is_harmless("--max-memory <SIZE>", "1 lot"));
        assert!(!value_is_harmless("--max-memory <SIZE>", "correct.horse.battery"));
    }
}
