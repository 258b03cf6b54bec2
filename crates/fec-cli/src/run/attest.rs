//! `fec attest`: an in-toto statement whose subject is a file of roots, for others to sign; and whether a statement
//! speaks of such a file.
//!
//! The subject's digest is the SHA-256 of the file, since that is what sigstore, cosign and gh compare. The roots in it
//! are the predicate. Nothing here is signed, and no signature is checked.

use crate::line;
use crate::plan::attest::{FOUND, Found, REFUSALS};
use crate::plan::check;
use crate::plan::options::ROOTS;
use crate::run::inputs::open_list;
use crate::run::target::{check_stdin, is_dash};
use crate::say::failure::{Exit, Failure, Result};
use crate::settings::{Settings, print_line};
use fec_base::error::Action;
use fec_base::names::{hex, show, show_bytes, show_input};
use fec_base::roots;
use fec_core::digest::HashKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Most bytes of a file of roots, and of a statement: logs of signatures take less.
const MOST: u64 = 1 << 20;

const TYPE: &str = "https://in-toto.io/Statement/v1";
/// The name of the predicate below, which nobody has to find there.
const PREDICATE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/roots/v1");

/// A statement, with its fields in the order in which they are written.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Statement {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Predicate,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Subject {
    name: String,
    digest: Digests,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Digests {
    sha256: String,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Predicate {
    roots: Vec<String>,
}

impl Statement {
    /// The statement about a file; `None` if it holds something else than roots.
    fn of(path: &Path, content: &[u8]) -> Option<Statement> {
        let roots = roots::parse(content, false)?.iter().map(|line| hex(&line.root)).collect();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let digest = Digests { sha256: hex(&HashKind::Sha256.digest(content)) };
        Some(Statement {
            kind: TYPE.to_owned(),
            subject: vec![Subject { name, digest }],
            predicate_type: PREDICATE.to_owned(),
            predicate: Predicate { roots },
        })
    }

    /// Reads a statement, with any white space and order of fields, but with no field twice and none that
    /// [`Self::of`] does not write.
    fn parse(text: &[u8]) -> std::result::Result<Statement, String> {
        let statement: Statement = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        // serde takes a list of values for an object too, which no other reader does.
        let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        match serde_json::to_value(&statement).is_ok_and(|same| same == value) {
            true => Ok(statement),
            false => Err("a list stands in the place of an object".to_owned()),
        }
    }

    /// The first difference from the statement that is expected. A file may have another name now.
    fn difference(&self, expected: &Statement) -> Option<String> {
        let digests =
            |of: &Statement| of.subject.iter().map(|one| one.digest.sha256.clone()).collect::<Vec<_>>();
        let other = |what: &str, is: &str| Some(format!("its {what} is {}", show_bytes(is.as_bytes())));
        match self {
            _ if self.kind != expected.kind => other("_type", &self.kind),
            _ if self.predicate_type != expected.predicate_type => {
                other("predicateType", &self.predicate_type)
            }
            _ if self.subject.len() != 1 => Some(format!("it has {} subjects", self.subject.len())),
            _ if self.predicate != expected.predicate => Some("its roots are others".to_owned()),
            _ if digests(self) != digests(expected) => Some("its sha256 is that of other bytes".to_owned()),
            _ => None,
        }
    }
}

/// The output of `attest --json`.
#[derive(Serialize)]
struct Report<'a> {
    /// The file of roots.
    file: String,
    sha256: &'a str,
    roots: &'a [String],
    /// The statement that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<&'a Statement>,
}

pub(crate) fn run(args: &line::Attest, settings: &Settings) -> Result<Exit> {
    settings.given.check(ROOTS)?;
    check(args, REFUSALS, |_| String::new())?;
    let file = &args.roots;
    let refused = |found| check(&found, FOUND, |_| show_input(file));
    if file.is_dir() {
        refused(Found::NoRoots)?;
    }
    let content = bounded(file)?;
    if content.len() as u64 > MOST {
        refused(Found::TooManyRoots)?;
    }
    let Some(statement) = Statement::of(file, &content) else {
        return refused(Found::NoRoots).map(|()| Exit::Done);
    };
    if let Some(path) = &args.check {
        let subject = compared(path, &statement, file)?;
        let text = format!(
            "{} speaks of {}, as {}, and nothing else\nwho signed it is for cosign, sigstore or gh to tell\n",
            show(path),
            show(file),
            show_bytes(subject.as_bytes())
        );
        settings.report(&report(file, &statement, false), Exit::Done, &text, false)?;
    } else if settings.json {
        settings.report(&report(file, &statement, true), Exit::Done, "", false)?;
    } else {
        let line = serde_json::to_string(&statement);
        print_line(&line.map_err(|e| Failure::new(Exit::Io, format!("write the statement: {e}")))?)?;
    }
    Ok(Exit::Done)
}

fn report<'a>(file: &Path, statement: &'a Statement, is_made: bool) -> Report<'a> {
    Report {
        file: show(file),
        sha256: &statement.subject[0].digest.sha256,
        roots: &statement.predicate.roots,
        statement: is_made.then_some(statement),
    }
}

/// The subject's name in the statement at `path`, which has to be the one that is expected of `file`.
fn compared(path: &Path, expected: &Statement, file: &Path) -> Result<String> {
    if is_dash(path) {
        check_stdin("attest --check")?;
    }
    let text = bounded(path)?;
    let parsed = match text.len() as u64 > MOST {
        true => Err("it has more than 1 MiB".to_owned()),
        false => Statement::parse(&text),
    };
    let statement = match parsed {
        Ok(statement) => statement,
        Err(why) => {
            let value =
                |name: &str| if name == "why" { show_bytes(why.as_bytes()) } else { show_input(path) };
            return Err(crate::plan::refused(&Found::NoStatement, FOUND, value));
        }
    };
    if let Some(difference) = statement.difference(expected) {
        let (path, file) = (show_input(path), show(file));
        return Err(Failure::new(
            Exit::Untrue,
            format!("check {path}: it does not speak of {file}: {difference}"),
        ));
    }
    Ok(statement.subject.into_iter().next().map(|subject| subject.name).unwrap_or_default())
}

