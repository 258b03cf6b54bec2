//! HTTP below the crate `object_store`: uploads are paced, downloads are followed and bounded, and answers that would
//! confuse the crate are corrected.

use super::listing;
use super::watch::{PIECE, Watch};
use crate::error::StoreError;
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, IF_NONE_MATCH, LAST_MODIFIED, RANGE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse,
    HttpResponseBody, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use rustls::crypto::ring;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// Longest answer, in bytes, to requests other than for bytes of an object.
const MAX_ANSWER: u64 = 64 << 20;
/// Longest page of a list, in bytes: a page has a thousand objects, or five thousand at Azure.
const MAX_PAGE: usize = 64 << 20;
/// Most bytes read of an error's body.
const MAX_ERROR: usize = 64 << 10;
/// Longest wait for a cloud's metadata service, which is near if it exists.
const METADATA: Duration = Duration::from_secs(2);
/// Longest time to connect; calls with a shorter timeout end sooner.
const CONNECT: Duration = Duration::from_secs(10);
/// Time that idle connections are kept: firewalls forget them silently.
const IDLE: Duration = Duration::from_secs(30);
/// Most bytes of a service's words that a message repeats.
const MAX_WORDS: usize = 200;

/// Makes HTTP clients of a store.
#[derive(Debug)]
pub(super) struct Connector {
    /// Follows redirects; only for requests that are never signed.
    pub(super) redirects: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp).as_deref() == Some("true");
        let redirects = match self.redirects {
            true => reqwest::redirect::Policy::limited(5),
            false => reqwest::redirect::Policy::none(),
        };
        let made = tls().and_then(|tls| {
            reqwest::Client::builder()
                .tls_backend_preconfigured(tls)
                .https_only(!allow_http)
                .redirect(redirects)
                .http1_only()
                // The addresses of a name share this time, so a dead address does not use all of it.
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
                .user_agent(concat!("fec/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|e| root_of(&e))
        });
        let client = made.map_err(|e| object_store::Error::Generic { store: "HTTP", source: e.into() })?;
        Ok(HttpClient::new(Service(client)))
    }
}

/// TLS by the certificates of the system, or of SSL_CERT_FILE and SSL_CERT_DIR. Without any certificates, connecting by
/// https fails.
fn tls() -> Result<rustls::ClientConfig, String> {
    static CONFIG: OnceLock<Result<rustls::ClientConfig, String>> = OnceLock::new();
    let made = CONFIG.get_or_init(|| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            tracing::debug!("no root certificates: install ca-certificates, or set SSL_CERT_FILE");
        }
        let config = rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?;
        Ok(config.with_root_certificates(roots).with_no_client_auth())
    });
    made.clone()
}

#[derive(Clone, Debug)]
struct Service(reqwest::Client);

#[async_trait::async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let watch = Watch::current();
        let done = async {
            watch.begin()?;
            let is_metadata = request.uri().host().is_some_and(|host| {
                host.starts_with("169.254.") || host == "metadata" || host.starts_with("metadata.google.")
            });
            if !is_metadata {
                return self.send(request, &watch).await;
            }
            // Its errors concern credentials, not objects.
            match tokio::time::timeout(METADATA, self.send(request, &watch)).await {
                Ok(Ok(answer)) if answer.status().is_success() => Ok(answer),
                _ => Err(StoreError::Denied("this machine's cloud gives it no credentials".into())),
            }
        };
        done.await.map_err(|trouble: StoreError| {
            watch.fail(trouble.clone());
            HttpError::new(HttpErrorKind::Unknown, trouble)
        })
    }
}

