//! Reads a profile from the files of AWS: `~/.aws/credentials` and `~/.aws/config`.

use crate::error::StoreError;
use fec_base::io::small;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, io};
use zeroize::Zeroizing;

/// The useful settings of a profile.
#[derive(Default)]
pub(super) struct Profile {
    pub(super) key_id: Option<String>,
    pub(super) secret: Option<Zeroizing<String>>,
    pub(super) token: Option<Zeroizing<String>>,
    pub(super) region: Option<String>,
    pub(super) endpoint: Option<String>,
}

/// Most bytes of such a file.
const LONGEST: usize = 4 << 20;

/// Settings for credentials that AWS's programs know and this one does not.
const FOREIGN: [&str; 5] =
    ["credential_process", "credential_source", "role_arn", "sso_session", "sso_start_url"];

/// Reads the profile `name`, or the one that AWS_PROFILE names, or `default`. A named profile has to exist.
pub(super) fn read(name: Option<&str>) -> Result<Profile, StoreError> {
    let from_environment = env::var("AWS_PROFILE").ok().filter(|name| !name.is_empty());
    let name = name.or(from_environment.as_deref());
    let credentials = text_of("AWS_SHARED_CREDENTIALS_FILE", "credentials")?;
    let config = text_of("AWS_CONFIG_FILE", "config")?;
    profile_of(&credentials, &config, name)
}

/// Path and text of a file; the text is empty if there is no file.
fn text_of(variable: &str, file: &str) -> Result<(PathBuf, Zeroizing<String>), StoreError> {
    let path = match env::var_os(variable).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => match env::home_dir() {
            Some(home) => home.join(".aws").join(file),
            None => return Ok(Default::default()),
        },
    };
    match small::read_text(&path, LONGEST) {
        Ok(text) => Ok((path, text)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok((path, Zeroizing::default()))
        }
        Err(e) => Err(StoreError::Denied(format!("{}: {e}", path.display()))),
    }
}

fn profile_of(
    credentials: &(PathBuf, Zeroizing<String>),
    config: &(PathBuf, Zeroizing<String>),
    name: Option<&str>,
) -> Result<Profile, StoreError> {
    let wanted = name.unwrap_or("default");
    let of_config = if wanted == "default" { wanted.to_owned() } else { format!("profile {wanted}") };
    let mut values = section_of(&config.0, &config.1, &[&of_config])?;
    let mut found = values.is_some();
    if let Some(first) = section_of(&credentials.0, &credentials.1, &[wanted])? {
        found = true;
        values.get_or_insert_default().extend(first);
    }
    if name.is_some() && !found {
        return Err(StoreError::Denied(format!(
            "there is no profile {wanted:?} in {} or {}",
            credentials.0.display(),
            config.0.display()
        )));
    }
    let values = values.unwrap_or_default();
    let text = |key: &str| values.get(key).map(|value| value.to_string()).filter(|value| !value.is_empty());
    let secret = |key: &str| values.get(key).cloned().filter(|value| !value.is_empty());
    let profile = Profile {
        key_id: text("aws_access_key_id"),
        secret: secret("aws_secret_access_key"),
        token: secret("aws_session_token"),
        region: text("region"),
        endpoint: text("endpoint_url"),
    };
    if profile.key_id.is_some() != profile.secret.is_some() {
        return Err(StoreError::Denied(format!(
            "the profile {wanted:?} has one of aws_access_key_id and aws_secret_access_key, and not the other"
        )));
    }
    let foreign = FOREIGN.iter().find(|key| values.contains_key(**key));
    if let (None, Some(foreign)) = (&profile.key_id, foreign) {
        return Err(StoreError::Denied(format!(
            "the profile {wanted:?} gets its credentials by {foreign}, which is not known here: \
             aws configure export-credentials --format env prints variables to set"
        )));
    }
    Ok(profile)
}

type Values = BTreeMap<String, Zeroizing<String>>;

/// Values of the sections with these names; `None`: there is no such section.
fn section_of(path: &Path, text: &str, names: &[&str]) -> Result<Option<Values>, StoreError> {
    let mut values: Option<Values> = None;
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        // Indented lines belong to the setting above, and none of those matters here.
        if line.starts_with([' ', '\t', '#', ';']) || line.trim().is_empty() {
            continue;
        }
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            let name: Vec<&str> = name.0.split_whitespace().collect();
            inside = names.contains(&name.join(" ").replace('"', "").as_str());
            if inside {
                values.get_or_insert_default();
            }
        } else if let Some((key, value)) = line.split_once('=') {
            if let (true, Some(values)) = (inside, &mut values) {
                values.insert(key.trim().to_ascii_lowercase(), Zeroizing::new(value.trim().to_owned()));
            }
        } else {
            // The line itself may be a secret, so only its number is told.
            return Err(StoreError::Denied(format!(
                "{}, line {}, is neither [a section] nor a name = a value",
                path.display(),
                number + 1
            )));
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> (PathBuf, Zeroizing<String>) {
        ("FILE".into(), Zeroizing::new(text.into()))
    }

    #[test]
    fn profiles_come_from_both_files() {
        let credentials = file(
            "# mine\n[default]\naws_access_key_id = A\naws_secret_access_key=B=/+\n\n[ci]\naws_access_key_id=C\n\
             aws_secret_access_key=D\naws_session_token=E\n",
        );
        let config = file(
            "[default]\nregion = eu-north-1\ns3 =\n  max_concurrent_requests = 1\n[profile ci]\nregion=x\n\
             endpoint_url = http://h:1\naws_access_key_id = not this one\n[profile sso]\nsso_session = y\n",
        );
        let read = |name: Option<&str>| profile_of(&credentials, &config, name);
        let default = read(None).expect("a profile");
        assert_eq!((default.key_id.as_deref(), default.region.as_deref()), (Some("A"), Some("eu-north-1")));
        assert_eq!(default.secret.as_deref().map(String::as_str), Some("B=/+"));
        let ci = read(Some("ci")).expect("a profile");
        assert_eq!((ci.key_id.as_deref(), ci.endpoint.as_deref()), (Some("C"), Some("http://h:1")));
        assert!(ci.token.is_some());
        assert!(matches!(read(Some("none")), Err(StoreError::Denied(_))));
        assert!(matches!(read(Some("sso")), Err(StoreError::Denied(text)) if text.contains("sso_session")));
        let nothing = profile_of(&file(""), &file(""), None).expect("a profile");
        assert!(nothing.key_id.is_none() && nothing.region.is_none());
    }

    #[test]
    fn what_is_wrong_is_told_without_secrets() {
        let wrong = |text: &str| match profile_of(&file(text), &file(""), None) {
            Err(StoreError::Denied(text)) => text,
            _ => panic!("it was read"),
        };
        assert!(wrong("[default]\nverysecret\n").contains("line 2"));
        assert!(!wrong("[default]\nverysecret\n").contains("verysecret"));
        assert!(wrong("[default]\naws_access_key_id=A\n").contains("aws_secret_access_key"));
    }
}
