//! Credentials of a profile of AWS that are read anew when its files change: those of a session expire, and a program
//! beside this one renews them.

use super::profile::{Source, Stamp};
use fec_core::executor::lock;
use object_store::CredentialProvider;
use object_store::aws::AwsCredential;
use std::sync::{Arc, Mutex};

/// The credentials of a profile, as its files have them now.
#[derive(Debug)]
pub(super) struct Renewed {
    source: Source,
    known: Mutex<(Stamp, Arc<AwsCredential>)>,
}

impl Renewed {
    /// The credentials of `source`, whose files had this stamp when they were read.
    pub(super) fn new(source: Source, stamp: Stamp, credential: AwsCredential) -> Renewed {
        Renewed { source, known: Mutex::new((stamp, Arc::new(credential))) }
    }

    /// Reads the profile if its files changed. A file that is just being written, or has no credentials any more,
    /// changes nothing: the service's answer to the old ones tells more.
    fn credential(&self) -> Arc<AwsCredential> {
        let mut known = lock(&self.known);
        let stamp = self.source.stamp();
        if stamp != known.0
            && let Ok(profile) = self.source.read()
            && profile.check().is_ok()
            && let Some(credential) = profile.credential()
        {
            tracing::debug!("the profile's credentials were read anew");
            *known = (stamp, Arc::new(credential));
        }
        known.1.clone()
    }
}

#[async_trait::async_trait]
impl CredentialProvider for Renewed {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> object_store::Result<Arc<AwsCredential>> {
        Ok(self.credential())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_file_says_now_counts() {
        let home = tempfile::tempdir().expect("a folder");
        let path = home.path().join("credentials");
        let write = |text: &str| fs::write(&path, text).expect("it is written");
        let of =
            |key: &str| format!("[ci]\naws_access_key_id = {key}\naws_secret_access_key = secret{key}\n");
        write(&of("A"));
        let source = Source::of_files("ci", &path, &home.path().join("config"));
        let read = source.read().expect("a profile").credential().expect("credentials");
        let renewed = Renewed::new(source.clone(), source.stamp(), read);
        let key = || renewed.credential().key_id.clone();
        assert_eq!(key(), "A");
        write(&format!("{}aws_session_token = T\n", of("B")));
        assert_eq!((key().as_str(), renewed.credential().token.as_deref()), ("B", Some("T")));
        // Half a file, none, and what cannot stand in a request.
        write("[ci]\naws_access_key_id = C\n");
        assert_eq!(key(), "B");
        fs::remove_file(&path).expect("it is removed");
        assert_eq!(key(), "B");
        write(&of("\u{7f}D"));
        assert_eq!(key(), "B");
        write(&of("EEE"));
        assert_eq!(key(), "EEE");
        assert!(!format!("{renewed:?}").contains("secretEEE"));
    }
}
