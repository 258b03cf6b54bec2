//! Services that answer as a test says: what no real one does on demand. No server is needed.

use super::*;

/// A service that answers by a function of a request's head, and then closes.
fn service(answer: impl Fn(&str) -> String + Send + 'static) -> Place {
    service_of_bodies(move |head, _| answer(head))
}

/// A service that answers by a function of a request's head and body.
fn service_of_bodies(answer: impl Fn(&str, &[u8]) -> String + Send + 'static) -> Place {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let endpoint = format!("http://{}", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            if let Some((head, body)) = request(&mut stream) {
                let _ = stream.write_all(answer(&head, &body).as_bytes());
            }
        }
    });
    Place::new(&format!("s3://bucket/x,endpoint={endpoint}"))
}

/// Reads the head and the body of a request.
fn request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut request = Vec::new();
    let mut buffer = [0; 1 << 16];
    loop {
        let Ok(more @ 1..) = stream.read(&mut buffer) else { return None };
        request.extend_from_slice(&buffer[..more]);
        let Some(end) = request.windows(4).position(|bytes| bytes == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&request[..end]).into_owned();
        let len = header(&head, "content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
        if request.len() >= end + 4 + len {
            return Some((head, request.split_off(end + 4)));
        }
    }
}

/// The value of a request's header.
fn header(head: &str, name: &str) -> Option<String> {
    let mut headers = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    headers.find(|(of, _)| of.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
}

fn says(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\nContent-Length: {len}\r\n\r\n{body}")
}

#[test]
fn services_that_know_no_conditions() {
    if is_amazon() {
        return;
    }
    let place = service(|head| match head {
        _ if head.starts_with("HEAD") => says("404 Not Found", "", ""),
        _ if head.to_lowercase().contains("if-none-match") => says("501 Not Implemented", "", ""),
        _ => says("200 OK", "ETag: \"1\"\r\n", ""),
    });
    assert_eq!(place.put("a", b"a"), Ok(Put::Created));
    assert_eq!(place.put("b", b"b"), Ok(Put::Created));
}

#[test]
fn conflicts_are_looked_into() {
    if is_amazon() {
        return;
    }
    use std::sync::atomic::{AtomicUsize, Ordering};
    let heads = AtomicUsize::new(0);
    let place = service(move |head| match head {
        // The object appears between the first look and the put.
        _ if head.starts_with("HEAD") && heads.fetch_add(1, Ordering::Relaxed) & 1 == 0 => {
            says("404 Not Found", "", "")
        }
        _ if head.starts_with("HEAD /bucket/x/there") => says("200 OK", "", "1"),
        _ if head.starts_with("HEAD") => says("404 Not Found", "", ""),
        _ => says("409 Conflict", "", "<Error><Code>ConditionalRequestConflict</Code></Error>"),
    });
    assert_eq!(place.put("there", b"a"), Ok(Put::Existed));
    let error = place.put("gone", b"a");
    assert!(
        matches!(error, Err(StoreError::Unavailable(_))),
        "not there, so it has to be tried again: {error:?}"
    );
}

#[test]
fn lists_that_lie() {
    if is_amazon() {
        return;
    }
    let place = service(|_| {
        let key = |key: &str| {
            format!(
                "<Contents><Key>{key}</Key><Size>1</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
            )
        };
        let keys: String = ["x/a", "y/b", "xx/c", "x/../d", "x/e&#0;", "x"].into_iter().map(key).collect();
        says("200 OK", "", &format!("<ListBucketResult>{keys}</ListBucketResult>"))
    });
    assert_eq!(place.keys(""), ["a"]);
    let place = service(|_| {
        says(
            "200 OK",
            "",
            "<ListBucketResult><NextContinuationToken>on</NextContinuationToken></ListBucketResult>",
        )
    });
    let error = place.store.list("", &place.call());
    let back = "its list leads back to where it was, and does not come to an end";
    assert_eq!(error, Err(StoreError::Failed(back.into())));
    let pages = std::sync::atomic::AtomicU64::new(0);
    let place = service(move |_| {
        let next = pages.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let token = format!("<NextContinuationToken>{next}</NextContinuationToken>");
        says("200 OK", "", &format!("<ListBucketResult>{token}</ListBucketResult>"))
    });
    let error = place.store.list("", &place.call());
    assert_eq!(error, Err(StoreError::Failed("it does not come to an end".into())));
}

#[test]
fn answers_that_are_not_what_was_asked_for() {
    if is_amazon() {
        return;
    }
    let chunks = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
                  5\r\nabcde\r\n5\r\nfghij\r\n0\r\n\r\n";
    let place = service(move |_| chunks.to_owned());
    assert_eq!(place.get("a", 3..7).as_deref(), Ok(&b"defg"[..]), "all of it, of a length that nobody says");
    assert!(matches!(place.get("a", 8..12), Err(StoreError::WrongRange(_))));
    let place = service(|_| says("206 Partial Content", "", "abc"));
    assert!(matches!(place.get("a", 0..3), Err(StoreError::WrongRange(_))), "a part, and not which");
    let place = service(|_| says("200 OK", "", "abc"));
    assert!(
        matches!(place.get("a", 5..8), Err(StoreError::WrongRange(_))),
        "the range perhaps, and perhaps all there is"
    );
    let place = service(|_| "SSH-2.0-OpenSSH\r\n".to_owned());
    assert!(matches!(place.get("a", 5..8), Err(StoreError::Unavailable(_))));
    let place = service(|_| says("301 Moved Permanently", "x-amz-bucket-region: eu-north-1\r\n", ""));
    let error = place.get("a", 0..1);
    assert!(
        matches!(&error, Err(StoreError::Failed(text)) if text.contains("region=eu-north-1")),
        "{error:?}"
    );
}

/// The digest of a body in S3's notation.
fn sha256(body: &[u8]) -> String {
    use base64ct::Encoding;
    use sha2::Digest;
    base64ct::Base64::encode_string(&sha2::Sha256::digest(body))
}

/// A bucket with Object Lock refuses uploads without a checksum.
#[test]
fn a_checksum_goes_with_every_upload() {
    if is_amazon() {
        return;
    }
    // The first service checks the checksum and returns it, the second does not return it.
    for knows in [true, false] {
        let place = service_of_bodies(move |head, body| {
            let refused = || {
                let why = "Content-MD5 OR x-amz-checksum- HTTP header is required";
                says(
                    "400 Bad Request",
                    "",
                    &format!("<Error><Code>InvalidRequest</Code><Message>{why}</Message></Error>"),
                )
            };
            let sum = header(head, "x-amz-checksum-sha256");
            let told = match &sum {
                Some(sum) if knows => format!("ETag: \"1\"\r\nx-amz-checksum-sha256: {sum}\r\n"),
                _ => "ETag: \"1\"\r\n".to_owned(),
            };
            let text = String::from_utf8_lossy(body);
            match head.split(' ').next().unwrap_or_default() {
                "HEAD" => says("404 Not Found", "", ""),
                "PUT" if sum != Some(sha256(body)) => refused(),
                "PUT" => says("200 OK", &told, ""),
                _ if head.contains("?uploads") => match header(head, "x-amz-checksum-algorithm").as_deref() {
                    Some("SHA256") => {
                        let made = "<InitiateMultipartUploadResult><UploadId>7</UploadId></InitiateMultipartUploadResult>";
                        says("200 OK", "", made)
                    }
                    _ => refused(),
                },
                "POST" if text.matches("<ChecksumSHA256>").count() != if knows { 3 } else { 0 } => refused(),
                _ => says(
                    "200 OK",
                    "",
                    "<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>",
                ),
            }
        });
        assert_eq!(place.put("small", &bytes_of(8, 300_000)), Ok(Put::Created));
        assert_eq!(place.put("none", b""), Ok(Put::Created));
        assert_eq!(place.put("large", &bytes_of(9, 13 << 20)), Ok(Put::Created));
    }
}

/// The answer to a HEAD request has no room for a reason.
#[test]
fn what_a_head_cannot_say_another_request_does() {
    if is_amazon() {
        return;
    }
    let is_head = |head: &str| head.starts_with("HEAD");
    let expired =
        "<Error><Code>ExpiredToken</Code><Message>The provided token has expired.</Message></Error>";
    let place = service(move |head| says("400 Bad Request", "", if is_head(head) { "" } else { expired }));
    for error in [place.head("a").err(), place.put("a", b"a").err()] {
        let error = error.expect("an error").to_string();
        assert!(error.contains("ExpiredToken: The provided token has expired."), "{error}");
    }
    let denied = "<Error><Code>AccessDenied</Code><Message>by a rule</Message></Error>";
    let place = service(move |head| says("403 Forbidden", "", if is_head(head) { "" } else { denied }));
    let error = place.head("a");
    assert!(matches!(&error, Err(StoreError::Denied(why)) if why.contains("by a rule")), "{error:?}");
    // Some services refuse only HEAD requests.
    for status in ["403 Forbidden", "405 Method Not Allowed", "501 Not Implemented"] {
        let place = service(move |head| match is_head(head) {
            true => says(status, "", ""),
            false => says("206 Partial Content", "Content-Range: bytes 0-0/12345\r\n", "x"),
        });
        assert_eq!(place.head("a").map(|info| info.size), Ok(12345), "{status}");
        let place = service(move |head| says(if is_head(head) { status } else { "404 Not Found" }, "", ""));
        assert_eq!(place.head("a"), Err(StoreError::NotFound), "{status}");
        let place = service(move |head| says(if is_head(head) { status } else { "416 X" }, "", ""));
        assert_eq!(place.head("a").map(|info| info.size), Ok(0), "{status}");
    }
}
