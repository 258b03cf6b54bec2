//! Advice for errors of sealing, in terms of the command's options.

use fec_keys::age::AgeError;
use fecfile::seal::SealError;

/// The advice for an error.
pub(crate) fn help(error: &SealError) -> Option<&'static str> {
    Some(match error {
        SealError::NoKey => {
            "give the file with your key: -i FILE, or --passphrase;\nfec verify and fec repair need none"
        }
        SealError::NotSealed => {
            "if that is right, leave -i or --passphrase out; if not, somebody put something else in its place"
        }
        SealError::NoSeal => "without -i it is restored as it is, sealed",
        SealError::IsSidecar => "fec verify and fec repair take it",
        SealError::IsPayload => "fec decode takes it",
        SealError::NobodyNamed => "name the same recipients again: --recipient, -R or --passphrase",
        SealError::StaysPlain => "make a sealed one anew, without --update and with -f",
        SealError::StaysSealed => {
            "name whom to seal it for with --recipient, -R or --passphrase; for one that everybody can read, remove the sealed one first"
        }
        SealError::BeyondContainer => "if the files are intact, protect them anew with -f",
        SealError::TellsNames => "leave --state out",
        SealError::Digests => "leave --payload-digest out: each chunk is authentic anyway",
        SealError::Kept => "leave --keep out, and replace what is there with -f",
        SealError::Age(AgeError::NoMatch) => "is it the right key, and the right payload?",
        SealError::Age(AgeError::NeedsPassphrase) => "give --passphrase",
        SealError::Age(AgeError::NeedsIdentity) => "give the file with your key: -i FILE",
        SealError::Age(AgeError::Mixed) => {
            "seal for post-quantum keys alone, or for the others alone: whoever breaks one of the others could open it"
        }
        SealError::TooLong(_) => "there is room for 656 keys of age, 584 of SSH, or 41 post-quantum ones",
        _ => return None,
    })
}
