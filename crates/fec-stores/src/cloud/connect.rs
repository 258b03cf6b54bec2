//! Makes a service of the crate `object_store` from a target and the environment.

use super::check;
use super::profile::{self, Profile};
use super::renewed::Renewed;
use super::transport::{Connector, one_line, root_of};
use crate::error::StoreError;
use crate::target::{Scheme, Target};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig, StaticCredentialProvider};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

/// A service and its properties.
pub(super) struct Service {
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The interface for objects in parts; `None`: the service is only for reading.
    pub(super) parts: Option<Arc<dyn MultipartStore>>,
    /// Hint which credentials to set; present if none were found and requests go unsigned.
    pub(super) unsigned: Option<&'static str>,
    /// The service speaks S3 and is not Amazon's, so its handling of conditions is unknown.
    pub(super) is_like_s3: bool,
}

const FOR_S3: &str = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE";
const FOR_GOOGLE: &str = "set GOOGLE_APPLICATION_CREDENTIALS";
const FOR_AZURE: &str = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN";

/// Finds credentials and opens the service. Nothing is sent yet.
pub(super) fn connect(target: &Target) -> Result<Service, StoreError> {
    check::target(target)?;
    match target.scheme {
        Scheme::S3 => amazon(target),
        Scheme::Google => google(target),
        Scheme::Azure => azure(target),
        Scheme::Http => http(target),
        Scheme::Folder(_) => Err(StoreError::Unsupported("be reached by a network")),
    }
}

/// The caller repeats requests. `object_store` would repeat them unnoticed, and ask for ranges that run backwards.
fn no_retries() -> RetryConfig {
    RetryConfig { backoff: BackoffConfig::default(), max_retries: 0, retry_timeout: Duration::ZERO }
}

/// Unencrypted HTTP is used only if the user wrote `http://`.
fn client_options(url: Option<&str>) -> ClientOptions {
    let allow_http = url.is_some_and(|url| url.get(..7).is_some_and(|s| s.eq_ignore_ascii_case("http://")));
    ClientOptions::new().with_allow_http(allow_http)
}

fn amazon(target: &Target) -> Result<Service, StoreError> {
    check::amazon_variables()?;
    // A profile named with the target comes before the environment, any other profile after it.
    let of_environment = target.profile.is_none() && is_set("AWS_ACCESS_KEY_ID");
    let source = profile::Source::new(target.profile.as_deref());
    // A change between the stamp and the reading shows as one.
    let stamp = source.stamp();
    let profile = match of_environment {
        true => source.read().unwrap_or_default(),
        false => source.read()?,
    };
    profile.check()?;
    let (mut builder, unsigned) = amazon_credentials(&profile, of_environment);
    if let Some(credential) = profile.credential().filter(|_| !of_environment) {
        builder = builder.with_credentials(Arc::new(Renewed::new(source, stamp, credential)));
    }
    let endpoint = target.endpoint.clone();
    let endpoint = endpoint
        .or_else(|| value_of("AWS_ENDPOINT_URL_S3"))
        .or_else(|| value_of("AWS_ENDPOINT_URL"))
        .or(profile.endpoint);
    let region = target.region.clone();
    let region = region
        .or_else(|| value_of("AWS_REGION"))
        .or_else(|| value_of("AWS_DEFAULT_REGION"))
        .or(profile.region)
        .unwrap_or_else(|| "us-east-1".into());
    builder = builder
        .with_bucket_name(target.bucket_and_prefix().0)
        .with_region(region)
        .with_virtual_hosted_style_request(target.is_virtual)
        .with_disable_bulk_delete(true)
        .with_client_options(client_options(endpoint.as_deref()))
        .with_retry(no_retries())
        .with_http_connector(Connector { redirects: false });
    if !is_set("AWS_CHECKSUM_ALGORITHM") {
        // Buckets with Object Lock need a checksum, and the signature needs this digest anyway.
        builder = builder.with_checksum_algorithm(Checksum::SHA256);
    }
    let is_like_s3 = endpoint.is_some();
    if let Some(endpoint) = endpoint {
        let endpoint =
            if target.is_virtual { hosted(&endpoint, target.bucket_and_prefix().0) } else { endpoint };
        builder = builder.with_config(AmazonS3ConfigKey::S3Endpoint, endpoint);
    }
    let service = Arc::new(builder.build().map_err(|e| cannot_open(&e))?);
    Ok(Service { objects: service.clone(), parts: Some(service), unsigned, is_like_s3 })
}

/// An endpoint whose host begins with the name of the bucket.
fn hosted(endpoint: &str, bucket: &str) -> String {
    let (scheme, host) = endpoint.split_once("://").unwrap_or(("https", endpoint));
    format!("{scheme}://{bucket}.{host}")
}

