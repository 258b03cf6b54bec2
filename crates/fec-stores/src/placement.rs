//! Balances shards over domains so that as many domains as possible may fail together.

use super::target::Target;
use fec_core::block::Code;
use std::fmt;

/// The places of shards. Shard i of segment s goes to domain (i + s) mod D, and there to the domain's targets in turn.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Numbers of the targets of each domain.
    domains: Vec<Vec<usize>>,
    names: Vec<String>,
    code: Code,
}

/// Failures that lose nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Survival {
    /// Number of domains, any of them, that may fail,
    pub domains: usize,
    /// out of this many,
    pub of: usize,
    /// and number of further shards that may be lost.
    pub shards: usize,
}

/// A domain would hold more shards of a set than may be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowded {
    /// Existing domains.
    pub domains: usize,
    /// Shards that a domain would hold.
    pub holds: usize,
    /// Shards of a set that may be lost.
    pub m: usize,
    /// Domains needed.
    pub needed: usize,
}

impl Placement {
    /// The placement over the domains of these targets, in the order in which domains are first named.
    ///
    /// # Panics
    /// Without targets.
    pub fn new(targets: &[Target], code: Code) -> Placement {
        assert!(!targets.is_empty(), "shards need a place");
        let (mut domains, mut names): (Vec<Vec<usize>>, Vec<String>) = (Vec::new(), Vec::new());
        for (nth, target) in targets.iter().enumerate() {
            match names.iter().position(|name| *name == target.domain) {
                Some(domain) => domains[domain].push(nth),
                None => {
                    names.push(target.domain.clone());
                    domains.push(vec![nth]);
                }
            }
        }
        Placement { domains, names, code }
    }

    /// Refuses a placement in which the loss of a single domain loses the payload.
    ///
    /// # Errors
    /// [`Crowded`].
    pub fn check(&self) -> Result<(), Crowded> {
        let (n, m, domains) = (self.code.n(), self.code.m(), self.domains.len());
        let holds = n.div_ceil(domains);
        let needed = if m == 0 { n } else { n.div_ceil(m) };
        if holds > m { Err(Crowded { domains, holds, m, needed }) } else { Ok(()) }
    }

    /// The target that a shard goes to.
    pub fn target(&self, segment: u64, shard: usize) -> usize {
        let count = self.domains.len();
        let domain = (shard + (segment % count as u64) as usize) % count;
        let targets = &self.domains[domain];
        targets[(shard / count) % targets.len()]
    }

    /// The domain of a target, by their numbers.
    ///
    /// # Panics
    /// If there is no such target.
    pub fn domain(&self, target: usize) -> usize {
        self.domains.iter().position(|of| of.contains(&target)).expect("every target has a domain")
    }

    /// The names of the domains.
    pub fn domains(&self) -> &[String] {
        &self.names
    }

    /// Failures that lose nothing when domains hold this many shards each. At most `most` domains may fail for another
    /// reason.
    pub fn survival_of(mut held: Vec<usize>, k: usize, most: usize) -> Survival {
        let of = held.len();
        held.sort_unstable_by(|a, b| b.cmp(a));
        let mut spare = held.iter().sum::<usize>().saturating_sub(k);
        let mut domains = 0;
        for holds in held.into_iter().take(most) {
            if holds > spare {
                break;
            }
            spare -= holds;
            domains += 1;
        }
        Survival { domains, of, shards: spare }
    }

    /// Failures that lose nothing when all shards are where they belong.
    pub fn survival(&self) -> Survival {
        let count = self.domains.len();
        let held = (0..count).map(|domain| (domain..self.code.n()).step_by(count).count()).collect();
        Placement::survival_of(held, self.code.k(), count)
    }
}

impl fmt::Display for Survival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Survival { domains, of, shards } = *self;
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        match (domains, shards) {
            (0, 0) => write!(f, "nothing"),
            (0, _) => write!(f, "any {shards} shard{}, but no whole domain", plural(shards)),
            (_, 0) => write!(f, "any {domains} of {of} domain{}", plural(of)),
            _ => {
                write!(f, "any {domains} of {of} domain{}, plus {shards} shard{}", plural(of), plural(shards))
            }
        }
    }
}

impl fmt::Display for Crowded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Crowded { domains, holds, m, needed } = self;
        write!(
            f,
            "with {domains} domain{} one of them holds {holds} shards of a set, and {m} may be lost: {needed} domains are needed",
            if *domains == 1 { "" } else { "s" }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placement(names: &[&str], k: usize, m: usize) -> Placement {
        let targets: Vec<Target> = names
            .iter()
            .enumerate()
            .map(|(nth, name)| Target::parse(&format!("/mnt/{nth},domain={name}")).expect("a target"))
            .collect();
        Placement::new(&targets, Code::new(k, m).expect("a code"))
    }

    #[test]
    fn shards_are_balanced_over_domains_and_their_targets() {
        let names = ["a", "b", "a", "c", "a"];
        let placement = placement(&names, 10, 5);
        for segment in 0..7 {
            let mut held = std::collections::BTreeMap::new();
            let mut targets = std::collections::BTreeSet::new();
            for shard in 0..15 {
                let target = placement.target(segment, shard);
                *held.entry(names[target]).or_insert(0) += 1;
                targets.insert(target);
            }
            assert!(held.values().all(|count| *count == 5), "{held:?}");
            assert_eq!(targets.len(), 5, "each target gets some");
        }
        let firsts: Vec<&str> = (0..3).map(|segment| names[placement.target(segment, 0)]).collect();
        assert_eq!(firsts, ["a", "b", "c"], "originals are everybody's in turn");
    }

    #[test]
    fn what_may_fail() {
        let words = |names: &[&str], k, m| placement(names, k, m).survival().to_string();
        assert_eq!(words(&["a", "b", "c", "d", "e"], 10, 4), "any 1 of 5 domains, plus 1 shard");
        assert_eq!(words(&["a", "b", "c", "d", "e"], 33, 67), "any 3 of 5 domains, plus 7 shards");
        assert_eq!(words(&["a", "b"], 2, 2), "any 1 of 2 domains");
        assert_eq!(words(&["a", "a"], 2, 1), "any 1 shard, but no whole domain");
        assert_eq!(words(&["a"], 2, 0), "nothing");
    }

    #[test]
    fn no_domain_holds_more_than_may_be_lost() {
        assert_eq!(placement(&["a", "b", "c", "d"], 10, 4).check(), Ok(()));
        let crowded = placement(&["a", "b", "c"], 10, 4).check().expect_err("5 in one");
        assert_eq!((crowded.holds, crowded.needed), (5, 4));
        assert!(placement(&["a", "a", "a", "a"], 10, 4).check().is_err(), "four targets in one domain");
    }
}
