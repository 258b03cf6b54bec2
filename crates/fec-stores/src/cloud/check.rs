//! Checks that settings from users and the environment can be in a request. The crate `object_store` accepts any value,
//! and panics when a request is made of an impossible one.

use crate::error::StoreError;
use crate::target::{Scheme, Target};
use http::{HeaderValue, Uri};
use object_store::ClientConfigKey;
use object_store::aws::AmazonS3ConfigKey;
use object_store::azure::AzureConfigKey;
use reqwest::Url;
use std::env;
use std::str::FromStr;

/// Longest name of a region, in bytes.
const MAX_REGION: usize = 64;

/// Checks the user's description of a place.
pub(super) fn target(target: &Target) -> Result<(), StoreError> {
    let wrong = |what: &str, why: &str| Err(StoreError::Invalid(format!("{what}: {why}")));
    if let Some(why) = target.endpoint.as_deref().and_then(wrong_with_url) {
        return wrong("endpoint=", why);
    }
    if let Some(why) = target.region.as_deref().and_then(wrong_with_region) {
        return wrong("region=", why);
    }
    if target.scheme == Scheme::Http {
        // The path may have any characters, because parsing escapes them.
        let written = Url::parse(&target.url).map(String::from).unwrap_or_default();
        return wrong_with_url(&written).map_or(Ok(()), |why| wrong("its address", why));
    }
    match wrong_with_bucket(target.bucket_and_prefix().0) {
        Some(why) => wrong("the name of its bucket", why),
        None => Ok(()),
    }
}

/// The fault of an HTTP address, if it has one.
fn wrong_with_url(text: &str) -> Option<&'static str> {
    let behind = text
        .split_once("://")
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https"));
    let Some((_, behind)) = behind else { return Some("it has to begin with http:// or https://") };
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some("it has characters that do not belong into an address");
    }
    let (Ok(uri), Ok(url)) = (Uri::from_str(text), Url::parse(text)) else {
        return Some("it is no address: a host is needed, and a port is a number up to 65535");
    };
    let has_host = uri.host().is_some_and(|host| !host.is_empty()) && url.has_host();
    if !has_host || behind.starts_with('/') {
        return Some("it names no host");
    }
    let has_more = !url.username().is_empty() || url.password().is_some();
    has_more.then_some("a user or password does not belong there")
}

fn wrong_with_region(region: &str) -> Option<&'static str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (!region.bytes().all(is_name) || region.len() > MAX_REGION)
        .then_some("a region has letters, digits, '-', '_' and '.' only")
}

fn wrong_with_bucket(bucket: &str) -> Option<&'static str> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'$' | b':');
    (!bucket.bytes().all(is_name)).then_some("it has characters that no bucket's name has")
}

/// Checks a part of requests that came from `source`, a variable or a line of a file. Errors do not repeat the value,
/// which may be a secret.
pub(super) fn credential(source: &str, value: &str) -> Result<(), StoreError> {
    match HeaderValue::from_str(value) {
        Ok(_) if !value.contains(|c: char| !c.is_ascii() || c == '\t') => Ok(()),
        _ => Err(odd(source)),
    }
}

fn odd(source: &str) -> StoreError {
    StoreError::Denied(format!("{source} has a line break, or another character that does not belong there"))
}

/// Checks an endpoint that came from `source`.
pub(super) fn endpoint(source: &str, value: &str) -> Result<(), StoreError> {
    wrong_with_url(value).map_or(Ok(()), |why| Err(StoreError::Denied(format!("{source}: {why}"))))
}

/// Checks a region that came from `source`.
pub(super) fn region(source: &str, value: &str) -> Result<(), StoreError> {
    wrong_with_region(value).map_or(Ok(()), |why| Err(StoreError::Denied(format!("{source}: {why}"))))
}

/// Checks all environment variables for S3, used or not.
pub(super) fn amazon_variables() -> Result<(), StoreError> {
    use AmazonS3ConfigKey as Key;
    variables("AWS_", |name, value| match name.parse() {
        Ok(Key::AccessKeyId | Key::SecretAccessKey | Key::Token) => credential(name, value),
        Ok(Key::Region | Key::DefaultRegion) => region(name, value),
        Ok(
            Key::Endpoint
            | Key::S3Endpoint
            | Key::StsEndpoint
            | Key::MetadataEndpoint
            | Key::ContainerCredentialsFullUri,
        ) => endpoint(name, value),
        Ok(Key::Client(key)) => of_client(name, &key, value),
        Ok(_) => printable(name, value),
        Err(_) => Ok(()),
    })
}