/// A builder for credentials: those of the profile, unless the environment goes first. Without any it does not sign,
/// and the hint for that comes with it.
fn amazon_credentials(profile: &Profile, of_environment: bool) -> (AmazonS3Builder, Option<&'static str>) {
    match profile.key_id {
        // The environment is left out: a token there belongs to another key.
        Some(_) if !of_environment => (AmazonS3Builder::new(), None),
        _ if of_environment || has_amazon_credentials() => (AmazonS3Builder::from_env(), None),
        _ => (AmazonS3Builder::from_env().with_skip_signature(true), Some(FOR_S3)),
    }
}

/// Tells whether a nearby service may give credentials.
fn has_amazon_credentials() -> bool {
    let variables = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_METADATA_ENDPOINT",
    ];
    let disabled =
        value_of("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    variables.into_iter().any(is_set) || !disabled && machine_is("Amazon EC2")
}

fn google(target: &Target) -> Result<Service, StoreError> {
    check::google_variables()?;
    let mut builder = GoogleCloudStorageBuilder::from_env()
        .with_bucket_name(target.bucket_and_prefix().0)
        .with_client_options(client_options(target.endpoint.as_deref()))
        .with_retry(no_retries())
        .with_http_connector(Connector { redirects: false });
    if let Some(endpoint) = &target.endpoint {
        builder = builder.with_config(GoogleConfigKey::BaseUrl, endpoint);
    }
    let has_credentials = [
        "SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_BEARER_TOKEN",
    ]
    .into_iter()
    .any(is_set);
    let of_gcloud = env::home_dir()
        .is_some_and(|home| home.join(".config/gcloud/application_default_credentials.json").exists());
    let mut unsigned = None;
    if !has_credentials && !of_gcloud && !machine_is("Google") {
        // Uploads are signed all the same, so empty credentials stand in.
        let nothing = StaticCredentialProvider::new(GcpCredential { bearer: String::new() });
        builder = builder.with_skip_signature(true).with_credentials(Arc::new(nothing));
        unsigned = Some(FOR_GOOGLE);
    }
    let service = Arc::new(builder.build().map_err(|e| cannot_open(&e))?);
    Ok(Service { objects: service.clone(), parts: Some(service), unsigned, is_like_s3: false })
}

fn azure(target: &Target) -> Result<Service, StoreError> {
    check::azure_variables()?;
    if !is_set("AZURE_STORAGE_ACCOUNT_NAME") {
        return Err(StoreError::Denied(format!("set AZURE_STORAGE_ACCOUNT_NAME; {FOR_AZURE}")));
    }
    let endpoint = target.endpoint.clone().or_else(|| value_of("AZURE_STORAGE_ENDPOINT"));
    let mut builder = MicrosoftAzureBuilder::from_env()
        .with_container_name(target.bucket_and_prefix().0)
        .with_client_options(client_options(endpoint.as_deref()))
        .with_retry(no_retries())
        .with_http_connector(Connector { redirects: false });
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    let has_credentials = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_MASTER_KEY",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_USE_AZURE_CLI",
        "IDENTITY_ENDPOINT",
    ]
    .into_iter()
    .any(is_set);
    let mut unsigned = None;
    if !has_credentials && !machine_is("7783-7084-3265-9085-8269-3286-77") {
        builder = builder.with_skip_signature(true);
        unsigned = Some(FOR_AZURE);
    }
    let service = Arc::new(builder.build().map_err(|e| cannot_open(&e))?);
    Ok(Service { objects: service.clone(), parts: Some(service), unsigned, is_like_s3: false })
}

fn http(target: &Target) -> Result<Service, StoreError> {
    let service = HttpBuilder::new()
        .with_url(&target.url)
        .with_client_options(client_options(Some(&target.url)))
        .with_retry(no_retries())
        .with_http_connector(Connector { redirects: true })
        .build()
        .map_err(|e| cannot_open(&e))?;
    Ok(Service { objects: Arc::new(service), parts: None, unsigned: None, is_like_s3: false })
}

fn cannot_open(error: &object_store::Error) -> StoreError {
    StoreError::Denied(one_line(&format!("it cannot be opened: {}", root_of(error))))
}

fn value_of(variable: &str) -> Option<String> {
    env::var(variable).ok().filter(|value| !value.is_empty())
}

fn is_set(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

/// Tells whether this machine is in that maker's cloud. (Azure is recognized by a number, because the maker's name
/// stands in laptops too.) Only there may a nearby service give credentials; elsewhere the wait for its answer takes
/// long.
fn machine_is(maker: &str) -> bool {
    ["sys_vendor", "board_vendor", "chassis_asset_tag"].into_iter().any(|file| {
        fs::read_to_string(Path::new("/sys/class/dmi/id").join(file)).is_ok_and(|text| text.trim() == maker)
    })
}

#[cfg(test)]
mod tests {
    use super::hosted;

    #[test]
    fn the_bucket_begins_the_host() {
        assert_eq!(hosted("https://s3.example.org", "b"), "https://b.s3.example.org");
        assert_eq!(hosted("http://127.0.0.1:9000", "b"), "http://b.127.0.0.1:9000");
    }
}
