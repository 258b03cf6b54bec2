//! Sealing: the cost of the ciphers, beside OpenSSL's, and of each recipient.

mod ciphers;
mod messages;
mod openssl;
mod recipients;

use crate::error::Result;
use crate::lab::Lab;
use crate::table::Findings;

pub(crate) fn run(lab: &mut Lab) -> Result<Findings> {
    lab.plan(ciphers::FIGURES + messages::FIGURES + recipients::FIGURES + openssl::FIGURES);
    let mut notes = vec![
        "each chunk is sealed or opened where it stands, in a cache of the core".to_owned(),
        format!(
            "age file: the library's own, all of {} MiB in memory for one X25519 recipient, for each {} KiB",
            ciphers::FILE >> 20,
            ciphers::CHUNKS[0] >> 10
        ),
    ];
    let ciphers = ciphers::table(lab)?;
    // OpenSSL takes a second at least, so that others get what is left.
    let openssl = openssl::table(lab, &mut notes);
    let messages = messages::table(lab)?;
    let recipients = recipients::table(lab, &mut notes)?;
    Ok(Findings::new(vec![ciphers, messages, recipients, openssl], notes))
}
