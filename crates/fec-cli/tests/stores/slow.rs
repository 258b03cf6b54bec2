//! Places that crawl or do not answer cost only a moment, as long as enough others are well.

use crate::common::{Arena, expect, text};
use crate::{PLACES, Sent};
use std::fs;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// Waiting for a place that gives a byte now and then would take hours, or never end. A run has to end before this
/// time.
const SOON: Duration = Duration::from_secs(40);

/// The speed at which a server gives objects.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Pace {
    /// Full speed.
    Well,
    /// Bytes per second of a shard.
    Shards(u64),
    /// Bytes per second of a manifest.
    Manifests(u64),
}

/// Starts a server for a folder. Returns its address.
fn serve(folder: PathBuf, pace: Pace) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, folder) = (stream.unwrap(), folder.clone());
            // A client that has enough may be gone.
            std::thread::spawn(move || drop(answer(stream, &folder, pace)));
        }
    });
    address
}

fn answer(mut stream: TcpStream, folder: &Path, pace: Pace) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let mut range = None;
    for line in lines {
        let line = line?.to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(bytes) = line.strip_prefix("range: bytes=") {
            let (from, to) = bytes.split_once('-').expect("a range");
            range = Some((from.parse::<u64>().unwrap(), to.parse::<u64>().unwrap() + 1));
        }
    }
    let (method, path) = first.split_once(' ').unwrap_or_default();
    let path = path.split(' ').next().unwrap_or_default();
    let file = fs::File::open(folder.join(path.trim_start_matches('/')));
    let (Ok(mut file), true) = (file, path.len() > 1) else {
        return write!(stream, "HTTP/1.1 404 X\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    };
    let size = file.metadata()?.len();
    let (from, to) = range.map_or((0, size), |(from, to)| (from, to.min(size)));
    let (status, len) = (if range.is_some() { 206 } else { 200 }, to - from);
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {len}\r\n\
         Content-Range: bytes {from}-{}/{size}\r\n\r\n",
        to - 1
    )?;
    if method == "HEAD" {
        return Ok(());
    }
    let speed = match pace {
        Pace::Shards(speed) if path.ends_with(".shard") => Some(speed),
        Pace::Manifests(speed) if path.ends_with("manifest") => Some(speed),
        _ => None,
    };
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(len).read_to_end(&mut bytes)?;
    match speed {
        None => stream.write_all(&bytes)?,
        Some(0) => std::thread::sleep(Duration::from_secs(3600)),
        Some(speed) => {
            for piece in bytes.chunks(speed.div_ceil(4) as usize) {
                stream.write_all(piece)?;
                std::thread::sleep(Duration::from_secs_f64(piece.len() as f64 / speed as f64));
            }
        }
    }
    Ok(())
}

/// The places of a payload: servers at these paces for the first ones, folders for the others.
fn places(sent: &Sent, paces: &[Pace]) -> Vec<String> {
    let served = PLACES.iter().zip(paces).map(|(place, pace)| serve(sent.arena.path(place), *pace));
    served.chain(PLACES[paces.len()..].iter().map(|place| (*place).to_owned())).collect()
}

/// Runs a command that has to end soon.
#[track_caller]
fn soon(sent: &Sent, command: &str, places: &[String], options: &[&str]) -> Output {
    let started = Instant::now();
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let output = sent.fec_at(command, &places, options);
    let time = started.elapsed();
    println!("{command} took {time:?}");
    assert!(time < SOON, "{time:?}: {}", text(&output.stderr));
    output
}

#[test]
fn decode_does_not_wait_for_places_that_crawl() {
    let sent = Sent::new(&["--segment-size", "2M"]);
    for speed in [0, 1024] {
        let crawls = Pace::Shards(speed);
        for paces in [
            &[crawls][..],
            &[crawls, crawls],
            &[crawls, Pace::Well, Pace::Well, Pace::Well, Pace::Well],
            &[crawls, crawls, Pace::Well, Pace::Well, Pace::Well],
        ] {
            let output = soon(&sent, "decode", &places(&sent, paces), &["-o", "out", "-f"]);
            expect(&output, 0);
            assert!(sent.arena.read("out") == sent.bytes, "other bytes at exit code 0: {paces:?}");
        }
    }
}

