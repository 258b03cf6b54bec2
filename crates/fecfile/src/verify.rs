//! Checks every byte of an encoding; with `deep` also that every set is a codeword.

use crate::archive::Archive;
use crate::error::{Action, EncodingError, Error, Result};
use crate::report::{Deep, Verified};
use crate::sets::{Nobody, SetWalk, untrue};
use fec_base::context::Context;

impl Archive {
    /// Checks every byte; with `deep` also decodes every set and checks that it is a codeword.
    ///
    /// # Errors
    /// [`Untrue`](EncodingError::Untrue) when the root binds a set that breaks a rule; with `deep`
    /// [`SetMemory`](fec_base::ErrorKind::SetMemory). Damage and losses are in the result.
    pub fn verify(&self, deep: bool, context: &Context<'_>) -> Result<Verified> {
        if deep && self.is_one_shard() {
            return Err(Error::new(Action::Verify, EncodingError::OneShardDeep));
        }
        let found = self.examine(context)?;
        let encoded = self.encoded();
        let k = encoded.shape().code.k() as u32;
        let is_restorable = encoded.payload_len.is_some() && found.weakest >= k && !encoded.is_seal_lost();
        let deep = match deep {
            false => Deep::NotAsked,
            true => {
                encoded.check_memory(&context.settings)?;
                let meter = context.meter(Action::Decode, Some(encoded.known_len()));
                let mut walk = SetWalk::new(context, self.plans());
                walk.meter = Some(&meter);
                walk.strict = true;
                let outcome = walk.run(encoded.records.as_ref(), &encoded.groups, &Nobody)?;
                meter.finish();
                let is_whole = outcome.is_whole();
                if let Some(set) = outcome.untrue {
                    return Err(untrue(set));
                }
                if is_whole && is_restorable { Deep::Proved } else { Deep::Failed }
            }
        };
        Ok(Verified {
            form: self.form(),
            root: self.root(),
            meta: encoded.meta.cloned(),
            shape: *encoded.shape(),
            payload_len: encoded.payload_len,
            found,
            is_restorable: (!self.is_one_shard()).then_some(is_restorable),
            deep,
            leftovers: self.leftovers().clone(),
            others: self.others().to_vec(),
        })
    }
}
