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
