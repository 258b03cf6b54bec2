//! The part of copies elsewhere in a repair, as text and JSON.

use crate::say::details::count;
use crate::say::failure::Kind;
use crate::system::secrets::hushed;
use fec_base::names::bytes;
use fec_sidecar::mirrors;
use serde::Serialize;

/// Blocks that the recovery data cannot mend, and where they came from.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Fetched {
    wanted_bytes: u64,
    /// Bytes that an interrupted repair had fetched.
    kept_bytes: u64,
    lacking_bytes: u64,
    mirrors: Vec<OfMirror>,
}

/// The part of a copy.
#[derive(Debug, Serialize)]
struct OfMirror {
    mirror: String,
    requests: u64,
    received_bytes: u64,
    taken_bytes: u64,
    wrong_answers: u64,
    /// Why it was not asked any further.
    left: Option<String>,
}

impl Fetched {
    pub(crate) fn new(fetched: mirrors::Fetched) -> Fetched {
        let of = |of: mirrors::OfMirror| OfMirror {
            mirror: hushed(&of.name),
            requests: of.requests,
            received_bytes: of.received,
            taken_bytes: of.taken,
            wrong_answers: of.wrong,
            left: of.left.map(|why| hushed(&why)),
        };
        Fetched {
            wanted_bytes: fetched.wanted,
            kept_bytes: fetched.kept,
            lacking_bytes: fetched.lacking,
            mirrors: fetched.mirrors.into_iter().map(of).collect(),
        }
    }

    /// The kind of a failure that it explains.
    pub(crate) fn kind(&self) -> Option<Kind> {
        serde_json::to_value(self).ok().map(|fetched| Kind::Lacking { fetched })
    }

    /// Advice where copies lack something.
    pub(crate) fn advice(&self) -> &'static str {
        match self.kept_bytes > 0 || self.has_any() {
            true => {
                "what was fetched is kept, and the next run goes on from there; if another copy has the rest, name it \
                 with --from too"
            }
            false => "if another copy has it, name that with --from",
        }
    }

    /// Tells whether anything had to be fetched.
    pub(crate) fn was_needed(&self) -> bool {
        self.wanted_bytes > 0
    }

    /// Tells whether any copy gave anything.
    pub(crate) fn has_any(&self) -> bool {
        self.mirrors.iter().any(|of| of.taken_bytes > 0)
    }

    /// A line for each copy that was asked, or what a dry run would ask for.
    pub(crate) fn describe(&self) -> String {
        if self.wanted_bytes == 0 {
            return "nothing was fetched: what is here mends all that can be mended\n".to_owned();
        }
        if self.mirrors.is_empty() {
            return format!("would fetch {} that the recovery data cannot mend\n", bytes(self.wanted_bytes));
        }
        let mut out = String::new();
        if self.kept_bytes > 0 {
            out.push_str(&format!("{} was fetched by an earlier run\n", bytes(self.kept_bytes)));
        }
        for of in &self.mirrors {
            out.push_str(&of.describe());
        }
        if self.lacking_bytes > 0 {
            out.push_str(&format!("no copy has {} of what was asked for\n", bytes(self.lacking_bytes)));
        }
        out
    }
}

impl OfMirror {
    fn describe(&self) -> String {
        let took = match self.taken_bytes {
            0 => "nothing".to_owned(),
            taken => bytes(taken),
        };
        let wrong = match self.wrong_answers {
            0 => String::new(),
            wrong => format!(", {} wrong", count(wrong, "answer", "answers")),
        };
        let left = self.left.as_ref().map(|why| format!("; left: {why}")).unwrap_or_default();
        let requests = count(self.requests, "request", "requests");
        format!("fetched {took} from {} ({requests}{wrong}){left}\n", self.mirror)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_copy_has_a_line() {
        let of = |taken, wrong, left: Option<&str>| mirrors::OfMirror {
            name: "https://user:hunter2@host/d".into(),
            requests: 3,
            received: taken,
            taken,
            wrong,
            left: left.map(str::to_owned),
        };
        let mirrors = vec![of(5 << 20, 0, None), of(0, 2, Some("it lies"))];
        let fetched = mirrors::Fetched { wanted: 6_000_000, kept: 500_000, lacking: 500_000, mirrors };
        let said = Fetched::new(fetched).describe();
        assert!(!said.contains("hunter2"), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines.len(), 4, "{said}");
        assert!(lines[1].starts_with("fetched 5 MiB from ") && lines[1].ends_with("(3 requests)"), "{said}");
        assert!(lines[2].starts_with("fetched nothing from "), "{said}");
        assert!(lines[2].ends_with("(3 requests, 2 answers wrong); left: it lies"), "{said}");
    }

    #[test]
    fn a_dry_run_tells_how_much_it_would_ask_for() {
        let fetched = |wanted| Fetched::new(mirrors::Fetched { wanted, ..mirrors::Fetched::default() });
        assert_eq!(fetched(3 << 20).describe(), "would fetch 3 MiB that the recovery data cannot mend\n");
        assert!(fetched(0).describe().starts_with("nothing was fetched"));
    }
}