/// The bytes of a file, and one more than [`MOST`] of a longer one.
fn bounded(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = open_list(path)?.take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::io(Action::Read, path, e))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "ad83b942743c35fbe86bc658000000000000000000000000000000000000abcd";

    fn made() -> Statement {
        Statement::of(Path::new("d/app.root"), format!("{ROOT}\n").as_bytes()).expect("a root")
    }

    fn text(statement: &Statement) -> String {
        serde_json::to_string(statement).expect("JSON")
    }

    /// The digest is what `printf '%s\n' ROOT | sha256sum` prints.
    #[test]
    fn a_statement_is_these_bytes() {
        let expected = format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"app.root","digest":{{"sha256":"SUM"}}}}],"predicateType":"{PREDICATE}","predicate":{{"roots":["{ROOT}"]}}}}"#
        );
        assert_eq!(text(&made()), expected.replace("SUM", SUM));
        assert_eq!(Statement::parse(text(&made()).as_bytes()), Ok(made()));
    }

    #[test]
    fn a_list_has_all_of_its_roots() {
        let list = format!("{ROOT}  a.shards\n{}  b.shards\n", "ab".repeat(32));
        let statement = Statement::of(Path::new("roots"), list.as_bytes()).expect("roots");
        assert_eq!(statement.predicate.roots, [ROOT.to_owned(), "ab".repeat(32)]);
        assert!(Statement::of(Path::new("roots"), format!("{list}and a word\n").as_bytes()).is_none());
        assert!(Statement::of(Path::new("roots"), b"").is_none());
    }

    /// White space, the order of fields, and the name of the file say nothing else.
    #[test]
    fn the_same_in_other_words_is_the_same() {
        let value: Value = serde_json::from_str(&text(&made())).expect("JSON");
        let spread = serde_json::to_string_pretty(&value).expect("JSON");
        let renamed = text(&made()).replace("app.root", "other.root");
        for same in [spread, format!("\n {}\n", text(&made())), renamed] {
            let parsed = Statement::parse(same.as_bytes()).unwrap_or_else(|e| panic!("{same}: {e}"));
            assert_eq!(parsed.difference(&made()), None, "{same}");
        }
    }

    #[test]
    fn another_file_kind_or_count_is_a_difference() {
        let good = text(&made());
        let subject = &good
            [good.find("{\"name\"").expect("a subject")..good.find("],\"predicateType").expect("its end")];
        let two = good.replace(subject, &format!("{subject},{subject}"));
        for (other, what) in [
            (
                good.replace("Statement/v1", "Statement/v0.1"),
                "its _type is https://in-toto.io/Statement/v0.1",
            ),
            (good.replace("/roots/v1", "/roots/v2"), "its predicateType is "),
            (two, "it has 2 subjects"),
            (good.replace(subject, ""), "it has 0 subjects"),
            (good.replace(ROOT, &"ab".repeat(32)), "its roots are others"),
            (good.replace(ROOT, &ROOT.to_uppercase()), "its roots are others"),
            (good.replace(&format!("\"{ROOT}\""), ""), "its roots are others"),
            (good.replace(&format!("\"{ROOT}\""), &format!("\"{ROOT}\",\"{ROOT}\"")), "its roots are others"),
            (good.replace(SUM, &SUM.to_uppercase()), "its sha256 is that of other bytes"),
            (good.replace(SUM, ""), "its sha256 is that of other bytes"),
        ] {
            let parsed = Statement::parse(other.as_bytes()).unwrap_or_else(|e| panic!("{other}: {e}"));
            let difference = parsed.difference(&made()).unwrap_or_else(|| panic!("{other}"));
            assert!(difference.starts_with(what), "{difference}");
        }
    }

    /// Readers take the first or the last of two fields; a statement that two readers understand differently is none.
    #[test]
    fn forged_forms_are_no_statements() {
        let good = text(&made());
        let roots = format!("\"roots\":[\"{ROOT}\"]");
        let list = format!(
            r#"["https://in-toto.io/Statement/v1",[["app.root",["{SUM}"]]],"{PREDICATE}",[["{ROOT}"]]]"#
        );
        for (forged, why) in [
            (good.replace("{\"_type\"", "{\"_type\":\"x\",\"_type\""), "duplicate field `_type`"),
            (good.replace(&roots, &format!("{roots},{roots}")), "duplicate field `roots`"),
            (good.replace("\"name\"", "\"uri\":\"x\",\"name\""), "unknown field `uri`"),
            (good.replace("\"sha256\"", "\"sha512\""), "unknown field `sha512`"),
            (good.replace(&format!(",\"predicate\":{{{roots}}}"), ""), "missing field `predicate`"),
            (good.replace(&format!("[\"{ROOT}\"]"), "null"), "invalid type: null"),
            (format!("{good}{good}"), "trailing characters"),
            (good[..good.len() - 1].to_owned(), "EOF while parsing"),
            (list, "a list stands in the place of an object"),
            ("[".repeat(100_000), "invalid type"),
            (String::new(), "EOF while parsing"),
        ] {
            let error = Statement::parse(forged.as_bytes()).expect_err(&forged);
            assert!(error.contains(why), "{forged}: {error}");
        }
    }

    const SUM: &str = "87845edc33a666b533ce7334fed15fd4f5a66473c0cc5ed7294dce1399631cf0";
}