/// With two shards needed, no healthy place is so fast that the others count as late.
#[test]
fn half_of_the_places_may_crawl_where_half_suffice() {
    let arena = Arena::new();
    let bytes = crate::common::payload(8, 400_000);
    arena.write("in", &bytes);
    let to = PLACES[..4].iter().flat_map(|place| ["--to", place]);
    let output = arena.expect(["encode", "in", "-k", "2", "-m", "2"].into_iter().chain(to), 0);
    let sent = Sent { root: crate::common::root(&output), arena, bytes };
    let crawl = [Pace::Shards(1), Pace::Shards(1)];
    let places = &places(&sent, &crawl)[..4];
    for options in [&["-o", "out", "-f"][..], &["-o", "out", "-f", "--range", "0..400000"]] {
        expect(&soon(&sent, "decode", places, options), 0);
        assert!(sent.arena.read("out") == sent.bytes, "other bytes at exit code 0");
    }
}

#[test]
fn parts_do_not_wait_for_places_that_crawl() {
    let sent = &Sent::new(&[]);
    // The runs only wait, so they do that side by side.
    std::thread::scope(|scope| {
        for speed in [0, 1024] {
            let crawls = Pace::Shards(speed);
            let some = [
                vec![crawls],
                vec![crawls, crawls],
                vec![Pace::Well, crawls, Pace::Well, crawls, Pace::Well],
            ];
            for (nth, paces) in some.into_iter().enumerate() {
                scope.spawn(move || {
                    for (from, to) in [(0, 4096), (290_000, 1_000_000)] {
                        let (range, part) = (format!("{from}..{to}"), format!("part-{speed}-{nth}"));
                        let options = ["--range", &range, "-o", &part, "-f"];
                        let output = soon(sent, "decode", &places(sent, &paces), &options);
                        expect(&output, 0);
                        assert!(sent.arena.read(&part) == sent.bytes[from..to], "{paces:?}: {from}..{to}");
                    }
                });
            }
        }
    });
    // If all places are equally slow, the run waits for them.
    let slow = [Pace::Shards(4096); 5];
    let output = soon(sent, "decode", &places(sent, &slow), &["--range", "0..100", "-o", "part", "-f"]);
    expect(&output, 0);
    assert!(sent.arena.read("part") == sent.bytes[..100]);
}

#[test]
fn manifests_that_crawl_are_left() {
    let sent = Sent::new(&["--segment-size", "2M"]);
    for speed in [0, 1] {
        let places = places(&sent, &[Pace::Manifests(speed)]);
        expect(&soon(&sent, "decode", &places, &["-o", "out", "-f"]), 0);
        // Verify reports how many places have the manifest.
        let output = soon(&sent, "verify", &places, &["--timeout", "1s"]);
        expect(&output, 0);
        assert!(text(&output.stdout).contains("4 of 5 places have the manifest"), "{}", text(&output.stdout));
        // Objects at a read-only place count as lost.
        expect(&soon(&sent, "repair", &places, &["--timeout", "1s", "-n"]), 1);
    }
}

/// Shards stand under each other's keys: records are not where they belong, but in the shard files all the same.
#[test]
fn parts_can_be_had_whenever_the_whole_can() {
    let sent = Sent::new(&["--segment-size", "2M"]);
    let shards: Vec<PathBuf> = PLACES.iter().flat_map(|place| sent.shards(place)).collect();
    assert_eq!(shards.len(), 10);
    let contents: Vec<Vec<u8>> = shards.iter().map(|shard| fs::read(shard).unwrap()).collect();
    for (nth, shard) in shards.iter().enumerate() {
        fs::write(shard, &contents[(nth + 3) % shards.len()]).unwrap();
    }
    sent.comes_back();
    for (from, to) in [(0, 1), (123_456, 654_321), (999_999, 1_000_000)] {
        for out in ["part", "-"] {
            let output = sent.fec("decode", &["--range", &format!("{from}..{to}"), "-o", out, "-f"]);
            expect(&output, 0);
            let part = if out == "-" { output.stdout } else { sent.arena.read("part") };
            assert!(part == sent.bytes[from..to], "{from}..{to}");
        }
    }
    // Too few shards are left, wherever they are.
    shards.iter().take(5).for_each(|shard| fs::remove_file(shard).unwrap());
    expect(&sent.fec("decode", &["--range", "0..1000", "-o", "never"]), 3);
    assert!(!sent.arena.path("never").exists());
}