impl Service {
    async fn send(&self, request: HttpRequest, watch: &Arc<Watch>) -> Result<HttpResponse, StoreError> {
        let (mut head, body) = request.into_parts();
        let is_list = head.method == Method::GET && is_list(head.uri.query().unwrap_or_default());
        if is_list {
            watch.page(head.uri.query().unwrap_or_default())?;
        }
        let reads = head.method == Method::GET || head.method == Method::HEAD;
        let range = if head.headers.contains_key(RANGE) { watch.range.clone() } else { None };
        if watch.create
            && head.method == Method::POST
            && head.uri.query().is_some_and(|q| q.starts_with("uploadId="))
        {
            // The header is added after signing, which need not cover it. `object_store` does the same in copies.
            head.headers.insert(IF_NONE_MATCH, HeaderValue::from_static("*"));
        }
        let url =
            head.uri.to_string().parse().map_err(|_| StoreError::Failed("its address is no URL".into()))?;
        let mut out = reqwest::Request::new(head.method, url);
        *out.headers_mut() = head.headers;
        *out.body_mut() = match body.as_bytes() {
            Some(small) => Some(small.clone().into()),
            None => Some(reqwest::Body::wrap(UploadBody { inner: body, sent: 0, watch: Arc::clone(watch) })),
        };
        let answer = self.0.execute(out).await.map_err(|e| below_http(&e))?;
        let (mut head, body): (_, reqwest::Body) = http::Response::from(answer).into_parts();
        if !head.status.is_success() {
            let body = read(body, MAX_ERROR).await.unwrap_or_default();
            let region = head.headers.get("x-amz-bucket-region").and_then(|region| region.to_str().ok());
            watch.answer(head.status.as_u16(), Some(refusal(head.status, &body, region)));
            return Ok(HttpResponse::from_parts(head, body.into()));
        }
        watch.answer(head.status.as_u16(), None);
        if head.headers.get("x-amz-delete-marker").is_some_and(|mark| mark == "true") {
            watch.is_hidden.store(true, Ordering::Relaxed);
        }
        if reads {
            // The date is not used, and an unreadable one must not fail the request.
            head.headers.insert(LAST_MODIFIED, HeaderValue::from_static("Thu, 01 Jan 1970 00:00:00 GMT"));
        }
        if is_list {
            // The filtered list is shorter.
            head.headers.remove(CONTENT_LENGTH);
            return Ok(HttpResponse::from_parts(head, read_list(body, watch).await?.into()));
        }
        let mut most = MAX_ANSWER;
        if let Some(range) = range {
            most = u64::MAX; // the reader counts
            if head.status == StatusCode::OK {
                set_range_right(&mut head.headers, &range, watch)?;
                head.status = StatusCode::PARTIAL_CONTENT;
            }
            if !head.headers.contains_key(CONTENT_LENGTH) {
                head.headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
            }
        }
        let body = DownloadBody { inner: body, left: most, watch: Arc::clone(watch) };
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

fn is_list(query: &str) -> bool {
    query.split('&').any(|part| matches!(part, "list-type=2" | "comp=list"))
}

/// Corrects an answer of status 200 to a request for a range. Some services (`rclone serve s3`) send the range, and say
/// so; others send the object from its start.
fn set_range_right(headers: &mut HeaderMap, range: &Range<u64>, watch: &Watch) -> Result<(), StoreError> {
    if headers.contains_key(CONTENT_RANGE) {
        return Ok(());
    }
    let whole = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if let Some(whole) = whole.filter(|whole| *whole < range.end) {
        return Err(StoreError::WrongRange(format!(
            "{whole} bytes without a range, instead of {} to {}",
            range.start,
            range.end - 1
        )));
    }
    let claim = format!("bytes {}-{}/{}", range.start, range.end - 1, whole.unwrap_or(range.end));
    let claim = HeaderValue::try_from(claim).map_err(|e| StoreError::Failed(e.to_string()))?;
    headers.insert(CONTENT_RANGE, claim);
    watch.is_whole.store(true, Ordering::Relaxed);
    Ok(())
}

/// Reads an answer, up to `most` bytes.
async fn read(mut body: reqwest::Body, most: usize) -> Result<Bytes, StoreError> {
    let watch = Watch::current();
    let mut bytes = BytesMut::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let data = frame.map_err(|e| below_http(&e))?.into_data().unwrap_or_default();
        watch.came(data.len() as u64);
        let room = most - bytes.len();
        bytes.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room {
            break;
        }
    }
    Ok(bytes.freeze())
}

/// Reads a page of a list and keeps the wanted objects.
async fn read_list(mut body: reqwest::Body, watch: &Watch) -> Result<Bytes, StoreError> {
    let too_long = || StoreError::Failed("its answer is too long".into());
    let mut page = listing::Page::new(watch.keys.unwrap_or(|_| true));
    let mut len = 0;
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let data = frame.map_err(|e| below_http(&e))?.into_data().unwrap_or_default();
        watch.came(data.len() as u64);
        len += data.len();
        if len > MAX_PAGE || !page.push(&data) {
            return Err(too_long());
        }
    }
    Ok(page.end().into())
}

/// The error that an unsuccessful answer means.
fn refusal(status: StatusCode, body: &[u8], region: Option<&str>) -> StoreError {
    let said = words_of(body);
    let mut text = match said.as_str() {
        "" => format!("HTTP status {status}"),
        said => format!("HTTP status {}: {said}", status.as_u16()),
    };
    if let (Some(region), 301 | 307 | 400) = (region, status.as_u16()) {
        text += &one_line(&format!("; the bucket is in region={region}"));
    }
    let is_of_style =
        ["SecondLevelDomainForbidden", "irtual host", "irtual-host"].iter().any(|of| said.contains(of));
    if is_of_style {
        text += "; name the place with ,style=virtual";
    }
    match status.as_u16() {
        404 => StoreError::NotFound,
        401 | 403 => StoreError::Denied(text),
        408 | 425 | 429 | 500 | 502..=504 => StoreError::Unavailable(text),
        status if status > 504 => StoreError::Unavailable(text),
        _ => StoreError::Failed(text),
    }
}