/// Checks all environment variables for Azure.
pub(super) fn azure_variables() -> Result<(), StoreError> {
    use AzureConfigKey as Key;
    variables("AZURE_", |name, value| match name.parse() {
        Ok(
            Key::AccountName
            | Key::AccessKey
            | Key::ClientId
            | Key::ClientSecret
            | Key::AuthorityId
            | Key::SasKey
            | Key::Token,
        ) => credential(name, value),
        Ok(Key::Endpoint | Key::MsiEndpoint | Key::AuthorityHost) => endpoint(name, value),
        Ok(Key::Client(key)) => of_client(name, &key, value),
        Ok(_) => printable(name, value),
        Err(_) => Ok(()),
    })?;
    variables("IDENTITY_", |name, value| match name {
        "identity_endpoint" => endpoint(name, value),
        _ => credential(name, value),
    })
}

/// Checks the environment variables for Google.
pub(super) fn google_variables() -> Result<(), StoreError> {
    // Only the token is checked: keys of accounts are JSON in several lines.
    variables("GOOGLE_BEARER_TOKEN", credential)
}

/// Checks settings of the client that go out with each request.
fn of_client(name: &str, key: &ClientConfigKey, value: &str) -> Result<(), StoreError> {
    match key {
        ClientConfigKey::UserAgent | ClientConfigKey::DefaultContentType => credential(name, value),
        _ => Ok(()),
    }
}

fn printable(name: &str, value: &str) -> Result<(), StoreError> {
    if value.chars().any(char::is_control) { Err(odd(name)) } else { Ok(()) }
}

/// Checks all variables with this prefix. `check` gets their names in lower case; errors name them as they are.
fn variables(start: &str, check: impl Fn(&str, &str) -> Result<(), StoreError>) -> Result<(), StoreError> {
    for (name, value) in env::vars_os() {
        let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else { continue };
        if !name.starts_with(start) || value.is_empty() {
            continue;
        }
        let small = name.to_ascii_lowercase();
        check(&small, value).map_err(|error| match error {
            StoreError::Denied(why) => StoreError::Denied(why.replacen(&small, name, 1)),
            error => error,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "http://127.0.0.1:9000",
            "https://s3.example.org/",
            "https://[::1]:9000",
            "HTTP://h",
            "http://a_b/c/d",
            "https://xn--e1afmkfd.example",
        ] {
            assert_eq!(wrong_with_url(good), None, "{good}");
        }
        for bad in [
            "",
            "x",
            "localhost:9000",
            "https:/x",
            "http://",
            "http:///x",
            "http://[::1",
            "http://127.0.0.1:99999",
            "http://h:x",
            "http://é.example",
            "http://{x}",
            "http://a b",
            "http://a\n",
            "http://u:p@h",
            "ftp://h",
        ] {
            assert!(wrong_with_url(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn places_are_refused_for_what_was_written_of_them() {
        let check = |text: &str| target(&Target::parse(text).expect("a target"));
        assert_eq!(check("s3://my-bucket.a_b/x,endpoint=http://h:1,region=eu-north-1"), Ok(()));
        assert_eq!(check("az://$web/x"), Ok(()));
        assert_eq!(check("https://host/é"), Ok(()));
        for (bad, said) in [
            ("s3://b/x,endpoint=localhost:9000", "endpoint=: it has to begin with http://"),
            ("s3://b/x,region=a b", "region="),
            ("gs://b\u{e9}/x", "bucket"),
            ("az://{b}/x", "bucket"),
            ("https://host:99999/x", "address"),
        ] {
            let error = check(bad).expect_err(bad);
            assert!(matches!(&error, StoreError::Invalid(why) if why.contains(said)), "{bad}: {error}");
        }
    }

    #[test]
    fn credentials_are_not_repeated() {
        assert_eq!(credential("X", "AKIA/+=~ é".trim_end_matches(" é")), Ok(()));
        for bad in ["hunter2\n", "hunter2\r", "hunter2\u{e9}", "hunter2\t"] {
            let error = credential("AWS_SESSION_TOKEN", bad).expect_err("it was taken").to_string();
            assert!(error.contains("AWS_SESSION_TOKEN") && !error.contains("hunter2"), "{error}");
        }
    }
}
