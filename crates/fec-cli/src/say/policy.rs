//! Words about the policy of a sidecar.

use crate::say::details::Details;
use fec_base::names::{counted, show_bytes};
use fec_core::format::sidecar::policy::{Rules, Words};
use fec_sidecar::protect::{preset_of, text_of};
use fec_sidecar::update::{Held, Why};
use fec_sidecar::{Proof, Sidecar};
use serde::Serialize;

/// A policy, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Policy {
    /// The name, of one that comes with `fec`.
    name: Option<&'static str>,
    rules: Vec<String>,
    /// True while anything may go, since a prune is announced.
    pruning: bool,
    /// False for one that is not used, because nothing proves it.
    used: bool,
}

impl Policy {
    pub(crate) fn new(rules: &Rules, used: bool) -> Option<Policy> {
        (!rules.is_empty()).then(|| Policy {
            name: preset_of(rules),
            rules: text_of(rules).lines().map(str::to_owned).collect(),
            pruning: rules.is_announced,
            used,
        })
    }

    pub(crate) fn of(sidecar: &Sidecar) -> Option<Policy> {
        Policy::new(&sidecar.stats().policy, sidecar.proof() != Proof::Root)
    }

    fn named(&self) -> String {
        match self.name {
            Some(name) => format!("policy {name}"),
            None => format!("policy of {}", counted(self.rules.len(), "rule")),
        }
    }

    /// The rules, a line each.
    fn list(&self) -> String {
        self.rules.iter().map(|rule| format!("  {rule}\n")).collect()
    }

    /// The line about a policy that is recorded.
    pub(crate) fn describe(&self, is_recognised: bool, is_all: bool) -> String {
        let mut out = match (is_recognised, self.name) {
            (true, Some(name)) => {
                format!("a repository of {name}: protected by its policy; --policy none does without\n")
            }
            _ => format!("{}\n", self.named()),
        };
        if self.pruning {
            out.push_str("a prune is announced: anything in it may go until the next --update\n");
        }
        if is_all {
            out.push_str(&self.list());
        }
        out
    }

    /// The lines for `verify`.
    pub(crate) fn examined(&self, is_all: bool) -> String {
        let mut out = String::new();
        if !self.used {
            out.push_str(&format!("not used: its {}, which nothing that was given proves\n", self.named()));
        } else if self.pruning {
            out.push_str("a prune was announced: what is gone may go, until the next --update\n");
        }
        if is_all {
            out.push_str(&format!("{}:\n{}", self.named(), self.list()));
        }
        out
    }

    /// The option of an update that gives up what is missing.
    pub(crate) fn pruned(rules: &Rules) -> &'static str {
        let stays = rules.rules.iter().any(|rule| rule.words.has(Words::STAYS));
        if stays { " --pruned" } else { "" }
    }
}

/// A file that an update holds, in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct HeldFile {
    path: String,
    /// `missing`, `rotten` or `rewritten`.
    state: &'static str,
}

impl HeldFile {
    pub(crate) fn all(held: &[Held]) -> Vec<HeldFile> {
        let of = |held: &Held| HeldFile {
            path: show_bytes(&held.path),
            state: match held.why {
                Why::Gone => "missing",
                Why::Rotten => "rotten",
                Why::Rewritten => "rewritten",
            },
        };
        held.iter().map(of).collect()
    }

    /// The lines about files that an update holds, with the command that mends them.
    pub(crate) fn describe(held: &[HeldFile], repair: &str, is_all: bool) -> String {
        let (rewritten, of_policy): (Vec<&HeldFile>, _) =
            held.iter().partition(|held| held.state == "rewritten");
        let mut out = HeldFile::describe_policy(&of_policy, repair, is_all);
        if !rewritten.is_empty() {
            let mut details = Details::default();
            details.add(rewritten.iter().map(|held| format!("rewritten  {}", held.path)));
            out.push_str(&format!(
                "held, because it does not begin with what it was: {}\n{}to have it as it was, and keep what that writes \
                 over:\n  {repair} --revert --undo FILE\nif it was changed on purpose, update again without --append\n",
                counted(rewritten.len(), "file"),
                details.describe(is_all)
            ));
        }
        out
    }

    fn describe_policy(held: &[&HeldFile], repair: &str, is_all: bool) -> String {
        if held.is_empty() {
            return String::new();
        }
        let mut details = Details::default();
        for state in ["rotten", "missing"] {
            let of_state = held.iter().filter(|held| held.state == state);
            details.add(of_state.map(|held| format!("{:10} {}", held.state, held.path)));
        }
        let mut out = format!(
            "held, because the policy says that it is written once, or stays: {}\n{}to mend it:\n  {repair}\n",
            counted(held.len(), "file"),
            details.describe(is_all)
        );
        if held.iter().any(|held| held.state == "missing") {
            out.push_str("if what is missing was pruned or deleted on purpose, update again with --pruned\n");
        }
        if held.iter().any(|held| held.state == "rotten") {
            out.push_str("if what is rotten was changed on purpose, update again with -f\n");
        }
        out
    }
}
