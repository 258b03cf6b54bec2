//! The signer of a root, in reports.

use fec_base::names::show;
use fec_keys::sign::Signed;
use serde::Serialize;

/// The signer of a root.
#[derive(Debug, Serialize)]
pub(crate) struct SignedBy {
    key: String,
    trusted_comment: String,
}

/// The proof of a root, in a word or two: the key that signed it, or the root that was asked for.
pub(crate) fn proved_by(root_was_given: bool, signed: Option<&SignedBy>) -> Option<String> {
    signed.map(|by| format!("key {}", by.key)).or_else(|| root_was_given.then(|| "root".to_owned()))
}

impl SignedBy {
    pub(crate) fn new(signed: &Signed) -> SignedBy {
        // Minisign puts tabs between words.
        let trusted_comment = signed.trusted_comment.replace('\t', " ");
        SignedBy { key: signed.key.to_string(), trusted_comment }
    }

    pub(crate) fn describe(&self) -> String {
        // E of a sidecar was compared before, and tells people nothing.
        let (comment, _) =
            self.trusted_comment.split_once(" fec sidecar 1 ").unwrap_or((&self.trusted_comment, ""));
        format!("signed by key {} ({})\n", self.key, show(comment))
    }
}