/// Code and message of a service's error, from XML or JSON.
fn words_of(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let between = |start: &str, end: &str| {
        let (_, behind) = text.split_once(start)?;
        behind.split_once(end).map(|(inside, _)| inside.to_owned())
    };
    let code = between("<Code>", "</Code>");
    let message = between("<Message>", "</Message>").or_else(|| {
        let (_, behind) = text.split_once("\"message\"")?;
        let (_, behind) = behind.split_once('"')?;
        behind.split_once('"').map(|(inside, _)| inside.to_owned())
    });
    let words = match (code, message) {
        (Some(code), Some(message)) if code != message => format!("{code}: {message}"),
        (Some(words), _) | (None, Some(words)) => words,
        (None, None) => String::new(),
    };
    one_line(&words)
}

/// A single line of at most [`MAX_WORDS`] bytes, without control characters and without queries, which may be signed.
pub(super) fn one_line(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    let mut out = String::new();
    for word in line.split_whitespace() {
        let word = match word.split_once("://").and_then(|_| word.split_once('?')) {
            Some((url, _)) => url,
            None => word,
        };
        if out.len() + word.len() > MAX_WORDS {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.extend(word.chars().filter(|c| !c.is_control()));
    }
    out
}

/// The innermost cause of an error.
pub(super) fn root_of(error: &(dyn Error + 'static)) -> String {
    let mut root = error;
    while let Some(next) = root.source() {
        root = next;
    }
    one_line(&root.to_string())
}

fn below_http(error: &reqwest::Error) -> StoreError {
    let root = root_of(error);
    match tls_error(error) {
        Some(rustls::Error::InvalidCertificate(why)) => {
            return StoreError::Failed(one_line(&format!(
                "TLS: the certificate is not good: {why}; SSL_CERT_FILE names those to trust"
            )));
        }
        Some(tls @ (rustls::Error::PeerIncompatible(_) | rustls::Error::UnsupportedNameType)) => {
            return StoreError::Failed(one_line(&format!("TLS: {tls}")));
        }
        _ => {}
    }
    if error.is_builder() || error.is_redirect() {
        return StoreError::Failed(root);
    }
    StoreError::Unavailable(if error.is_connect() {
        format!("cannot connect: {root}")
    } else {
        format!("the connection broke: {root}")
    })
}

/// The error of rustls. I/O errors around it hide it from the chain of causes.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(tls) = error.downcast_ref() {
            return Some(tls);
        }
        next = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}

/// The body of an upload; each piece waits until it may go.
struct UploadBody {
    inner: HttpRequestBody,
    sent: u64,
    watch: Arc<Watch>,
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let left = self.inner.size_hint().exact().unwrap_or(0);
        let end = self.sent + left.min(PIECE as u64);
        ready!(self.watch.poll_allowed(end, context));
        self.sent = end;
        self.watch.progress();
        Pin::new(&mut self.inner).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of a download, followed and bounded.
struct DownloadBody {
    inner: reqwest::Body,
    left: u64,
    watch: Arc<Watch>,
}

impl Body for DownloadBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
            None => return Poll::Ready(None),
            Some(frame) => frame.map_err(|e| below_http(&e)),
        };
        let length = frame.as_ref().ok().and_then(Frame::data_ref).map_or(0, |data| data.len() as u64);
        self.watch.came(length);
        let checked = match self.left.checked_sub(length) {
            Some(left) => {
                self.left = left;
                frame
            }
            None => Err(StoreError::Failed("its answer is too long".into())),
        };
        Poll::Ready(Some(checked.map_err(|trouble| {
            self.watch.fail(trouble.clone());
            HttpError::new(HttpErrorKind::Unknown, trouble)
        })))
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_services_say_is_one_short_line() {
        let said = |body: &str| words_of(body.as_bytes());
        assert_eq!(said("<Error><Code>A</Code><Message>b\nc</Message></Error>"), "A: b");
        assert_eq!(said(r#"{"error":{"code":403,"message":"no access"}}"#), "no access");
        assert_eq!(said("<html>"), "");
        assert_eq!(one_line("see https://h/x?X-Amz-Signature=abc for\u{7} more"), "see https://h/x for more");
        assert!(one_line(&"word ".repeat(1000)).len() <= MAX_WORDS);
        let forbidden = b"<Error><Code>SecondLevelDomainForbidden</Code><Message>Please use virtual hosted style to access.</Message></Error>";
        let refused = refusal(StatusCode::FORBIDDEN, forbidden, None);
        assert!(
            matches!(refused, StoreError::Denied(why) if why.ends_with("; name the place with ,style=virtual"))
        );
        assert!(refusal(StatusCode::SERVICE_UNAVAILABLE, b"", None).is_worth_retrying());
        assert!(!refusal(StatusCode::NOT_IMPLEMENTED, b"", None).is_worth_retrying());
    }
}
